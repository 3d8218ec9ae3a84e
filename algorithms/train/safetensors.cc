#include "algorithms/train/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "runtime/base/json.h"

namespace paceline::train {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors are little endian");

constexpr std::size_t kHeaderMax = 100'000'000;
constexpr std::size_t kDimensionsMax = 64;

struct TypeRow {
  TensorType type;
  std::string_view name;
  std::size_t size;
};
constexpr std::array<TypeRow, 10> kTypes{{{TensorType::f64, "F64", 8},
                                          {TensorType::f32, "F32", 4},
                                          {TensorType::f16, "F16", 2},
                                          {TensorType::bf16, "BF16", 2},
                                          {TensorType::i64, "I64", 8},
                                          {TensorType::i32, "I32", 4},
                                          {TensorType::i16, "I16", 2},
                                          {TensorType::i8, "I8", 1},
                                          {TensorType::u8, "U8", 1},
                                          {TensorType::boolean, "BOOL", 1}}};

const TypeRow& row_of(TensorType type) {
  return *std::find_if(kTypes.begin(), kTypes.end(), [type](const TypeRow& row) { return row.type == type; });
}

/// Bytes of a tensor; nullopt if that does not fit 63 bits.
std::optional<std::uint64_t> bytes_of(TensorType type, const std::vector<std::int64_t>& shape) {
  std::uint64_t total = row_of(type).size;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    if (extent == 0) return 0;
    if (total > std::uint64_t{std::numeric_limits<std::int64_t>::max()} / static_cast<std::uint64_t>(extent)) {
      return std::nullopt;
    }
    total *= static_cast<std::uint64_t>(extent);
  }
  return total;
}

struct Entry {
  TensorView view;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

Result<Entry> decode_entry(const std::string& name, const nlohmann::json& json) {
  const auto bad = [&name](const std::string& what) {
    return fail(ErrorKind::invalid, "safetensors: tensor '" + name + "' " + what);
  };
  if (!json.is_object() || !json.contains("dtype") || !json.contains("shape") || !json.contains("data_offsets")) {
    return bad("lacks dtype, shape or data_offsets");
  }
  Entry entry;
  entry.view.name = name;
  const auto& dtype = json["dtype"];
  const auto row = std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeRow& r) {
    return dtype.is_string() && dtype.get_ref<const std::string&>() == r.name;
  });
  if (row == kTypes.end()) return bad("has an unknown dtype " + json_text(dtype));
  entry.view.type = row->type;
  const auto& shape = json["shape"];
  if (!shape.is_array() || shape.size() > kDimensionsMax) return bad("has a bad shape");
  for (const auto& extent : shape) {
    if (!extent.is_number_unsigned() ||
        extent.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
      return bad("has a bad shape " + json_text(shape));
    }
    entry.view.shape.push_back(extent.get<std::int64_t>());
  }
  const auto& offsets = json["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned()) {
    return bad("has bad data_offsets");
  }
  entry.begin = offsets[0].get<std::uint64_t>();
  entry.end = offsets[1].get<std::uint64_t>();
  const auto wanted = bytes_of(entry.view.type, entry.view.shape);
  if (!wanted || entry.end < entry.begin || entry.end - entry.begin != *wanted) {
    return bad("has offsets that do not fit its shape " + json_text(shape));
  }
  return entry;
}

/// Closes and removes on the way out unless released.
class TemporaryFile {
 public:
  TemporaryFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (fd_ >= 0) ::close(fd_);
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  int fd() const { return fd_; }
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }
  void keep() { path_.clear(); }

 private:
  int fd_;
  std::string path_;
};

}  // namespace

std::size_t size_of(TensorType type) { return row_of(type).size; }

const TensorView* Safetensors::find(std::string_view name) const {
  const auto it = std::find_if(tensors.begin(), tensors.end(), [name](const TensorView& t) { return t.name == name; });
  return it == tensors.end() ? nullptr : &*it;
}

std::vector<std::span<const std::byte>> SafetensorsFile::pieces() const {
  std::vector<std::span<const std::byte>> all{std::as_bytes(std::span(header))};
  all.insert(all.end(), tensors.begin(), tensors.end());
  return all;
}

Result<std::vector<std::byte>> encode_safetensors(const Safetensors& content) {
  const auto file = lay_out_safetensors(content);
  if (!file) return tl::unexpected(file.error());
  std::vector<std::byte> bytes;
  for (const auto& piece : file->pieces()) bytes.insert(bytes.end(), piece.begin(), piece.end());
  return bytes;
}

Result<SafetensorsFile> lay_out_safetensors(const Safetensors& content) {
  auto header = nlohmann::ordered_json::object();
  if (!content.metadata.empty()) header["__metadata__"] = content.metadata;
  std::uint64_t offset = 0;
  for (const TensorView& tensor : content.tensors) {
    const auto wanted = bytes_of(tensor.type, tensor.shape);
    if (!wanted || *wanted != tensor.bytes.size()) {
      return fail(ErrorKind::invalid, "safetensors: tensor '" + tensor.name + "' has " +
                                          std::to_string(tensor.bytes.size()) + " bytes, which do not fit its shape");
    }
    if (tensor.name == "__metadata__" || header.contains(tensor.name)) {
      return fail(ErrorKind::invalid, "safetensors: the name '" + tensor.name + "' is used twice or reserved");
    }
    header[tensor.name] = {
        {"dtype", row_of(tensor.type).name}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + *wanted}}};
    offset += *wanted;
  }
  std::string text;
  try {
    text = header.dump();  // Not json_text: a file of replaced names would lie.
  } catch (const nlohmann::json::exception&) {
    return fail(ErrorKind::invalid, "safetensors: a name or a piece of metadata is not UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');  // So that the data is aligned.
  if (text.size() > kHeaderMax) return fail(ErrorKind::invalid, "safetensors: the header is longer than 100 MB");

  SafetensorsFile file;
  const std::uint64_t length = text.size();
  file.header.assign(reinterpret_cast<const char*>(&length), sizeof length);
  file.header += text;
  for (const TensorView& tensor : content.tensors) file.tensors.push_back(tensor.bytes);
  return file;
}

namespace {

/// Zip archives, and before PyTorch 1.6 a pickle of a number of its own.
bool is_of_torch_save(std::span<const std::byte> bytes) {
  const std::string_view begin(reinterpret_cast<const char*>(bytes.data()), std::min<std::size_t>(bytes.size(), 6));
  return begin.starts_with("PK\x03\x04") || begin == std::string_view("\x80\x02\x8a\x0a\x6c\xfc", 6);
}

}  // namespace

Result<Safetensors> decode_safetensors(std::span<const std::byte> bytes) {
  std::uint64_t length = 0;
  if (bytes.size() < sizeof length) return fail(ErrorKind::invalid, "safetensors: the file is shorter than its header");
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > kHeaderMax || length > bytes.size() - sizeof length) {
    if (is_of_torch_save(bytes))
      return fail(ErrorKind::invalid,
                  "safetensors: this is a file of torch.save, which is not read here: save it as safetensors, in "
                  "Python with safetensors.torch.save_file(net.state_dict(), \"net.safetensors\"), in C++ with "
                  "paceline::save(net, \"net.safetensors\")");
    return fail(ErrorKind::invalid,
                "safetensors: the header's length " + std::to_string(length) + " does not fit the file");
  }
  const auto* text = reinterpret_cast<const char*>(bytes.data() + sizeof length);
  const auto data = bytes.subspan(sizeof length + length);
  // A name twice would be silently merged by the parser.
  std::set<std::string> names;
  bool twice = false;
  const auto watch = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    if (depth == 1 && event == nlohmann::json::parse_event_t::key)
      twice |= !names.insert(parsed.get<std::string>()).second;
    return depth <= 8;
  };
  const auto header = nlohmann::json::parse(text, text + length, watch, /*allow_exceptions=*/false);
  if (!header.is_object()) return fail(ErrorKind::invalid, "safetensors: the header is not a JSON object");
  if (twice) return fail(ErrorKind::invalid, "safetensors: a name occurs twice in the header");

  Safetensors content;
  std::vector<Entry> entries;
  for (const auto& [name, json] : header.items()) {
    if (name == "__metadata__") {
      for (const auto& [key, value] : json.items()) {
        if (!value.is_string()) return fail(ErrorKind::invalid, "safetensors: metadata '" + key + "' is not a text");
        content.metadata[key] = value.get<std::string>();
      }
      continue;
    }
    auto entry = decode_entry(name, json);
    if (!entry) return tl::unexpected(std::move(entry).error());
    entries.push_back(std::move(*entry));
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t at = 0;
  for (Entry& entry : entries) {
    if (entry.begin != at || entry.end > data.size()) {
      return fail(ErrorKind::invalid, "safetensors: tensor '" + entry.view.name +
                                          "' leaves a hole, overlaps another or ends beyond the file");
    }
    entry.view.bytes = data.subspan(entry.begin, entry.end - entry.begin);
    at = entry.end;
    content.tensors.push_back(std::move(entry.view));
  }
  if (at != data.size()) return fail(ErrorKind::invalid, "safetensors: bytes after the last tensor");
  return content;
}

Result<void> write_file_atomically(const std::string& path, std::span<const std::byte> bytes) {
  return write_pieces_atomically(path, {&bytes, 1});
}

Result<void> write_pieces_atomically(const std::string& path, std::span<const std::span<const std::byte>> pieces) {
  std::string name = path + ".part-XXXXXX";
  const int fd = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) return fail_errno("cannot write " + path);
  TemporaryFile file(fd, name);
  ::fchmod(fd, 0644);
  for (auto bytes : pieces) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd, bytes.data(), std::min(bytes.size(), std::size_t{1} << 30));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return fail_errno("cannot write " + path + " (the old one stays)");
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
  }
  if (::fsync(fd) != 0 || !file.close()) return fail_errno("cannot write " + path + " (the old one stays)");
  if (::rename(name.c_str(), path.c_str()) != 0) return fail_errno("cannot rename to " + path);
  file.keep();
  const auto slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (const int dir = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); dir >= 0) {
    ::fsync(dir);
    ::close(dir);
  }
  return {};
}

Result<std::vector<std::byte>> read_whole_file(const std::string& path, std::size_t bytes_max) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail_errno("cannot read " + path);
  TemporaryFile file(fd, "");
  struct stat status {};
  if (::fstat(fd, &status) != 0) return fail_errno("cannot read " + path);
  if (!S_ISREG(status.st_mode)) return fail(ErrorKind::invalid, "cannot read " + path + ": not a file");
  if (static_cast<std::uint64_t>(status.st_size) > bytes_max) {
    return fail(ErrorKind::invalid,
                "cannot read " + path + ": it is larger than " + std::to_string(bytes_max) + " bytes");
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(status.st_size));
  std::size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t n = ::read(fd, bytes.data() + at, bytes.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("cannot read " + path);
    if (n == 0) return fail(ErrorKind::invalid, "cannot read " + path + ": it became shorter");
    at += static_cast<std::size_t>(n);
  }
  return bytes;
}

}  // namespace paceline::train
