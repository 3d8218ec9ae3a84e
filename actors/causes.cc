#include "actors/causes.h"

#include <utility>

#include "actors/process_ids.h"
#include "runtime/base/readable.h"

namespace paceline {
namespace actors {
namespace {

constexpr std::size_t kLinkNameMax = 512;  // Of a function, of a worker.
constexpr std::size_t kPathMax = 4096;
constexpr std::size_t kLineMax = kThrownMax + (std::size_t{4} << 10);
constexpr std::size_t kLinksBytesMax = kCausesBytesMax - 2 * kLineMax;  // What a line and the first one leave.

void cut(std::string& text, std::size_t most) {
  if (text.size() <= most) return;
  text.resize(first_of(text, most - 3).size());
  text += "...";
}

std::size_t size_of(const Cause& link) {
  return link.what.size() + link.worker.size() + link.log.size() + link.text.size();
}

void bound(Causes& causes) {
  std::size_t bytes = 0;
  for (Cause& link : causes.links) {
    cut(link.what, kLinkNameMax);
    cut(link.worker, kLinkNameMax);
    if (link.log.size() > kPathMax) link.log.clear();
    cut(link.text, &link == &causes.links.back() ? kThrownMax : kLinkNameMax);
    bytes += size_of(link);
  }
  cut(causes.first, kLineMax);
  while (causes.links.size() > kLinksMax || (bytes > kLinksBytesMax && causes.links.size() > 2)) {
    const auto middle = causes.links.begin() + static_cast<std::ptrdiff_t>(causes.links.size() / 2);
    bytes -= size_of(*middle);
    causes.links.erase(middle);
    ++causes.left_out;
  }
}

bool has_place(const Cause& link) { return link.node >= 0; }

/// To be changed. One that nobody has told anything of begins here.
Causes copy_of(const Error& error) {
  if (error.causes) return *error.causes;
  Cause here;
  here.kind = error.kind;
  here.text = error.text;
  return {{std::move(here)}};
}

Error with(ErrorKind kind, std::string text, Causes causes) {
  return bounded({kind, std::move(text)}, std::move(causes));
}

/// What is behind another link from here on.
Causes behind(const Error& error, Cause link) {
  auto causes = copy_of(error);
  if (causes.first.empty()) causes.first = error.text;
  causes.links.insert(causes.links.begin(), std::move(link));
  return causes;
}

Cause link_of(const Place& place, ErrorKind kind, std::string what, std::string text) {
  Cause link;
  link.kind = kind;
  link.what = std::move(what);
  link.node = place.node;
  link.worker = place.worker;
  link.log = place.log;
  link.text = std::move(text);
  return link;
}

}  // namespace

Place place_of(WorkerId worker, std::string log) {
  return {node_of(worker).value, "worker " + std::to_string(number_on_node(worker)), std::move(log)};
}

std::string to_string(const Place& place) {
  return place.worker + " on node " + std::to_string(place.node) +
         (place.log.empty() ? "" : ", log " + readable(place.log));
}

Error bounded(Error error, Causes causes) {
  cut(error.text, kLineMax);
  bound(causes);
  error.causes = std::make_shared<const Causes>(std::move(causes));
  return error;
}

Error began(Error error, const Place& place, std::string what, std::string text) {
  Causes causes{{link_of(place, error.kind, std::move(what), std::move(text))}};
  return with(error.kind, std::move(error.text), std::move(causes));
}

Error leaving(Error error, std::string what, const Place& place, const std::string& whose) {
  auto causes = copy_of(error);
  if (Cause& link = causes.links.front(); !has_place(link)) {
    if (link.what.empty()) link.what = std::move(what);
    link.node = place.node;
    link.worker = place.worker;
    link.log = place.log;
    cut(error.text, kThrownMax);  // Where stands behind it.
    return with(error.kind, error.text + " (" + whose + to_string(place) + ")", std::move(causes));
  }
  causes = behind(error, link_of(place, error.kind, std::move(what), "what it waited for failed"));
  const std::size_t times = causes.links.size() + causes.left_out - 1;
  const auto passed = times == 1 ? "passed on by " : "passed on " + std::to_string(times) + " times, at last by ";
  auto text = causes.first + " (" + passed + whose + to_string(place) + ")";
  return with(error.kind, std::move(text), std::move(causes));
}

Error stopped_by(const Error& error, std::string what, const Place& place, const std::string& why) {
  auto causes = behind(error, link_of(place, error.kind, std::move(what), why));
  const std::size_t after = causes.links.size() + causes.left_out - 1;
  const auto later = after == 1 ? "" : ", the last of " + std::to_string(after) + " that failed after the first cause";
  const auto first = causes.first;
  return with(error.kind, why + later + ": " + first, std::move(causes));
}

Error thrown_over(const Error& inner, const std::string& text) {
  auto causes = behind(inner, link_of({}, inner.kind, {}, text));
  auto line = text + ": " + causes.first;
  return with(inner.kind, std::move(line), std::move(causes));
}

Error prefixed(Error error, const std::string& before) {
  auto causes = copy_of(error);
  return with(error.kind, before + error.text, std::move(causes));
}

std::string task_called(const std::string& name) { return name.empty() ? "" : "task '" + name + "'"; }

std::string whats_of(const std::string& function, const std::string& whose) {
  return function.empty() || whose.empty() ? function + whose : function + " of " + whose;
}

Error of_task(Error error, const std::string& name) {
  if (name.empty()) return error;
  auto causes = copy_of(error);
  causes.links.front().what = whats_of(causes.links.front().what, task_called(name));
  return with(error.kind, task_called(name) + ": " + error.text, std::move(causes));
}

Error carried(const TaskError& error) { return {error.kind(), error.what(), error.causes_}; }

}  // namespace actors

TaskError::TaskError(const Error& error)
    : std::runtime_error(error.text),
      kind_(error.kind),
      causes_(error.causes ? error.causes : actors::began(error, {}, {}, error.text).causes) {}

const std::vector<Cause>& TaskError::causes() const { return causes_->links; }
std::size_t TaskError::causes_left_out() const { return causes_->left_out; }

}  // namespace paceline
