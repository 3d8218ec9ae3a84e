#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "actors/spans/span_reader.h"

namespace paceline::cli {

/// What a callee is called; empty: unknown.
using NameOf = std::function<std::string(const actors::SpanName&)>;

/// In the head's answer to `status` with `workers` and `running`: each worker, and each row of `tasks`, gets `running`,
/// what it runs, in place of the memory that its agent gives. Pure, if `name_of` is.
void tell_running(nlohmann::json& status, const NameOf& name_of);

/// What an agent has copied of a worker's memory: `head`, `names` and, of calls that are over, `over`, in base64. Pure.
actors::ReadSpans spans_in(const nlohmann::json& copy);

/// "2 square, until" of a row's `running`, without parameters; "-".
std::string running_text(const nlohmann::json& row);

/// "square" of "square(int)".
std::string without_parameters(std::string name);

}  // namespace paceline::cli
