#include "algorithms/train/idx.h"

#include <zlib.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

namespace paceline::train {
namespace {

struct CloseGz {
  void operator()(gzFile file) const { gzclose(file); }
};
using GzFile = std::unique_ptr<std::remove_pointer_t<gzFile>, CloseGz>;

/// Reads up to `out.size()` bytes; fewer at the end of the file; -1: damaged.
std::int64_t read_some(gzFile file, std::span<std::uint8_t> out) {
  std::int64_t total = 0;
  while (!out.empty()) {
    const auto ask = static_cast<unsigned>(std::min<std::size_t>(out.size(), 1U << 30));
    const int n = gzread(file, out.data(), ask);
    if (n < 0) return -1;
    if (n == 0) break;
    total += n;
    out = out.subspan(static_cast<std::size_t>(n));
  }
  int code = Z_OK;
  gzerror(file, &code);
  return code == Z_OK || code == Z_STREAM_END ? total : -1;
}

std::uint32_t big_endian(const std::uint8_t* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
}

std::string to_text(const std::vector<std::int64_t>& extents) {
  std::string text;
  for (const auto extent : extents) text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text;
}

}  // namespace

std::int64_t IdxShape::elements() const {
  std::int64_t total = 1;
  for (const auto extent : extents) total *= extent;
  return total;
}

Result<void> read_idx(const std::string& path, const IdxShape& wanted, std::span<std::uint8_t> out) {
  const auto bad = [&path](const std::string& what) {
    return fail(ErrorKind::invalid, path + ": " + what + "; fetch the file again");
  };
  if (static_cast<std::int64_t>(out.size()) != wanted.elements())
    return fail(ErrorKind::internal, path + ": wrong room for its shape");
  const GzFile file(gzopen(path.c_str(), "rbe"));
  if (!file) {
    auto error = fail_errno("cannot read " + path);
    if (errno == ENOENT) error.value().kind = ErrorKind::not_found;
    return error;
  }
  gzbuffer(file.get(), 256 * 1024);
  std::array<std::uint8_t, 4> magic{};
  if (read_some(file.get(), magic) != 4 || magic[0] != 0 || magic[1] != 0 || magic[2] != 0x08)
    return bad("not an IDX file of bytes");
  std::vector<std::int64_t> extents(magic[3]);
  for (auto& extent : extents) {
    std::array<std::uint8_t, 4> bytes{};
    if (read_some(file.get(), bytes) != 4) return bad("the header is cut off");
    extent = big_endian(bytes.data());
  }
  if (extents != wanted.extents)
    return bad("holds " + to_text(extents) + " bytes, expected " + to_text(wanted.extents));
  const auto got = read_some(file.get(), out);
  if (got != wanted.elements()) return bad(got < 0 ? "the file is damaged" : "the file is cut off");
  std::uint8_t beyond = 0;
  if (read_some(file.get(), {&beyond, 1}) != 0) return bad("bytes after the last element, or damaged");
  return {};
}

}  // namespace paceline::train
