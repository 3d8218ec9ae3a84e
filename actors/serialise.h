#pragma once

#include <cereal/cereal.hpp>
#include <cereal/types/array.hpp>
#include <cereal/types/chrono.hpp>
#include <cereal/types/common.hpp>
#include <cereal/types/map.hpp>
#include <cereal/types/memory.hpp>
#include <cereal/types/optional.hpp>
#include <cereal/types/set.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/tuple.hpp>
#include <cereal/types/unordered_map.hpp>
#include <cereal/types/utility.hpp>
#include <cereal/types/variant.hpp>
#include <cereal/types/vector.hpp>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "runtime/base/result.h"

namespace paceline {

using Bytes = std::vector<std::byte>;

namespace actors {

/// Cereal archive that appends to a byte vector, in the machine's own representation: both ends run the same
/// executable.
class ByteWriter : public cereal::OutputArchive<ByteWriter> {
 public:
  explicit ByteWriter(Bytes& out) : OutputArchive(this), out_(out) {}
  void write(const void* data, std::size_t size) {
    const auto* begin = static_cast<const std::byte*>(data);
    out_.insert(out_.end(), begin, begin + size);
  }

 private:
  Bytes& out_;
};

/// Cereal archive over bytes that came from elsewhere. Throws cereal::Exception rather than read past the end or
/// believe in more elements than bytes are left (every element takes at least one).
class ByteReader : public cereal::InputArchive<ByteReader> {
 public:
  explicit ByteReader(std::span<const std::byte> in) : InputArchive(this), in_(in) {}
  void read(void* data, std::size_t size) {
    if (size > in_.size()) throw cereal::Exception("the bytes end too early");
    if (size > 0) std::memcpy(data, in_.data(), size);
    in_ = in_.subspan(size);
  }
  void check_count(std::size_t count) const {
    if (count > in_.size()) throw cereal::Exception("a container claims more elements than there are bytes");
  }
  std::size_t left() const { return in_.size(); }

 private:
  std::span<const std::byte> in_;
};

// What cereal asks an archive to know: numbers, raw blocks, names, sizes.
template <class T>
requires(std::is_arithmetic_v<T>) void CEREAL_SAVE_FUNCTION_NAME(ByteWriter& archive, const T& value) {
  archive.write(std::addressof(value), sizeof value);
}
template <class T>
requires(std::is_arithmetic_v<T>) void CEREAL_LOAD_FUNCTION_NAME(ByteReader& archive, T& value) {
  if constexpr (std::is_same_v<T, bool>) {  // Any other byte than 0 and 1 in a bool is undefined behaviour.
    unsigned char byte = 0;
    archive.read(&byte, 1);
    value = byte != 0;
  } else {
    archive.read(std::addressof(value), sizeof value);
  }
}
template <class T>
void CEREAL_SAVE_FUNCTION_NAME(ByteWriter& archive, const cereal::BinaryData<T>& block) {
  archive.write(block.data, static_cast<std::size_t>(block.size));
}
template <class T>
void CEREAL_LOAD_FUNCTION_NAME(ByteReader& archive, cereal::BinaryData<T>& block) {
  archive.read(block.data, static_cast<std::size_t>(block.size));
}
template <class T>
void CEREAL_SERIALIZE_FUNCTION_NAME(ByteWriter& archive, cereal::NameValuePair<T>& pair) {
  archive(pair.value);
}
template <class T>
void CEREAL_SERIALIZE_FUNCTION_NAME(ByteReader& archive, cereal::NameValuePair<T>& pair) {
  archive(pair.value);
}
template <class T>
void CEREAL_SERIALIZE_FUNCTION_NAME(ByteWriter& archive, cereal::SizeTag<T>& tag) {
  archive(tag.size);
}
template <class T>
void CEREAL_SERIALIZE_FUNCTION_NAME(ByteReader& archive, cereal::SizeTag<T>& tag) {
  archive(tag.size);
  archive.check_count(static_cast<std::size_t>(tag.size));
}

/// Bytes as one block; cereal knows this of vectors of numbers only.
template <class Allocator>
void CEREAL_SAVE_FUNCTION_NAME(ByteWriter& archive, const std::vector<std::byte, Allocator>& bytes) {
  archive(cereal::make_size_tag(static_cast<cereal::size_type>(bytes.size())));
  archive.write(bytes.data(), bytes.size());
}
template <class Allocator>
void CEREAL_LOAD_FUNCTION_NAME(ByteReader& archive, std::vector<std::byte, Allocator>& bytes) {
  cereal::size_type size = 0;
  archive(cereal::make_size_tag(size));
  bytes.resize(static_cast<std::size_t>(size));
  archive.read(bytes.data(), bytes.size());
}

template <class T>
inline constexpr bool is_number = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;
template <class T>
inline constexpr bool is_number<std::complex<T>> = std::is_floating_point_v<T>;

/// A matrix or vector that owns its numbers, in one piece, and that can be given another size: Eigen's Matrix and Array
/// among others. Both ends have the same type, so that the order of the numbers is the type's own affair. One that has
/// a serialize() or save() goes by that.
template <class T>
concept DenseMatrix = requires(T& matrix, const T& constant) {
  requires is_number<std::remove_cvref_t<decltype(*constant.data())>>;
  { matrix.data() } -> std::same_as<std::remove_cvref_t<decltype(*constant.data())>*>;
  { constant.rows() } -> std::convertible_to<std::int64_t>;
  { constant.cols() } -> std::convertible_to<std::int64_t>;
  matrix.resize(constant.rows(), constant.cols());
  requires !cereal::traits::has_member_serialize<T, ByteWriter>::value;
  requires !cereal::traits::has_member_save<T, ByteWriter>::value;
};

/// Whether a matrix of this type can have so many rows and columns, as far as its type says it in Eigen's way.
template <class T>
bool has_room(std::int64_t rows, std::int64_t cols) {
  if constexpr (requires {
                  T::RowsAtCompileTime, T::ColsAtCompileTime, T::MaxRowsAtCompileTime, T::MaxColsAtCompileTime;
                }) {
    const auto fits = [](std::int64_t size, std::int64_t fixed, std::int64_t most) {
      return (fixed < 0 || size == fixed) && (most < 0 || size <= most);
    };
    return fits(rows, T::RowsAtCompileTime, T::MaxRowsAtCompileTime) &&
           fits(cols, T::ColsAtCompileTime, T::MaxColsAtCompileTime);
  }
  return true;
}

template <DenseMatrix T>
void CEREAL_SAVE_FUNCTION_NAME(ByteWriter& archive, const T& matrix) {
  const auto rows = static_cast<std::int64_t>(matrix.rows()), cols = static_cast<std::int64_t>(matrix.cols());
  archive(rows, cols);
  archive.write(matrix.data(), static_cast<std::size_t>(rows * cols) * sizeof *matrix.data());
}
template <DenseMatrix T>
void CEREAL_LOAD_FUNCTION_NAME(ByteReader& archive, T& matrix) {
  std::int64_t rows = 0, cols = 0;
  archive(rows, cols);
  if (rows < 0 || cols < 0 || !has_room<T>(rows, cols)) throw cereal::Exception("a matrix of another shape");
  if (cols > 0 && rows > std::numeric_limits<std::int64_t>::max() / cols)
    throw cereal::Exception("a matrix has more numbers than can be counted");
  archive.check_count(static_cast<std::size_t>(rows * cols));
  matrix.resize(rows, cols);
  archive.read(matrix.data(), static_cast<std::size_t>(rows * cols) * sizeof *matrix.data());
}

}  // namespace actors
}  // namespace paceline

CEREAL_REGISTER_ARCHIVE(paceline::actors::ByteWriter)
CEREAL_REGISTER_ARCHIVE(paceline::actors::ByteReader)
CEREAL_SETUP_ARCHIVE_TRAITS(paceline::actors::ByteReader, paceline::actors::ByteWriter)

namespace paceline {
namespace actors {

template <class T>
struct IsSerialisable
    : std::bool_constant<!std::is_pointer_v<T> && !std::is_reference_v<T> && std::is_default_constructible_v<T> &&
                         cereal::traits::is_output_serializable<T, ByteWriter>::value &&
                         cereal::traits::is_input_serializable<T, ByteReader>::value> {};
// Cereal says yes to any container and then fails within; look inside.
template <class T, class A>
struct IsSerialisable<std::vector<T, A>> : IsSerialisable<T> {};
template <class T>
struct IsSerialisable<std::optional<T>> : IsSerialisable<T> {};
template <class T, std::size_t N>
struct IsSerialisable<std::array<T, N>> : IsSerialisable<T> {};
template <class K, class V, class C, class A>
struct IsSerialisable<std::map<K, V, C, A>> : std::conjunction<IsSerialisable<K>, IsSerialisable<V>> {};
template <class K, class V, class H, class E, class A>
struct IsSerialisable<std::unordered_map<K, V, H, E, A>> : std::conjunction<IsSerialisable<K>, IsSerialisable<V>> {};
template <class T, class C, class A>
struct IsSerialisable<std::set<T, C, A>> : IsSerialisable<T> {};
template <class A, class B>
struct IsSerialisable<std::pair<A, B>> : std::conjunction<IsSerialisable<A>, IsSerialisable<B>> {};
template <class... T>
struct IsSerialisable<std::tuple<T...>> : std::conjunction<IsSerialisable<T>...> {};
template <>
struct IsSerialisable<void> : std::true_type {};

}  // namespace actors

/// What can be an argument or a result: numbers, strings, standard containers of such, torch::Tensor
/// (paceline/train.h), matrices that own their numbers, such as Eigen's, and any type with `template <class A> void
/// serialize(A& a) { a(x, y); }` and a default constructor. Raw pointers and references cannot.
template <class T>
concept Serialisable = actors::IsSerialisable<std::remove_cv_t<T>>::value;

namespace actors {

template <Serialisable T>
Bytes to_bytes(const T& value) {
  Bytes bytes;
  ByteWriter archive(bytes);
  archive(value);
  return bytes;
}

/// `invalid` if the bytes are not exactly one T. `what` names them in the error.
template <Serialisable T>
Result<T> from_bytes(std::span<const std::byte> bytes, const std::string& what) {
  try {
    ByteReader archive(bytes);
    T value{};
    archive(value);
    if (archive.left() == 0) return value;
    return fail(ErrorKind::invalid,
                "cannot decode " + what + ": " + std::to_string(archive.left()) + " bytes too many");
  } catch (const std::exception& error) {
    return fail(ErrorKind::invalid, "cannot decode " + what + ": " + error.what());
  }
}

}  // namespace actors
}  // namespace paceline
