#include "algorithms/train/replica.h"

#include <charconv>
#include <cstdio>
#include <optional>
#include <string_view>

#include "algorithms/train/safetensors.h"

namespace paceline::train {
namespace {

constexpr std::string_view kFormat = "paceline-replica-1";
constexpr std::string_view kOptimizer = "paceline.optimizer.";
constexpr std::string_view kUser = "paceline.user.";

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

std::string list_of(const std::vector<double>& values) {
  std::string list;
  for (const double value : values) {
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, value).ptr;
    list.append(list.empty() ? "" : ",").append(text, end);
  }
  return list;
}

template <class T>
bool read_number(std::string_view text, T& out) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), out);
  return read.ec == std::errc{} && read.ptr == text.data() + text.size();
}

bool read_list(std::string_view text, std::vector<double>& out) {
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    if (!read_number(text.substr(0, comma), out.emplace_back())) return false;
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return true;
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

class Encoder {
 public:
  Result<void> add(std::string name, const torch::Tensor& tensor) {
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
  void add(std::string name, const std::string& bytes) {
    content_.tensors.push_back(
        {std::move(name), TensorType::u8, {static_cast<std::int64_t>(bytes.size())}, std::as_bytes(std::span(bytes))});
  }
  Safetensors& content() { return content_; }

 private:
  std::vector<torch::Tensor> kept_;
  Safetensors content_;
};

}  // namespace

Result<std::vector<std::byte>> encode_replica(const Replica& replica) {
  Encoder encoder;
  auto& metadata = encoder.content().metadata;
  metadata = replica.notes;
  metadata["format"] = "pt";  // What Python's readers look for.
  metadata["paceline"] = kFormat;
  metadata["update"] = std::to_string(replica.update);
  metadata["scheduled"] = std::to_string(replica.scheduled);
  metadata["learning_rates"] = list_of(replica.learning_rates);
  metadata["scheduled_rates"] = list_of(replica.scheduled_rates);
  // Wide types first would be usual; all we write is f32 but for a few counters, which go to the end with the bytes.
  for (const auto& [name, tensor] : replica.model) PACELINE_TRY(encoder.add(name, tensor));
  for (const auto& [name, tensor] : replica.optimizer)
    PACELINE_TRY(encoder.add(std::string(kOptimizer) + name, tensor));
  for (std::size_t i = 0; i < replica.user.size(); ++i)
    encoder.add(std::string(kUser) + std::to_string(i), replica.user[i]);
  return encode_safetensors(encoder.content());
}

Result<Replica> decode_replica(std::span<const std::byte> bytes) {
  const auto content = decode_safetensors(bytes);
  if (!content) return tl::unexpected(content.error());
  Replica replica;
  replica.notes = content->metadata;
  const auto& notes = replica.notes;
  const auto note = [&notes](const char* key) {
    const auto it = notes.find(key);
    return it == notes.end() ? std::string_view{} : std::string_view(it->second);
  };
  if (note("paceline") != kFormat) return fail(ErrorKind::invalid, "not a checkpoint of this version of Paceline");
  if (!read_number(note("update"), replica.update) || !read_number(note("scheduled"), replica.scheduled) ||
      replica.update < 0 || replica.scheduled < 0) {
    return fail(ErrorKind::invalid, "the checkpoint's update or schedule is not a number");
  }
  if (!read_list(note("learning_rates"), replica.learning_rates) ||
      !read_list(note("scheduled_rates"), replica.scheduled_rates))
    return fail(ErrorKind::invalid, "the checkpoint's learning rates are not numbers");
  for (const auto& view : content->tensors) {
    if (view.name.starts_with(kOptimizer)) {
      replica.optimizer.emplace_back(view.name.substr(kOptimizer.size()), view_of(view));
    } else if (view.name.starts_with(kUser)) {
      std::size_t number = 0;
      if (!read_number(std::string_view(view.name).substr(kUser.size()), number) || number != replica.user.size()) {
        return fail(ErrorKind::invalid, "the checkpoint's user states are out of order");
      }
      replica.user.emplace_back(reinterpret_cast<const char*>(view.bytes.data()), view.bytes.size());
    } else {
      replica.model.emplace_back(view.name, view_of(view));
    }
  }
  return replica;
}

}  // namespace paceline::train
