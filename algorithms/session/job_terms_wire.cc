#include "algorithms/session/job_terms_wire.h"

#include <algorithm>

#include <capnp/dynamic.h>

namespace paceline::session {
namespace {

using capnp::DynamicStruct;

template <class Value>
void set(DynamicStruct::Builder fields, const char* name, const Value& value) {
  fields.set(name, value);
}
void set(DynamicStruct::Builder fields, const char* name, const std::string& value) { fields.set(name, value.c_str()); }

template <class Value>
void get(DynamicStruct::Reader fields, const char* name, Value& value) {
  value = fields.get(name).as<Value>();
}
void get(DynamicStruct::Reader fields, const char* name, std::string& value) {
  value = wire::raw(fields.get(name).as<capnp::Text>());
}

/// Calls `field(name, value)` for each that stands in the message as it is: written and read by one list.
template <class Terms, class Field>
void each(Terms& terms, const Field& field) {
  field("workers", terms.workers);
  field("bodies", terms.bodies);
  field("buffers", terms.buffers);
  field("firstUpdate", terms.first_update);
  field("updates", terms.updates);
  field("nextRound", terms.next_round);
  field("seed", terms.seed);
  field("node", terms.node);
  field("trace", terms.trace);
  field("gradientsUntil", terms.payloads.gradients_until);
  field("modelsEvery", terms.payloads.models_every);
  field("outerMomentum", terms.outer.momentum);
  field("outerRate", terms.outer.rate);
  field("outerNesterov", terms.outer.nesterov);
  field("lossWindow", terms.loss_window);
  field("publishesEvery", terms.publishes_every);
  field("abandons", terms.abandons);
  field("ownPace", terms.own_pace);
  field("showsStart", terms.shows_start);
  field("finishes", terms.finishes);
  field("stepsApart", terms.steps_apart);
  field("accumulates", terms.accumulates);
  field("weighsBySamples", terms.weighs_by_samples);
  field("rotateShards", terms.rotate_shards);
  field("resetMomentum", terms.reset_momentum);
  field("lrMayDecay", terms.lr_may_decay);
  field("lrFactor", terms.lr_factor);
  field("returns", terms.returns);
  field("job", terms.job);
  field("goesOn", terms.goes_on);
  field("place", terms.place);
}

}  // namespace

void write(const JobTerms& terms, wire::JobTerms::Builder body) {
  const DynamicStruct::Builder fields = body;
  each(terms, [&](const char* name, const auto& value) { set(fields, name, value); });
  body.setOuter(static_cast<std::int32_t>(terms.outer.kind));
  body.setTimeLimitS(seconds(terms.time_limit));
}

JobTerms job_terms(const wire::JobTerms::Reader& body) {
  JobTerms terms;
  const DynamicStruct::Reader fields = body;
  each(terms, [&](const char* name, auto& value) { get(fields, name, value); });
  terms.outer.kind = static_cast<algorithms::Outer::Kind>(body.getOuter());
  terms.time_limit = from_seconds(body.getTimeLimitS());
  terms.loss_window = std::max<std::size_t>(1, terms.loss_window);
  return terms;
}

}  // namespace paceline::session
