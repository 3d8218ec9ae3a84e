#pragma once

namespace paceline::job {

/// Counts Ctrl-C (SIGINT) and SIGTERM while it lives; the second one ends the process at once with exit status 130.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  bool requested() const;
};

}  // namespace paceline::job
