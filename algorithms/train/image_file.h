#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace paceline::train {

/// [height, width, channels], a byte each.
struct Image {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<std::uint8_t> pixels;
};

/// Whether it is read, by the ending of its name: .png, .jpg, .jpeg.
bool is_image_name(const std::string& name);

/// Reads a PNG or JPEG file, told apart by how they begin, as grey (1 channel) or red, green and blue (3). What is
/// transparent is black. `not_found`; `invalid`: neither, damaged, or larger than kPixelsMax.
Result<Image> read_image(const std::string& path, int channels);
inline constexpr std::int64_t kPixelsMax = std::int64_t{1} << 28;

}  // namespace paceline::train
