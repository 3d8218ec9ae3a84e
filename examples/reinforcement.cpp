// Workers learn to find a goal in rooms that they explore; simulating a room takes unequal times, as in reinforcement
// learning over heterogeneous environments:
//   paceline run examples/reinforcement.cpp --compare 'allreduce,wagma(sync=8),ad-psgd'
// As in the WAGMA paper (Section V-D, Fig. 9) an update's experience, 256 steps a worker, takes 1.7 to 43.5 s, half of
// the times less than 2 s; here a fiftieth of that, and slept: a simulator that runs elsewhere. (Such a sleep goes on
// when `nonblocking` abandons the batch.) The learner is advantage actor-critic: PPO with one pass over its experience.
// tests/bench/workloads.py measures what each strategy makes of it.
#include <paceline/train.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <random>
#include <thread>

namespace {

using torch::Tensor;

constexpr double kRate = 4e-3;             // tests/bench/workloads.py tries others for each strategy.
constexpr std::int64_t kSteps = 32;        // Of a mini-batch in each of its rooms.
constexpr std::int64_t kExperience = 256;  // Steps that take a worker the paper's times.

/// Seconds that so much experience takes in the scene that a worker has for an update.
double draw_seconds(std::mt19937& random) {
  std::lognormal_distribution<double> more(-1.6, 1.5);
  return std::min(1.7 + more(random), 43.5) / 50;
}

/// A room with walls at random and a goal that can be reached. The agent sees the 5 x 5 cells around it, where the goal
/// lies, and its last move.
class Room {
 public:
  static constexpr int kSide = 9, kMoves = 4, kSeen = 25 + 2 + kMoves;

  explicit Room(std::mt19937& random) {
    do {
      for (auto& wall : wall_) wall = random() % 5 == 0;
      goal_ = static_cast<int>(random() % wall_.size());
      at_ = static_cast<int>(random() % wall_.size());
      measure();
    } while (distance_[at_] < 2);
    shortest_ = distance_[at_];
  }

  void look(float* out) const {
    const int x = at_ % kSide, y = at_ / kSide;
    for (int cell = 0; cell < 25; ++cell) *out++ = is_wall(x - 2 + cell % 5, y - 2 + cell / 5);
    *out++ = static_cast<float>(goal_ % kSide - x) / kSide;
    *out++ = static_cast<float>(goal_ / kSide - y) / kSide;
    for (int move = 0; move < kMoves; ++move) *out++ = move == last_;
  }

  /// The reward: by how much the way to the goal is shorter now, less a little for the step. (Larger ones let the
  /// critic crowd out the policy.)
  float move(std::int64_t move) {
    const int before = distance_[at_];
    at_ = neighbour(at_, move);
    last_ = move;
    ++moves_;
    return 0.2F * static_cast<float>(before - distance_[at_]) - 0.02F;
  }

  bool done() const { return at_ == goal_; }
  /// Success weighted by path length: the shortest way over the one taken, 0 while the goal is not reached.
  double score() const { return done() ? static_cast<double>(shortest_) / moves_ : 0; }

 private:
  bool is_wall(int x, int y) const { return x < 0 || y < 0 || x >= kSide || y >= kSide || wall_[y * kSide + x]; }
  /// Where a move leads: the same cell, if a wall is there.
  int neighbour(int from, std::int64_t move) const {
    const int x = from % kSide + (move == 0) - (move == 1), y = from / kSide + (move == 2) - (move == 3);
    return is_wall(x, y) ? from : y * kSide + x;
  }
  /// The distances to the goal, breadth first; -1 where there is no way.
  void measure() {
    distance_.fill(-1);
    if (wall_[goal_] || wall_[at_]) return;
    distance_[goal_] = 0;
    for (std::deque<int> open{goal_}; !open.empty(); open.pop_front()) {
      for (int move = 0; move < kMoves; ++move) {
        const int next = neighbour(open.front(), move);
        if (distance_[next] >= 0) continue;
        distance_[next] = distance_[open.front()] + 1;
        open.push_back(next);
      }
    }
  }

  std::array<bool, kSide * kSide> wall_{};
  std::array<int, kSide * kSide> distance_{};
  int goal_ = 0, at_ = 0, shortest_ = 0, moves_ = 0;
  std::int64_t last_ = -1;
};

std::vector<Room> draw_rooms(std::int64_t count, std::mt19937& random) {
  std::vector<Room> rooms;
  for (std::int64_t i = 0; i < count; ++i) rooms.emplace_back(random);
  return rooms;
}

Tensor look(const std::vector<Room>& rooms) {
  auto seen = torch::empty({static_cast<std::int64_t>(rooms.size()), Room::kSeen});
  for (std::size_t i = 0; i < rooms.size(); ++i) rooms[i].look(seen.data_ptr<float>() + i * Room::kSeen);
  return seen;
}

struct NetImpl : torch::nn::Module {
  NetImpl() {
    using torch::nn::Linear, torch::nn::Tanh;
    body = register_module("body", torch::nn::Sequential(Linear(Room::kSeen, 64), Tanh(), Linear(64, 64), Tanh()));
    policy = register_module("policy", Linear(64, Room::kMoves));
    critic = register_module("critic", Linear(64, 1));
  }
  Tensor draw_moves(const Tensor& seen) { return policy(body->forward(seen)).softmax(1).multinomial(1).squeeze(1); }
  Tensor value(const Tensor& seen) { return critic(body->forward(seen)).squeeze(1); }

  torch::nn::Sequential body{nullptr};
  torch::nn::Linear policy{nullptr}, critic{nullptr};
};
TORCH_MODULE(Net);

/// Mean score of 300 episodes of at most 40 moves, always in the same rooms.
double score(Net& net) {
  std::mt19937 random(2020);
  torch::manual_seed(2020);
  auto rooms = draw_rooms(300, random);
  for (int step = 0; step < 40; ++step) {
    const auto moves = net->draw_moves(look(rooms));
    for (std::size_t i = 0; i < rooms.size(); ++i)
      if (!rooms[i].done()) rooms[i].move(moves[i].item<std::int64_t>());
  }
  double sum = 0;
  for (const auto& room : rooms) sum += room.score();
  return sum / static_cast<double>(rooms.size());
}

struct Experience {
  Tensor seen, moves, returns;
};

/// kSteps steps in each of `rooms`; where the goal is reached another room follows.
Experience explore(Net& net, std::vector<Room> rooms, std::mt19937& random) {
  torch::NoGradGuard no_grad;
  std::vector<Tensor> seen, moves;
  auto returns = torch::zeros({kSteps, static_cast<std::int64_t>(rooms.size())}), goes_on = torch::ones_like(returns);
  auto reward = returns.accessor<float, 2>(), on = goes_on.accessor<float, 2>();
  for (std::int64_t step = 0; step < kSteps; ++step) {
    seen.push_back(look(rooms));
    moves.push_back(net->draw_moves(seen.back()));
    const auto move = moves.back().accessor<std::int64_t, 1>();
    for (std::size_t i = 0; i < rooms.size(); ++i) {
      reward[step][i] = rooms[i].move(move[i]);
      if (!rooms[i].done()) continue;
      on[step][i] = 0;
      rooms[i] = Room(random);
    }
  }
  auto next = net->value(look(rooms));
  for (std::int64_t step = kSteps - 1; step >= 0; --step) next = returns[step] += 0.9 * goes_on[step] * next;
  return {torch::cat(seen), torch::cat(moves), returns.flatten()};
}

Tensor loss_of(Net& net, const Experience& experience) {
  const auto features = net->body->forward(experience.seen);
  const auto log_chances = net->policy(features).log_softmax(1);
  const auto taken = log_chances.gather(1, experience.moves.unsqueeze(1)).squeeze(1);
  const auto advantage = experience.returns - net->critic(features).squeeze(1);
  const auto scaled = advantage.detach() / (advantage.detach().std() + 1e-6);
  const auto entropy = -(log_chances.exp() * log_chances).sum(1);
  return -(taken * scaled).mean() + 0.5 * advantage.square().mean() - 0.01 * entropy.mean();
}

void train(paceline::Worker& me) {
  Net net;
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(kRate));
  auto shared = me.share(net, optimizer);
  me.evaluate([&] { return score(net); });
  std::int64_t update = -1;
  double seconds = 0;

  while (me.next()) {  // Seeds torch's generator, so that a replay draws the same rooms.
    std::mt19937 random(static_cast<std::uint32_t>(torch::randint(1LL << 32, {1}, torch::kInt64).item<std::int64_t>()));
    if (std::exchange(update, me.update()) != me.update()) me.log("simulator_s", seconds = draw_seconds(random));
    const auto experience = explore(net, draw_rooms(me.batch() / kSteps, random), random);
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds * me.batch() / kExperience));
    optimizer.zero_grad();
    auto loss = loss_of(net, experience);
    loss.backward();
    shared.step(loss);
  }
}

}  // namespace

int main() {
  return paceline::run(train, {.workers = 8,
                               .strategy = "wagma(sync=8)",
                               .epochs = 30,
                               .batch = kExperience,
                               .samples = 20480,  // There is no data set: an epoch is so many steps.
                               .metric = {"score", paceline::maximise},
                               .target = 0.8})
      .exit_code();
}
