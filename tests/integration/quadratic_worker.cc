// A training job without torch: plain SGD on four quadratics, driven through the session's C ABI by real processes.
//
// Worker i holds f_i(x) = a_i/2 (x - c_i)^2 with a = (1,2,1,2), c = (0,4,8,12), repeated for more workers; the model is
// one number, repeated `elements` times; the learning rate is 1/4. Every value is a dyadic rational, so tests compare
// with exact arithmetic. Each worker writes what happened to it as JSON lines to OUTPUT/worker-RANK.jsonl. Once there
// is a file OUTPUT/enough, all workers ask for the job's end.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "actors/async.h"
#include "algorithms/job/launch.h"
#include "algorithms/session/session.h"
#include "runtime/base/json.h"

namespace {

using nlohmann::json;

constexpr double kLearningRate = 0.25;
constexpr double kCurvature[] = {1, 2, 1, 2};
constexpr double kCentre[] = {0, 4, 8, 12};

int print_in_task(int rank) {
  std::printf("a task of worker %d\n", rank);
  return rank;
}

class Quadratic {
 public:
  explicit Quadratic(const paceline::job::WorkerStart& start)
      : start_(start),
        options_(paceline::parse_json(start.options)),
        elements_(options_.value("elements", std::uint64_t{1})) {
    const std::string output = options_.value("output", "");
    if (output.empty()) return;
    out_.open(output + "/worker-" + std::to_string(start.rank) + ".jsonl",
              options_.value("goes_on_writing", false) ? std::ios::app : std::ios::out);  // After its last process.
    enough_ = output + "/enough";
  }
  ~Quadratic() { paceline_session_close(session_); }
  Quadratic(const Quadratic&) = delete;
  Quadratic& operator=(const Quadratic&) = delete;

  /// Why it could not go on; empty: the job ended.
  std::string run() {
    die_if("before_open");
    if (const json loading = options_.value("load_ms", json::array()); !loading.empty())
      std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(of_this_worker(loading).get<double>()));
    const auto config = this->config();
    char error[1024] = "";
    session_ = paceline_session_open(&config, error, sizeof error);
    if (!session_) throw std::runtime_error("worker " + std::to_string(start_.rank) + " cannot join its job: " + error);
    info_ = paceline_session_get_info(session_);
    die_if("before_start");
    local_.assign(elements_, options_.value("x0", 0.0));
    follow();
    plan();
    say();
    std::string trouble;
    try {
      trouble = loop();
    } catch (const std::exception& failure) {
      paceline_session_fail(session_, ("worker " + std::to_string(start_.rank) + ": " + failure.what()).c_str());
      throw;
    }
    note({{"final", value()}, {"updates", ended_at_}, {"uniform", is_uniform()}, {"lost", !trouble.empty()}});
    return trouble;
  }

 private:
  paceline_session_config config() const {
    return {start_.endpoint.c_str(),
            start_.worker,
            start_.agent,
            start_.job,
            start_.rank,
            elements_,
            PACELINE_F64,
            options_.value("outer_elements", std::uint64_t{0})};
  }
  void plan() {
    paceline_session_plan(session_, info_.first_update, options_.value("updates", std::int64_t{3}),
                          options_.value("evaluate_every", std::int64_t{-1}));
  }
  void begin_next_leg() {
    follow();
    if (window_) std::copy(window_, window_ + elements_, local_.begin());
    window_ = nullptr;
    const auto config = this->config();
    char error[1024] = "";
    if (!paceline_session_reopen(session_, &config, error, sizeof error)) throw std::runtime_error(error);
    info_ = paceline_session_get_info(session_);
    note({{"event", "leg"}, {"update", info_.first_update}, {"x", local_.front()}});
    follow();
    plan();
  }
  /// The model lies where the session wants it.
  void follow() {
    auto* const at = static_cast<double*>(paceline_session_model(session_).data);
    if (at == window_) return;
    if (!at) std::copy(window_, window_ + elements_, local_.begin());
    const bool placed = at && !window_;
    if (placed) std::copy(local_.begin(), local_.end(), at);
    window_ = at;
    if (!placed) return;
    paceline_session_placed(session_);
    follow();
  }
  double* x() { return window_ ? window_ : local_.data(); }
  double value() { return x()[0]; }
  bool is_uniform() {
    const double* at = x();
    return std::all_of(at, at + elements_, [&](double v) { return v == at[0]; });
  }
  /// The numbers that the test asks for by their places.
  json watched() {
    json numbers = json::array();
    for (const std::uint64_t place : options_.value("watch", std::vector<std::uint64_t>()))
      numbers.push_back(x()[place]);
    return numbers;
  }
  double curvature() const { return kCurvature[start_.rank % 4]; }
  double centre() const { return kCentre[start_.rank % 4]; }
  double gradient() { return curvature() * (value() - centre()); }

  void note(json line) {
    if (!out_.is_open()) return;
    line["rank"] = start_.rank;
    out_ << paceline::json_text(line) << std::endl;
  }

  /// What the test wants to see printed.
  void say() const {
    if (const auto words = options_.value("say", ""); !words.empty()) std::printf("%s\n", words.c_str());
    if (options_.value("say_no_text", false)) std::fwrite("\xff\xfe|\0|\x01\n", 1, 7, stdout);
    if (options_.value("say_in_task", false)) paceline::async(print_in_task, start_.rank).get();
    for (int i = 0; i < options_.value("say_lines", 0); ++i) std::printf("line %d ........................\n", i);
  }

  std::string loop() {
    while (true) {
      paceline_lease lease{};
      switch (paceline_session_next(session_, &lease)) {
        case PACELINE_BODY:
          if (options_.value("return_update", -1) == lease.update) return "";
          follow();
          body(lease);
          break;
        case PACELINE_EVALUATE:
          follow();
          note({{"event", "evaluate"}, {"update", lease.update}, {"x", value()}});
          std::this_thread::sleep_for(std::chrono::milliseconds(options_.value("evaluate_ms", 0)));
          paceline_session_evaluated(session_, value());
          break;
        case PACELINE_CAPTURE:
          give_state();
          follow();
          break;
        case PACELINE_SAVE:
          note({{"event", "save"}, {"update", lease.update}, {"x", value()}});
          paceline_session_saved(session_);
          break;
        case PACELINE_RESTORE: {
          const auto replica = paceline_session_replica(session_);
          if (!take_state({static_cast<const char*>(replica.data), replica.elements}))
            return "the replica has another size";
          paceline_session_restored(session_);
          follow();
          note({{"event", "restore"}, {"update", lease.update}, {"x", value()}});
          break;
        }
        case PACELINE_END: {
          follow();
          ended_at_ = lease.update;
          const paceline_span model{x(), x() ? elements_ : 0};
          paceline_session_end_with(session_, &model, 1, sizeof(double));
          std::fputs(options_.value("say_last", "").c_str(), stdout);
          if (const json linger = options_.value("linger_ms", json::array()); !linger.empty())
            std::this_thread::sleep_for(std::chrono::milliseconds(of_this_worker(linger).get<int>()));
          return "";
        }
        case PACELINE_NEXT_LEG: begin_next_leg(); break;
        case PACELINE_LOST: return "worker " + std::to_string(start_.rank) + ": its node agent is gone";
      }
    }
  }

  /// The model, and what the outer step goes on from.
  void give_state() {
    const auto outer = paceline_session_outer(session_);
    const paceline_span state[] = {{x(), elements_ * sizeof(double)}, outer};
    paceline_session_capture(session_, state, outer.data ? 2 : 1);
  }
  bool take_state(std::string_view state) {
    if (state.size() < elements_ * sizeof(double)) return false;
    std::memcpy(x(), state.data(), elements_ * sizeof(double));
    state.remove_prefix(elements_ * sizeof(double));
    return state.empty() || paceline_session_set_outer(session_, state.data(), state.size()) != 0;
  }

  double rate() const { return kLearningRate * info_.lr_factor; }

  /// Out of a list with an entry a worker.
  json of_this_worker(const json& list) const { return list[static_cast<std::size_t>(start_.rank) % list.size()]; }
  /// Whether the test wants this of this worker.
  bool is_to(const char* fail) const {
    return options_.value("fail_rank", -1) == start_.rank && options_.value("fail", "") == fail;
  }
  /// As if somebody had killed this worker at that moment.
  void die_if(const char* moment) const {
    if (is_to(moment)) std::raise(SIGKILL);
  }

  /// Sleeps as long as this worker's mini-batches take, and does what the test wants to happen at this update.
  void compute(const paceline_lease& lease) {
    // A number a worker, or a list with one an update, each of which may be a list with one a mini-batch.
    const json sleeps = options_.value("sleep_ms", json::array());
    if (!sleeps.empty()) {
      json mine = of_this_worker(sleeps);
      if (mine.is_array()) mine = json(mine[static_cast<std::size_t>(lease.update) % mine.size()]);
      if (mine.is_array()) mine = json(mine[static_cast<std::size_t>(lease.body) % mine.size()]);
      paceline_session_sleep(session_, mine.get<double>() / 1e3);
    }
    if (const double most = options_.value("random_ms", 0.0); most > 0)  // Other delays in each run.
      paceline_session_sleep(session_, std::uniform_real_distribution<>(0, most / 1e3)(chance_));
    const json busy = options_.value("busy_ms", json::array());  // Nothing ends these before their time.
    if (!busy.empty())
      std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(of_this_worker(busy).get<double>()));
    if (const int every = options_.value("say_every", 0); every > 0 && lease.update % every == 0)
      std::printf("at update %d\n", static_cast<int>(lease.update));
    if ((options_.value("stop_rank", -1) == start_.rank && options_.value("stop_update", -1) == lease.update) ||
        (!enough_.empty() && access(enough_.c_str(), F_OK) == 0))
      paceline_session_stop(session_, "enough");
    const auto fail_from = options_.value("fail_from", std::int64_t{-1});  // At each update from this one on.
    const bool is_time =
        options_.value("fail_update", -1) == lease.update || (fail_from >= 0 && lease.update >= fail_from);
    if (options_.value("fail_rank", -1) != start_.rank || !is_time) return;
    const std::string how = options_.value("fail", "");
    std::fprintf(stderr, "about to fail on purpose: %s\n", how.c_str());
    if (how == "throw") throw std::runtime_error("the user's code threw on purpose");
    if (how == "throw_bytes") throw std::runtime_error("gr\xfc\xdf dich");  // Latin-1.
    if (how == "log_bytes") {
      for (int i = 0; i < 1000; ++i) std::fputs("\xe2\x82\xac", stderr);  // Its tail begins within a character.
      _exit(7);
    }
    if (how == "say_bytes") {
      paceline_session_log(session_, "gr\xfc\xdf", 1);
      paceline_session_uses_file(session_, "/tmp/gr\xfc\xdf");
      paceline_session_stop(session_, "gr\xfc\xdf dich");
    }
    if (how == "segfault") {
      std::signal(SIGSEGV, SIG_DFL);  // Not a sanitizer's handler.
      std::raise(SIGSEGV);
    }
    if (how == "exit") _exit(7);
    if (how == "freeze") freeze();
  }

  /// Until somebody thaws it; once.
  void freeze() {
    if (!std::exchange(was_frozen_, true)) std::raise(SIGSTOP);
  }

  void body(const paceline_lease& lease) {
    compute(lease);
    const double before = value();
    double g = gradient();
    const paceline_stats stats{curvature() / 2 * (before - centre()) * (before - centre()), 1, kLearningRate};
    paceline_outcome outcome = PACELINE_GO_ON;
    double result = std::numeric_limits<double>::quiet_NaN();
    if (lease.payload != PACELINE_MODELS) {
      const std::vector<double> gradients(elements_, g);
      // Two pieces, to be put together by the session.
      const std::uint64_t half = elements_ / 2;
      const paceline_span pieces[] = {{const_cast<double*>(gradients.data()), half},
                                      {const_cast<double*>(gradients.data()) + half, elements_ - half}};
      outcome = paceline_session_step_gradients(session_, pieces, 2, &stats);
      if (outcome == PACELINE_APPLY) {
        const auto* averaged = static_cast<const double*>(paceline_session_result(session_).data);
        if (!averaged) averaged = gradients.data();
        result = averaged[0];
        for (std::uint64_t i = 0; i < elements_; ++i) x()[i] -= rate() * averaged[i];
        if (is_to("freeze_in_step") && options_.value("fail_update", -1) <= lease.update) freeze();
      }
    } else {
      for (std::uint64_t i = 0; i < elements_; ++i) x()[i] -= rate() * curvature() * (x()[i] - centre());
    }
    if (lease.payload == PACELINE_MODELS || (lease.payload == PACELINE_BOTH && outcome == PACELINE_APPLY)) {
      follow();
      outcome = paceline_session_step_model(session_, &stats);
    }
    follow();
    for (int i = 0; i < options_.value("log", 0); ++i)
      paceline_session_log(session_, ("value" + std::to_string(i)).c_str(), static_cast<double>(lease.update));
    const char* names[] = {"go_on", "apply", "moved", "dropped", "over"};
    note({{"event", "step"},
          {"update", lease.update},
          {"body", lease.body},
          {"before", before},
          {"gradient", g},
          {"outcome", names[outcome]},
          {"result", std::isnan(result) ? json(nullptr) : json(result)},
          {"x", outcome == PACELINE_OVER ? json(nullptr) : json(value())},
          {"watched", outcome == PACELINE_OVER ? json(nullptr) : watched()},
          {"uniform", is_uniform()}});
  }

  const paceline::job::WorkerStart& start_;
  json options_;
  std::uint64_t elements_;
  std::ofstream out_;
  std::string enough_;  // The file that ends the job.
  paceline_session* session_ = nullptr;
  paceline_session_info info_{};
  double* window_ = nullptr;   // Where the model is in the window, if it is there.
  std::vector<double> local_;  // Else here.
  std::int64_t ended_at_ = -1;
  bool was_frozen_ = false;
  std::mt19937 chance_{std::random_device()()};
};

paceline::Result<void> work(const paceline::job::WorkerStart& start) {
  try {
    const std::string trouble = Quadratic(start).run();
    if (trouble.empty()) return {};
    return paceline::fail(paceline::ErrorKind::cancelled, trouble);
  } catch (const std::exception& error) {
    return paceline::fail(paceline::ErrorKind::internal, error.what());
  }
}

}  // namespace

// Options as KEY=VALUE, the values JSON or else text, of each of its runs: updates=3 strategy=allreduce
// sleep_ms=[10,10,10,40].
int main(int argc, char** argv) {
  json options{{"workers", 4}, {"strategy", "allreduce"}, {"metric", {{"name", "model"}}}};
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto equals = argument.find('=');
    if (equals == std::string::npos) {
      std::fprintf(stderr, "quadratic_worker: '%s' is not KEY=VALUE\n", argv[i]);
      return 2;
    }
    const std::string text = argument.substr(equals + 1);
    json value = paceline::parse_json(text);
    options[argument.substr(0, equals)] = value.is_discarded() ? json(text) : value;
  }
  for (int more = options.value("runs", 1) - 1; more > 0; --more) (void)paceline::job::launch({work}, options);
  return paceline::job::launch({work}, std::move(options)).exit_code();
}
