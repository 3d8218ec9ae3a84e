// A data set of one's own, from a CSV file: the last column is told from the others. Optimiser with groups, schedule,
// clipping, a metric that is the better the lower, early stopping.
//   paceline run examples/own_data.cpp --workers 4 [-- table.csv]
#include <paceline/train.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr double kTested = 0.2;  // Of the rows.

/// Rows of numbers. Columns but the last are scaled to mean 0 and deviation 1.
class Table : public torch::data::datasets::Dataset<Table> {
 public:
  explicit Table(const std::string& path) {
    std::ifstream file(path);
    std::vector<float> numbers;
    std::int64_t rows = 0;
    for (std::string line; std::getline(file, line); ++rows) {
      std::istringstream cells(line);
      for (std::string cell; std::getline(cells, cell, ',');) numbers.push_back(std::stof(cell));
    }
    if (rows == 0) throw std::runtime_error(path + " is no table: it has no rows");
    const auto all = torch::tensor(numbers).view({rows, -1});
    x_ = all.slice(1, 0, -1);
    x_ = (x_ - x_.mean(0)) / x_.std(0).clamp_min(1e-6);
    y_ = all.slice(1, -1);
  }

  /// Rows `from` to `to`, as fractions.
  Table part(double from, double to) const {
    Table part(*this);
    const auto row = [&](double fraction) { return static_cast<std::int64_t>(fraction * x_.size(0)); };
    part.x_ = x_.slice(0, row(from), row(to));
    part.y_ = y_.slice(0, row(from), row(to));
    return part;
  }

  torch::data::Example<> get(std::size_t row) override { return {x_[std::int64_t(row)], y_[std::int64_t(row)]}; }
  torch::optional<std::size_t> size() const override { return x_.size(0); }
  const torch::Tensor& x() const { return x_; }
  const torch::Tensor& y() const { return y_; }

 private:
  torch::Tensor x_, y_;
};

void train(paceline::Worker& me, const std::string& path) {
  me.uses_file(path);
  const Table table(path);
  const Table tested = table.part(0, kTested), trained = table.part(kTested, 1);

  using torch::nn::Linear, torch::nn::ReLU;
  torch::nn::Sequential net(Linear(tested.x().size(1), 64), ReLU(), Linear(64, 64), ReLU(), Linear(64, 1));
  std::vector<torch::Tensor> weights, biases;
  for (const auto& parameter : net->named_parameters())
    (parameter.key().ends_with("bias") ? biases : weights).push_back(parameter.value());
  using Options = torch::optim::AdamWOptions;
  torch::optim::AdamW optimizer({{weights, std::make_unique<Options>(Options(3e-3).weight_decay(1e-2))},
                                 {biases, std::make_unique<Options>(Options(3e-3).weight_decay(0))}});
  torch::optim::StepLR schedule(optimizer, 8, 0.5);

  auto shared = me.share(net, optimizer);
  shared.schedule(schedule, paceline::per_epoch);
  const auto rows = static_cast<std::int64_t>(*trained.size());
  const auto loader = torch::data::make_data_loader(Table(trained).map(torch::data::transforms::Stack<>()),
                                                    me.sampler(rows), static_cast<std::size_t>(me.batch()));
  me.evaluate([&] { return (net->forward(tested.x()) - tested.y()).square().mean().sqrt().item<double>(); });

  auto batch = loader->begin();
  while (me.next()) {
    optimizer.zero_grad();
    auto loss = torch::mse_loss(net->forward(batch->data), batch->target);
    loss.backward();
    shared.step(loss, {.before_update = [&] { torch::nn::utils::clip_grad_norm_(net->parameters(), 5); }});
    ++batch;
  }
}

/// Where no file is given: Friedman's function of ten numbers, of which five count, and noise.
std::string made_up() {
  const std::string path = std::filesystem::absolute("own_data.csv");
  std::ofstream file(path);
  std::mt19937 random(7);
  std::uniform_real_distribution<double> between_0_and_1;
  std::normal_distribution<double> noise(0, 0.5);
  for (int row = 0; row < 5000; ++row) {
    double x[10];
    for (double& each : x) file << (each = between_0_and_1(random)) << ',';
    file << 10 * std::sin(3.1416 * x[0] * x[1]) + 20 * (x[2] - 0.5) * (x[2] - 0.5) + 10 * x[3] + 5 * x[4] +
                noise(random)
         << '\n';
  }
  return path;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? std::filesystem::absolute(argv[1]).string() : made_up();
  return paceline::run(train,
                       {.workers = 4,
                        .strategy = "local-sgd(period=4)",
                        .epochs = 20,
                        .batch = 16,
                        .metric = {"error", paceline::minimise},
                        .early_stopping = 3},
                       path)
      .exit_code();
}
