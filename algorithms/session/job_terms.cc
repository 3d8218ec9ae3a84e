#include "algorithms/session/job_terms.h"

#include <algorithm>

namespace paceline::session {
namespace {

/// Calls `field(name, value)` for each that stands in JSON as it is: written and read by one list.
template <class Terms, class Field>
void each(Terms& terms, const Field& field) {
  field("workers", terms.workers);
  field("bodies", terms.bodies);
  field("buffers", terms.buffers);
  field("first_update", terms.first_update);
  field("updates", terms.updates);
  field("next_round", terms.next_round);
  field("seed", terms.seed);
  field("node", terms.node);
  field("trace", terms.trace);
  field("gradients_until", terms.payloads.gradients_until);
  field("models_every", terms.payloads.models_every);
  field("outer_momentum", terms.outer.momentum);
  field("outer_rate", terms.outer.rate);
  field("outer_nesterov", terms.outer.nesterov);
  field("loss_window", terms.loss_window);
  field("publishes_every_iteration", terms.publishes_every);
  field("abandons", terms.abandons);
  field("own_pace", terms.own_pace);
  field("shows_start", terms.shows_start);
  field("finishes", terms.finishes);
  field("steps_apart", terms.steps_apart);
  field("accumulates", terms.accumulates);
  field("weighs_by_samples", terms.weighs_by_samples);
  field("rotate_shards", terms.rotate_shards);
  field("reset_momentum", terms.reset_momentum);
  field("lr_may_decay", terms.lr_may_decay);
}

}  // namespace

nlohmann::json to_json(const JobTerms& terms) {
  nlohmann::json json{{"outer", static_cast<int>(terms.outer.kind)}, {"time_limit_s", seconds(terms.time_limit)}};
  each(terms, [&](const char* name, const auto& value) { json[name] = value; });
  return json;
}

JobTerms job_terms(const nlohmann::json& json) {
  JobTerms terms;
  each(terms, [&](const char* name, auto& value) { value = json.value(name, value); });
  terms.outer.kind = static_cast<algorithms::Outer::Kind>(json.value("outer", 0));
  terms.time_limit = from_seconds(json.value("time_limit_s", 0.0));
  terms.loss_window = std::max<std::size_t>(1, terms.loss_window);
  return terms;
}

}  // namespace paceline::session
