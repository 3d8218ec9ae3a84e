#include "cli/stack_view.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>

#include "cli/cells.h"
#include "cli/list_view.h"
#include "cli/running.h"
#include "runtime/base/did_you_mean.h"
#include "runtime/base/json.h"

namespace paceline::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kShown = 10;

std::string who(const json& worker) {
  const auto name = cell(worker, "actor_name");
  return "worker " + cell(worker, "worker") + " on node " + cell(worker, "node") +
         (name.empty() || name == "-" ? "" : " (actor '" + name + "')");
}

template <class Texts>
std::string some_of(const Texts& texts) {
  std::string all;
  for (std::size_t i = 0; i < std::min(texts.size(), kShown); ++i) all += (i == 0 ? "" : ", ") + texts[i];
  return all + (texts.size() > kShown ? ", and " + std::to_string(texts.size() - kShown) + " more" : "");
}

Error no_such_worker(const ListRows& workers, const std::string& wanted) {
  std::vector<std::string> names;
  std::vector<std::string> all;
  for (const json& worker : workers) {
    all.push_back(who(worker));
    if (const auto name = cell(worker, "actor_name"); name != "-" && !name.empty()) names.push_back(name);
  }
  const auto meant = did_you_mean(wanted, {names.begin(), names.end()});
  return {ErrorKind::not_found, "no worker '" + wanted + "' runs" +
                                    (meant ? "; did you mean '" + std::string(*meant) + "'?" : "") +
                                    (all.empty() ? ", nor any other" : ": there are " + some_of(all)) +
                                    "; `paceline list workers` shows all"};
}

std::string machine_of(const json& status, const json& worker) {
  for (const json& node : list(status, "nodes"))
    if (cell(node, "node") == cell(worker, "node")) return cell(node, "machine");
  return "-";
}

/// "until(int)  at script.cc:7", "poll  in libc.so.6".
std::string frame_text(const StackFrame& frame) {
  std::string text = frame.function.empty() ? "?" : frame.function;
  if (!frame.file.empty()) return text + "  at " + frame.file + ":" + std::to_string(frame.line);
  if (!frame.object.empty()) text += "  in " + std::filesystem::path(frame.object).filename().string();
  return text;
}

std::string hex(std::uint64_t address) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%012llx", static_cast<unsigned long long>(address));
  return text;
}

json text_or_null(const std::string& text) { return text.empty() ? json() : json(text); }

}  // namespace

Result<json> worker_found(const json& status, const std::string& wanted, std::optional<std::int64_t> node,
                          const std::string& machine) {
  const auto workers = rows_of(Listed::workers, status, {.node = node});
  if (!workers) return tl::unexpected(workers.error());
  std::vector<const json*> found;  // A name is looked for first, as by `paceline get`.
  for (const char* field : {"actor_name", "worker", "id"}) {
    for (const json& worker : *workers)
      if (!wanted.empty() && cell(worker, field) == wanted) found.push_back(&worker);
    if (!found.empty()) break;
  }
  if (found.empty()) return tl::unexpected(no_such_worker(*workers, wanted));
  std::vector<std::string> all;
  for (const json* const worker : found) all.push_back(who(*worker));
  if (found.size() > 1)
    return fail(ErrorKind::invalid, "'" + wanted + "' may be " + some_of(all) + ": say which by its number and --node");
  const json& worker = *found.front();
  if (machine_of(status, worker) != machine)
    return fail(ErrorKind::invalid, who(worker) + " runs on another machine, or in another container: run this there");
  if (number(worker, "pid") <= 0)
    return fail(ErrorKind::not_found, who(worker) + " has no process yet: try again in a moment");
  return worker;
}

std::string stack_text(const json& worker, const std::vector<ThreadStack>& stacks) {
  const auto runs = running_text(worker);
  std::string text = who(worker) + ", process " + cell(worker, "pid") + (runs == "-" ? "" : ", runs " + runs) + "\n";
  for (const ThreadStack& stack : stacks) {
    text += "\nthread " + std::to_string(stack.thread) + (stack.name.empty() ? "" : " " + stack.name) + "\n";
    for (std::size_t i = 0; i < stack.frames.size(); ++i)
      text += "  #" + std::to_string(i) +
              (i < 10    ? "   "
               : i < 100 ? "  "
                         : " ") +
              hex(stack.frames[i].address) + "  " + frame_text(stack.frames[i]) + "\n";
    if (!stack.cut.empty()) text += "  (not all: " + stack.cut + ")\n";
  }
  return text;
}

json stack_json(const json& worker, const std::vector<ThreadStack>& stacks) {
  json threads = json::array();
  for (const ThreadStack& stack : stacks) {
    json frames = json::array();
    for (const StackFrame& frame : stack.frames)
      frames.push_back({{"address", hex(frame.address)},
                        {"function", text_or_null(frame.function)},
                        {"object", text_or_null(frame.object)},
                        {"file", text_or_null(frame.file)},
                        {"line", frame.file.empty() ? json() : json(frame.line)},
                        {"inlined", frame.inlined}});
    threads.push_back(
        {{"thread", stack.thread}, {"name", stack.name}, {"frames", frames}, {"cut", text_or_null(stack.cut)}});
  }
  json shown{{"threads", threads}};
  for (const char* field : {"id", "worker", "node", "pid", "state", "actor_name", "running"})
    shown[field] = worker.value(field, json());
  return shown;
}

}  // namespace paceline::cli
