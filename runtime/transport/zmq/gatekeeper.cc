#include "runtime/transport/zmq/gatekeeper.h"

#include <array>
#include <cerrno>

#include "runtime/transport/zmq/sockets.h"

namespace paceline::transport {
namespace {

std::string_view text_of(const Frame& frame) { return {reinterpret_cast<const char*>(frame.data()), frame.size()}; }

Frame frame_of(std::string_view text) {
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return Frame(bytes, bytes + text.size());
}

}  // namespace

Gatekeeper::Gatekeeper(zmq::context_t& context, const std::string& client_public_key)
    : replier_(context, zmq::socket_type::rep), admitted_(32, '\0') {
  if (client_public_key.size() != 40 ||
      zmq_z85_decode(reinterpret_cast<std::uint8_t*>(admitted_.data()), client_public_key.c_str()) == nullptr) {
    errno = EINVAL;
    throw zmq::error_t();
  }
  replier_.set(zmq::sockopt::linger, 0);
  replier_.bind("inproc://zeromq.zap.01");
}

int Gatekeeper::fd() const { return descriptor_of(replier_); }

/// A question: version, request id, domain, address, routing id, mechanism, credentials
/// (https://rfc.zeromq.org/spec/27).
bool Gatekeeper::serve() {
  auto question = receive(replier_, false);
  if (!question) return false;
  const auto& frames = question->frames;
  const bool welcome = frames.size() == 7 && text_of(frames[0]) == "1.0" && text_of(frames[2]) == kDomain &&
                       text_of(frames[5]) == "CURVE" && text_of(frames[6]) == admitted_;
  std::vector<Frame> answer;
  answer.push_back(frame_of("1.0"));
  answer.push_back(frames.size() > 1 ? frames[1] : Frame{});
  answer.push_back(frame_of(welcome ? "200" : "400"));
  answer.push_back(frame_of(welcome ? "OK" : "not a key of this cluster"));
  answer.push_back(frame_of(welcome ? "member" : ""));
  answer.emplace_back();
  send_frames(replier_, nullptr, std::move(answer));
  return true;
}

}  // namespace paceline::transport
