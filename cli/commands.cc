#include "cli/commands.h"

#include <cstdio>

#include "runtime/base/json.h"

namespace paceline::cli {

std::string line_of(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

int report(const Error& error) {
  std::fprintf(stderr, "paceline: %s\n", error.text.c_str());
  return error.kind == ErrorKind::invalid || error.kind == ErrorKind::not_found ? kUsage : kFailed;
}

}  // namespace paceline::cli
