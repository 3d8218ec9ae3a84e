#include "algorithms/cluster/training/job_replicas.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "runtime/store/shared_object.h"

namespace paceline::cluster {

JobReplicas::JobReplicas(const JobSettings& settings, const JobMembers& members, const JobOutbox& outbox,
                         const JobNews& news, Beside beside, Fail fail, Readmit readmit)
    : settings_(settings),
      members_(members),
      outbox_(outbox),
      news_(news),
      beside_(std::move(beside)),
      fail_job_(std::move(fail)),
      readmit_(std::move(readmit)),
      exchange_(settings.self, settings.entry.node_of) {}

/// Local workers that have a state.
ReplicaExchange::Donors JobReplicas::donors() {
  ReplicaExchange::Donors donors;
  if (!averagings_) return donors;
  for (const auto& [rank, worker] : members_.joined()) {
    auto* window = averagings_->window(rank);
    if (!window || members_.has_left(rank)) continue;
    const bool frozen = outbox_.process_state(worker) == 'T';
    donors.push_back({rank, window->progress().step.load(std::memory_order_relaxed), frozen});
  }
  return donors;
}

void JobReplicas::act(const ReplicaExchange::Actions& actions) {
  for (const auto& action : actions) std::visit([this](const auto& a) { carry_out(a); }, action);
}

void JobReplicas::carry_out(const ReplicaExchange::Give& give) {
  const auto worker = members_.worker_of(give.rank);
  if (!worker) return;
  wire::Message message;
  auto body = message.root().initReplica();
  std::int64_t update = give.replica.update;
  // An iteration later than the last only with the model of the end.
  if (may_skip_.erase(give.rank) > 0 && averagings_)
    update = std::max(update, std::min(averagings_->begins_with(give.rank), averagings_->last()).value);
  body.setUpdate(update);
  body.setSize(give.replica.size);
  given_[give.rank] = {give.replica.size, update};
  if (averagings_) averagings_->ledger().on_restored(give.rank, give.replica.contents);
  outbox_.answer(*worker, requests_[give.rank], message, {give.replica.object->fd()});
}

void JobReplicas::carry_out(const ReplicaExchange::Send& send) {
  wire::Message message;
  auto body = message.root().initReplicaData();
  body.setJob(settings_.named().value);
  body.setRank(send.from.value);
  body.setUpdate(send.replica.update);
  body.setSize(send.replica.size);
  write(send.replica.contents, body.initContents(static_cast<unsigned>(send.replica.contents.size())));
  outbox_.to_node(send.node, message, {{send.replica.object, send.replica.object->data()}});
}

void JobReplicas::carry_out(const ReplicaExchange::Capture& capture) {
  auto* control = averagings_->control(capture.donor);
  control->words().capture_from.store(capture.from, std::memory_order_relaxed);
  control->words().capture_wanted.fetch_add(1, std::memory_order_seq_cst);
  control->ring();
  // It may have begun the update meanwhile: then it has seen nothing, and the others may all wait for whom it was for.
  const auto step = averagings_->window(capture.donor)->progress().step.load(std::memory_order_seq_cst);
  if (capture.from >= 0) act(exchange_.on_asked({capture.donor, step}));
}

void JobReplicas::carry_out(const ReplicaExchange::AskNode& ask) {
  wire::Message message;
  auto body = message.root().initReplicaWanted();
  body.setJob(settings_.named().value);
  body.setRank(ask.rank.value);
  body.setUpdate(ask.need.least);
  body.setExact(ask.need.exact);
  outbox_.to_node(ask.node, message, {});
}

void JobReplicas::carry_out(const ReplicaExchange::SendNone& none) {
  wire::Message message;
  auto body = message.root().initReplicaNone();
  body.setJob(settings_.named().value);
  body.setRank(none.none.furthest.rank.value);
  body.setUpdate(none.none.furthest.step);
  body.setHolds(none.none.holds);
  outbox_.to_node(none.node, message, {});
}

void JobReplicas::carry_out(const ReplicaExchange::GoOn& go_on) {
  const auto worker = members_.worker_of(go_on.rank);
  if (!worker || !averagings_) return;
  wire::Message message;
  message.root().initReplica().setUpdate(averagings_->done().value + 1);
  outbox_.answer(*worker, requests_[go_on.rank], message, {});
  news_.warning("worker " + to_string(go_on.rank) + " missed update " + std::to_string(averagings_->done().value + 1) +
                ", and who has its model is frozen or gone: it goes on with its own");
}

void JobReplicas::on_none(const wire::Replica::Reader& none, NodeId from, Instant now) {
  act(exchange_.on_none(from, {{Rank{none.getRank()}, none.getUpdate()}, none.getHolds()}, donors(), now));
}

/// Not at once: who could give its state may be frozen.
void JobReplicas::carry_out(const ReplicaExchange::Readmit& readmit) {
  to_readmit_.emplace(readmit.rank, settings_.clock->now() + ReplicaExchange::kLook);
}

void JobReplicas::carry_out(const ReplicaExchange::Lost&) {
  fail_job_(
      Error{ErrorKind::disconnected,
            "all workers have ended at nearly the same time, and nobody is left who has the model: go on from the "
            "last checkpoint with --resume"});
}

// Workers that come back

void JobReplicas::on_admitted(const scheduler::AveragingService::Admitted& admitted, Instant now) {
  if (admitted.may_skip) may_skip_.insert(admitted.rank);
  const ReplicaExchange::Need need{admitted.after ? admitted.after->value + 1 : 0, admitted.after.has_value()};
  act(exchange_.on_admitted(admitted.rank, need, donors(), now));
}

std::optional<JobReplicas::Given> JobReplicas::given(Rank rank) const {
  const auto given = given_.find(rank);
  return given == given_.end() ? std::nullopt : std::optional(given->second);
}

void JobReplicas::on_left(Rank rank, Instant now) {
  given_.erase(rank);
  to_readmit_.erase(rank);
  may_skip_.erase(rank);
  act(exchange_.on_left(rank, donors(), now));
}

void JobReplicas::on_end(Version end, Instant now) {
  to_readmit_.clear();
  act(exchange_.on_end(end.value + 1, donors(), now));
}

std::optional<Instant> JobReplicas::due() const {
  std::optional<Instant> next = exchange_.due();
  for (const auto& [rank, at] : to_readmit_) next = next ? std::min(*next, at) : at;
  return next;
}

void JobReplicas::on_wanted(const wire::Replica::Reader& wanted, NodeId from, std::optional<Version> end, Instant now) {
  if (from == settings_.self) requests_[Rank{wanted.getRank()}] = wanted.getRequest();
  ReplicaExchange::Need need;
  if (from != settings_.self) need = {wanted.getUpdate(), wanted.getExact()};
  if (end) need = {std::max(need.least, end->value + 1)};
  act(exchange_.on_wanted(Rank{wanted.getRank()}, from, need, donors(), now));
}

void JobReplicas::on_captured(Rank rank, std::int64_t update, std::uint64_t size, process::Fd state) {
  auto object = store::SharedObject::map(std::move(state), std::max<std::uint64_t>(1, size));
  if (!object)
    return fail_job_(Error{ErrorKind::internal, "worker " + to_string(rank) +
                                                    " gave a replica that cannot be mapped: " + object.error().text});
  auto contents = averagings_ ? averagings_->ledger().model(rank, Version{update - 1}) : scheduler::Contents{};
  act(exchange_.on_captured(
      rank, {std::make_shared<store::SharedObject>(*std::move(object)), update, size, std::move(contents)}));
}

void JobReplicas::on_data(const wire::Replica::Reader& header, std::vector<std::byte> bytes) {
  struct Made {
    std::vector<std::byte> bytes;
    std::shared_ptr<store::SharedObject> object;
  };
  const auto made = std::make_shared<Made>(Made{std::move(bytes), {}});
  beside_(
      [made]() -> Result<void> {
        auto object = store::SharedObject::sealed_copy(made->bytes);
        if (!object) return tl::unexpected(object.error());
        made->object = std::make_shared<store::SharedObject>(*std::move(object));
        return {};
      },
      [this, made, rank = Rank{header.getRank()}, update = header.getUpdate(), size = header.getSize(),
       contents = scheduler::contents_of(header.getContents())](const Result<void>& done) {
        if (!done) return fail_job_(done.error());
        act(exchange_.on_captured(rank, {std::move(made->object), update, size, contents}));
      });
}

void JobReplicas::on_node_gone(NodeId node, Instant now) { act(exchange_.on_node_gone(node, donors(), now)); }

void JobReplicas::tick(Instant now) {
  for (auto one = to_readmit_.begin(); one != to_readmit_.end();) {
    if (now < one->second) {
      ++one;
      continue;
    }
    const Rank rank = one->first;
    one = to_readmit_.erase(one);
    readmit_(rank);
  }
  if (exchange_.is_due(now)) act(exchange_.ask_again(donors(), now));
}

}  // namespace paceline::cluster
