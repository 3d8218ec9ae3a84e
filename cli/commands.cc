#include "cli/commands.h"

#include <cstdio>

namespace paceline::cli {

int report(const Error& error) {
  std::fprintf(stderr, "paceline: %s\n", error.text.c_str());
  return error.kind == ErrorKind::invalid || error.kind == ErrorKind::not_found ? kUsage : kFailed;
}

}  // namespace paceline::cli
