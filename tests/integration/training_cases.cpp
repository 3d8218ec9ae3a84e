// What training scripts use of the API beside the plain loop: the first argument says which case is run. Each worker
// logs what the test (training_cases_test.py) looks at.
#include <paceline.h>
#include <paceline/train.h>

#include <ATen/autocast_mode.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::int64_t kSamples = 256;
constexpr double kRate = 0.1;

double sum_of(const std::vector<torch::Tensor>& tensors) {
  double sum = 0;
  for (const auto& tensor : tensors) sum += tensor.to(torch::kFloat64).abs().sum().item<double>();
  return sum;
}

// Sample i is a point and its number; the class is told by a line.
struct Points : torch::data::datasets::Dataset<Points> {
  torch::data::Example<> get(std::size_t index) override {
    const auto i = static_cast<double>(index);
    const auto x = torch::tensor({std::sin(i), std::cos(3 * i), std::sin(7 * i)}, torch::kFloat32);
    return {x, torch::tensor({i, x[0].item<double>() > x[1].item<double>() ? 1.0 : 0.0}, torch::kFloat64)};
  }
  torch::optional<std::size_t> size() const override { return kSamples; }
};

/// The parts that all cases have.
struct Job {
  torch::nn::Linear net{3, 2};
  torch::optim::SGD optimizer{net->parameters(), torch::optim::SGDOptions(kRate).momentum(0.9)};

  torch::Tensor loss(const torch::data::Example<>& batch) {
    optimizer.zero_grad();
    const auto value = torch::cross_entropy_loss(net->forward(batch.data), batch.target.select(1, 1).to(torch::kInt64));
    value.backward();
    return value;
  }
};

auto loader_of(paceline::Worker& me) {
  return torch::data::make_data_loader(Points().map(torch::data::transforms::Stack<>()), me.sampler(kSamples),
                                       static_cast<std::size_t>(me.batch()));
}

// A data loader over any data set, a schedule, clipping.
void loader(paceline::Worker& me) {
  Job job;
  torch::optim::SGD plain(job.net->parameters(), torch::optim::SGDOptions(kRate));
  auto shared = me.share(job.net, plain);
  torch::optim::StepLR halve(plain, 2, 0.5);
  shared.schedule(halve);
  const auto data = loader_of(me);
  auto batch = data->begin();
  double numbers = 0;
  while (me.next()) {
    numbers += batch->target.select(1, 0).sum().item<double>();
    const auto before = job.net->weight.detach().clone();
    const double rate = plain.param_groups()[0].options().get_lr();
    me.log("rate", rate);
    shared.step(job.loss(*batch),
                {.before_update = [&] { torch::nn::utils::clip_grad_norm_(job.net->parameters(), 1e-3); }});
    me.log("moved", (job.net->weight - before).norm().item<double>() / rate);
    ++batch;
  }
  me.log("numbers", numbers);
  me.log("model", sum_of(job.net->parameters()));
}

/// `data`: [n, 3], and the class of each.
void train_on(paceline::Worker& me, const paceline::Dataset& data) {
  Job job;
  auto shared = me.share(job.net, job.optimizer);
  auto batches = me.batches(data);
  double numbers = 0;
  while (me.next()) {
    auto [x, y] = batches.next();
    numbers += x.select(1, 0).sum().item<double>();
    shared.step(job.loss({x, torch::stack({y.to(torch::kFloat64), y.to(torch::kFloat64)}, 1)}));
  }
  me.log("numbers", numbers);
  me.log("model", sum_of(job.net->parameters()));
}

// Data sets in files that the driver's directory holds.
void table(paceline::Worker& me) { train_on(me, paceline::csv("table.csv", {.target = "class", .classes = true})); }
void arrays(paceline::Worker& me) { train_on(me, paceline::safetensors("arrays.safetensors", "points", "classes")); }
void pictures(paceline::Worker& me) {
  Job job;
  auto shared = me.share(job.net, job.optimizer);
  auto batches = me.batches(paceline::images("pictures"));  // Of one pixel.
  while (me.next()) {
    auto [x, y] = batches.next();
    shared.step(job.loss({x.flatten(1), torch::stack({y, y}, 1)}));
  }
}
void empty(paceline::Worker& me) {
  train_on(me, paceline::tensors(torch::zeros({0, 3}), torch::zeros({0}, torch::kInt64)));
}

// A state of the user's, and the job's end when one worker wishes it.
void stop(paceline::Worker& me) {
  Job job;
  auto shared = me.share(job.net, job.optimizer);
  std::int64_t bodies = 0;
  me.state(bodies);
  const auto data = loader_of(me);
  auto batch = data->begin();
  while (me.next()) {
    if (me.rank() == 1 && me.update() == 20) me.stop("enough");
    ++bodies;
    shared.step(job.loss(*batch));
    ++batch;
  }
  me.log("bodies", static_cast<double>(bodies));
  me.log("model", sum_of(job.net->parameters()));
}

// How many take part, and by how much a parameter moves whose gradient is 1 everywhere.
void views(paceline::Worker& me) {
  struct Net : torch::nn::Module {
    explicit Net(torch::Tensor& w) { w = register_parameter("weight", torch::zeros({1}, torch::kFloat64)); }
  };
  torch::Tensor w;
  const auto net = std::make_shared<Net>(w);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(kRate));
  auto shared = me.share(net, optimizer);
  (void)me.sampler(kSamples);
  me.on_view([&] { me.log("view", me.present()); });
  std::optional<double> before;
  while (me.next()) {
    if (before) me.log("moved", *before - w.item<double>());
    before = w.item<double>();
    me.log("present", me.present());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    optimizer.zero_grad();
    const auto loss = w.sum();
    loss.backward();
    shared.step(loss);
  }
}

// An optimiser that evaluates several times.
void closure(paceline::Worker& me) {
  Job job;
  torch::optim::LBFGS lbfgs(job.net->parameters(), torch::optim::LBFGSOptions(0.5).max_iter(4));
  auto shared = me.share(job.net, lbfgs);
  const auto data = loader_of(me);
  auto batch = data->begin();
  while (me.next()) {
    double evaluated = 0;
    shared.step([&] {
      const auto value = job.loss(*batch);
      evaluated = value.item<double>();
      return value;
    });
    me.log("loss", evaluated);
    ++batch;
  }
  me.log("model", sum_of(job.net->parameters()));
}

// Momentum, and a buffer in which each worker writes its rank.
void averaging(paceline::Worker& me) {
  Job job;
  auto& mark = job.net->register_buffer("mark", torch::zeros({1}));
  auto shared = me.share(job.net, job.optimizer);
  const auto data = loader_of(me);
  auto batch = data->begin();
  while (me.next()) {
    {
      torch::NoGradGuard no_grad;
      mark.fill_(me.rank());
    }
    shared.step(job.loss(*batch));
    ++batch;
  }
  me.log("mark", mark.item<double>());
  std::vector<torch::Tensor> momenta;
  for (const auto& [key, state] : job.optimizer.state())
    momenta.push_back(static_cast<torch::optim::SGDParamState&>(*state).momentum_buffer());
  me.log("momentum", sum_of(momenta));
  me.log("model", sum_of(job.net->parameters()));
}

void early(paceline::Worker& me) {
  Job job;
  auto shared = me.share(job.net, job.optimizer);
  if (me.rank() == 1) throw std::runtime_error("the data has no column 'age'");
  const auto data = loader_of(me);
  auto batch = data->begin();
  while (me.next()) shared.step(job.loss(*batch)), ++batch;
}

void rates(paceline::Worker& me) {
  Job job;
  auto shared = me.share(job.net, job.optimizer);
  const auto data = loader_of(me);
  auto batch = data->begin();
  while (me.next()) {
    if (me.rank() == 1 && me.update() == 3) job.optimizer.param_groups()[0].options().set_lr(kRate / 2);
    shared.step(job.loss(*batch));
    ++batch;
  }
}

// Worker i's loss is the sum over k of a/2 (x_k - c)^2 with a = 1 + (i + k) mod 2, c = 4 i + k: three numbers, in two
// tensors. `paceline simulate` knows the same problem.
struct Squares : torch::nn::Module {
  explicit Squares(torch::ScalarType type)
      : two(register_parameter("two", torch::zeros({2}, type))),
        one(register_parameter("one", torch::zeros({1}, type))) {}
  torch::Tensor two, one;

  torch::Tensor loss(std::int32_t rank) const {
    const auto k = torch::arange(3, two.scalar_type());
    return ((1 + torch::remainder(k + rank, 2)) / 2 * (torch::cat({two, one}) - 4 * rank - k).square()).sum();
  }
};

template <torch::ScalarType type>
void squares(paceline::Worker& me) {
  const auto net = std::make_shared<Squares>(type);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.125).momentum(0.5));
  auto shared = me.share(net, optimizer);
  const auto log = [&](const std::string& when) {
    me.log(when + "0", net->two[0].item<double>());
    me.log(when + "1", net->two[1].item<double>());
    me.log(when + "2", net->one[0].item<double>());
  };
  while (me.next()) {
    optimizer.zero_grad();
    const auto loss = net->loss(me.rank());
    loss.backward();
    shared.step(loss);
    log("step");
  }
  log("final");
}

// One class surrounds the other, so that no line separates them.
paceline::Dataset points_of_rings() {
  torch::manual_seed(7);
  const auto angle = 6.283185 * torch::rand({kSamples});
  const auto outer = torch::arange(kSamples).remainder(2);
  const auto radius = 0.5 + outer + 0.1 * torch::randn({kSamples});
  return paceline::tensors(torch::stack({radius * angle.cos(), radius * angle.sin()}, 1), outer);
}

void rings_from(paceline::Worker& me, const std::string& checkpoint, const std::function<double()>& metric = {}) {
  torch::nn::Sequential net(torch::nn::Linear(2, 16), torch::nn::Tanh(), torch::nn::Linear(16, 2));
  if (!checkpoint.empty()) paceline::load(net, checkpoint);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(kRate).momentum(0.9));
  auto shared = me.share(net, optimizer);
  const auto data = points_of_rings();
  const auto log = [&](const std::string& name) {
    torch::NoGradGuard no_grad;
    const auto all = data.slice(0, kSamples);
    me.log(name, torch::cross_entropy_loss(net->forward(all.data), all.target).item<double>());
  };
  log("untrained");
  if (metric) me.evaluate(metric);
  auto batches = me.batches(data);
  while (me.next()) {
    auto [x, y] = batches.next();
    optimizer.zero_grad();
    const auto loss = torch::cross_entropy_loss(net->forward(x), y);
    loss.backward();
    shared.step(loss);
  }
  log("trained");
}

void rings(paceline::Worker& me) { rings_from(me, ""); }

/// Multiplies matrices in bfloat16 while it lives, as libtorch's autocast has it: parameters stay as they are.
class Autocast {
 public:
  Autocast() {
    at::autocast::set_autocast_cpu_dtype(at::kBFloat16);
    at::autocast::set_cpu_enabled(true);
  }
  ~Autocast() {
    at::autocast::clear_cache();
    at::autocast::set_cpu_enabled(false);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;
};

/// A layer whose parameters and statistics are bfloat16 below one of float32, or all of it under autocast.
struct NarrowImpl : torch::nn::Module {
  explicit NarrowImpl(bool casts) : autocast(casts) {
    if (autocast) return;
    lower->to(torch::kBFloat16);
    norm->to(torch::kBFloat16);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    if (autocast) {
      const Autocast here;
      return upper(torch::tanh(norm(lower(x)))).to(torch::kFloat32);
    }
    return upper(torch::tanh(norm(lower(x.to(torch::kBFloat16)))).to(torch::kFloat32));
  }
  bool autocast;
  torch::nn::Linear lower = register_module("lower", torch::nn::Linear(2, 16));
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(16));
  torch::nn::Linear upper = register_module("upper", torch::nn::Linear(16, 2));
};
TORCH_MODULE(Narrow);

template <bool autocast>
void narrow(paceline::Worker& me) {
  Narrow net(autocast);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(kRate).momentum(0.9));
  auto shared = me.share(net, optimizer);
  const auto data = points_of_rings();
  auto batches = me.batches(data);
  while (me.next()) {
    auto [x, y] = batches.next();
    optimizer.zero_grad();
    const auto loss = torch::cross_entropy_loss(net->forward(x), y);
    loss.backward();
    shared.step(loss);
  }
  net->eval();
  torch::NoGradGuard no_grad;
  const auto all = data.slice(0, kSamples);
  me.log("trained", torch::cross_entropy_loss(net->forward(all.data), all.target).item<double>());
  me.log("model", sum_of(net->parameters()));
  me.log("steps", net->norm->num_batches_tracked.item<double>());
}

const paceline::RunOptions kOptions{
    .workers = 2, .epochs = 1, .batch = 16, .samples = kSamples, .evaluate_every_epochs = 0};

/// A job's loop, after the worker has said something to its log.
void say_and_train(paceline::Worker& me, const std::string& text) {
  std::cout << text << std::endl;
  rings(me);
}

// What is evaluated falls until update 16 and rises from there.
int valley() {
  auto options = kOptions;
  options.epochs = 100;
  options.evaluate_every_epochs = 1;
  options.metric = {"perplexity", paceline::minimise};
  options.early_stopping = 2;
  options.keep_checkpoints = 2;
  const auto result = paceline::run(
      [](paceline::Worker& me) {
        rings_from(me, "", [&] { return 30 + std::abs(static_cast<double>(me.update()) - 16); });
      },
      options);
  if (result.best)
    std::cout << "best: " << result.best->update << ' ' << result.best->value << ' ' << result.best_checkpoint
              << std::endl;
  return result.exit_code();
}

struct Config {
  double rate = 0;
  std::vector<int> sizes;
  std::map<std::string, std::string> names;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(rate, sizes, names);
  }
};

// Whatever serialises, conversions to the parameters' types, and captures.
int arguments() {
  struct Shape {
    int width = 3;
    double depth = 0.5;
  };
  const Shape shape;
  const auto train = [shape, factor = 4](paceline::Worker& me, const Config& config, std::string word, double number,
                                         std::vector<std::byte> bytes) {
    std::ostringstream text;
    text << "got " << shape.width << ' ' << shape.depth << ' ' << factor << ' ' << config.rate << ' '
         << config.sizes.at(1) << ' ' << config.names.at("a") << ' ' << word << ' ' << number << ' ' << bytes.size();
    say_and_train(me, text.str());
  };
  return paceline::run(train, kOptions, Config{0.25, {5, 6}, {{"a", "b"}}}, "word", 7,
                       std::vector<std::byte>(1'000'000))
      .exit_code();
}

int reference() {
  int count = 0;
  return paceline::run([&](paceline::Worker&) { ++count; }, kOptions).exit_code();
}

// More than a call may have.
int too_much() {
  return paceline::run([](paceline::Worker&, const std::vector<float>&) {}, kOptions, std::vector<float>(20'000'000))
      .exit_code();
}

// What a worker finds around it.
int place() {
  return paceline::run(
             [](paceline::Worker& me) {
               const char* variable = std::getenv("OF_THE_DRIVER");
               std::string text = "in " + std::filesystem::current_path().string() + " with " +
                                  (variable ? variable : "nothing") + " and";
               for (const auto& argument : paceline::arguments()) text += " " + argument;
               say_and_train(me, text);
             },
             kOptions)
      .exit_code();
}

/// A worker for tasks is there, idle, before the job's.
int after_a_task() {
  (void)paceline::async([] { return 1; }).get();
  return paceline::run(say_and_train, kOptions, "trains").exit_code();
}

int twice() {
  const auto train = [](paceline::Worker& me, int number, const std::string& checkpoint) {
    std::cout << "run " << number << std::endl;
    rings_from(me, checkpoint);
  };
  const auto first = paceline::run(train, kOptions, 1, "");
  if (first.code == 0)
    std::cout << "first: " << first.checkpoint << ' ' << first.updates << ' ' << first.samples << ' '
              << first.losses.back().update << std::endl;
  const auto second = paceline::run(train, kOptions, 2, first.checkpoint);
  return std::max(first.exit_code(), second.exit_code());
}

/// An actor of a pipeline of tensors.
class Scaler {
 public:
  explicit Scaler(torch::Tensor factor) : factor_(std::move(factor)) {}
  torch::Tensor scaled(const torch::Tensor& x) const { return x * factor_; }

 private:
  torch::Tensor factor_;
};

std::map<std::string, torch::Tensor> halves(std::vector<torch::Tensor> tensors) {
  return {{"first", tensors.at(0) / 2}, {"second", tensors.at(1) / 2}};
}

int tensors() {
  torch::manual_seed(3);
  const auto x = torch::randn({1 << 10, 1 << 10}).t();
  const auto two = torch::full({1}, 2.0);
  auto first = paceline::create<Scaler>(two);
  auto second = paceline::create<Scaler>(two * 2);
  const auto scaled = second.call(&Scaler::scaled, first.call(&Scaler::scaled, x));
  const auto half = paceline::async(halves, std::vector<torch::Tensor>{x, x.to(torch::kBFloat16)}).get();
  std::cout << "tensors: " << torch::equal(scaled.get(), 8 * x) << torch::equal(half.at("first"), x / 2)
            << torch::equal(half.at("second"), x.to(torch::kBFloat16) / 2) << std::endl;
  try {
    (void)paceline::async([](const torch::Tensor&) {}, x.to_sparse());
  } catch (const std::invalid_argument& error) {
    std::cout << "refused: " << error.what() << std::endl;
  }
  return 0;
}

int within() {
  return paceline::async([] { return paceline::run(rings, kOptions).exit_code(); }).get();
}

int together() {
  std::thread other([] { (void)paceline::run(rings, kOptions); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const int code = paceline::run(rings, kOptions).exit_code();
  other.join();
  return code;
}

paceline::Trainer trainer_of(int hidden, const std::string& name) {
  return {.model =
              [hidden] {
                return torch::nn::Sequential(torch::nn::Linear(2, hidden), torch::nn::Tanh(),
                                             torch::nn::Linear(hidden, 2));
              },
          .loss = [](torch::Tensor output, torch::Tensor target) { return torch::cross_entropy_loss(output, target); },
          .data = points_of_rings(),
          .test = points_of_rings(),
          .optimizer =
              [name](std::vector<torch::Tensor> parameters) {
                std::cout << name << ' ' << parameters.at(0).size(0) << std::endl;
                return std::make_unique<torch::optim::SGD>(std::move(parameters), torch::optim::SGDOptions(kRate));
              }};
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  if (name == "arguments") return arguments();
  if (name == "reference") return reference();
  if (name == "too-much") return too_much();
  if (name == "place") return place();
  if (name == "after-a-task") return after_a_task();
  if (name == "twice") return twice();
  if (name == "within") return within();
  if (name == "valley") return valley();
  if (name == "tensors") return tensors();
  if (name == "together") return together();
  if (name == "trainer") return paceline::run<trainer_of>(kOptions, 24, "hidden").exit_code();
  const auto function = name == "loader"      ? loader
                        : name == "stop"      ? stop
                        : name == "closure"   ? closure
                        : name == "averaging" ? averaging
                        : name == "views"     ? views
                        : name == "early"     ? early
                        : name == "squares"   ? squares<torch::kFloat32>
                        : name == "squares64" ? squares<torch::kFloat64>
                        : name == "narrow"    ? narrow<false>
                        : name == "autocast"  ? narrow<true>
                        : name == "table"     ? table
                        : name == "arrays"    ? arrays
                        : name == "pictures"  ? pictures
                        : name == "empty"     ? empty
                        : name == "rings"     ? rings
                                              : rates;
  return paceline::run(function, kOptions).exit_code();
}
