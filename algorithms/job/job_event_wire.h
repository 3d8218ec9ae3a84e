#pragma once

#include <nlohmann/json_fwd.hpp>

#include "runtime/wire/messages.capnp.h"

namespace paceline::job {

/// What a node has told of a job, as it stands in `metrics.jsonl` (docs/command-line.md, Events): made of the schema,
/// so that a field of a message is one of the file. What is not set is not there; numbers that are none are null.
nlohmann::json to_json(const wire::JobEvent::Reader& event);
nlohmann::json to_json(const wire::Progress::Reader& progress);

}  // namespace paceline::job
