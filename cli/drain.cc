#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cli/cluster_paths.h"
#include "cli/commands.h"
#include "runtime/base/json.h"
#include "runtime/base/read_number.h"

namespace paceline::cli {
namespace {

using nlohmann::json;

constexpr std::string_view kNode = "node-", kWorker = "worker-";

std::optional<std::int32_t> number_after(std::string_view prefix, std::string_view text) {
  if (text.substr(0, prefix.size()) != prefix) return std::nullopt;
  return read_number<std::int32_t>(text.substr(prefix.size()));
}

std::string said(const json& told) {
  constexpr const char* kSeen = ": `paceline status` shows who is there\n";
  std::string jobs;
  for (const json& job : told.value("jobs", json::array())) jobs += (jobs.empty() ? "" : ", ") + json_text(job);
  if (told.contains("worker"))
    return "worker " + json_text(told["worker"]) + " of job " + jobs + " has been asked to leave" + kSeen;
  const std::string node = "node " + json_text(told.value("node", json()));
  return (jobs.empty() ? "" : "the workers of job " + jobs + " on " + node + " have been asked to leave" + kSeen) +
         node + " is drained: no job gets workers there\n";
}

}  // namespace

Action add_drain(Flags app, Ask ask) {
  struct Given {
    std::string what;
    std::int64_t job = 0;
    std::string name;
    bool json = false;
  };
  auto flags = std::make_shared<Given>();
  Flags command = app.command("drain", "Have a worker, or all of a node, leave training jobs that go on");
  command.add("what", &flags->what, "node-1 or worker-3, as `paceline status` numbers them").required();
  command.add("--job", &flags->job, "of a worker: its job, where more than one runs");
  command.add("--name", &flags->name, std::string("of the cluster; ") + kAnyCluster);
  command.add("--json", &flags->json, "a JSON object: worker or node, and jobs");
  return [flags, ask = std::move(ask)] {
    const auto node = number_after(kNode, flags->what), worker = number_after(kWorker, flags->what);
    if (!node && !worker)
      return report(
          {ErrorKind::invalid,
           "cannot drain '" + flags->what + "': say node-1 or worker-3, with the number that `paceline status` shows"});
    if (node && flags->job != 0)
      return report({ErrorKind::invalid, "--job is for a worker: a node is drained of all its jobs"});
    const auto directory = find_any_cluster(flags->name);
    if (!directory) return report(directory.error());
    json body = node ? json{{"node", *node}} : json{{"worker", *worker}};
    if (flags->job != 0) body["job"] = flags->job;
    const auto told = ask(*directory, "drain", body);
    if (!told) return report(told.error());
    std::fputs(flags->json ? (json_text(*told) + "\n").c_str() : said(*told).c_str(), stdout);
    return kDone;
  };
}

}  // namespace paceline::cli
