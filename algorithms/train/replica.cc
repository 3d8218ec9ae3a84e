#include "algorithms/train/replica.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "algorithms/job/resume.h"
#include "algorithms/train/tensor_file.h"

namespace paceline::train {
namespace {

constexpr std::string_view kFormat = job::kCheckpointFormat;
constexpr std::string_view kOptimizer = "paceline.optimizer.";
constexpr std::string_view kOuter = "paceline.outer";
constexpr std::string_view kUser = "paceline.user.";

template <class T>
std::string list_of(const std::vector<T>& values) {
  std::string list;
  for (const T value : values) {
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

template <class T>
bool read_list(std::string_view text, std::vector<T>& out) {
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    if (!read_number(text.substr(0, comma), out.emplace_back())) return false;
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return true;
}

}  // namespace

Result<std::vector<std::byte>> encode_replica(const Replica& replica) {
  const auto encoder = encoder_of(replica);
  if (!encoder) return tl::unexpected(encoder.error());
  return encoder->bytes();
}

Result<TensorEncoder> encoder_of(const Replica& replica) {
  TensorEncoder encoder;
  auto& metadata = encoder.metadata();
  metadata = replica.notes;
  metadata["format"] = "pt";  // What Python's readers look for.
  metadata["paceline"] = kFormat;
  metadata["update"] = std::to_string(replica.update);
  metadata["scheduled"] = list_of(replica.scheduled);
  metadata["learning_rates"] = list_of(replica.learning_rates);
  metadata["scheduled_rates"] = list_of(replica.scheduled_rates);
  // Wide types first would be usual; all we write is f32 but for a few counters, which go to the end with the bytes.
  for (const auto& [name, tensor] : replica.model) PACELINE_TRY(encoder.add(name, tensor));
  for (const auto& [name, tensor] : replica.optimizer)
    PACELINE_TRY(encoder.add(std::string(kOptimizer) + name, tensor));
  if (replica.outer.defined()) PACELINE_TRY(encoder.add(std::string(kOuter), replica.outer));
  for (std::size_t i = 0; i < replica.user.size(); ++i)
    encoder.add(std::string(kUser) + std::to_string(i), replica.user[i]);
  return encoder;
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
  if (note("paceline") != kFormat)
    return fail(
        ErrorKind::invalid,
        "not a checkpoint of this version of Paceline: a model alone is read with paceline::load, before me.share");
  if (!read_number(note("update"), replica.update) || !read_list(note("scheduled"), replica.scheduled) ||
      replica.update < 0 || replica.scheduled.empty() || std::ranges::min(replica.scheduled) < 0) {
    return fail(ErrorKind::invalid, "the checkpoint's update or schedule is not a number");
  }
  if (!read_list(note("learning_rates"), replica.learning_rates) ||
      !read_list(note("scheduled_rates"), replica.scheduled_rates))
    return fail(ErrorKind::invalid, "the checkpoint's learning rates are not numbers");
  for (const auto& view : content->tensors) {
    if (view.name.starts_with(kOptimizer)) {
      replica.optimizer.emplace_back(view.name.substr(kOptimizer.size()), view_of(view));
    } else if (view.name == kOuter) {
      replica.outer = view_of(view);
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
