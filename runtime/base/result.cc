#include "runtime/base/result.h"

#include <cerrno>
#include <cstring>

namespace paceline {

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::invalid: return "invalid";
    case ErrorKind::not_found: return "not_found";
    case ErrorKind::stale: return "stale";
    case ErrorKind::overloaded: return "overloaded";
    case ErrorKind::disconnected: return "disconnected";
    case ErrorKind::infeasible: return "infeasible";
    case ErrorKind::timed_out: return "timed_out";
    case ErrorKind::cancelled: return "cancelled";
    case ErrorKind::internal: return "internal";
  }
  return "unknown";
}

tl::unexpected<Error> fail_errno(std::string_view what) {
  const int code = errno;
  return fail(ErrorKind::internal, std::string(what) + ": " + std::strerror(code));
}

}  // namespace paceline
