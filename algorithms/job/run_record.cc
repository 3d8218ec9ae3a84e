#include "algorithms/job/run_record.h"

#include <unistd.h>

#include <chrono>

#include "actors/process_client.h"
#include "runtime/observe/format.h"

namespace paceline::job {

using nlohmann::json;

json environment_record() {
  json record;
  for (const char* name :
       {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_CORETYPE", "GLIBC_TUNABLES", "PACELINE_DATA"}) {
    const auto value = actors::environment(name);
    record[name] = value.empty() ? json(nullptr) : json(value);
  }
  record["workers"] = "OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1, GLIBC_TUNABLES as set by the fork server";
  record["cores"] = sysconf(_SC_NPROCESSORS_ONLN);
  return record;
}

json program_record(const actors::Executable& executable, json& options, int run) {
  json record{{"path", executable.path},
              {"build", executable.build},
              {"arguments", executable.args},
              {"directory", executable.directory},
              {"run", run},
              {"begun", observe::utc_text(std::chrono::system_clock::now())}};
  if (const auto script = options.find("script"); script != options.end()) {
    record["script"] = *script;
    options.erase(script);
  }
  return record;
}

}  // namespace paceline::job
