#include "algorithms/cluster/requests.h"

#include "actors/protocol_wire.h"
#include "algorithms/cluster/training/peer_names.h"
#include "runtime/base/json.h"

namespace paceline::cluster {
namespace {

/// Who made a call or an actor: a peer of this node itself, or one that its agent speaks for.
template <class Message>
std::string owner_of(const transport::Peer& peer, const Message& message) {
  return node_of_peer(peer).value < 0 ? peer : wire::text(message.getOwner());
}

}  // namespace

void write_request(wire::Message& message, const HeadRequests::Request& request) {
  auto body = message.root().initRequest();
  body.setId(request.id);
  body.setVerb(request.verb);
  body.setJson(request.json);
  body.setFrom(request.from);
}

void write_request(wire::Message& message, const std::string& verb, const nlohmann::json& what, std::uint64_t id) {
  write_request(message, {{}, id, verb, json_text(what)});
}

void write_reply(wire::Message& message, std::uint64_t id, const std::string& to,
                 const Result<nlohmann::json>& answer) {
  auto body = message.root().initReply();
  body.setId(id);
  body.setTo(to);
  body.setOk(answer.has_value());
  answer ? body.setJson(json_text(*answer)) : actors::write(body.initError(), answer.error());
}

std::optional<std::vector<transport::Frame>> refusal_of(const transport::Peer& peer,
                                                        const wire::Envelope::Reader& envelope, const Error& error) {
  switch (envelope.which()) {
    case wire::Envelope::REQUEST: {
      const auto request = envelope.getRequest();
      wire::Message reply;
      write_reply(reply, request.getId(), wire::text(request.getFrom()), tl::unexpected(error));
      return std::vector<transport::Frame>{reply.to_frame()};
    }
    case wire::Envelope::CREATE_ACTOR: {
      const auto create = envelope.getCreateActor();
      return actors::encode(actors::ActorReady{ActorId(create.getActor()), owner_of(peer, create), true, error});
    }
    case wire::Envelope::CALL: {
      const auto call = envelope.getCall();
      return actors::encode(actors::CallResult{TaskId(call.getTask()), owner_of(peer, call), tl::unexpected(error)});
    }
    default: return std::nullopt;
  }
}

}  // namespace paceline::cluster
