#include <cstdio>

#include "cli/commands.h"

namespace paceline::cli {

Action add_version(Flags app) {
  app.command("version", "Print the version");
  return [] {
    std::puts("paceline " PACELINE_VERSION " (libtorch " PACELINE_TORCH_VERSION ")");
    return kDone;
  };
}

}  // namespace paceline::cli
