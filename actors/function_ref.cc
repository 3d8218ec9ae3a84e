#include "actors/function_ref.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace paceline::actors {
namespace {

std::string hex(std::span<const unsigned char> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (unsigned char byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string object_name(const dl_phdr_info& info) {
  return info.dlpi_name != nullptr && *info.dlpi_name != 0 ? info.dlpi_name : "the executable";
}

/// Finds NT_GNU_BUILD_ID in one note segment; empty if it is not there.
std::string build_id_in(std::span<const char> notes, std::size_t alignment) {
  const auto aligned = [alignment](std::size_t n) { return (n + alignment - 1) / alignment * alignment; };
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, notes.data(), sizeof header);
    const std::size_t name_at = sizeof header;
    const std::size_t value_at = name_at + aligned(header.n_namesz);
    const std::size_t end = value_at + aligned(header.n_descsz);
    if (value_at + header.n_descsz > notes.size()) return {};
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 &&
        std::memcmp(notes.data() + name_at, "GNU", 4) == 0) {
      return hex({reinterpret_cast<const unsigned char*>(notes.data()) + value_at, header.n_descsz});
    }
    if (end >= notes.size()) return {};
    notes = notes.subspan(end);
  }
  return {};
}

std::string build_id(const dl_phdr_info& info) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const auto& segment = info.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* begin = reinterpret_cast<const char*>(info.dlpi_addr + segment.p_vaddr);
    if (auto id = build_id_in({begin, segment.p_memsz}, segment.p_align == 8 ? 8 : 4); !id.empty()) return id;
  }
  return {};
}

/// What is loaded, and has code.
struct Object {
  std::string name;   ///< For people.
  std::string build;  ///< Empty: it has none.
  std::uint64_t address = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> code{};  ///< From it on; begin and size.

  bool is_code(std::uint64_t offset) const {
    return std::any_of(code.begin(), code.end(), [offset](const auto& segment) {
      return offset >= segment.first && offset - segment.first < segment.second;
    });
  }
};

Object object_of(const dl_phdr_info& info) {
  Object object{object_name(info), build_id(info), info.dlpi_addr};
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const auto& segment = info.dlpi_phdr[i];
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0)
      object.code.emplace_back(segment.p_vaddr, segment.p_memsz);
  }
  return object;
}

/// Of those that are loaded now, the executable first. Read again when some have come or gone: this is asked for at
/// each call, and reading them takes as long as all else of it together.
const std::vector<Object>& objects() {
  struct Known {
    unsigned long long loaded = 0, unloaded = 0;
    std::vector<Object> objects{};
  };
  thread_local Known known;
  Known now;
  const auto count = [](dl_phdr_info* info, std::size_t, void* data) {
    auto& counted = *static_cast<Known*>(data);
    counted.loaded = info->dlpi_adds;
    counted.unloaded = info->dlpi_subs;
    return 1;
  };
  dl_iterate_phdr(count, &now);
  if (!known.objects.empty() && known.loaded == now.loaded && known.unloaded == now.unloaded) return known.objects;
  const auto read = [](dl_phdr_info* info, std::size_t, void* data) {
    static_cast<Known*>(data)->objects.push_back(object_of(*info));
    return 0;
  };
  dl_iterate_phdr(read, &now);
  known = std::move(now);
  return known.objects;
}

}  // namespace

Result<FunctionRef> name_of(const void* address) {
  for (const Object& object : objects()) {
    const auto offset = reinterpret_cast<std::uint64_t>(address) - object.address;
    if (!object.is_code(offset)) continue;
    if (!object.build.empty()) return FunctionRef{object.build, offset};
    return fail(ErrorKind::invalid, object.name +
                                        " has no build id, so its functions have no name in other processes: "
                                        "link it with -Wl,--build-id");
  }
  return fail(ErrorKind::invalid, "a function pointer points to no code of a loaded object");
}

Result<void*> resolve(const FunctionRef& ref) {
  if (ref.build.empty() || ref.build.size() > kBuildIdMax) {
    return fail(ErrorKind::invalid, "a function reference without a proper build id");
  }
  for (const Object& object : objects()) {
    if (object.build != ref.build) continue;
    if (object.is_code(ref.offset)) return reinterpret_cast<void*>(object.address + ref.offset);
    return fail(ErrorKind::invalid, "offset " + std::to_string(ref.offset) + " is no code of " + object.name);
  }
  return fail(ErrorKind::not_found,
              "this process has no object with build id " + ref.build +
                  ": caller and worker run different builds; start both from the same executable");
}

Result<std::string> executable_build() {
  const auto& loaded = objects();
  if (loaded.empty() || loaded.front().build.empty())
    return fail(ErrorKind::invalid, "the executable has no build id: link it with -Wl,--build-id");
  return loaded.front().build;
}

// x86-64 marks a virtual method by an odd first word (slot offset + 1); ARM, whose code addresses may be odd, by the
// lowest bit of the second word, with the adjustment shifted left by one.
#if defined(__aarch64__) || defined(__arm__)
MemberPointer split(const std::array<std::uint64_t, 2>& bytes) {
  return {bytes[0], static_cast<std::int64_t>(bytes[1]) >> 1, (bytes[1] & 1) != 0};
}
std::array<std::uint64_t, 2> join(const MemberPointer& pointer) {
  return {pointer.target, (static_cast<std::uint64_t>(pointer.adjustment) << 1) | (pointer.is_virtual ? 1u : 0u)};
}
#else
MemberPointer split(const std::array<std::uint64_t, 2>& bytes) {
  const bool is_virtual = (bytes[0] & 1) != 0;
  return {bytes[0] - (is_virtual ? 1 : 0), static_cast<std::int64_t>(bytes[1]), is_virtual};
}
std::array<std::uint64_t, 2> join(const MemberPointer& pointer) {
  return {pointer.target + (pointer.is_virtual ? 1 : 0), static_cast<std::uint64_t>(pointer.adjustment)};
}
#endif

Result<MemberRef> name_of_member(const MemberPointer& pointer) {
  if (pointer.is_virtual) return MemberRef{{}, pointer.target, pointer.adjustment, true};
  if (pointer.target == 0) return fail(ErrorKind::invalid, "a null pointer to a method");
  return name_of(reinterpret_cast<const void*>(pointer.target)).map([&](FunctionRef function) {
    return MemberRef{std::move(function), 0, pointer.adjustment, false};
  });
}

Result<MemberPointer> resolve_member(const MemberRef& ref) {
  constexpr std::uint64_t kSlotsMax = 1 << 20;
  if (ref.is_virtual) {
    if (ref.slot % sizeof(void*) != 0 || ref.slot / sizeof(void*) >= kSlotsMax) {
      return fail(ErrorKind::invalid,
                  "vtable slot " + std::to_string(ref.slot) + " of a method reference is out of range");
    }
    return MemberPointer{ref.slot, ref.adjustment, true};
  }
  return resolve(ref.function).map([&](void* address) {
    return MemberPointer{reinterpret_cast<std::uint64_t>(address), ref.adjustment, false};
  });
}

}  // namespace paceline::actors
