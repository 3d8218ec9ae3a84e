#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "actors/output_message.h"
#include "runtime/base/instant.h"

namespace paceline::actors {

/// Writes what a driver's workers have printed to a descriptor, on a thread of its own that begins with the first of
/// it: a terminal that takes nothing keeps neither calls nor the process's end. All methods may be called from any
/// thread.
///
/// Bound: agents send no more than what shown() has been told of and a fixed number of bytes.
class OutputPrinter {
 public:
  /// On the printing thread, perhaps after this object's end: must not block.
  using Shown = std::function<void(NodeId node, std::uint32_t bytes)>;

  OutputPrinter(int descriptor, Shown shown);
  /// Does not wait: who is in the middle of writing is left to it.
  ~OutputPrinter();
  OutputPrinter(const OutputPrinter&) = delete;
  OutputPrinter& operator=(const OutputPrinter&) = delete;

  void show(Output output);
  /// Until an Output that is `all` is written; false: it was not within `timeout`.
  bool wait_for_all(Duration timeout);

 private:
  struct State;
  static void run(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;
};

}  // namespace paceline::actors
