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

void write_request(wire::Message& message, const std::string& verb, const nlohmann::json& what, std::uint64_t id,
                   const std::string& from) {
  auto body = message.root().initRequest();
  body.setId(id);
  body.setVerb(verb);
  body.setJson(json_text(what));
  body.setFrom(from);
}

void write_done_reply(wire::Message& message, std::uint64_t id, const nlohmann::json& answer) {
  auto body = message.root().initReply();
  body.setId(id);
  body.setOk(true);
  body.setJson(json_text(answer));
}

transport::Frame failed_reply(std::uint64_t id, const std::string& to, const Error& error) {
  wire::Message message;
  auto body = message.root().initReply();
  body.setId(id);
  body.setTo(to);
  body.setOk(false);
  actors::write(body.initError(), error);
  return message.to_frame();
}

std::optional<std::vector<transport::Frame>> refusal_of(const transport::Peer& peer,
                                                        const wire::Envelope::Reader& envelope, const Error& error) {
  switch (envelope.which()) {
    case wire::Envelope::REQUEST: {
      const auto request = envelope.getRequest();
      return std::vector<transport::Frame>{failed_reply(request.getId(), wire::text(request.getFrom()), error)};
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
