#pragma once

#include <memory>
#include <optional>

#include "actors/client.h"
#include "actors/output_printer.h"
#include "runtime/base/instant.h"

namespace paceline::actors {

/// Whether a driver of this environment shows what its workers print: PACELINE_OUTPUT=off says no.
bool shows_output();

/// Where a driver's workers log: in the folder of the run that `paceline run` has begun, or of one of its own in runs/
/// of the working directory, which is made when somebody prints something. Nothing is said where none can be made: then
/// logs are the agent's, and go with the cluster.
void set_logs(Executable& executable);

/// Shows on stderr what the workers of a driver print, from its connection to its end, or has somebody else show it.
class DriverOutput {
 public:
  /// To be called before workers are asked for. The client's executable says whether there is anything to be shown.
  explicit DriverOutput(Client& client);
  /// The driver has another connection from here on.
  void change(Client& client);

  /// Shows what has been printed so far; for a second at most, since nobody may be reading it.
  void finish();

  /// While it is diverted nothing goes to stderr: who takes it shows it. What nobody has taken by then goes there
  /// afterwards.
  void divert(bool diverted);
  /// Nothing: there is none within `timeout`, or it is not shown at all.
  std::optional<Output> take(Duration timeout);
  /// What take() gave: more may come.
  void on_taken_shown(const Output& output);
  /// Asks all nodes for what has been printed so far; the last of it is `all`. False: nobody answers.
  bool ask_for_all();

 private:
  struct Way;

  Client* client_;
  std::shared_ptr<Way> way_;                ///< Where nodes hear what is shown.
  std::shared_ptr<OutputPrinter> printer_;  ///< Null: nothing is shown.
};

}  // namespace paceline::actors
