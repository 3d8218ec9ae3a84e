// How long it takes to fork workers with libtorch loaded: from create() until each has registered and answered a call.
//   paceline run actor_start       prints the median of 20 rounds, for 1 actor and for 8
#include <paceline.h>
#include <paceline/train.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

class Nobody {
 public:
  int answer() { return 42; }
};

double start(int count) {
  const auto begin = std::chrono::steady_clock::now();
  auto actors = paceline::create_many<Nobody>({.count = count});
  std::vector<paceline::Future<int>> answers;
  for (auto& actor : actors) answers.push_back(actor.call(&Nobody::answer));
  for (auto& answer : answers) answer.get();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

int main(int argc, char**) {
  if (argc > 100) return paceline::run([](paceline::Worker&) {}).exit_code();  // Never: links the library as jobs do.
  start(1);                                                                    // The fork server's own start.
  for (const int count : {1, 8}) {
    std::vector<double> times;
    for (int round = 0; round < 20; ++round) {
      times.push_back(start(count));
      std::this_thread::sleep_for(std::chrono::milliseconds(100));  // The last round's processes end.
    }
    std::nth_element(times.begin(), times.begin() + 10, times.end());
    std::printf("%d worker%s forked, registered and heard of: %.1f ms\n", count, count == 1 ? "" : "s", times[10]);
  }
}
