#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <utility>

#include "runtime/base/instant.h"

namespace paceline::actors {

/// Whether it pays for a thread that waits to look for what comes itself for kTime, instead of sleeping at once: it
/// does while somebody answers within that time on another core. Each time that nobody did, the next looks are left
/// out, twice as many as before. Sans-I/O.
class Looking {
 public:
  static constexpr Duration kTime = std::chrono::microseconds(50);
  static constexpr std::uint32_t kLeftOutMax = 63;

  /// Whether to look this time.
  bool pays() {
    if (left_out_ == 0) return true;
    --left_out_;
    return false;
  }
  void on_looked(bool came) {
    failed_ = came ? 0 : std::min(2 * failed_ + 1, kLeftOutMax);
    left_out_ = failed_;
  }

 private:
  std::uint32_t failed_ = 0;  ///< 2^n - 1 after n failures in a row.
  std::uint32_t left_out_ = 0;
};

/// Whether a thread waits again and again, with so little between that others need not be woken for what comes
/// meanwhile. Sans-I/O.
class Steadiness {
 public:
  static constexpr Duration kSoon = std::chrono::milliseconds(1);
  static constexpr std::uint32_t kEnough = 4;

  /// It waited from `began` to `ended`, and it came, or it did not.
  void on_waited(bool came, Instant began, Instant ended) {
    waits_ = came && began - ended_ <= kSoon ? std::min(waits_ + 1, kEnough) : 0;
    ended_ = ended;
  }
  explicit operator bool() const { return waits_ == kEnough; }

 private:
  std::uint32_t waits_ = 0;  ///< One soon after the other.
  Instant ended_{};
};

/// Whose turn it is with what one thread at a time may use: its owner's, which can always have it soon, or for moments
/// that of a guest.
class OwnersTurn {
 public:
  /// Until it ends. False: it is somebody else's.
  class Turn {
   public:
    Turn() = default;
    Turn(Turn&&) = default;
    Turn& operator=(Turn&&) = default;
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() { end(); }
    explicit operator bool() const { return lock_.owns_lock(); }
    void end() {
      if (!lock_.owns_lock()) return;
      whose_->has_.store({}, std::memory_order_relaxed);
      whose_->guest_has_ = false;
      lock_.unlock();
    }

   private:
    friend class OwnersTurn;
    Turn(OwnersTurn& whose, std::unique_lock<std::mutex> lock) : whose_(&whose), lock_(std::move(lock)) {
      if (lock_.owns_lock()) whose.has_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    }
    OwnersTurn* whose_ = nullptr;
    std::unique_lock<std::mutex> lock_;
  };

  /// The owner's: waits until a guest has gone. Before that a guest that sleeps is woken by `wake`.
  template <class Wake>
  Turn take(Wake wake) {
    wanted_.store(true);
    wake();
    std::unique_lock lock(mutex_);
    wanted_.store(false);
    return Turn(*this, std::move(lock));
  }
  /// A guest's, if nobody has it and the owner has no use for it.
  Turn borrow() {
    if (is_wanted() || has_.load(std::memory_order_relaxed) == std::this_thread::get_id()) return {};
    Turn turn(*this, std::unique_lock(mutex_, std::try_to_lock));
    if (turn) guest_has_ = true;
    return turn;
  }
  /// A guest's, that lets the owner go first. Nobody's where another guest has it then, or the owner has it for long.
  Turn borrow_after_owner() {
    for (int i = 0; i < kYields; ++i) {
      if (!is_wanted()) {
        if (Turn turn = borrow(); turn || guest_has_) return turn;
      }
      std::this_thread::yield();
    }
    return {};
  }
  /// A guest is to go.
  bool is_wanted() const { return wanted_.load(); }

 private:
  std::mutex mutex_;
  static constexpr int kYields = 200;
  std::atomic<std::thread::id> has_{};
  std::atomic<bool> guest_has_{false};
  std::atomic<bool> wanted_{false};
};

}  // namespace paceline::actors
