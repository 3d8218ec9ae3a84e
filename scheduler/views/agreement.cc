#include "scheduler/views/agreement.h"

#include <algorithm>
#include <utility>

namespace paceline::scheduler {

Agreement::Actions Agreement::wish(On what) {
  if (ends_) return {};
  ends_ = what == On::end;
  if (asked_) {
    if (asked_ != what) next_ = what;
    return {};
  }
  asked_ = what;
  answers_.clear();
  return {Ask{what}};
}

Agreement::Actions Agreement::on_answer(NodeId from, On what, Version v, const std::set<NodeId>& left) {
  if (asked_ != what) return {};
  answers_[from] = v;
  return decide_if_answered(left);
}

void Agreement::on_decided(On what, Version last) {
  if (what == On::graph) {
    last_graph_ = std::max(last, last_graph_);
    return;
  }
  ends_ = true;
  asked_.reset();
  next_.reset();
}

/// What one that is lost has answered counts: it may have begun that.
Agreement::Actions Agreement::decide_if_answered(const std::set<NodeId>& left) {
  const auto has_answered = [this](NodeId node) { return answers_.contains(node); };
  if (!asked_ || answers_.empty() || !std::all_of(left.begin(), left.end(), has_answered)) return {};
  Version last = answers_.begin()->second;
  for (const auto& [node, v] : answers_) last = std::max(last, v);
  const On what = *std::exchange(asked_, std::nullopt);
  if (what == On::graph) last = last_graph_ = std::max(last, last_graph_);
  Actions out{Decide{what, last}};
  if (next_) {
    asked_ = std::exchange(next_, std::nullopt);
    answers_.clear();
    out.emplace_back(Ask{*asked_});
  }
  return out;
}

}  // namespace paceline::scheduler
