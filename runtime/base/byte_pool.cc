#include "runtime/base/byte_pool.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/base/huge_pages.h"

namespace paceline {

PooledBytes::PooledBytes(std::size_t size)
    : memory_(std::make_unique_for_overwrite<std::byte[]>(size)), capacity_(size), size_(size) {
  offer_huge_pages(memory_.get(), size);
}

class BytePool::Spares {
 public:
  explicit Spares(std::size_t most) : most_(most) { all_.reserve(most); }

  /// The smallest that has room for `size` bytes; nullptr: none has.
  std::unique_ptr<PooledBytes> take(std::size_t size) {
    const std::lock_guard lock(mutex_);
    auto best = all_.end();
    for (auto it = all_.begin(); it != all_.end(); ++it)
      if ((*it)->capacity_ >= size && (best == all_.end() || (*it)->capacity_ < (*best)->capacity_)) best = it;
    if (best == all_.end()) return nullptr;
    std::swap(*best, all_.back());
    auto bytes = std::move(all_.back());
    all_.pop_back();
    bytes->size_ = size;
    return bytes;
  }

  /// Where there are enough, the smallest is freed: as the argument's end, behind the lock's.
  void give(std::unique_ptr<PooledBytes> bytes) {
    const std::lock_guard lock(mutex_);
    if (all_.size() < most_) return all_.push_back(std::move(bytes));
    const auto smallest = std::min_element(all_.begin(), all_.end(),
                                           [](const auto& a, const auto& b) { return a->capacity_ < b->capacity_; });
    if (smallest != all_.end() && (*smallest)->capacity_ < bytes->capacity_) std::swap(*smallest, bytes);
  }

  std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return all_.size();
  }

 private:
  mutable std::mutex mutex_;
  const std::size_t most_;
  std::vector<std::unique_ptr<PooledBytes>> all_;
};

BytePool::BytePool(std::size_t spares_max) : spares_(std::make_shared<Spares>(spares_max)) {}

std::shared_ptr<PooledBytes> BytePool::get(std::size_t size) {
  auto bytes = spares_->take(size);
  if (!bytes) bytes = std::make_unique<PooledBytes>(size);
  return {bytes.release(), [home = std::weak_ptr(spares_)](PooledBytes* given) {
            std::unique_ptr<PooledBytes> back(given);
            if (const auto spares = home.lock()) spares->give(std::move(back));
          }};
}

std::size_t BytePool::spares() const { return spares_->count(); }

}  // namespace paceline
