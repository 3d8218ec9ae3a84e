#include "algorithms/train/dataset.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

#include "algorithms/train/csv.h"
#include "algorithms/train/fashion_mnist.h"
#include "runtime/base/content_hash.h"
#include "runtime/base/splitmix.h"

namespace paceline {
namespace train {
namespace {

/// Bytes that are read once: in shared memory of the node if this thread runs a worker, else in memory of its own.
class SharedBytes {
 public:
  /// `fill` is called where nobody has filled the object `key` before; it depends on `files`. Throws
  /// std::runtime_error.
  std::uint8_t* open(const std::string& key, std::uint64_t size, std::span<const std::string> files,
                     const std::function<Result<void>(std::span<std::uint8_t>)>& fill) {
    std::uint8_t* bytes = nullptr;
    int is_to_fill = 1;
    paceline_session* const session = session_of_this_thread();
    if (session) {
      char error[512] = "";
      bytes = static_cast<std::uint8_t*>(
          paceline_session_object(session, key.c_str(), size, &is_to_fill, error, sizeof error));
      if (!bytes) throw std::runtime_error("cannot share " + key + " on this node: " + error);
    } else {
      own_.resize(size);
      bytes = own_.data();
    }
    if (!is_to_fill) return bytes;
    if (const auto filled = fill({bytes, size}); !filled) throw std::runtime_error(filled.error().text);
    if (!session) return bytes;
    paceline_session_seal(session, key.c_str());
    for (const auto& path : files) paceline_session_uses_file(session, path.c_str());
    return bytes;
  }

 private:
  std::vector<std::uint8_t> own_;
};

torch::Tensor as_tensor(const std::vector<std::int64_t>& indices) {
  return torch::from_blob(const_cast<std::int64_t*>(indices.data()), {static_cast<std::int64_t>(indices.size())},
                          torch::kInt64);
}

class FashionMnist final : public Dataset::Source {
 public:
  explicit FashionMnist(bool training) : training_(training) {}

  std::int64_t size() const override { return training_ ? 60'000 : 10'000; }
  Batch get(const std::vector<std::int64_t>& indices) override {
    open();
    const auto chosen = as_tensor(indices);
    return normalised(images_.index_select(0, chosen), labels_.index_select(0, chosen));
  }
  Batch slice(std::int64_t first, std::int64_t count) override {
    open();
    return normalised(images_.narrow(0, first, count), labels_.narrow(0, first, count));
  }

 private:
  static constexpr double kMean = 0.2860 * 255;  // Of the training images, on the scale of bytes.
  static constexpr double kDeviation = 0.3530 * 255;

  static Batch normalised(const torch::Tensor& images, const torch::Tensor& labels) {
    return {images.to(torch::kFloat32).sub_(kMean).div_(kDeviation), labels.to(torch::kInt64)};
  }

  void open() {
    if (images_.defined()) return;
    const auto directory = fashion_mnist_directory();
    if (!directory) throw std::runtime_error(directory.error().text);
    auto* const bytes =
        bytes_.open(training_ ? "fashion-mnist/train" : "fashion-mnist/test", static_cast<std::uint64_t>(size()) * 785,
                    fashion_mnist_files(*directory, training_),
                    [&](std::span<std::uint8_t> all) { return read_fashion_mnist(*directory, training_, all); });
    images_ = torch::from_blob(bytes, {size(), 1, 28, 28}, torch::kUInt8);
    labels_ = torch::from_blob(bytes + size() * 784, {size()}, torch::kUInt8);
  }

  bool training_;
  SharedBytes bytes_;
  torch::Tensor images_;
  torch::Tensor labels_;
};

class Csv final : public Dataset::Source {
 public:
  Csv(std::string path, const CsvOptions& options)
      : path_(std::filesystem::absolute(path).string()),
        columns_{options.target, options.columns, options.separator},
        classes_(options.classes) {}

  std::int64_t size() const override { return table().rows; }
  Batch get(const std::vector<std::int64_t>& indices) override {
    return batch_of(numbers().index_select(0, as_tensor(indices)));
  }
  Batch slice(std::int64_t first, std::int64_t count) override { return batch_of(numbers().narrow(0, first, count)); }

 private:
  Batch batch_of(const torch::Tensor& rows) const {
    const auto target = rows.slice(1, -1);
    return {rows.slice(1, 0, -1).contiguous(), classes_ ? target.squeeze(1).to(torch::kInt64) : target.contiguous()};
  }

  const CsvTable& table() const {
    if (!table_) {
      auto looked_at = look_at_csv(path_, columns_);
      if (!looked_at) throw std::runtime_error(looked_at.error().text);
      table_ = std::move(*looked_at);
    }
    return *table_;
  }

  const torch::Tensor& numbers() {
    if (numbers_.defined()) return numbers_;
    const auto columns = table().chosen.size();
    ContentHash key;  // What was asked for; the path may hold anything.
    key.add(path_);
    key.add({&columns_.separator, 1});
    for (const auto column : table().chosen) key.add(std::to_string(column));
    auto* const bytes = bytes_.open(
        "csv/" + key.hex(), static_cast<std::uint64_t>(size()) * columns * sizeof(float), std::span(&path_, 1),
        [&](std::span<std::uint8_t> all) {
          return read_csv(path_, columns_, table(), {reinterpret_cast<float*>(all.data()), all.size() / sizeof(float)});
        });
    numbers_ = torch::from_blob(bytes, {size(), static_cast<std::int64_t>(columns)}, torch::kFloat32);
    if (classes_) {
      const auto target = numbers_.select(1, -1);
      if (!target.eq(target.round()).all().item<bool>() || target.lt(0).any().item<bool>())
        throw std::runtime_error(path_ + ": its targets are no classes, which are whole numbers from 0");
    }
    return numbers_;
  }

  std::string path_;
  CsvColumns columns_;
  bool classes_;
  mutable std::optional<CsvTable> table_;
  SharedBytes bytes_;
  torch::Tensor numbers_;  // [rows, columns], the target last.
};

class TensorPair final : public Dataset::Source {
 public:
  TensorPair(torch::Tensor data, torch::Tensor target) : data_(std::move(data)), target_(std::move(target)) {
    if (data_.dim() < 1 || target_.dim() < 1 || data_.size(0) != target_.size(0)) {
      throw std::invalid_argument("tensors: data and target must have the same first dimension");
    }
  }
  std::int64_t size() const override { return data_.size(0); }
  Batch get(const std::vector<std::int64_t>& indices) override {
    const auto chosen = torch::tensor(indices, torch::kInt64);
    return {data_.index_select(0, chosen), target_.index_select(0, chosen)};
  }
  Batch slice(std::int64_t first, std::int64_t count) override {
    return {data_.narrow(0, first, count), target_.narrow(0, first, count)};
  }

 private:
  torch::Tensor data_;
  torch::Tensor target_;
};

/// A random part of another data set.
class Part final : public Dataset::Source {
 public:
  Part(std::shared_ptr<Dataset::Source> whole, double from, double to)
      : whole_(std::move(whole)), from_(from), to_(to) {}

  std::int64_t size() const override { return at(to_) - at(from_); }
  Batch get(const std::vector<std::int64_t>& indices) override {
    std::vector<std::int64_t> chosen;
    for (const std::int64_t i : indices) chosen.push_back(order().at(static_cast<std::size_t>(at(from_) + i)));
    return whole_->get(chosen);
  }
  Batch slice(std::int64_t first, std::int64_t count) override {
    const auto begin = order().begin() + at(from_) + first;
    return whole_->get({begin, begin + count});
  }

 private:
  std::int64_t at(double fraction) const { return std::llround(fraction * static_cast<double>(whole_->size())); }

  const std::vector<std::int64_t>& order() {
    if (!order_.empty()) return order_;
    order_.resize(static_cast<std::size_t>(whole_->size()));
    std::iota(order_.begin(), order_.end(), 0);
    for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[splitmix(i) % i]);
    return order_;
  }

  std::shared_ptr<Dataset::Source> whole_;
  double from_, to_;
  std::vector<std::int64_t> order_;
};

}  // namespace

paceline_session*& session_of_this_thread() {
  thread_local paceline_session* session = nullptr;
  return session;
}

}  // namespace train

Dataset::Dataset(std::shared_ptr<Source> source) : source_(std::move(source)) {}
std::int64_t Dataset::size() const { return source_->size(); }
Batch Dataset::get(const std::vector<std::int64_t>& indices) const { return source_->get(indices); }
Batch Dataset::slice(std::int64_t first, std::int64_t count) const { return source_->slice(first, count); }

Dataset Dataset::part(double from, double to) const {
  if (!(from >= 0 && from < to && to <= 1))
    throw std::invalid_argument("part: give two fractions from 0 to 1, the smaller one first, such as part(0.2, 1)");
  return Dataset(std::make_shared<train::Part>(source_, from, to));
}

Dataset fashion_mnist() { return Dataset(std::make_shared<train::FashionMnist>(true)); }
Dataset fashion_mnist_test() { return Dataset(std::make_shared<train::FashionMnist>(false)); }
Dataset csv(const std::string& path, const CsvOptions& options) {
  return Dataset(std::make_shared<train::Csv>(path, options));
}
Dataset tensors(torch::Tensor data, torch::Tensor target) {
  return Dataset(std::make_shared<train::TensorPair>(std::move(data), std::move(target)));
}

double detail::accuracy(const std::function<torch::Tensor(torch::Tensor)>& forward, const Dataset& test,
                        std::int64_t batch) {
  if (batch < 1) throw std::invalid_argument("accuracy: batch must be at least 1");
  torch::NoGradGuard no_grad;
  std::int64_t right = 0;
  for (std::int64_t first = 0; first < test.size(); first += batch) {
    const auto [x, y] = test.slice(first, std::min(batch, test.size() - first));
    right += forward(x).argmax(1).eq(y).sum().item<std::int64_t>();
  }
  return static_cast<double>(right) / static_cast<double>(std::max<std::int64_t>(1, test.size()));
}

}  // namespace paceline
