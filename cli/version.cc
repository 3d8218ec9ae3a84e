#include <cstdio>

#include "cli/commands.h"

namespace paceline::cli {

std::string torch_version() { return PACELINE_TORCH_VERSION; }

std::string version_text() { return "paceline " PACELINE_VERSION " (libtorch " PACELINE_TORCH_VERSION ")"; }

Action add_version(Flags app) {
  app.command("version", "Print the version");
  return [] {
    std::puts(version_text().c_str());
    return kDone;
  };
}

}  // namespace paceline::cli
