#include "runtime/transport/zmq/keys.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <sstream>

namespace paceline::transport {
namespace {

constexpr std::string_view kHeader = "paceline-keys 1";
constexpr std::size_t kMaxFileBytes = 4096;

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

Result<void> check_pair(const CurveKeys& keys, std::string_view whose, const std::string& file) {
  std::array<std::uint8_t, 32> raw{};
  std::array<char, 41> derived{};
  const auto damaged = [&] {
    return fail(ErrorKind::invalid, "key file " + file + ": the " + std::string(whose) +
                                        " key is damaged: copy the file again, or let the cluster make a new one");
  };
  if (keys.public_key.size() != 40 || zmq_z85_decode(raw.data(), keys.public_key.c_str()) == nullptr) return damaged();
  if (keys.secret_key.empty() && whose == "server") return {};
  if (keys.secret_key.size() != 40 || zmq_z85_decode(raw.data(), keys.secret_key.c_str()) == nullptr) return damaged();
  if (zmq_curve_public(derived.data(), keys.secret_key.c_str()) != 0 || keys.public_key != derived.data())
    return damaged();
  return {};
}

Result<void> write_all(int fd, std::string_view text, const std::string& file) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail_errno("write " + file);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fsync(fd) != 0) return fail_errno("fsync " + file);
  return {};
}

}  // namespace

Result<CurveKeys> make_curve_keys() {
  std::array<char, 41> public_key{};
  std::array<char, 41> secret_key{};
  if (zmq_curve_keypair(public_key.data(), secret_key.data()) != 0) {
    return fail(ErrorKind::internal, "this ZeroMQ was built without CURVE: install a libzmq with libsodium");
  }
  return CurveKeys{public_key.data(), secret_key.data()};
}

Result<ClusterKeys> make_cluster_keys() {
  auto server = make_curve_keys();
  if (!server) return tl::unexpected(server.error());
  auto client = make_curve_keys();
  if (!client) return tl::unexpected(client.error());
  return ClusterKeys{std::move(server).value(), std::move(client).value()};
}

Result<void> write_keys(const std::filesystem::path& path, const ClusterKeys& keys) {
  std::ostringstream text;
  text << kHeader << "\nserver-public " << keys.server.public_key << "\nserver-secret " << keys.server.secret_key
       << "\nclient-public " << keys.client.public_key << "\nclient-secret " << keys.client.secret_key << '\n';
  std::string temporary = path.string() + ".XXXXXX";
  Descriptor file{::mkostemp(temporary.data(), O_CLOEXEC)};  // Mode 0600 whatever the umask.
  if (file.fd < 0) return fail_errno("create key file " + temporary);
  Result<void> done = write_all(file.fd, text.str(), temporary);
  if (done && ::rename(temporary.c_str(), path.c_str()) != 0) done = fail_errno("rename key file to " + path.string());
  if (!done) ::unlink(temporary.c_str());
  return done;
}

Result<ClusterKeys> read_keys(const std::filesystem::path& path) {
  const std::string file = path.string();
  Descriptor opened{::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
  if (opened.fd < 0 && errno == ENOENT)
    return fail(ErrorKind::not_found, "key file " + file + " does not exist: is the cluster up?");
  if (opened.fd < 0) return fail_errno("open key file " + file);
  struct stat status {};
  if (::fstat(opened.fd, &status) != 0) return fail_errno("stat key file " + file);
  if (!S_ISREG(status.st_mode)) return fail(ErrorKind::invalid, "key file " + file + " is no regular file");
  if (status.st_uid != ::geteuid()) {
    return fail(ErrorKind::invalid, "key file " + file + " belongs to another user: copy it, and chmod 600 the copy");
  }
  if ((status.st_mode & 077) != 0) {
    return fail(ErrorKind::invalid, "key file " + file + " can be read by others: chmod 600 " + file);
  }
  std::string text(kMaxFileBytes, '\0');
  const ssize_t size = ::read(opened.fd, text.data(), text.size());
  if (size < 0) return fail_errno("read key file " + file);
  text.resize(static_cast<std::size_t>(size));

  std::istringstream lines(text);
  std::string header;
  std::getline(lines, header);
  if (header != kHeader)
    return fail(ErrorKind::invalid, "key file " + file + " does not begin with '" + std::string(kHeader) + "'");
  ClusterKeys keys;
  for (std::string line; std::getline(lines, line);) {
    const auto space = line.find(' ');
    const std::string name = line.substr(0, space);
    const std::string value = space == std::string::npos ? "" : line.substr(space + 1);
    if (name == "server-public")
      keys.server.public_key = value;
    else if (name == "server-secret")
      keys.server.secret_key = value;
    else if (name == "client-public")
      keys.client.public_key = value;
    else if (name == "client-secret")
      keys.client.secret_key = value;
    else
      return fail(ErrorKind::invalid, "key file " + file + ": unknown line '" + name + "'");
  }
  PACELINE_TRY(check_pair(keys.server, "server", file));
  PACELINE_TRY(check_pair(keys.client, "client", file));
  return keys;
}

}  // namespace paceline::transport
