#include <cstdio>
#include <memory>
#include <string>

#include "cli/cluster_paths.h"
#include "cli/commands.h"
#include "cli/list_view.h"
#include "cli/native/callee_names.h"
#include "cli/timeline_view.h"
#include "runtime/base/json.h"
#include "runtime/observe/atomic_file.h"
#include "runtime/observe/trace_event.h"

namespace paceline::cli {
namespace {

Result<TimelineFigures> write_to(const std::string& path, const nlohmann::json& status) {
  auto file = observe::AtomicFile::create(path);
  if (!file) return tl::unexpected(file.error());
  Result<void> written = file->write(observe::kTraceBegin);
  bool is_first = true;
  CalleeNames names;
  const auto figures = write_timeline(
      status, [&](const actors::SpanName& name) { return names.name_of(name); },
      [&](std::string_view event) {
        if (written) written = file->write(is_first ? "\n" : ",\n");
        if (written) written = file->write(event);
        is_first = false;
      });
  PACELINE_TRY(written);
  PACELINE_TRY(file->write(observe::kTraceEnd));
  PACELINE_TRY(file->commit());
  return figures;
}

}  // namespace

Action add_timeline(Flags app, Ask ask) {
  struct Given {
    std::string output = "timeline.json";
    std::string name;
    bool json = false;
  };
  auto flags = std::make_shared<Given>();
  Flags command = app.command("timeline", "Write a trace of the last tasks and calls, for Perfetto");
  command.add("--output,-o", &flags->output, "the file that is written").shows_default();
  command.add("--name", &flags->name, std::string("of the cluster; ") + kAnyCluster);
  command.add("--json", &flags->json, "a JSON object: file, calls, workers, lost, workers_left_out");
  return [flags, ask = std::move(ask)] {
    const auto directory = find_any_cluster(flags->name);
    if (!directory) return report(directory.error());
    const auto answer = ask(*directory, "status", {{"patient", true}, {"spans", "all"}});
    if (!answer) return report(answer.error());
    const auto silent = silent_nodes(Listed::workers, *answer, {});
    say_silent(silent, "workers");
    const auto figures = write_to(flags->output, *answer);
    if (!figures) return report(figures.error());
    std::fputs((flags->json ? json_text(timeline_json(flags->output, *figures)) + "\n"
                            : timeline_text(flags->output, *figures))
                   .c_str(),
               stdout);
    return silent.empty() ? kDone : kFailed;
  };
}

}  // namespace paceline::cli
