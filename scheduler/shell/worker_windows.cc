#include "scheduler/shell/worker_windows.h"

#include <utility>

namespace paceline::scheduler {

std::string damaged_window(Rank rank) {
  return "the window of worker " + to_string(rank) +
         " has no free buffer for a result: its shared memory was overwritten, by the script or by us";
}

Result<void> WorkerWindows::fits(Rank rank, const memory::Window& window) {
  const auto& layout = window.layout();
  const bool is_first = elements_ == 0;
  if (!is_first && (layout.elements != elements_ || layout.dtype != dtype_)) {
    return fail(ErrorKind::invalid, "worker " + to_string(rank) + " shares " + std::to_string(layout.elements) +
                                        " parameters, the others " + std::to_string(elements_) +
                                        ": every worker must build the same model");
  }
  elements_ = layout.elements;
  dtype_ = layout.dtype;
  return {};
}

WorkerWindows::Member* WorkerWindows::living(Rank rank) {
  Member* const member = find(rank);
  return member && !member->gone ? member : nullptr;
}

WorkerWindows::Member* WorkerWindows::find(Rank rank) {
  const auto it = members_.find(rank);
  return it == members_.end() ? nullptr : &it->second;
}

collective::Reduction WorkerWindows::reduction() const {
  collective::Reduction reduction;
  reduction.elements = elements_;
  reduction.dtype = dtype_;
  return reduction;
}

std::optional<memory::Buffer> WorkerWindows::begin_result(Member& member, Version v) {
  const auto buffer = member.window.begin_result();
  if (!buffer) return {};
  member.window.tag(*buffer) = {};
  member.window.tag(*buffer).iteration = v.value;
  return buffer;
}

void WorkerWindows::set_verdict(Rank rank, const memory::WorkerVerdict& verdict) {
  Member* const member = find(rank);
  if (!member) return;
  member->control.set_verdict(verdict);
  member->control.ring();
}

void WorkerWindows::add(Rank rank, Member member) {
  tell_what_all_know(member);
  members_.insert_or_assign(rank, std::move(member));
}

void WorkerWindows::reopen(Rank rank, memory::ControlPage control) {
  Member& member = members_.at(rank);
  member.window.reset();
  member.control = std::move(control);
  tell_what_all_know(member);
}

void WorkerWindows::tell_what_all_know(Member& member) const {
  for (const Word word : {&Words::abandoned, &Words::executed, &Words::hold, &Words::last, &Words::next_leg})
    (member.control.words().*word).store(told_.*word, std::memory_order_release);
}

void WorkerWindows::evaluate(Rank rank, Version v) {
  if (Member* const member = living(rank)) tell(*member, &Words::evaluate, v.value);
}

void WorkerWindows::set_last(Version v) { tell_all(&Words::last, v.value); }

void WorkerWindows::set_executed(Version v) { tell_all(&Words::executed, v.value); }

void WorkerWindows::set_next_leg(std::int32_t leg) { tell_all(&Words::next_leg, leg); }

void WorkerWindows::hold(Version v) { tell_all(&Words::hold, v.value); }

void WorkerWindows::release(Version v) {
  if (told_.hold == v.value) tell_all(&Words::hold, -1);
}

void WorkerWindows::abandon(Version v) {
  if (told_.abandoned < v.value) tell_all(&Words::abandoned, v.value);
}

void WorkerWindows::abandon(Member& member, Version v) {
  if (member.control.words().abandoned.load(std::memory_order_relaxed) < v.value)
    tell(member, &Words::abandoned, v.value);
}

void WorkerWindows::tell(Member& member, Word word, std::int64_t value) {
  (member.control.words().*word).store(value, std::memory_order_release);
  member.control.ring();
}

void WorkerWindows::tell_all(Word word, std::int64_t value) {
  told_.*word = value;
  for (auto& [rank, member] : members_) tell(member, word, value);
}

}  // namespace paceline::scheduler
