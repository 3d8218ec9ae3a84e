#pragma once

#include <torch/torch.h>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "algorithms/train/optimizer_state.h"
#include "algorithms/train/safetensors.h"

namespace paceline::train {

/// A file or, in a run directory, its checkpoint.
std::string checkpoint_in(const std::string& path);
/// The bytes of a checkpoint; `path` as above.
Result<std::vector<std::byte>> read_checkpoint(const std::string& path);

/// Parameters, then buffers, under their names.
NamedTensors tensors_of(const torch::nn::Module& model);

/// A tensor where the file's bytes lie, which must outlive it and are not to be written.
torch::Tensor view_of(const TensorView& view);

/// Collects tensors and texts for a safetensors file. Tensors are read where they lie: when bytes() is called, or by
/// who reads the pieces of file(), which this outlives.
class TensorEncoder {
 public:
  /// `invalid`: sparse, not on the CPU, or of a type that safetensors lacks.
  Result<void> add(std::string name, const torch::Tensor& tensor);
  /// As a tensor of bytes; `bytes` must live as long as tensors have to.
  void add(std::string name, const std::string& bytes);
  std::map<std::string, std::string>& metadata() { return content_.metadata; }
  Result<std::vector<std::byte>> bytes() const { return encode_safetensors(content_); }
  Result<SafetensorsFile> file() const { return lay_out_safetensors(content_); }

 private:
  std::deque<torch::Tensor> kept_;
  Safetensors content_;
};

}  // namespace paceline::train
