#pragma once

#include <torch/torch.h>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace paceline {

/// What a file and a model may lack of one another.
struct LoadOptions {
  bool strict = true;  ///< Every tensor of the model has to be in the file, and the other way round.
  std::string
      prefix{};  ///< Of the names in the file: "share1." for a job's second model, "module." after Python's DDP.
};

/// What had no partner, by the model's names and the file's.
struct LoadResult {
  std::vector<std::string> missing;     ///< In the model, not in the file: left as they were.
  std::vector<std::string> unexpected;  ///< In the file, not in the model.
};

/// Copies parameters and buffers from a safetensors file, or from the checkpoint of a run directory, into the model, by
/// name and converted to its types, as PyTorch's load_state_dict does. State of optimisers in the file is passed over.
/// The model is changed only if everything fits. Throws std::runtime_error, naming all that does not: no such file, not
/// safetensors, other shapes, or under `strict` names without a partner. May be called before `share`, and after it
/// equally on all workers.
LoadResult load(torch::nn::Module& model, const std::string& path, const LoadOptions& options = {});

/// Writes parameters and buffers as a safetensors file, whole or not at all: an old file stays if it fails. Python's
/// safetensors reads it. Throws std::runtime_error.
void save(const torch::nn::Module& model, const std::string& path);

/// All tensors of a safetensors file or of a run directory's checkpoint, by name, with memory of their own.
std::map<std::string, torch::Tensor> load_tensors(const std::string& path);
/// Writes them as a safetensors file, whole or not at all. Throws std::runtime_error.
void save_tensors(const std::map<std::string, torch::Tensor>& tensors, const std::string& path);

/// The same of a module holder, such as `Net` or `torch::nn::Sequential`.
template <class Net>
LoadResult load(const torch::nn::ModuleHolder<Net>& model, const std::string& path, const LoadOptions& options = {}) {
  return load(static_cast<torch::nn::Module&>(*model.ptr()), path, options);
}
/// The same of a module holder.
template <class Net>
void save(const torch::nn::ModuleHolder<Net>& model, const std::string& path) {
  save(static_cast<const torch::nn::Module&>(*model.ptr()), path);
}

}  // namespace paceline
