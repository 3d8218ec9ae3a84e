#pragma once

#include <functional>

#include "runtime/base/instant.h"

namespace paceline::actors {

/// Where the coroutines of a thread go on: that thread, between other work.
class Resumer {
 public:
  virtual ~Resumer() = default;
  /// What is to be called, by any thread and once, for `go_on` to be run soon.
  virtual std::function<void()> later(std::function<void()> go_on) = 0;
  virtual void after(Duration duration, std::function<void()> go_on) = 0;
};
/// Of the calling thread; nullptr (so it begins): nothing else could run while one of its coroutines waits.
Resumer* resumer();
/// Not owned.
void set_resumer(Resumer* given);

}  // namespace paceline::actors
