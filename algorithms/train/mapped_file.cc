#include "algorithms/train/mapped_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <utility>

namespace paceline::train {

/// Where a file lies; read by the handler, on whichever thread looked. Never freed, but used again.
struct MappedFile::Mapping {
  std::atomic<std::uintptr_t> begin{0};  ///< 0: nothing lies there.
  std::atomic<std::uintptr_t> end{0};
  std::atomic<bool> is_torn{false};  ///< Some of it was gone when somebody looked.
  Mapping* next = nullptr;

  static std::atomic<Mapping*> first;
  static std::mutex mutex;  // Of who adds and removes.

  static Mapping* add(const std::byte* data, std::size_t size);
  static void remove(Mapping* mapping);
  static void on_bus_error(int signal, siginfo_t* info, void* context);
  static void handle_bus_errors();
};

std::atomic<MappedFile::Mapping*> MappedFile::Mapping::first{nullptr};
std::mutex MappedFile::Mapping::mutex;

namespace {

struct sigaction g_previous;  // What was done for SIGBUS before, and is for addresses that are not ours.

long long written_ns(const struct stat& status) {
  return static_cast<long long>(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec;
}

}  // namespace

void MappedFile::Mapping::handle_bus_errors() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction ours {};
    ours.sa_sigaction = on_bus_error;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigaction(SIGBUS, &ours, &g_previous);
  });
}

MappedFile::Mapping* MappedFile::Mapping::add(const std::byte* data, std::size_t size) {
  handle_bus_errors();
  const std::scoped_lock lock(mutex);
  Mapping* mapping = first;
  while (mapping != nullptr && mapping->begin != 0) mapping = mapping->next;
  if (mapping == nullptr) {
    mapping = new Mapping;
    mapping->next = first;
    first = mapping;
  }
  mapping->is_torn = false;
  mapping->end = reinterpret_cast<std::uintptr_t>(data) + size;
  mapping->begin = reinterpret_cast<std::uintptr_t>(data);
  return mapping;
}

void MappedFile::Mapping::remove(Mapping* mapping) {
  const std::scoped_lock lock(mutex);
  mapping->begin = 0;
}

/// Puts a page of zeros where a file's has gone, so that who looked there can go on.
void MappedFile::Mapping::on_bus_error(int signal, siginfo_t* info, void* context) {
  const int kept = errno;
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const auto page_size = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const bool is_fault = info->si_code > 0;  // Else somebody sent it.
  for (Mapping* mapping = is_fault ? first.load() : nullptr; mapping != nullptr; mapping = mapping->next) {
    const std::uintptr_t begin = mapping->begin;
    if (begin == 0 || at < begin || at >= mapping->end) continue;
    void* const page = reinterpret_cast<void*>(at - at % page_size);
    if (::mmap(page, page_size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) break;
    mapping->is_torn = true;
    errno = kept;
    return;
  }
  if ((g_previous.sa_flags & SA_SIGINFO) != 0) return g_previous.sa_sigaction(signal, info, context);
  if (g_previous.sa_handler != SIG_DFL && g_previous.sa_handler != SIG_IGN) return g_previous.sa_handler(signal);
  ::sigaction(SIGBUS, &g_previous, nullptr);  // Who looks there again, as it does now, ends.
  if (!is_fault) ::raise(signal);
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  MappedFile file;
  file.path_ = path;
  file.fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (file.fd_ < 0 || ::fstat(file.fd_, &status) != 0 || !S_ISREG(status.st_mode))
    return fail(ErrorKind::not_found, "cannot read " + path + ": is the path right?");
  if (status.st_size == 0) return fail(ErrorKind::invalid, path + " is empty");
  file.size_ = static_cast<std::size_t>(status.st_size);
  file.written_ns_ = written_ns(status);
  void* const mapped = ::mmap(nullptr, file.size_, PROT_READ, MAP_SHARED, file.fd_, 0);
  if (mapped == MAP_FAILED) return fail(ErrorKind::internal, "cannot map " + path + " into memory");
  file.data_ = static_cast<const std::byte*>(mapped);
  file.mapping_ = Mapping::add(file.data_, file.size_);
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(written_ns_, other.written_ns_);
  std::swap(mapping_, other.mapping_);
  return *this;
}

MappedFile::~MappedFile() {
  if (mapping_ != nullptr) Mapping::remove(mapping_);
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
  if (fd_ >= 0) ::close(fd_);
}

Result<void> MappedFile::check_unchanged() const {
  struct stat status {};
  if (!mapping_->is_torn && ::fstat(fd_, &status) == 0 && static_cast<std::size_t>(status.st_size) == size_ &&
      written_ns(status) == written_ns_)
    return {};
  return fail(ErrorKind::invalid, path_ + " was written while it was used: begin again with a file that nobody writes");
}

}  // namespace paceline::train
