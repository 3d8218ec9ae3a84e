#pragma once

#include <fstream>
#include <string>

#include "runtime/base/json.h"
#include "runtime/observe/observe_test_support.h"

namespace paceline::recorded {

/// A folder that a test makes into a run directory.
class RunDirectoryTest : public observe::FolderTest {
 protected:
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder + "/" + name) << text; }

  /// Node 0's line: worker 0 has processed `samples`, the others nothing.
  static std::string progress(int update, double clock_s, double loss, int samples, int period = 8) {
    return json_text(nlohmann::json{
               {"event", "progress"},
               {"node", 0},
               {"update", update},
               {"updates", 100},
               {"clock_s", clock_s},
               {"loss", loss},
               {"period", period},
               {"counters", {{"global_averages", update}, {"staleness", {update, 1}}}},
               {"workers", {{{"rank", 0}, {"samples", samples}, {"wait_s", 0.5}, {"state", "compute"}}}}}) +
           "\n";
  }
  static std::string evaluated(int update, double clock_s, double value) {
    return json_text(
               nlohmann::json{{"event", "evaluated"}, {"update", update}, {"clock_s", clock_s}, {"value", value}}) +
           "\n";
  }

  /// Two updates, one evaluation, no result yet.
  void write_small_run() const {
    write("configuration.json",
          R"({"options": {"strategy": "wagma", "workers": 2, "target": 0.8}, "environment": {}})");
    write("metrics.jsonl", R"({"event": "started", "updates": 100, "first": 0})"
                           "\n" +
                               progress(1, 1, 2.5, 100) + evaluated(1, 1.5, 0.6) + progress(2, 2, 2.0, 200));
  }
};

}  // namespace paceline::recorded
