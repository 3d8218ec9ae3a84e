#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "runtime/base/json.h"

namespace paceline::cli {

std::string torch_version() { return PACELINE_TORCH_VERSION; }

std::string version_text() { return "paceline " PACELINE_VERSION " (libtorch " PACELINE_TORCH_VERSION ")"; }

Action add_version(Flags app) {
  auto as_json = std::make_shared<bool>(false);
  app.command("version", "Print the version").add("--json", as_json.get(), "as JSON");
  return [as_json] {
    const nlohmann::json version{{"paceline", PACELINE_VERSION}, {"libtorch", torch_version()}};
    std::puts(*as_json ? json_text(version).c_str() : version_text().c_str());
    return kDone;
  };
}

}  // namespace paceline::cli
