#include "actors/callee_name.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace paceline::actors {
namespace {

constexpr std::size_t kKnownMax = 1024;

/// A file's contents, while this lives; empty where it cannot be read.
class Mapped {
 public:
  explicit Mapped(const char* path) {
    const int file = ::open(path, O_RDONLY | O_CLOEXEC);
    struct stat status {};
    if (file >= 0 && ::fstat(file, &status) == 0 && status.st_size > 0) {
      void* const at = ::mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_PRIVATE, file, 0);
      if (at != MAP_FAILED) bytes_ = {static_cast<const char*>(at), static_cast<std::size_t>(status.st_size)};
    }
    if (file >= 0) ::close(file);
  }
  ~Mapped() {
    if (!bytes_.empty()) ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  std::span<const char> bytes() const { return bytes_; }

 private:
  std::span<const char> bytes_;
};

/// The `index`-th of the entries that begin at `at`.
template <class Entry>
std::optional<Entry> entry_of(std::span<const char> bytes, std::uint64_t at, std::uint64_t index) {
  const std::uint64_t offset = at + index * sizeof(Entry);
  if (index > bytes.size() || at > bytes.size() || offset + sizeof(Entry) > bytes.size()) return std::nullopt;
  Entry entry;
  std::memcpy(&entry, bytes.data() + offset, sizeof entry);
  return entry;
}

/// The name of the function of this table that holds `address`; empty: none does.
std::string symbol_in(std::span<const char> object, const ElfW(Shdr) & table, const ElfW(Shdr) & names,
                      std::uint64_t address) {
  for (std::uint64_t i = 0; i < table.sh_size / sizeof(ElfW(Sym)); ++i) {
    const auto symbol = entry_of<ElfW(Sym)>(object, table.sh_offset, i);
    if (!symbol) return {};
    const bool holds =
        address >= symbol->st_value && address - symbol->st_value < std::max<std::uint64_t>(symbol->st_size, 1);
    if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF || !holds) continue;
    const std::uint64_t at = names.sh_offset + symbol->st_name;
    if (at < names.sh_offset || at >= object.size()) return {};
    const auto* const end = static_cast<const char*>(std::memchr(object.data() + at, 0, object.size() - at));
    return end == nullptr ? std::string() : std::string(object.data() + at, end);
  }
  return {};
}

std::string symbol_at(std::span<const char> object, std::uint64_t address) {
  const auto header = entry_of<ElfW(Ehdr)>(object, 0, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_shentsize != sizeof(ElfW(Shdr)))
    return {};
  for (const auto kind : {SHT_SYMTAB, SHT_DYNSYM}) {
    for (std::uint64_t i = 0; i < header->e_shnum; ++i) {
      const auto section = entry_of<ElfW(Shdr)>(object, header->e_shoff, i);
      if (!section || section->sh_type != static_cast<std::uint32_t>(kind)) continue;
      const auto names = entry_of<ElfW(Shdr)>(object, header->e_shoff, section->sh_link);
      if (!names) continue;
      if (auto symbol = symbol_in(object, *section, *names, address); !symbol.empty()) return symbol;
    }
  }
  return {};
}

}  // namespace

std::string plain_name(std::string name) {
  constexpr std::string_view kUnnamed = "(anonymous namespace)::";
  for (auto at = name.find(kUnnamed); at != name.npos; at = name.find(kUnnamed)) name.erase(at, kUnnamed.size());
  return name;
}

CalleeRef ref_of_function(const FunctionRef& function) {
  const auto address = resolve(function);
  Dl_info object{};
  if (!address || ::dladdr(*address, &object) == 0) return {};
  std::string path = object.dli_fname;
  char program[PATH_MAX];
  if (executable_build().value_or("") == function.build) {
    const auto size = ::readlink("/proc/self/exe", program, sizeof program);
    path.assign(program, size > 0 ? static_cast<std::size_t>(size) : 0);
  }
  char offset[2 * sizeof function.offset];
  const auto end = std::to_chars(offset, offset + sizeof offset, function.offset, 16).ptr;
  return {NameKind::function, std::string(offset, end) + " " + function.build + " " + path};
}

std::string function_name(const FunctionRef& function) {
  static std::mutex mutex;
  static auto& known = *new std::map<std::pair<std::string, std::uint64_t>, std::string>;
  std::lock_guard lock(mutex);
  const std::pair key{function.build, function.offset};
  if (const auto found = known.find(key); found != known.end()) return found->second;
  std::string name;
  const auto address = resolve(function);
  if (Dl_info object{}; address && ::dladdr(*address, &object) != 0) {
    const bool is_program = executable_build().value_or("") == function.build;
    const Mapped file(is_program ? "/proc/self/exe" : object.dli_fname);
    name = symbol_at(file.bytes(), function.offset);
    if (name.starts_with("_Z")) name = plain_name(demangled(name.c_str()));
  }
  if (known.size() >= kKnownMax) known.clear();
  known.emplace(key, name);
  return name;
}

}  // namespace paceline::actors
