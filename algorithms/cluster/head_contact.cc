#include "algorithms/cluster/head_contact.h"

#include <unistd.h>

#include "actors/protocol_wire.h"
#include "algorithms/cluster/name_requests.h"
#include "algorithms/cluster/requests.h"
#include "algorithms/cluster/training/peer_names.h"

namespace paceline::cluster {
namespace {

using nlohmann::json;

const Error kHeadGone{ErrorKind::disconnected,
                      "the cluster's head is gone and nobody starts it again: end the cluster with `paceline down`"};

}  // namespace

void HeadContact::introduce(const NodeJobs& jobs, const actors::ActorRouter& router, Instant now) {
  for (const auto& [id, entry] : jobs.entries()) {
    wire::Message runs;
    write_job(runs.root().initOpenJob(), id, entry, now);
    links_.send(kHead, runs);
  }
  tell_once(kNamesVerb, to_json(router.names()));
  wire::Message hello;
  auto body = hello.root().initHello();
  body.setRole("agent");
  body.setName(agent_peer(self_.node));
  body.setPid(getpid());
  body.setAddress(self_.address);
  body.setCpus(self_.cpus);
  body.setMemory(self_.memory);
  body.setIncarnation(self_.incarnation);
  body.setNewestJob(jobs.newest().value);
  links_.send(kHead, hello);
  for (const auto& request : requests_.waiting()) send(request);
  // The head before this one may have waited for another's word.
  for (const auto& cut : jobs.all_cut_off()) tell_cut_off(cut.node, {cut.job}, cut.how);
}

void HeadContact::on_gone(Instant now) {
  if (!gone()) log_.warning("the head is gone: all goes on without it until it is there again");
  requests_.on_head_gone(now);
}

Result<void> HeadContact::pass_on(HeadRequests::Request request) {
  if (!requests_.add(request))
    return fail(ErrorKind::overloaded,
                std::to_string(requests_.waiting().size()) + " requests wait for the head: ask later");
  send(request);
  return {};
}

Result<std::uint64_t> HeadContact::ask(const std::string& verb, const json& what) {
  const std::uint64_t id = next_request_++;
  return pass_on({HeadRequests::kSelf, id, verb, json_text(what)}).map([id] { return id; });
}

void HeadContact::tell(const std::string& verb, const json& what) {
  if (const auto told = ask(verb, what); !told) log_.error(told.error().text);
}

void HeadContact::tell_once(const std::string& verb, const json& what) {
  wire::Message message;
  write_request(message, verb, what);
  links_.send(kHead, message);
}

/// What was on its way between the two is lost: the head decides which of them goes on with their jobs.
void HeadContact::tell_cut_off(NodeId node, const std::vector<JobId>& jobs, const std::string& how) {
  json list = json::array();
  for (const JobId job : jobs) list.push_back(job.value);
  tell(kCutOffVerb, {{"node", node.value}, {"jobs", list}, {"cause", how}});
}

void HeadContact::answer(std::uint64_t request, const json& what) {
  wire::Message message;
  write_reply(message, request, {}, what);
  links_.send(kHead, message);
}

void HeadContact::on_reply(const wire::Reply::Reader& reply) {
  const std::string to = wire::text(reply.getTo());
  const bool is_first = requests_.answered(to, reply.getId());
  if (to == HeadRequests::kSelf) {
    Result<std::string> said = wire::text(reply.getJson());
    if (!reply.getOk()) said = tl::unexpected(actors::read(reply.getError()));
    return answered_(reply.getId(), said);
  }
  if (!is_first) return;
  wire::Message copy;
  copy.root().setReply(reply);
  local_.send(to, {copy.to_frame()});
}

void HeadContact::tick(Instant now) {
  for (const auto& request : requests_.given_up(now)) {
    log_.error("nobody starts the head again: '" + request.verb + "' gets no answer");
    if (request.from == HeadRequests::kSelf) {
      answered_(request.id, tl::unexpected(kHeadGone));
      continue;
    }
    wire::Message reply;
    write_reply(reply, request.id, request.from, tl::unexpected(kHeadGone));
    local_.send(request.from, {reply.to_frame()});
  }
}

void HeadContact::send(const HeadRequests::Request& request) {
  wire::Message message;
  write_request(message, request);
  links_.send(kHead, message);
}

}  // namespace paceline::cluster
