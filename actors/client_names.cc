// What a client knows of names, and how it ends actors.
#include <charconv>

#include "actors/client.h"
#include "actors/protocol_wire.h"
#include "runtime/base/json.h"

namespace paceline::actors {
namespace {

constexpr Duration kPatience = std::chrono::seconds(60);  // Whoever is asked fails, or is noticed to be gone, sooner.

}  // namespace

/// To be called before the actor is asked for. What was released before is so first: its names are free.
PendingResultPtr Client::expect_name(ActorId actor) {
  if (const auto release = outbox_->take_release()) outbox_->push_anyway(release_message(*release));
  auto decided = std::make_shared<PendingResult>(TaskId{});
  std::lock_guard lock(mutex_);
  if (ended_) {
    decided->complete(tl::unexpected(*ended_));
  } else {
    names_.emplace(actor, decided);
  }
  return decided;
}

Result<Client::Created> Client::await_name(ActorId actor, const PendingResultPtr& decided, bool detached) {
  if (!decided->wait_for(kPatience)) {
    std::lock_guard lock(mutex_);
    names_.erase(actor);
    outbox_->release(actor);
    return fail(ErrorKind::timed_out,
                "nobody has said in " +
                    std::to_string(std::chrono::duration_cast<std::chrono::seconds>(kPatience).count()) +
                    " s who has the name of the actor: is the cluster's head stopped?");
  }
  const auto& said = decided->wait();
  if (!said) return tl::unexpected(said.error());
  std::uint64_t holder = 0;
  const auto* const digits = reinterpret_cast<const char*>(said->data());
  std::from_chars(digits, digits + said->size(), holder);
  return Created{ActorId(holder), ActorId(holder) == actor && !detached};
}

/// Whether it was about a name.
bool Client::on_name(const ActorReady& message) {
  const bool over = message.dead || !message.error.text.empty();
  if (message.named.value == 0 && !over) return false;
  PendingResultPtr decided;
  {
    std::lock_guard lock(mutex_);
    if (auto found = names_.extract(message.actor)) decided = std::move(found.mapped());
  }
  if (!decided) return message.named.value != 0;  // Nobody waits any more.
  if (over) {
    decided->complete(tl::unexpected(message.error));
  } else {
    const auto text = to_string(message.named);
    const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
    decided->complete(Bytes(begin, begin + text.size()));
  }
  return true;
}

Result<ActorId> Client::find(const std::string& name, const std::string& type) {
  const auto answer = request(kFindVerb, json_text(nlohmann::json{{"name", name}, {"type", type}}));
  if (!answer) return tl::unexpected(answer.error());
  const auto told = parse_json(*answer);
  return ActorId(told.is_object() ? told.value("actor", std::uint64_t{0}) : 0);
}

/// The word goes the way of calls and creations, so that it overtakes none of this process's creations, but does not
/// wait behind calls.
Result<std::optional<Error>> Client::end(ActorId actor) {
  Call call;
  call.task = task_id(process_, next_task_++);
  call.actor = actor;
  call.kill = true;
  auto ended = std::make_shared<PendingResult>(TaskId{});
  {
    std::lock_guard lock(mutex_);
    if (ended_) return tl::unexpected(*ended_);
    ends_.emplace(call.task, ended);
  }
  auto pushed = outbox_->push(encode(call), options_.send_patience);
  if (pushed && ended->wait_for(kPatience)) {
    const auto& said = ended->wait();
    if (said) return std::nullopt;
    if (said.error().kind == ErrorKind::overloaded) return tl::unexpected(said.error());
    return said.error();
  }
  {
    std::lock_guard lock(mutex_);
    ends_.erase(call.task);
  }
  if (!pushed) return tl::unexpected(pushed.error());
  return fail(ErrorKind::timed_out, "the node of actor " + to_string(actor) + " has not said that the actor has ended");
}

}  // namespace paceline::actors
