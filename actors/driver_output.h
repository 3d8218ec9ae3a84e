#pragma once

#include <memory>

#include "actors/client.h"
#include "actors/output_printer.h"

namespace paceline::actors {

/// Whether a driver of this environment shows what its workers print: PACELINE_OUTPUT=off says no.
bool shows_output();

/// Where a driver's workers log: in the folder of the run that `paceline run` has begun, or of one of its own in runs/
/// of the working directory, which is made when somebody prints something. Nothing is said where none can be made: then
/// logs are the agent's, and go with the cluster.
void set_logs(Executable& executable);

/// Shows on stderr what the workers of a driver print, from its connection to its end. Not for several threads.
class DriverOutput {
 public:
  /// To be called before workers are asked for. The client's executable says whether there is anything to be shown.
  explicit DriverOutput(Client& client);

  /// Shows what has been printed so far; for a second at most, since nobody may be reading it.
  void finish();

 private:
  Client& client_;
  std::shared_ptr<OutputPrinter> printer_;  ///< Null: nothing is shown.
};

}  // namespace paceline::actors
