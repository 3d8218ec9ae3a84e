// Sequences of unequal lengths, packed, through an LSTM: which is the largest number in it?
//   paceline run examples/sequences.cpp --workers 4 --compare 'allreduce,local-sgd(period=4),nonblocking'
#include <paceline/train.h>

#include <random>
#include <vector>

namespace {

namespace rnn = torch::nn::utils::rnn;

constexpr std::int64_t kNumbers = 10, kShortest = 3, kLongest = 20;
using Batch = std::vector<torch::data::Example<>>;  // Sequences cannot be stacked.

/// Made up, each from its index; as many of each largest number.
class Sequences : public torch::data::datasets::Dataset<Sequences> {
 public:
  explicit Sequences(std::size_t first, std::size_t size) : first_(first), size_(size) {}

  torch::data::Example<> get(std::size_t index) override {
    std::mt19937 random(static_cast<std::uint32_t>(first_ + index));
    const auto between = [&](std::int64_t low, std::int64_t high) {
      return std::uniform_int_distribution<std::int64_t>(low, high)(random);
    };
    const std::int64_t largest = between(0, kNumbers - 1);
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(between(kShortest, kLongest)));
    for (auto& number : numbers) number = between(0, largest);
    numbers[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(numbers.size()) - 1))] = largest;
    return {torch::tensor(numbers), torch::tensor(largest)};
  }
  torch::optional<std::size_t> size() const override { return size_; }

 private:
  std::size_t first_, size_;
};

struct NetImpl : torch::nn::Module {
  NetImpl() {
    embedding = register_module("embedding", torch::nn::Embedding(kNumbers, 16));
    lstm = register_module("lstm", torch::nn::LSTM(torch::nn::LSTMOptions(16, 32)));
    largest = register_module("largest", torch::nn::Linear(32, kNumbers));
  }

  torch::Tensor forward(const Batch& batch) {
    std::vector<torch::Tensor> sequences;
    for (const auto& example : batch) sequences.push_back(example.data);
    const auto packed = rnn::pack_sequence(sequences, /*enforce_sorted=*/false);
    const rnn::PackedSequence embedded(embedding->forward(packed.data()), packed.batch_sizes(), packed.sorted_indices(),
                                       packed.unsorted_indices());
    const auto state = std::get<1>(lstm->forward_with_packed_input(embedded));
    return largest->forward(std::get<0>(state).squeeze(0));  // What the LSTM holds after each one's last number.
  }

  torch::nn::Embedding embedding{nullptr};
  torch::nn::LSTM lstm{nullptr};
  torch::nn::Linear largest{nullptr};
};
TORCH_MODULE(Net);

torch::Tensor targets(const Batch& batch) {
  std::vector<torch::Tensor> targets;
  for (const auto& example : batch) targets.push_back(example.target);
  return torch::stack(targets);
}

void train(paceline::Worker& me) {
  constexpr std::size_t kTrained = 8000, kTested = 500;
  Net net;
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(5e-3));
  auto shared = me.share(net, optimizer);
  const auto loader =
      torch::data::make_data_loader(Sequences(0, kTrained), me.sampler(kTrained), static_cast<std::size_t>(me.batch()));
  Batch tested;
  for (std::size_t i = 0; i < kTested; ++i) tested.push_back(Sequences(kTrained, kTested).get(i));
  me.evaluate(
      [&] { return (net->forward(tested).argmax(1) == targets(tested)).to(torch::kFloat32).mean().item<double>(); });

  auto batch = loader->begin();
  while (me.next()) {
    optimizer.zero_grad();
    auto loss = torch::cross_entropy_loss(net->forward(*batch), targets(*batch));
    loss.backward();
    shared.step(loss, {.before_update = [&] { torch::nn::utils::clip_grad_norm_(net->parameters(), 1); }});
    ++batch;
  }
}

}  // namespace

int main() {
  return paceline::run(train, {.workers = 4, .strategy = "wagma(sync=8)", .epochs = 5, .batch = 16}).exit_code();
}
