// Tasks: of this process's, on workers that agents lend it; and of others, where it is a worker.
#include "actors/causes.h"
#include "actors/client.h"
#include "actors/protocol_wire.h"
#include "runtime/base/steady_now.h"

namespace paceline::actors {

/// A task for this worker that came through agents.
void Client::on_push(PushTask push) {
  auto received = wire::Received::parse(std::move(push.call));
  if (!received) return;
  (void)received->visit([&](wire::Envelope::Reader root) -> Result<void> {
    if (!root.isCall()) return {};
    return decode(root.getCall()).map([&](Call call) {
      call.owner = push.owner;
      on_call(std::move(call));
    });
  });
}

void Client::on_loan(const Loan& loan) {
  switch (loan.kind) {
    case Loan::Kind::lent: {
      const bool line = open_line_to(loan.worker);
      std::lock_guard lock(mutex_);
      const Instant now = steady_now();
      tasks_.on_lent(loan.worker, loan.shape, line, now);
      return push_tasks(now);
    }
    case Loan::Kind::gone:
      if (lines_) lines_->hear_out(worker_peer(loan.worker));
      return on_worker_gone(loan.worker, loan.error);
    case Loan::Kind::recalled: {
      std::lock_guard lock(mutex_);
      tasks_.on_recalled(loan.shape, node_of(loan.worker), loan.count);
      return push_tasks(steady_now());
    }
    case Loan::Kind::refused: {
      std::vector<PendingResultPtr> failed;
      {
        std::lock_guard lock(mutex_);
        failed = tasks_.on_refused(loan.shape);
        push_tasks(steady_now());
        room_.notify_all();
      }
      for (const auto& result : failed) result->complete(tl::unexpected(loan.error));
      return;
    }
  }
}

/// Of this node's workers only, and as long as there is room for lines; else tasks go through the agent.
bool Client::open_line_to(WorkerId worker) {
  if (!lines_ || node_of(worker) != node()) return false;
  {
    std::lock_guard lock(mutex_);
    if (task_lines_.contains(worker)) return true;
  }
  const auto path = line_path_beside(options_.agent_address, worker);
  if (path.empty() || !lines_->connect(worker_peer(worker), path)) return false;
  std::lock_guard lock(mutex_);
  task_lines_.insert(worker);
  return true;
}

void Client::on_worker_gone(WorkerId worker, const Error& error) {
  std::vector<OwnedTasks::Failed> failed;
  std::vector<PendingResultPtr> over;
  {
    std::lock_guard lock(mutex_);
    failed = tasks_.on_gone(worker);
    for (const auto& one : failed) deadlines_.remove(one.result->task());
    over = tasks_.take_cancelled();
    room_.notify_all();
    push_tasks(steady_now());
  }
  end_cancelled(std::move(over));
  for (const auto& one : failed) one.result->complete(tl::unexpected(of_task(error, name_in(one.call))));
}

/// What may go to workers now, and what the agent is to hear. Under the lock.
void Client::push_tasks(Instant now) {
  while (auto push = tasks_.next(now)) {
    if (push->by_line) {
      if (lines_->send_out(worker_peer(push->worker), {&push->call, 1})) continue;
      tasks_.put_back(push->task);
      if (!std::exchange(crowded_, true) && !retries_) outbox_->notify();
      break;
    }
    outbox_->push_anyway(encode(PushTask{push->worker, push->task, options_.name, push->call}));
  }
  while (auto word = tasks_.next_word(now)) {
    word->owner = options_.name;
    outbox_->push_anyway(encode(*word));
  }
}

void Client::send_task(const Call& call, PendingResultPtr result, const TaskNeeds& needs, Duration patience) {
  auto frame = std::move(encode(call).front());
  frame.shrink_to_fit();
  std::unique_lock lock(mutex_);
  const auto refused = wait_for_room(lock, ActorId{}, patience, [this] { return tasks_.has_room(); });
  if (is_wanted_no_more(call.task, patience)) return;
  if (needs.timeout && !deadlines_.has(call.task)) return;  // It is late already.
  if (!refused) {
    Shape shape = needs.shape;
    if (shape.spread) shape.node = nodes_.empty() ? NodeId(node_) : nodes_[spread_turn_++ % nodes_.size()];
    tasks_.add(call.task, shape, needs.retries, std::move(frame), std::move(result));
    return push_tasks(steady_now());
  }
  lock.unlock();
  result->complete(tl::unexpected(*refused));
}

}  // namespace paceline::actors
