#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace paceline::train {

enum class TensorType { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean };

/// Bytes of one element.
std::size_t size_of(TensorType type);

/// A tensor in row-major order; `bytes` belongs to somebody else.
struct TensorView {
  std::string name;
  TensorType type = TensorType::f32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

/// Named tensors with text metadata, in the format of Hugging Face's safetensors 0.x, which Python's package reads:
///   u64 (little endian): length of the header · the header, JSON · the tensors' bytes, without holes.
struct Safetensors {
  std::map<std::string, std::string> metadata;
  std::vector<TensorView> tensors;

  const TensorView* find(std::string_view name) const;
};

/// A whole file where its parts lie: the header, then the bytes of each tensor, which are not copied.
struct SafetensorsFile {
  std::string header;
  std::vector<std::span<const std::byte>> tensors;

  /// One behind the other they are the file. This and the tensors must outlive them.
  std::vector<std::span<const std::byte>> pieces() const;
};
/// Tensors in the order given. `invalid`: a name twice, or bytes that do not fit the shape.
Result<SafetensorsFile> lay_out_safetensors(const Safetensors& content);
/// The same as bytes.
Result<std::vector<std::byte>> encode_safetensors(const Safetensors& content);

/// Views into `bytes`, which must outlive the result. `invalid` names what is wrong: everything is checked (length of
/// the header up to 100 MB, types, shapes against offsets, no hole, no overlap, nothing after the last tensor).
Result<Safetensors> decode_safetensors(std::span<const std::byte> bytes);

/// Writes beside `path`, syncs and renames: whatever fails, the old file stays whole and nothing is left lying about.
Result<void> write_file_atomically(const std::string& path, std::span<const std::byte> bytes);
/// The same of pieces that follow one another.
Result<void> write_pieces_atomically(const std::string& path, std::span<const std::span<const std::byte>> pieces);

/// A whole file, at most `bytes_max` bytes (`invalid` above that).
Result<std::vector<std::byte>> read_whole_file(const std::string& path, std::size_t bytes_max);

}  // namespace paceline::train
