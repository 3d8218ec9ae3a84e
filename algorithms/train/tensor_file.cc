#include "algorithms/train/tensor_file.h"

#include <sys/stat.h>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "runtime/observe/run_directory.h"

namespace paceline::train {
namespace {

constexpr std::size_t kCheckpointMax = std::size_t{1} << 40;

std::optional<TensorType> type_of(torch::ScalarType type) {
  switch (type) {
    case torch::kFloat64: return TensorType::f64;
    case torch::kFloat32: return TensorType::f32;
    case torch::kFloat16: return TensorType::f16;
    case torch::kBFloat16: return TensorType::bf16;
    case torch::kInt64: return TensorType::i64;
    case torch::kInt32: return TensorType::i32;
    case torch::kInt16: return TensorType::i16;
    case torch::kInt8: return TensorType::i8;
    case torch::kUInt8: return TensorType::u8;
    case torch::kBool: return TensorType::boolean;
    default: return std::nullopt;
  }
}

torch::ScalarType type_of(TensorType type) {
  switch (type) {
    case TensorType::f64: return torch::kFloat64;
    case TensorType::f32: return torch::kFloat32;
    case TensorType::f16: return torch::kFloat16;
    case TensorType::bf16: return torch::kBFloat16;
    case TensorType::i64: return torch::kInt64;
    case TensorType::i32: return torch::kInt32;
    case TensorType::i16: return torch::kInt16;
    case TensorType::i8: return torch::kInt8;
    case TensorType::u8: return torch::kUInt8;
    case TensorType::boolean: return torch::kBool;
  }
  return torch::kUInt8;
}

}  // namespace

std::string checkpoint_in(const std::string& path) {
  struct stat status {};
  const bool directory = ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  return directory ? observe::RunDirectory::at(path).checkpoint() : path;
}

Result<std::vector<std::byte>> read_checkpoint(const std::string& path) {
  return read_whole_file(checkpoint_in(path), kCheckpointMax);
}

NamedTensors tensors_of(const torch::nn::Module& model) {
  NamedTensors tensors;
  for (const auto& item : model.named_parameters()) tensors.emplace_back(item.key(), item.value());
  for (const auto& item : model.named_buffers())
    if (item.value().defined()) tensors.emplace_back(item.key(), item.value());
  return tensors;
}

torch::Tensor view_of(const TensorView& view) {
  // torch wants a writable, aligned address; nobody writes through it. Odd offsets (a foreign writer) are copied.
  auto* const data = const_cast<std::byte*>(view.bytes.data());
  const auto options = torch::TensorOptions().dtype(type_of(view.type));
  if (view.bytes.empty()) return torch::empty(view.shape, options);
  if (reinterpret_cast<std::uintptr_t>(data) % size_of(view.type) == 0)
    return torch::from_blob(data, view.shape, options);
  auto copy = torch::empty(view.shape, options);
  std::memcpy(copy.data_ptr(), data, view.bytes.size());
  return copy;
}

Result<void> TensorEncoder::add(std::string name, const torch::Tensor& tensor) {
  const auto type = type_of(tensor.scalar_type());
  if (!type || tensor.is_sparse() || !tensor.device().is_cpu()) {
    return fail(ErrorKind::invalid, "tensor '" + name + "' cannot be saved: its type is " +
                                        std::string(c10::toString(tensor.scalar_type())));
  }
  const auto flat = kept_.emplace_back(tensor.detach().contiguous());
  content_.tensors.push_back(
      {std::move(name),
       *type,
       flat.sizes().vec(),
       {static_cast<const std::byte*>(flat.data_ptr()), static_cast<std::size_t>(flat.nbytes())}});
  return {};
}

void TensorEncoder::add(std::string name, const std::string& bytes) {
  content_.tensors.push_back(
      {std::move(name), TensorType::u8, {static_cast<std::int64_t>(bytes.size())}, std::as_bytes(std::span(bytes))});
}

}  // namespace paceline::train
