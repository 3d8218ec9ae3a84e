#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "actors/output_message.h"
#include "runtime/base/instant.h"

namespace paceline::actors {

/// Writes what a driver's workers have printed to a descriptor, on a thread of its own that begins with the first of
/// it: a terminal that takes nothing keeps neither calls nor the process's end. While it is diverted somebody else
/// takes and shows it, such as a run that shows its progress on the same terminal. All methods may be called from any
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
  /// From here on, and with what is queued, whether take() has it, or the thread writes it.
  void divert(bool diverted);
  /// What is to be shown next, while it is diverted; nothing: it has not come within `timeout`.
  std::optional<Output> take(Duration timeout);
  /// What take() gave is shown.
  void on_taken_shown(const Output& output);
  /// All is asked for (again): what was shown before is no answer.
  void expect_all();
  /// Until an Output that is `all` is shown; false: it was not within `timeout`.
  bool wait_for_all(Duration timeout);

 private:
  struct State;
  void begin();
  static void on_shown(State& state, const Output& output);
  static void run(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;
};

}  // namespace paceline::actors
