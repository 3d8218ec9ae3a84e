#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "actors/durable/durable_home.h"
#include "actors/serialise.h"
#include "actors/submit.h"

namespace paceline {
namespace actors {

inline void done_or_throw(const Result<void>& done) {
  if (!done) throw TaskError(done.error());
}

/// Bytes that are changed where they lie: in the actor's durable state, or in memory of their own where there is none.
class DurableBytes : private DurableMember {
 public:
  DurableBytes(std::size_t bytes, const std::type_info& type) {
    if (auto* const home = durable_home()) {
      state_ = or_throw(home->state());
      place_ = or_throw(state_->add(*this, bytes, type.name(), false));
    } else {
      own_.reset(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{UndoLog::kBlock})));
      std::memset(own_.get(), 0, bytes);
      place_.data = own_.get();
    }
  }
  ~DurableBytes() override {
    if (state_ != nullptr) state_->forget(*this);
  }
  DurableBytes(const DurableBytes&) = delete;
  DurableBytes& operator=(const DurableBytes&) = delete;

  std::byte* data() const { return place_.data; }
  bool restored() const { return place_.restored; }
  void save(std::size_t offset, std::size_t size) {
    if (state_ != nullptr) done_or_throw(state_->save(place_.index, offset, size));
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{UndoLog::kBlock}); }
  };
  DurableState* state_ = nullptr;
  DurableState::Place place_{};
  std::unique_ptr<std::byte, Free> own_;
};

/// A value that is serialised into the actor's durable state at the end of each call that has changed it.
template <class T>
class DurableValue : private DurableMember {
 public:
  template <class... Args>
  explicit DurableValue(Args&&... arguments) : value_(std::forward<Args>(arguments)...) {
    auto* const home = durable_home();
    if (home == nullptr) return;
    state_ = or_throw(home->state());
    place_ = or_throw(state_->add(*this, sizeof(std::uint64_t) + DurableState::kValueMax, typeid(T).name(), true));
    if (place_.restored) done_or_throw(load());
  }
  ~DurableValue() override {
    if (state_ != nullptr) state_->forget(*this);
  }
  DurableValue(const DurableValue&) = delete;
  DurableValue& operator=(const DurableValue&) = delete;

  const T& value() const { return value_; }
  bool restored() const { return place_.restored; }
  T& write() {
    is_changed_ = true;
    return value_;
  }

 private:
  Result<void> store() override {
    if (!is_changed_) return {};
    const Bytes bytes = to_bytes<T>(value_);
    if (bytes.size() > DurableState::kValueMax)
      return fail(ErrorKind::invalid, "a durable value takes " + std::to_string(bytes.size() >> 20) + " MiB: at most " +
                                          std::to_string(DurableState::kValueMax >> 20) +
                                          " MiB are possible: put what is large into a durable_array<T>");
    const std::uint64_t size = bytes.size();
    PACELINE_TRY(state_->save(place_.index, 0, sizeof size + bytes.size()));
    std::memcpy(place_.data, &size, sizeof size);
    if (size > 0) std::memcpy(place_.data + sizeof size, bytes.data(), bytes.size());
    is_changed_ = false;
    return {};
  }
  Result<void> load() override {
    std::uint64_t size = 0;
    std::memcpy(&size, place_.data, sizeof size);
    size = std::min<std::uint64_t>(size, DurableState::kValueMax);
    auto value = from_bytes<T>({place_.data + sizeof size, static_cast<std::size_t>(size)}, "durable state");
    if (!value) return tl::unexpected(std::move(value).error());
    value_ = *std::move(value);
    is_changed_ = false;
    return {};
  }

  T value_;
  DurableState* state_ = nullptr;
  DurableState::Place place_{};
  bool is_changed_ = true;
};

template <class T>
inline constexpr bool can_lie_in_place = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> &&
                                         !std::is_reference_v<T> && alignof(T) <= UndoLog::kBlock;

}  // namespace actors

/// A member of an actor that survives the death of the actor's process, where the actor has `restarts`: what a call has
/// changed through write() counts, all of it, when the call is over, and none of it when the process dies before. With
/// `call_retries` a call that was over is then answered as before, not run again. T is trivially copyable, or
/// serialisable (it is then serialised at the end of each call that changes it, at most 60 MiB). It is made in the
/// constructor of an actor that runs one call at a time, without coroutines; elsewhere it is an object like others.
template <class T>
class durable {
  static_assert(!std::is_pointer_v<T> && !std::is_reference_v<T>,
                "durable state cannot be a pointer or a reference: what it points at dies with the process");
  static_assert(!std::is_array_v<T>, "durable<T>: for many values take durable_array<T>");
  static_assert(std::is_array_v<T> || std::is_trivially_copyable_v<T> || Serialisable<T>,
                "durable<T>: T is neither trivially copyable nor serialisable: give it a serialize()");

 public:
  /// As T is made; at a restart it is what it was, whatever the arguments are.
  template <class... Args>
  explicit durable(Args&&... arguments) : kept_(make(std::forward<Args>(arguments)...)) {
    if constexpr (kInPlace) {
      if (!kept_.restored()) new (kept_.data()) T(std::forward<Args>(arguments)...);
    }
  }

  // Its value.
  const T& operator*() const {
    if constexpr (kInPlace) {
      return *std::launder(reinterpret_cast<const T*>(kept_.data()));
    } else {
      return kept_.value();
    }
  }
  const T* operator->() const { return &**this; }
  /// To be changed in this call: a reference that is kept for later calls changes nothing that counts. Throws TaskError
  /// (`infeasible`) where memory is too short.
  T& write() {
    if constexpr (kInPlace) {
      kept_.save(0, sizeof(T));
      return *std::launder(reinterpret_cast<T*>(kept_.data()));
    } else {
      return kept_.write();
    }
  }
  /// It is what an earlier process of the actor left.
  bool restored() const { return kept_.restored(); }

 private:
  static constexpr bool kInPlace =
      actors::can_lie_in_place<T> || !Serialisable<T>;  // Else more than one error is told.
  using Kept = std::conditional_t<kInPlace, actors::DurableBytes, actors::DurableValue<T>>;
  template <class... Args>
  static Kept make(Args&&... arguments) {
    if constexpr (kInPlace) {
      return Kept(sizeof(T), typeid(T));
    } else {
      return Kept(std::forward<Args>(arguments)...);
    }
  }

  Kept kept_;
};

/// So many T, trivially copyable, in one piece: large state, which a restart does not copy. A call that changes some of
/// them saves those first, in pages of 4 KiB, so that memory for up to twice their size may be taken.
template <class T>
class durable_array {
  static_assert(actors::can_lie_in_place<T>,
                "durable_array<T>: T is not trivially copyable: put such values into a durable<std::vector<T>>");

 public:
  /// Zeros; at a restart what they were. Throws TaskError (`infeasible`) where memory is too short.
  explicit durable_array(std::size_t count) : count_(count), kept_(count * sizeof(T), typeid(T)) {}

  /// How many there are.
  std::size_t size() const { return count_; }
  const T& operator[](std::size_t i) const { return begin()[i]; }
  /// All of them, to be read.
  std::span<const T> view() const { return {begin(), count_}; }
  /// These, to be changed in this call: a span that is kept for later calls must not be. Throws TaskError: `invalid`
  /// where there are not so many, `infeasible` where memory is too short.
  std::span<T> write(std::size_t first, std::size_t count) {
    if (first > count_ || count > count_ - first)
      throw TaskError({ErrorKind::invalid, "durable state: " + std::to_string(count) + " values from " +
                                               std::to_string(first) + " on, of " + std::to_string(count_)});
    kept_.save(first * sizeof(T), count * sizeof(T));
    return {begin() + first, count};
  }
  /// They are what an earlier process of the actor left.
  bool restored() const { return kept_.restored(); }

 private:
  T* begin() const { return reinterpret_cast<T*>(kept_.data()); }

  std::size_t count_;
  actors::DurableBytes kept_;
};

}  // namespace paceline
