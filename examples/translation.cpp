// A small Transformer learns to translate between two made-up languages. Sentences differ in length, so mini-batches
// take unequal times; nothing sleeps, the imbalance is computing:
//   paceline run examples/translation.cpp --compare 'allreduce,wagma(sync=8),ad-psgd'
// As in the WAGMA paper (Section V-C) all mini-batches have as many sentences, each batch from one bucket of lengths:
// that of a sentence drawn at random. tests/bench/workloads.py measures what each strategy makes of it.
#include <paceline/train.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace {

using torch::Tensor;

constexpr std::int64_t kWords = 12;  // Of each kind.
constexpr std::int64_t kSource = 3 * kWords, kTarget = 4 * kWords + 1, kBegin = kTarget - 1;
constexpr double kRate = 4e-3;  // tests/bench/workloads.py tries others for each strategy.
constexpr std::int64_t kShortest = 4, kLongest = 100, kWidth = 64;

/// Words of a sentence: lognormal around 20. A bucket holds one length, so nothing has to be padded.
std::int64_t draw_length(std::mt19937& random) {
  std::lognormal_distribution<double> length(std::log(20.0), 0.6);
  return std::clamp<std::int64_t>(std::llround(length(random)), kShortest, kLongest);
}

struct Text {
  Tensor source, target;  // Numbers of words: length x sentences.
};

/// Source: clauses of a verb, up to three adjectives and a noun. Target: the verb comes last, and an adjective's
/// translation depends on the noun behind it, of which there are two genders.
Text draw_text(std::int64_t length, std::int64_t sentences, std::mt19937& random) {
  Text text{torch::empty({length, sentences}, torch::kInt64), torch::empty({length, sentences}, torch::kInt64)};
  auto source = text.source.accessor<std::int64_t, 2>(), target = text.target.accessor<std::int64_t, 2>();
  const auto draw = [&](std::int64_t below) { return static_cast<std::int64_t>(random() % below); };
  for (std::int64_t s = 0; s < sentences; ++s) {
    for (std::int64_t first = 0; first < length;) {
      std::int64_t last = first + 1 + draw(4);
      if (last + 2 >= length) last = length - 1;  // What is too short for one more clause becomes adjectives.
      const auto verb = draw(kWords), noun = draw(kWords);
      source[first][s] = target[last][s] = verb;
      source[last][s] = target[last - 1][s] = kWords + noun;
      for (std::int64_t i = first + 1; i < last; ++i) {
        const auto adjective = draw(kWords);
        source[i][s] = 2 * kWords + adjective;
        target[i - 1][s] = (2 + noun % 2) * kWords + adjective;
      }
      first = last + 1;
    }
  }
  return text;
}

struct NetImpl : torch::nn::Module {
  NetImpl() {
    using namespace torch::nn;
    source = register_module("source", Embedding(kSource, kWidth));
    target = register_module("target", Embedding(kTarget, kWidth));
    const auto options = TransformerOptions(kWidth, /*nhead=*/4, /*num_encoder_layers=*/1, /*num_decoder_layers=*/1);
    transformer =
        register_module("transformer", Transformer(TransformerOptions(options).dim_feedforward(128).dropout(0)));
    output = register_module("output", Linear(kWidth, kTarget));
    const auto angle =
        torch::arange(kLongest).unsqueeze(1) * torch::pow(1000.0, -torch::arange(kWidth / 2) / (kWidth / 2.0));
    position = torch::cat({angle.sin(), angle.cos()}, 1).unsqueeze(1);
  }

  Tensor embed(torch::nn::Embedding& words, const Tensor& text) {
    return words(text) + position.slice(0, 0, text.size(0));
  }

  /// Scores of what each word of the target is, given the source and the words before it: words x kTarget.
  Tensor forward(const Text& text) {
    const auto length = text.target.size(0);
    const auto begin = torch::full({1, text.target.size(1)}, kBegin, torch::kInt64);
    const auto before = torch::cat({begin, text.target.slice(0, 0, length - 1)});
    const auto later = torch::full({length, length}, -1e9).triu(1);
    return output(transformer->forward(embed(source, text.source), embed(target, before), {}, later)).flatten(0, 1);
  }

  torch::nn::Embedding source{nullptr}, target{nullptr};
  torch::nn::Transformer transformer{nullptr};
  torch::nn::Linear output{nullptr};
  Tensor position;  // The usual sines and cosines.
};
TORCH_MODULE(Net);

/// Share of the words of 320 sentences, always the same ones, that are translated rightly.
double accuracy(Net& net) {
  std::mt19937 random(2017);
  double right = 0, words = 0;
  for (int batch = 0; batch < 20; ++batch) {
    const auto text = draw_text(draw_length(random), 16, random);
    right += net->forward(text).argmax(1).eq(text.target.flatten()).sum().item<double>();
    words += static_cast<double>(text.target.numel());
  }
  return right / words;
}

void train(paceline::Worker& me) {
  Net net;
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(kRate));
  auto shared = me.share(net, optimizer);
  me.evaluate([&] { return accuracy(net); });

  while (me.next()) {  // Seeds torch's generator, so that a replay draws the same sentences.
    std::mt19937 random(static_cast<std::uint32_t>(torch::randint(1LL << 32, {1}, torch::kInt64).item<std::int64_t>()));
    const auto text = draw_text(draw_length(random), me.batch(), random);
    me.log("words", static_cast<double>(text.source.numel()));
    optimizer.zero_grad();
    auto loss = torch::cross_entropy_loss(net->forward(text), text.target.flatten());
    loss.backward();
    shared.step(loss);
  }
}

}  // namespace

int main() {
  return paceline::run(train, {.workers = 4,
                               .strategy = "wagma(sync=8)",
                               .epochs = 24,
                               .batch = 16,
                               .samples = 1600,  // There is no data set: an epoch is so many sentences.
                               .target = 0.9})
      .exit_code();
}
