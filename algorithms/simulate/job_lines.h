#pragma once

#include <string>

#include "algorithms/simulate/job.h"

namespace paceline::simulate {

/// Appends the row as one JSON line, as docs/jobs.md lays it out. Numbers are the shortest that read back as the same
/// double; what is no number (a job that diverged) is null.
void append_line(std::string& out, const Row& row);
/// The last line.
void append_line(std::string& out, const Summary& summary);

}  // namespace paceline::simulate
