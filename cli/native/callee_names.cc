#include "cli/native/callee_names.h"

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "actors/callee_name.h"
#include "cli/native/dwfl.h"
#include "runtime/base/demangled.h"
#include "runtime/base/readable.h"

namespace paceline::cli {
namespace {

constexpr std::size_t kProgramsMax = 64;

std::string lower_hex(const unsigned char* bytes, int size) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (int i = 0; i < size; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

struct Where {
  std::uint64_t offset = 0;
  std::string build;
  std::string path;
};

/// "OFFSET BUILD PATH".
std::optional<Where> parsed(std::string_view text) {
  Where where;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), where.offset, 16);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (failed != std::errc() || !text.starts_with(' ')) return std::nullopt;
  text.remove_prefix(1);
  const auto space = text.find(' ');
  if (space == text.npos) return std::nullopt;
  where.build = text.substr(0, space);
  where.path = text.substr(space + 1);
  return where;
}

}  // namespace

/// A file whose functions have names. One that is not there, or is another than was meant, has none.
class CalleeNames::Program {
 public:
  Program(const std::string& path, const std::string& build) {
    std::error_code failed;
    if (!std::filesystem::is_regular_file(path, failed)) return;  // Opening others may wait for ever.
    dwfl_report_begin(dwfl_.get());
    module_ = dwfl_report_offline(dwfl_.get(), path.c_str(), path.c_str(), -1);
    dwfl_report_end(dwfl_.get(), nullptr, nullptr);
    GElf_Addr bias = 0;
    const unsigned char* id = nullptr;
    GElf_Addr at = 0;
    if (module_ == nullptr || dwfl_module_getelf(module_, &bias) == nullptr) return;
    const int size = dwfl_module_build_id(module_, &id, &at);
    if (size <= 0 || lower_hex(id, size) != build) return;
    bias_ = bias;
  }

  std::string function_at(std::uint64_t offset) const {
    if (!bias_) return {};
    GElf_Off within = 0;
    GElf_Sym symbol{};
    const char* const name =
        dwfl_module_addrinfo(module_, *bias_ + offset, &within, &symbol, nullptr, nullptr, nullptr);
    return name == nullptr ? std::string() : shown_symbol(name);
  }

 private:
  OwnedDwfl dwfl_ = files_dwfl();
  Dwfl_Module* module_ = nullptr;
  std::optional<GElf_Addr> bias_{};
};

CalleeNames::CalleeNames() = default;
CalleeNames::~CalleeNames() = default;

std::string CalleeNames::name_of(const actors::SpanName& name) {
  if (name.text.empty()) return {};
  if (name.kind == actors::NameKind::text) return readable(name.text);
  auto& known = known_[name];
  if (!known.empty()) return known;
  switch (name.kind) {
    case actors::NameKind::text: break;
    case actors::NameKind::type: known = actors::plain_name(demangled(name.text.c_str())); break;
    case actors::NameKind::method: known = "a method of " + actors::plain_name(demangled(name.text.c_str())); break;
    case actors::NameKind::function: known = function_at(name.text); break;
  }
  return known = readable(known);
}

std::string CalleeNames::function_at(const std::string& text) {
  const auto where = parsed(text);
  if (!where) return {};
  const auto key = where->build + " " + where->path;
  auto program = programs_.find(key);
  if (program == programs_.end()) {
    if (programs_.size() >= kProgramsMax) return {};
    program = programs_.try_emplace(key, where->path, where->build).first;
  }
  return program->second.function_at(where->offset);
}

}  // namespace paceline::cli
