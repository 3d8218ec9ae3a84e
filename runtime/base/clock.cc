#include "runtime/base/clock.h"

#include "runtime/base/steady_now.h"

namespace paceline {
namespace {

class MachineClock final : public Clock {
 public:
  Instant now() const override { return steady_now(); }
};

}  // namespace

const Clock& machine_clock() {
  static const MachineClock clock;
  return clock;
}

}  // namespace paceline
