#include "paceline/checkpoint.h"

#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "algorithms/train/tensor_file.h"

namespace paceline {
namespace {

using train::NamedTensors;
using train::tensors_of;

constexpr std::string_view kOfJobs = "paceline.";  // What a checkpoint holds beside the model.
constexpr std::size_t kNamesShown = 5;

[[noreturn]] void refuse(const std::string& what, const std::string& path, const std::string& why) {
  throw std::runtime_error("cannot " + what + " " + path + ": " + why);
}

/// "a, b and 3 more"
std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kNamesShown; ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > kNamesShown ? text + " and " + std::to_string(names.size() - kNamesShown) + " more" : text;
}

std::string text_of(c10::IntArrayRef shape) {
  std::string text = "[";
  for (const auto extent : shape) text += (text.size() == 1 ? "" : ", ") + std::to_string(extent);
  return text + "]";
}

/// The bytes that `visit` gets views of live as long as the call.
template <class Visit>
void read(const std::string& path, Visit&& visit) {
  const std::string file = train::checkpoint_in(path);
  const auto bytes = train::read_checkpoint(path);
  if (!bytes) throw std::runtime_error(bytes.error().text);
  const auto content = train::decode_safetensors(*bytes);
  if (!content) refuse("read", file, content.error().text);
  visit(*content);
}

void write(const NamedTensors& tensors, const std::string& path) {
  train::TensorEncoder encoder;
  encoder.metadata()["format"] = "pt";  // What Python's readers look for.
  for (const auto& [name, tensor] : tensors)
    if (const auto added = encoder.add(name, tensor); !added) refuse("write", path, added.error().text);
  const auto bytes = encoder.bytes();
  if (!bytes) refuse("write", path, bytes.error().text);
  if (const auto written = train::write_file_atomically(path, *bytes); !written)
    throw std::runtime_error(written.error().text);
}

}  // namespace

LoadResult load(torch::nn::Module& model, const std::string& path, const LoadOptions& options) {
  LoadResult result;
  read(path, [&](const train::Safetensors& content) {
    std::vector<std::string> misfits;
    std::vector<std::pair<torch::Tensor, torch::Tensor>> copies;  // To, from.
    std::set<std::string> taken;
    for (const auto& [name, tensor] : tensors_of(model)) {
      const auto* const found = content.find(options.prefix + name);
      if (!found) {
        result.missing.push_back(name);
        continue;
      }
      taken.insert(found->name);
      const auto saved = train::view_of(*found);
      if (saved.sizes() == tensor.sizes()) {
        copies.emplace_back(tensor.detach(), saved);
      } else {
        misfits.push_back(name + " is " + text_of(saved.sizes()) + " there and " + text_of(tensor.sizes()) + " here");
      }
    }
    for (const auto& tensor : content.tensors)
      if (!taken.contains(tensor.name) && !tensor.name.starts_with(kOfJobs) && tensor.name.starts_with(options.prefix))
        result.unexpected.push_back(tensor.name);
    std::string why;
    const auto add = [&why](const std::string& what, const std::vector<std::string>& names) {
      if (!names.empty()) why += (why.empty() ? "" : "; ") + what + list_of(names);
    };
    add("", misfits);
    if (options.strict) {
      add("it lacks ", result.missing);
      add("the model has no ", result.unexpected);
    }
    if (!why.empty())
      refuse("load", train::checkpoint_in(path) + " into the model",
             why + (misfits.empty() ? " (strict = false passes over these)" : ""));
    torch::NoGradGuard no_grad;
    for (auto& [to, from] : copies) to.copy_(from);
  });
  return result;
}

void save(const torch::nn::Module& model, const std::string& path) { write(tensors_of(model), path); }

std::map<std::string, torch::Tensor> load_tensors(const std::string& path) {
  std::map<std::string, torch::Tensor> tensors;
  read(path, [&](const train::Safetensors& content) {
    for (const auto& tensor : content.tensors) tensors.emplace(tensor.name, train::view_of(tensor).clone());
  });
  return tensors;
}

void save_tensors(const std::map<std::string, torch::Tensor>& tensors, const std::string& path) {
  write({tensors.begin(), tensors.end()}, path);
}

}  // namespace paceline
