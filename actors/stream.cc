#include "actors/stream.h"

#include "actors/process_client.h"

namespace paceline::actors {

PendingResultPtr next_of(IncomingStream& stream) {
  auto asked = stream.next();
  process_client().tell_taken(stream);
  return asked;
}

std::uint32_t checked_ahead(int ahead) {
  if (ahead < 1)
    throw TaskError({ErrorKind::invalid, "a stream that may be " + std::to_string(ahead) +
                                             " values ahead would give none: give ahead a number from 1"});
  return static_cast<std::uint32_t>(ahead);
}

}  // namespace paceline::actors
