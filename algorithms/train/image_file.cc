#include "algorithms/train/image_file.h"

#include <png.h>
#include <turbojpeg.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <memory>
#include <span>

#include "algorithms/train/safetensors.h"

namespace paceline::train {
namespace {

constexpr std::size_t kFileMax = std::size_t{1} << 30;

using Bytes = std::span<const std::byte>;

tl::unexpected<Error> damaged(const std::string& path, const std::string& why) {
  return fail(ErrorKind::invalid, path + " cannot be read as an image: " + why);
}

bool begins_with(Bytes bytes, std::span<const std::uint8_t> signature) {
  return bytes.size() >= signature.size() &&
         std::equal(signature.begin(), signature.end(), bytes.begin(),
                    [](std::uint8_t a, std::byte b) { return a == std::to_integer<std::uint8_t>(b); });
}

/// With room for its pixels.
Result<Image> image_of(const std::string& path, std::int64_t height, std::int64_t width, int channels) {
  if (height < 1 || width < 1 || height > kPixelsMax / width)
    return damaged(path, "it has " + std::to_string(width) + " x " + std::to_string(height) + " pixels");
  Image image{height, width, {}};
  image.pixels.resize(static_cast<std::size_t>(height * width * channels));
  return image;
}

Result<Image> read_png(const std::string& path, Bytes bytes, int channels) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  const std::unique_ptr<png_image, void (*)(png_image*)> freed(&png, &png_image_free);
  if (!png_image_begin_read_from_memory(&png, bytes.data(), bytes.size())) return damaged(path, png.message);
  png.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  auto image = image_of(path, png.height, png.width, channels);
  if (!image) return image;
  const png_color black{0, 0, 0};
  if (!png_image_finish_read(&png, &black, image->pixels.data(), 0, nullptr)) return damaged(path, png.message);
  return image;
}

Result<Image> read_jpeg(const std::string& path, Bytes bytes, int channels) {
  const std::unique_ptr<void, int (*)(tjhandle)> reader(tjInitDecompress(), &tjDestroy);
  if (!reader) return fail(ErrorKind::internal, "there is no memory to read " + path);
  const auto* const data = reinterpret_cast<const unsigned char*>(bytes.data());
  int width = 0, height = 0, sampling = 0, colours = 0;
  if (tjDecompressHeader3(reader.get(), data, bytes.size(), &width, &height, &sampling, &colours) != 0)
    return damaged(path, tjGetErrorStr2(reader.get()));
  auto image = image_of(path, height, width, channels);
  if (!image) return image;
  const int format = channels == 1 ? TJPF_GRAY : TJPF_RGB;
  if (tjDecompress2(reader.get(), data, bytes.size(), image->pixels.data(), width, 0, height, format, 0) != 0 &&
      tjGetErrorCode(reader.get()) == TJERR_FATAL)
    return damaged(path, tjGetErrorStr2(reader.get()));
  return image;
}

}  // namespace

bool is_image_name(const std::string& name) {
  std::string ending = name.substr(std::min(name.rfind('.'), name.size()));
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending == ".png" || ending == ".jpg" || ending == ".jpeg";
}

Result<Image> read_image(const std::string& path, int channels) {
  constexpr std::array<std::uint8_t, 8> png = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  constexpr std::array<std::uint8_t, 3> jpeg = {0xff, 0xd8, 0xff};
  const auto bytes = read_whole_file(path, kFileMax);
  if (!bytes) return tl::unexpected(bytes.error());
  if (begins_with(*bytes, png)) return read_png(path, *bytes, channels);
  if (begins_with(*bytes, jpeg)) return read_jpeg(path, *bytes, channels);
  return damaged(path, "it is neither PNG nor JPEG");
}

}  // namespace paceline::train
