#pragma once

#include <torch/torch.h>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace paceline {

/// One mini-batch: `auto [x, y] = batches.next()`.
struct Batch {
  torch::Tensor data;    ///< Float, first dimension = samples.
  torch::Tensor target;  ///< int64 class numbers, or what the data set's targets are.
};

/// A data set that is read once a node and shared by its workers: bytes, normalised a batch at a time. A cheap handle;
/// nothing is read before the first batch is asked for. (What a worker asks for before its first `Worker::next` it
/// reads for itself.)
class Dataset {
 public:
  struct Source;  // How the bytes are found; algorithms/train/dataset.h.
  explicit Dataset(std::shared_ptr<Source> source);

  /// Samples. Throws std::runtime_error when the data set cannot be read.
  std::int64_t size() const;
  /// The samples with these indices, in this order. Throws std::runtime_error when the data set cannot be read.
  Batch get(const std::vector<std::int64_t>& indices) const;
  /// Samples first..first+count-1.
  Batch slice(std::int64_t first, std::int64_t count) const;
  /// The samples between two fractions of them, in a random order that is always the same: `part(0, 0.2)` is held out
  /// for validation where `part(0.2, 1)` is trained on. Reads nothing itself. Throws std::invalid_argument unless
  /// 0 <= from < to <= 1.
  Dataset part(double from, double to) const;

 private:
  std::shared_ptr<Source> source_;
};

/// Fashion-MNIST, 60,000 training images of 1x28x28, from Debian's package `dataset-fashion-mnist` or the directory
/// that PACELINE_DATA names; normalised to mean 0 and deviation 1.
Dataset fashion_mnist();
/// Its 10,000 test images.
Dataset fashion_mnist_test();

/// What of a table is read, and how it is to be understood.
struct CsvOptions {
  std::string target{};                ///< By its name in the first line, or its number from 0; empty: the last column.
  std::vector<std::string> columns{};  ///< That the target is told from, in this order; empty: all others.
  bool classes = false;                ///< Targets are classes, whole numbers from 0.
  char separator = ',';                ///< Between the cells of a line.
};

/// A table of numbers in a text file, whose first line may name the columns. Data are float [n, columns] as they stand
/// in the file, targets float [n, 1], or int64 [n] where they are classes. Read once a node, when the first batch is
/// asked for; std::runtime_error then names the line in which something is no number.
Dataset csv(const std::string& path, const CsvOptions& options = {});
/// Two tensors of a safetensors file with equal first dimensions, of whatever type they are. Only what a batch asks for
/// is read: the file may be larger than memory.
Dataset safetensors(const std::string& path, const std::string& data = "data", const std::string& target = "target");

/// The size that pictures come to, and their colours.
struct ImageOptions {
  std::int64_t height = 0;  ///< Pixels, to which all are scaled (bilinear, antialiased); 0: all are as the first is.
  std::int64_t width = 0;   ///< Goes with the height.
  int channels = 3;         ///< 3: red, green, blue; 1: grey.
};

/// Pictures in a folder that holds a folder for each class, as torchvision's ImageFolder has it: PNG and JPEG files.
/// Data are float [n, channels, height, width] from 0 to 1, targets int64 [n]: the class's number in the order of
/// their folders' names. Files are listed once and read whenever a batch asks for them, so that they may be more than
/// memory holds: see `BatchOptions::prefetch`. std::runtime_error names the file that cannot be read.
Dataset images(const std::string& folder, const ImageOptions& options = {});

/// How a file is cut into samples.
struct TokenOptions {
  std::int64_t length = 128;  ///< Tokens of a sample.
  int bytes = 1;  ///< Of a token. 1: text as it is, 256 tokens; 2 or 4: what a tokeniser wrote, lowest byte first.
};

/// Text, or what a tokeniser has made of it, in a file that may be larger than memory. Data are int64 [n, length], the
/// tokens of a piece of the file; targets int64 [n, length], the token that follows each. Pieces do not overlap.
Dataset tokens(const std::string& path, const TokenOptions& options = {});
/// Any two tensors with equal first dimensions, held by this process alone.
Dataset tensors(torch::Tensor data, torch::Tensor target);

namespace detail {
double accuracy(const std::function<torch::Tensor(torch::Tensor)>& forward, const Dataset& test, std::int64_t batch);
}

/// Share of `test` that `net` classifies rightly, 0..1: the largest output wins. Computed without gradients; leaves
/// train()/eval() as it is (`Worker::evaluate` has set eval()).
template <class Net>
double accuracy(Net& net, const Dataset& test, std::int64_t batch = 500) {
  return detail::accuracy([&net](torch::Tensor x) { return net->forward(std::move(x)); }, test, batch);
}

}  // namespace paceline
