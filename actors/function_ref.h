#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <type_traits>

#include "runtime/base/result.h"

namespace paceline::actors {

/// Names a function in every process that has the same object (executable or library) loaded: the object's build id and
/// the function's offset from the object's load address. Holds across ASLR, compilers and optimisation levels;
/// `--icf=all` breaks it.
struct FunctionRef {
  std::string build;  ///< NT_GNU_BUILD_ID in lower-case hex; at most kBuildIdMax characters.
  std::uint64_t offset = 0;

  bool operator==(const FunctionRef&) const = default;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(build, offset);
  }
};

inline constexpr std::size_t kBuildIdMax = 128;

/// The name of the function at `address`. `invalid` where no loaded object holds the address in an executable segment,
/// or the object was linked without a build id (says which object, and the linker option). No state; about 0.1 µs for
/// the executable itself.
Result<FunctionRef> name_of(const void* address);
/// The function's address in this process. `not_found` if no loaded object has the build id, `invalid` if the offset
/// lies in no executable segment of it.
Result<void*> resolve(const FunctionRef& ref);
/// Build id of the executable that this process runs.
Result<std::string> executable_build();

/// The Itanium C++ ABI's pointer to member function, as a plain value.
struct MemberPointer {
  std::uint64_t target = 0;  ///< Address, or offset of the slot in the vtable.
  std::int64_t adjustment = 0;
  bool is_virtual = false;

  bool operator==(const MemberPointer&) const = default;
};

MemberPointer split(const std::array<std::uint64_t, 2>& bytes);
std::array<std::uint64_t, 2> join(const MemberPointer& pointer);

/// Names a method: a function of an object, or a slot of the class's vtable, plus the adjustment of `this`.
struct MemberRef {
  FunctionRef function;  ///< Of a method that is not virtual.
  std::uint64_t slot = 0;
  std::int64_t adjustment = 0;
  bool is_virtual = false;

  bool operator==(const MemberRef&) const = default;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(function, slot, adjustment, is_virtual);
  }
};

Result<MemberRef> name_of_member(const MemberPointer& pointer);
Result<MemberPointer> resolve_member(const MemberRef& ref);

template <class F>
requires(std::is_function_v<F>) Result<FunctionRef> name_of(F* function) {
  return name_of(reinterpret_cast<const void*>(function));
}

template <class Method>
requires(std::is_member_function_pointer_v<Method>) Result<MemberRef> name_of(Method method) {
  static_assert(sizeof(Method) == sizeof(std::array<std::uint64_t, 2>), "paceline needs the Itanium C++ ABI");
  return name_of_member(split(std::bit_cast<std::array<std::uint64_t, 2>>(method)));
}

template <class Method>
requires(std::is_member_function_pointer_v<Method>) Result<Method> resolve_as(const MemberRef& ref) {
  return resolve_member(ref).map([](const MemberPointer& pointer) { return std::bit_cast<Method>(join(pointer)); });
}

}  // namespace paceline::actors
