#include "paceline/tensor.h"

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

namespace paceline::actors {
namespace {

constexpr std::uint8_t kUndefined = 0, kDefined = 1, kRequiresGrad = 2;

/// Bytes of so many numbers; throws where no memory can have them.
std::size_t bytes_of(const std::vector<std::int64_t>& sizes, std::size_t width) {
  std::size_t bytes = width;
  for (const std::int64_t size : sizes) {
    if (size < 0) throw cereal::Exception("a tensor has a negative size");
    if (size > 0 && bytes > std::numeric_limits<std::size_t>::max() / static_cast<std::size_t>(size))
      throw cereal::Exception("a tensor claims more numbers than there are bytes");
    bytes *= static_cast<std::size_t>(size);
  }
  return bytes;
}

}  // namespace

void CEREAL_SAVE_FUNCTION_NAME(ByteWriter& archive, const torch::Tensor& tensor) {
  if (!tensor.defined()) {
    archive(kUndefined);
    return;
  }
  if (tensor.layout() != torch::kStrided || tensor.is_quantized())
    throw std::invalid_argument("a sparse or quantised tensor cannot travel: pass it as a dense one");
  const torch::Tensor numbers = tensor.detach().to(torch::kCPU).contiguous();
  archive(static_cast<std::uint8_t>(kDefined | (tensor.requires_grad() ? kRequiresGrad : 0)),
          static_cast<std::int8_t>(numbers.scalar_type()), numbers.sizes().vec());
  archive.write(numbers.data_ptr(), numbers.nbytes());
}

void CEREAL_LOAD_FUNCTION_NAME(ByteReader& archive, torch::Tensor& tensor) {
  std::uint8_t flags = 0;
  archive(flags);
  if (flags == kUndefined) {
    tensor = torch::Tensor();
    return;
  }
  std::int8_t type = 0;
  std::vector<std::int64_t> sizes;
  archive(type, sizes);
  const auto scalar = static_cast<torch::ScalarType>(type);
  if (type < 0 || type >= static_cast<std::int8_t>(torch::ScalarType::NumOptions) || c10::isQIntType(scalar) ||
      scalar == torch::ScalarType::Undefined)
    throw cereal::Exception("a tensor has an unknown type");
  archive.check_count(bytes_of(sizes, c10::elementSize(scalar)));
  tensor = torch::empty(sizes, scalar);
  archive.read(tensor.data_ptr(), tensor.nbytes());
  if (flags & kRequiresGrad) tensor.requires_grad_();
}

}  // namespace paceline::actors
