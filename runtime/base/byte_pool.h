#pragma once

#include <cstddef>
#include <memory>

namespace paceline {

/// Bytes in memory of a BytePool's. It can be larger than they are.
class PooledBytes {
 public:
  explicit PooledBytes(std::size_t size);

  std::byte* data() { return memory_.get(); }
  const std::byte* data() const { return memory_.get(); }
  std::size_t size() const { return size_; }
  std::byte* begin() { return data(); }
  std::byte* end() { return data() + size_; }
  const std::byte* begin() const { return data(); }
  const std::byte* end() const { return data() + size_; }

 private:
  friend class BytePool;
  std::unique_ptr<std::byte[]> memory_;
  std::size_t capacity_;
  std::size_t size_;
};

/// Memory for bytes that are made over and over, such as partial sums: what is given back is used again, and is neither
/// zeroed nor faulted in anew. Whoever has the last pointer to bytes gives them back, on any thread, ZeroMQ's too, and
/// also when the pool is gone: then their memory is freed. Locked inside.
///
/// Bound: what is in use, and `spares_max` buffers that are not, of which the largest stay.
class BytePool {
 public:
  explicit BytePool(std::size_t spares_max);

  /// Bytes that hold anything. Throws std::bad_alloc as a vector does.
  std::shared_ptr<PooledBytes> get(std::size_t size);
  /// How many buffers wait to be used again.
  std::size_t spares() const;

 private:
  class Spares;
  std::shared_ptr<Spares> spares_;
};

}  // namespace paceline
