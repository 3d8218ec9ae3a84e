#include <torch/torch.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/train/dataset.h"
#include "algorithms/train/mapped_file.h"
#include "algorithms/train/tensor_file.h"

// Data sets that may be larger than memory.

namespace paceline {
namespace train {
namespace {

/// A mapped file, and that the job was told of it.
class JobFile {
 public:
  explicit JobFile(const std::string& path) : path_(std::filesystem::absolute(path).string()) {}

  const std::string& path() const { return path_; }
  /// Throws std::runtime_error.
  std::span<const std::byte> bytes() {
    if (!file_.is_open()) {
      auto opened = MappedFile::open(path_);
      if (!opened) throw std::runtime_error(opened.error().text);
      file_ = std::move(*opened);
    }
    return file_.bytes();
  }
  /// What `read` reads of it: it may be written meanwhile. Its size may have been asked for before there was a session
  /// to tell.
  template <class Read>
  Batch use(Read&& read) {
    bytes();
    check();
    auto* const session = session_of_this_thread();
    if (session && !std::exchange(is_told_, true)) paceline_session_uses_file(session, path_.c_str());
    Batch batch = read();
    check();
    return batch;
  }
  void check() const {
    if (const auto unchanged = file_.check_unchanged(); !unchanged) throw std::runtime_error(unchanged.error().text);
  }

 private:
  std::string path_;
  MappedFile file_;
  bool is_told_ = false;
};

class MappedTensors final : public Dataset::Source {
 public:
  MappedTensors(const std::string& path, std::string data, std::string target)
      : file_(path), names_{std::move(data), std::move(target)} {}

  std::int64_t size() const override { return opened().first.size(0); }
  Batch get(const std::vector<std::int64_t>& indices) override {
    const auto& both = opened();
    const auto chosen = torch::tensor(indices, torch::kInt64);
    return file_.use([&] { return Batch{both.first.index_select(0, chosen), both.second.index_select(0, chosen)}; });
  }
  Batch slice(std::int64_t first, std::int64_t count) override {
    const auto& both = opened();
    return file_.use([&] {
      return Batch{both.first.narrow(0, first, count).clone(), both.second.narrow(0, first, count).clone()};
    });
  }

 private:
  const std::pair<torch::Tensor, torch::Tensor>& opened() const {
    if (tensors_.first.defined()) return tensors_;
    const auto content = decode_safetensors(file_.bytes());
    file_.check();
    if (!content) throw std::runtime_error(file_.path() + ": " + content.error().text);
    const auto find = [&](const std::string& name) {
      const auto* const found = content->find(name);
      if (!found || found->shape.empty())
        throw std::runtime_error(file_.path() + " holds no tensor '" + name + "' with samples");
      return view_of(*found);
    };
    std::pair found{find(names_[0]), find(names_[1])};
    if (found.first.size(0) != found.second.size(0))
      throw std::runtime_error(file_.path() + ": '" + names_[0] + "' and '" + names_[1] +
                               "' hold different numbers of samples");
    tensors_ = std::move(found);
    return tensors_;
  }

  mutable JobFile file_;
  std::array<std::string, 2> names_;
  mutable std::pair<torch::Tensor, torch::Tensor> tensors_;
};

class Tokens final : public Dataset::Source {
 public:
  Tokens(const std::string& path, const TokenOptions& options) : file_(path), options_(options) {
    if (options_.length < 1)
      throw std::invalid_argument("tokens: length is at least 1, not " + std::to_string(options_.length));
    if (options_.bytes != 1 && options_.bytes != 2 && options_.bytes != 4)
      throw std::invalid_argument("tokens: a token has 1, 2 or 4 bytes, not " + std::to_string(options_.bytes));
  }

  /// The last token is nobody's first: it is only told.
  std::int64_t size() const override {
    const auto bytes = static_cast<std::int64_t>(file_.bytes().size());
    if (bytes % options_.bytes != 0)
      throw std::runtime_error(file_.path() + " has " + std::to_string(bytes) + " bytes, which are no tokens of " +
                               std::to_string(options_.bytes) + " bytes each");
    const std::int64_t samples = (bytes / options_.bytes - 1) / options_.length;
    if (samples < 1)
      throw std::runtime_error(file_.path() + " has " + std::to_string(bytes / options_.bytes) +
                               " tokens: too few for a sample of " + std::to_string(options_.length) +
                               " and the one that follows");
    return samples;
  }
  Batch get(const std::vector<std::int64_t>& indices) override {
    return file_.use([&] { return read(indices); });
  }
  Batch slice(std::int64_t first, std::int64_t count) override {
    std::vector<std::int64_t> indices;
    for (std::int64_t k = 0; k < count; ++k) indices.push_back(first + k);
    return get(indices);
  }

 private:
  Batch read(const std::vector<std::int64_t>& indices) const {
    const auto rows = static_cast<std::int64_t>(indices.size());
    auto all = torch::empty({rows, options_.length + 1}, torch::kInt64);
    auto* to = all.data_ptr<std::int64_t>();
    const std::int64_t samples = size();
    for (const std::int64_t index : indices) {
      if (index < 0 || index >= samples) throw std::out_of_range("tokens: there is no sample " + std::to_string(index));
      const std::byte* from = file_.bytes().data() + index * options_.length * options_.bytes;
      for (std::int64_t k = 0; k <= options_.length; ++k, from += options_.bytes) *to++ = token_at(from);
    }
    return {all.narrow(1, 0, options_.length).contiguous(), all.narrow(1, 1, options_.length).contiguous()};
  }
  std::int64_t token_at(const std::byte* from) const {
    std::int64_t token = 0;
    for (int k = options_.bytes - 1; k >= 0; --k) token = token << 8 | std::to_integer<std::int64_t>(from[k]);
    return token;
  }

  mutable JobFile file_;
  TokenOptions options_;
};

}  // namespace
}  // namespace train

Dataset safetensors(const std::string& path, const std::string& data, const std::string& target) {
  return Dataset(std::make_shared<train::MappedTensors>(path, data, target));
}
Dataset tokens(const std::string& path, const TokenOptions& options) {
  return Dataset(std::make_shared<train::Tokens>(path, options));
}

}  // namespace paceline
