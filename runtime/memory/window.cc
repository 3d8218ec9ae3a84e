#include "runtime/memory/window.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <string>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/memory/window_roles.h"
#include "runtime/store/shared_memory.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace paceline::memory {

namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kHugePage = 2ull << 20;
constexpr std::uint64_t kWindowMagic = 0x3177646e77636170;  // "pacwndw1"
constexpr std::uint64_t kBytesMax = 1ull << 46;  // Beyond any address space: keeps the arithmetic below from wrapping.

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

Result<void> check_layout(const Window::Layout& layout) {
  if (layout.buffers < 1 || layout.buffers > WindowRoles::kBuffersMax)
    return fail(ErrorKind::invalid, "window: " + std::to_string(layout.buffers) + " buffers: give 1 to " +
                                        std::to_string(WindowRoles::kBuffersMax));
  if (layout.dtype > Dtype::f16) return fail(ErrorKind::invalid, "window: unknown element type");
  if (layout.elements > kBytesMax / 8 / WindowRoles::kBuffersMax)
    return fail(ErrorKind::infeasible,
                "window: " + std::to_string(layout.elements) + " elements are more than any machine holds");
  return {};
}

/// Bytes from one buffer to the next.
std::uint64_t stride(const Window::Layout& layout) {
  return std::max(kPage, round_up(layout.elements * size_of(layout.dtype), kPage));
}
std::uint64_t data_bytes(const Window::Layout& layout) {
  return stride(layout) * static_cast<std::uint64_t>(layout.buffers);
}
/// Large windows begin at a huge page; what lies between the header and there is a hole and takes no memory.
std::uint64_t data_offset(const Window::Layout& layout) { return data_bytes(layout) >= kHugePage ? kHugePage : kPage; }
std::uint64_t file_bytes(const Window::Layout& layout) { return data_offset(layout) + data_bytes(layout); }

/// Allocates the data, in huge pages where the kernel gives them for the asking (Linux 6.1, whatever shmem_enabled
/// says): a range that holds one page is collapsed into a huge one, the rest of which the kernel zeroes.
Result<void> allocate_data(process::BorrowedFd fd, std::byte* base, std::uint64_t offset, std::uint64_t size) {
  for (std::uint64_t at = 0; at + kHugePage <= size; at += kHugePage) {
    PACELINE_TRY(store::allocate(fd, offset + at, kPage));
    if (::madvise(base + offset + at, kHugePage, MADV_COLLAPSE) != 0) break;  // None to be had: small ones do.
  }
  PACELINE_TRY(store::allocate(fd, offset, size));
  ::madvise(base + offset, size,
            MADV_POPULATE_WRITE);  // Page tables now instead of in the first averaging; no harm if it fails.
  return {};
}

}  // namespace

/// First page of the memfd.
struct Window::Header {
  std::uint64_t magic;
  std::uint64_t elements;
  std::uint32_t dtype;
  std::int32_t buffers;
  alignas(64) std::atomic<std::uint64_t> roles;
  alignas(64) Progress progress;
  struct alignas(64) Tag {
    BufferTag tag;
  } tags[WindowRoles::kBuffersMax];
};

std::uint64_t Window::bytes_needed(const Layout& layout) {
  PACELINE_CHECK(check_layout(layout), "bytes_needed of a layout that create() refuses");
  return kPage + data_bytes(layout);
}

Result<Window> Window::create(const Layout& layout) {
  static_assert(sizeof(Header) <= kPage && std::atomic<std::uint64_t>::is_always_lock_free);
  PACELINE_TRY(check_layout(layout));
  auto fd = store::create_memory({.name = "paceline-window",
                                  .size = file_bytes(layout),
                                  .allocated = kPage,
                                  .sealed = store::MemoryShape::Sealed::size_for_good,
                                  .room_of = "windows",
                                  .room = bytes_needed(layout)});
  if (!fd) return tl::unexpected(fd.error());
  auto memory = store::Mapping::aligned(*fd, file_bytes(layout), kHugePage, "window");
  if (!memory) return tl::unexpected(memory.error());
  PACELINE_TRY(allocate_data(*fd, memory->data(), data_offset(layout), data_bytes(layout)));

  Window window(*std::move(fd), *std::move(memory), layout);
  new (window.memory_.data()) Header{};
  window.reset();
  return window;
}

void Window::reset() {
  Header& written = *header();
  written.magic = kWindowMagic;
  written.elements = layout_.elements;
  written.dtype = static_cast<std::uint32_t>(layout_.dtype);
  written.buffers = layout_.buffers;
  for (auto& slot : written.tags) slot.tag = BufferTag{};
  written.roles.store(WindowRoles{.writing = 0}.pack(), std::memory_order_release);
}

Result<Window> Window::map(process::Fd fd, const Layout& layout) {
  PACELINE_TRY(check_layout(layout));
  PACELINE_TRY(store::check_memory(fd, file_bytes(layout), "window"));
  auto memory = store::Mapping::aligned(fd, file_bytes(layout), kHugePage, "window");
  if (!memory) return tl::unexpected(memory.error());
  Window window(std::move(fd), *std::move(memory), layout);
  const Header* header = window.header();
  if (header->magic != kWindowMagic)
    return fail(ErrorKind::invalid, "window: the shared memory is no window of this version of Paceline");
  if (header->elements != layout.elements || header->dtype != static_cast<std::uint32_t>(layout.dtype) ||
      header->buffers != layout.buffers)
    return fail(ErrorKind::invalid, "window: it holds " + std::to_string(header->buffers) + " buffers of " +
                                        std::to_string(header->elements) + " elements, expected " +
                                        std::to_string(layout.buffers) + " of " + std::to_string(layout.elements) +
                                        ", or of another element type");
  ::madvise(window.memory_.data() + data_offset(layout), data_bytes(layout), MADV_POPULATE_WRITE);
  return window;
}

Window::Header* Window::header() const { return std::launder(reinterpret_cast<Header*>(memory_.data())); }

std::span<std::byte> Window::data(Buffer buffer) const {
  PACELINE_CHECK(buffer >= 0 && buffer < layout_.buffers, "no such buffer");
  return {memory_.data() + data_offset(layout_) + stride(layout_) * static_cast<std::uint64_t>(buffer),
          layout_.elements * size_of(layout_.dtype)};
}

BufferTag& Window::tag(Buffer buffer) const {
  PACELINE_CHECK(buffer >= 0 && buffer < layout_.buffers, "no such buffer");
  return header()->tags[buffer].tag;
}

Window::Progress& Window::progress() const { return header()->progress; }

namespace {

/// The roles as they are, or none where another process has left no valid ones.
std::optional<WindowRoles> load(const std::atomic<std::uint64_t>& word, std::int32_t buffers) {
  const std::uint64_t now = word.load(std::memory_order_acquire);
  if (!WindowRoles::valid(now, buffers)) return std::nullopt;
  return WindowRoles::unpack(now);
}

/// One transition as one compare-and-swap. Gives the roles after it; nullopt: not possible now, or the word is no valid
/// one.
template <class Transition>
std::optional<WindowRoles> change(std::atomic<std::uint64_t>& word, std::int32_t buffers, Transition transition) {
  std::uint64_t now = word.load(std::memory_order_acquire);
  for (;;) {
    if (!WindowRoles::valid(now, buffers)) return std::nullopt;
    const std::optional<WindowRoles> next = transition(WindowRoles::unpack(now));
    if (!next) return std::nullopt;
    if (word.compare_exchange_weak(now, next->pack(), std::memory_order_acq_rel, std::memory_order_acquire))
      return next;
  }
}

std::optional<Buffer> held(const std::optional<WindowRoles>& roles, std::int32_t WindowRoles::*role) {
  if (!roles || (*roles).*role == WindowRoles::kNone) return std::nullopt;
  return (*roles).*role;
}

}  // namespace

std::optional<Buffer> Window::writing() const {
  return held(load(header()->roles, layout_.buffers), &WindowRoles::writing);
}
std::optional<Buffer> Window::published() const {
  return held(load(header()->roles, layout_.buffers), &WindowRoles::published);
}
std::optional<Buffer> Window::sealed() const {
  return held(load(header()->roles, layout_.buffers), &WindowRoles::sealed);
}
std::optional<Buffer> Window::latest() const {
  return held(load(header()->roles, layout_.buffers), &WindowRoles::latest);
}

bool Window::publish(bool go_on) {
  return change(header()->roles, layout_.buffers,
                [&](const WindowRoles& r) { return r.publish(go_on, layout_.buffers); })
      .has_value();
}

std::optional<Buffer> Window::adopt() {
  return held(change(header()->roles, layout_.buffers, [](const WindowRoles& r) { return r.adopt(); }),
              &WindowRoles::writing);
}

std::optional<Buffer> Window::withdraw() {
  return held(change(header()->roles, layout_.buffers, [](const WindowRoles& r) { return r.withdraw(); }),
              &WindowRoles::writing);
}

std::optional<Buffer> Window::seal() {
  return held(change(header()->roles, layout_.buffers, [](const WindowRoles& r) { return r.seal(); }),
              &WindowRoles::sealed);
}

void Window::unseal(Unseal how) {
  change(header()->roles, layout_.buffers, [&](const WindowRoles& r) { return r.unseal(how == Unseal::keep); });
}

std::optional<Buffer> Window::begin_result() {
  return held(
      change(header()->roles, layout_.buffers, [&](const WindowRoles& r) { return r.begin_result(layout_.buffers); }),
      &WindowRoles::in_progress);
}

std::optional<Buffer> Window::begin_result_in_place() {
  return held(change(header()->roles, layout_.buffers, [](const WindowRoles& r) { return r.begin_result_in_place(); }),
              &WindowRoles::in_progress);
}

void Window::deliver() {
  change(header()->roles, layout_.buffers, [](const WindowRoles& r) { return r.deliver(); });
}

void Window::retain() {
  change(header()->roles, layout_.buffers, [](const WindowRoles& r) { return r.retain(); });
}

}  // namespace paceline::memory
