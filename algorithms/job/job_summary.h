#pragma once

#include <string>
#include <vector>

#include "algorithms/job/job_record.h"

namespace paceline::job {

/// How a job ended, in a few lines for people: why, how much was done in which time, what the evaluations gave, and who
/// was lost.
std::vector<std::string> summary_of(const JobRecord& record);

}  // namespace paceline::job
