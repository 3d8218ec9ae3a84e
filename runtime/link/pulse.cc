#include "runtime/link/pulse.h"

#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <random>
#include <utility>

#include "runtime/transport/zmq/address.h"

namespace paceline::link {
namespace {

using transport::SocketName;

/// A question: the secret of whom it is put to, and a number. The answer: the number, and nothing.
using Datagram = std::array<std::uint64_t, 2>;

std::optional<SocketName> name_of(const std::string& host, std::uint64_t port) {
  return port > 65535 ? std::nullopt : transport::socket_name(host, std::to_string(port));
}

std::uint64_t port_of(int fd) {
  SocketName name;
  if (::getsockname(fd, name.get(), &name.size) != 0) return 0;
  return ntohs(name.bytes.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&name.bytes)->sin6_port
                                                : reinterpret_cast<sockaddr_in*>(&name.bytes)->sin_port);
}

void answer(int fd, int stop, std::uint64_t secret) {
  while (true) {
    std::array<pollfd, 2> ready{pollfd{fd, POLLIN, 0}, pollfd{stop, POLLIN, 0}};
    if (::poll(ready.data(), ready.size(), -1) > 0 && ready[1].revents != 0) return;
    Datagram datagram{};
    SocketName from;
    const auto count = ::recvfrom(fd, &datagram, sizeof datagram, MSG_DONTWAIT | MSG_TRUNC, from.get(), &from.size);
    if (count != sizeof datagram || datagram[0] != secret) continue;
    datagram = {datagram[1], 0};
    (void)::sendto(fd, &datagram, sizeof datagram, MSG_DONTWAIT, from.get(), from.size);
  }
}

}  // namespace

Result<std::unique_ptr<Pulse>> Pulse::open(const std::string& host) {
  auto name = name_of(host, 0);
  if (!name) return fail(ErrorKind::invalid, "pulse: '" + host + "' is no number of a host");
  process::Fd answering(::socket(name->bytes.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  process::Fd asking(::socket(name->bytes.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  process::Fd stop(::eventfd(0, EFD_CLOEXEC));
  if (!answering || !asking || !stop) return fail_errno("pulse: socket");
  if (::bind(answering.get(), name->get(), name->size) != 0) return fail_errno("pulse: bind to " + host);
  std::random_device random;
  const PulseAddress address{port_of(answering.get()), (std::uint64_t{random()} << 32) | random()};
  return std::unique_ptr<Pulse>(new Pulse(std::move(answering), std::move(asking), std::move(stop), address));
}

Pulse::Pulse(process::Fd answering, process::Fd asking, process::Fd stop, PulseAddress address)
    : answering_(std::move(answering)), asking_(std::move(asking)), stop_(std::move(stop)), address_(address) {
  sigset_t all, before;  // Signals are for threads that wait for them.
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread(answer, answering_.get(), stop_.get(), address_.secret);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Pulse::~Pulse() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto rung = ::write(stop_.get(), &one, sizeof one);
  thread_.join();
}

void Pulse::ask(const std::string& host, const PulseAddress& whom, std::uint64_t question) {
  auto name = name_of(host, whom.port);
  if (!name || whom.port == 0) return;
  const Datagram datagram{whom.secret, question};
  (void)::sendto(asking_.get(), &datagram, sizeof datagram, MSG_DONTWAIT, name->get(), name->size);
}

std::vector<std::uint64_t> Pulse::answers() {
  std::vector<std::uint64_t> answered;
  Datagram datagram{};
  while (true) {
    const auto count = ::recv(asking_.get(), &datagram, sizeof datagram, MSG_DONTWAIT | MSG_TRUNC);
    if (count < 0) return answered;
    if (count == sizeof datagram) answered.push_back(datagram[0]);
  }
}

}  // namespace paceline::link
