#include "actors/function_ref.h"

#include <elf.h>
#include <link.h>

#include <cstring>
#include <optional>
#include <span>

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

bool is_executable_at(const dl_phdr_info& info, std::uint64_t offset) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const auto& segment = info.dlpi_phdr[i];
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0 && offset >= segment.p_vaddr &&
        offset - segment.p_vaddr < segment.p_memsz) {
      return true;
    }
  }
  return false;
}

/// Calls `visit` with each loaded object, the executable first, until it returns true.
template <class Visit>
void for_each_object(Visit visit) {
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) { return (*static_cast<Visit*>(data))(*info) ? 1 : 0; }, &visit);
}

}  // namespace

Result<FunctionRef> name_of(const void* address) {
  std::optional<Result<FunctionRef>> found;
  for_each_object([&](const dl_phdr_info& info) {
    const auto offset = reinterpret_cast<std::uint64_t>(address) - info.dlpi_addr;
    if (!is_executable_at(info, offset)) return false;
    if (auto id = build_id(info); !id.empty()) {
      found = FunctionRef{std::move(id), offset};
    } else {
      found = fail(ErrorKind::invalid, object_name(info) +
                                           " has no build id, so its functions have no name in other processes: "
                                           "link it with -Wl,--build-id");
    }
    return true;
  });
  if (!found) return fail(ErrorKind::invalid, "a function pointer points to no code of a loaded object");
  return *std::move(found);
}

Result<void*> resolve(const FunctionRef& ref) {
  if (ref.build.empty() || ref.build.size() > kBuildIdMax) {
    return fail(ErrorKind::invalid, "a function reference without a proper build id");
  }
  std::optional<Result<void*>> found;
  for_each_object([&](const dl_phdr_info& info) {
    if (build_id(info) != ref.build) return false;
    if (is_executable_at(info, ref.offset)) {
      found = reinterpret_cast<void*>(info.dlpi_addr + ref.offset);
    } else {
      found = fail(ErrorKind::invalid, "offset " + std::to_string(ref.offset) + " is no code of " + object_name(info));
    }
    return true;
  });
  if (!found) {
    return fail(ErrorKind::not_found,
                "this process has no object with build id " + ref.build +
                    ": caller and worker run different builds; start both from the same executable");
  }
  return *std::move(found);
}

Result<std::string> executable_build() {
  std::string id;
  for_each_object([&](const dl_phdr_info& info) {
    id = build_id(info);
    return true;
  });
  if (id.empty()) return fail(ErrorKind::invalid, "the executable has no build id: link it with -Wl,--build-id");
  return id;
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
