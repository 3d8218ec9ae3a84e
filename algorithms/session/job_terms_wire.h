#pragma once

#include "algorithms/session/job_terms.h"
#include "runtime/wire/codec.h"

namespace paceline::session {

void write(const JobTerms& terms, wire::JobTerms::Builder body);
JobTerms job_terms(const wire::JobTerms::Reader& body);

}  // namespace paceline::session
