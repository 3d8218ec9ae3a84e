#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace paceline::train {

/// What an IDX file (the format of MNIST) holds: unsigned bytes in row-major order.
struct IdxShape {
  std::vector<std::int64_t> extents;
  std::int64_t elements() const;
};

/// Reads a gzipped (or plain) IDX file of unsigned bytes whose shape must be `wanted` into `out`, which has room for
/// exactly its elements. `not_found`: no such file; `invalid`: not IDX, another shape, shorter or longer than its
/// header says, damaged.
Result<void> read_idx(const std::string& path, const IdxShape& wanted, std::span<std::uint8_t> out);

}  // namespace paceline::train
