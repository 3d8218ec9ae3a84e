#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "cli/cluster.h"
#include "cli/commands.h"

namespace paceline::cli {

Action add_embed(Flags app) {
  app.command("embed", "Name a cluster on stdout, started if need be, and end it at the end of stdin").hidden();
  return [] {
    const auto place = find_place(std::nullopt);
    if (!place) return report(place.error());
    std::printf("%s\n", place->directory.c_str());
    std::fflush(stdout);
    char byte = 0;
    while (place->own && (::read(STDIN_FILENO, &byte, 1) > 0 || errno == EINTR)) errno = 0;
    return kDone;
  };
}

}  // namespace paceline::cli
