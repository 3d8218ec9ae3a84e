#include "scheduler/shell/worker_windows.h"

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

void WorkerWindows::set_last(Version v) {
  for (auto& [rank, member] : members_) {
    member.control.words().last.store(v.value, std::memory_order_release);
    member.control.ring();
  }
}

void WorkerWindows::hold(Version v) {
  for (auto& [rank, member] : members_) member.control.words().hold.store(v.value, std::memory_order_release);
}

void WorkerWindows::release(Version v) {
  for (auto& [rank, member] : members_) {
    if (member.control.words().hold.load(std::memory_order_relaxed) != v.value) continue;
    member.control.words().hold.store(-1, std::memory_order_release);
    member.control.ring();
  }
}

void WorkerWindows::abandon(Member& member, Version v) {
  auto& word = member.control.words().abandoned;
  if (word.load(std::memory_order_relaxed) >= v.value) return;
  word.store(v.value, std::memory_order_release);
  member.control.ring();
}

}  // namespace paceline::scheduler
