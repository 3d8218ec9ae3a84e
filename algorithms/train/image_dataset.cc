#include <torch/torch.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/train/dataset.h"
#include "algorithms/train/image_file.h"

namespace paceline {
namespace train {
namespace {

namespace fs = std::filesystem;

/// Images in a folder for each class, read whenever a batch asks for them.
class Images final : public Dataset::Source {
 public:
  Images(const std::string& folder, const ImageOptions& options)
      : folder_(fs::absolute(folder).lexically_normal()), options_(options) {
    if (options_.channels != 1 && options_.channels != 3)
      throw std::invalid_argument("images: channels are 1 (grey) or 3 (red, green, blue), not " +
                                  std::to_string(options_.channels));
    if (options_.height < 0 || options_.width < 0 || (options_.height == 0) != (options_.width == 0) ||
        (options_.width > 0 && options_.height > kPixelsMax / options_.width))
      throw std::invalid_argument("images: give both height and width, or neither");
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(files().size()); }
  Batch get(const std::vector<std::int64_t>& indices) override {
    const torch::NoGradGuard no_grad;
    tell();
    std::vector<torch::Tensor> images;
    std::vector<std::int64_t> classes;
    for (const std::int64_t index : indices) {
      const auto& [path, number] = files().at(static_cast<std::size_t>(index));
      images.push_back(read(path));
      classes.push_back(number);
    }
    return {torch::stack(images), torch::tensor(classes, torch::kInt64)};
  }
  Batch slice(std::int64_t first, std::int64_t count) override {
    std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
    for (std::int64_t k = 0; k < count; ++k) indices[static_cast<std::size_t>(k)] = first + k;
    return get(indices);
  }

 private:
  /// Which files there are, before any of them is read.
  void tell() {
    auto* const session = session_of_this_thread();
    if (!session || std::exchange(is_told_, true)) return;
    std::set<std::string> folders;
    for (const auto& [path, number] : files()) folders.insert(fs::path(path).parent_path());
    for (const auto& folder : folders) paceline_session_uses_file(session, folder.c_str());
  }

  using File = std::pair<std::string, std::int64_t>;  // Its path, and the number of its class.

  /// Sorted, so that all workers have one order.
  static std::vector<fs::path> sorted(const fs::path& folder) {
    std::vector<fs::path> paths;
    std::error_code failed;
    for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed))
      paths.push_back(it->path());
    if (failed) throw std::runtime_error("cannot read the folder " + folder.string() + ": " + failed.message());
    std::sort(paths.begin(), paths.end());
    return paths;
  }

  const std::vector<File>& files() const {
    if (!files_.empty()) return files_;
    std::vector<File> found;
    std::int64_t number = 0;
    for (const fs::path& of_class : sorted(folder_)) {
      if (!fs::is_directory(of_class)) continue;
      for (const fs::path& path : sorted(of_class))
        if (is_image_name(path.filename())) found.emplace_back(path, number);
      ++number;
    }
    if (found.empty())
      throw std::runtime_error(folder_.string() +
                               " holds no images: a folder for each class is wanted in it, with .png or .jpg files");
    files_ = std::move(found);
    return files_;
  }

  /// Float [channels, height, width].
  torch::Tensor read(const std::string& path) const {
    auto image = read_image(path, options_.channels);
    if (!image) throw std::runtime_error(image.error().text);
    const auto bytes =
        torch::from_blob(image->pixels.data(), {image->height, image->width, options_.channels}, torch::kUInt8);
    auto numbers = bytes.permute({2, 0, 1}).to(torch::kFloat32).div_(255);
    const auto [height, width] = wanted();
    if (image->height == height && image->width == width) return numbers.contiguous();
    if (options_.height == 0)
      throw std::runtime_error(path + " is " + std::to_string(image->width) + " x " + std::to_string(image->height) +
                               " pixels, the first image " + std::to_string(width) + " x " + std::to_string(height) +
                               ": give .height and .width, to which all are scaled");
    return torch::nn::functional::interpolate(numbers.unsqueeze(0), torch::nn::functional::InterpolateFuncOptions()
                                                                        .size(std::vector<std::int64_t>{height, width})
                                                                        .mode(torch::kBilinear)
                                                                        .align_corners(false)
                                                                        .antialias(true))
        .squeeze(0);
  }

  /// Height and width of all.
  std::pair<std::int64_t, std::int64_t> wanted() const {
    if (options_.height > 0) return {options_.height, options_.width};
    if (first_.first == 0) {
      const auto image = read_image(files().front().first, options_.channels);
      if (!image) throw std::runtime_error(image.error().text);
      first_ = {image->height, image->width};
    }
    return first_;
  }

  fs::path folder_;
  ImageOptions options_;
  bool is_told_ = false;
  mutable std::vector<File> files_;
  mutable std::pair<std::int64_t, std::int64_t> first_;
};

}  // namespace
}  // namespace train

Dataset images(const std::string& folder, const ImageOptions& options) {
  return Dataset(std::make_shared<train::Images>(folder, options));
}

}  // namespace paceline
