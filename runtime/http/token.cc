#include "runtime/http/token.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

namespace paceline::http {
namespace {

constexpr std::size_t kDigits = 64;

Result<std::string> read_token(int fd, const std::filesystem::path& file) {
  struct stat status {};
  std::array<char, kDigits + 2> text{};
  const auto got = ::fstat(fd, &status) == 0 ? ::read(fd, text.data(), text.size()) : -1;
  if (got < 0) return fail_errno("read " + file.string());
  std::string_view token(text.data(), static_cast<std::size_t>(got));
  if (token.ends_with('\n')) token.remove_suffix(1);
  const bool secret = (status.st_mode & 077) == 0 && status.st_uid == ::getuid();
  if (!secret || token.size() != kDigits || token.find_first_not_of("0123456789abcdef") != token.npos)
    return fail(ErrorKind::invalid, file.string() + " is no token that only you can read: remove it");
  return std::string(token);
}

Result<std::string> new_token() {
  std::array<unsigned char, kDigits / 2> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return fail_errno("getrandom");
  std::string token;
  for (const unsigned char byte : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    token += digits;
  }
  return token;
}

}  // namespace

Result<std::string> token_in(const std::filesystem::path& file) {
  if (const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW); fd >= 0) {
    auto token = read_token(fd, file);
    ::close(fd);
    return token;
  }
  if (errno != ENOENT) return fail_errno("open " + file.string());
  auto token = new_token();
  if (!token) return token;
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return fail_errno("create " + file.string());
  const std::string line = *token + "\n";
  const bool written = ::write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  ::close(fd);
  if (written) return token;
  ::unlink(file.c_str());
  return fail(ErrorKind::internal, "cannot write " + file.string() + ": is the disk full?");
}

bool same_secret(std::string_view one, std::string_view other) {
  if (one.size() != other.size()) return false;
  unsigned differing = 0;
  for (std::size_t i = 0; i < one.size(); ++i)
    differing |= static_cast<unsigned>(static_cast<unsigned char>(one[i]) ^ static_cast<unsigned char>(other[i]));
  return differing == 0;
}

}  // namespace paceline::http
