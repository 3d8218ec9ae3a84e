#include "actors/map.h"

#include <numeric>
#include <utility>

#include "actors/causes.h"

namespace paceline::actors {
namespace {

std::size_t at_least_one(std::size_t most) {
  if (most == 0) throw TaskError({ErrorKind::invalid, "in_flight is 0: no task could ever be under way"});
  return most;
}

}  // namespace

InFlight::InFlight(std::size_t most) : results_(at_least_one(most)), free_(most), gathering_(most) {
  std::iota(free_.rbegin(), free_.rend(), std::size_t{0});
}

InFlight::~InFlight() {
  for (const Place& place : results_)
    if (place.result && !place.result->ready()) (void)process_client().cancel(place.result, false);
}

void InFlight::add(std::size_t index, PendingResultPtr result) {
  const std::size_t place = free_.back();
  free_.pop_back();
  results_[place] = {index, std::move(result)};
  gathering_.add(place, *results_[place].result);
}

void InFlight::hear() {
  for (const std::size_t place : gathering_.take()) arrived_.push_back(place);
}

bool InFlight::some_arrived() {
  if (arrived_.empty()) hear();
  return !arrived_.empty();
}

InFlight::Arrived InFlight::take(bool says_which) {
  if (!some_arrived()) {
    const Place* oldest = nullptr;  // It cannot go on for ever without any of them.
    for (const Place& place : results_)
      if (place.result && (oldest == nullptr || place.index < oldest->index)) oldest = &place;
    (void)gathering_.wait(1, std::nullopt, oldest->result->task());
  }
  hear();
  const auto failed = [this](std::size_t place) { return !results_[place].result->wait().has_value(); };
  if (failed(arrived_.back())) {  // Others may have, too: the first of them is what is said.
    for (std::size_t& place : arrived_)
      if (failed(place) && results_[place].index < results_[arrived_.back()].index) std::swap(place, arrived_.back());
  }
  const std::size_t place = arrived_.back();
  arrived_.pop_back();
  free_.push_back(place);
  Arrived one{results_[place].index, std::move(results_[place].result)};
  if (const auto& value = one.result->wait(); !value) {
    if (!says_which) throw TaskError(value.error());
    throw TaskError(prefixed(value.error(), "element " + std::to_string(one.index) + ": "));
  }
  return one;
}

}  // namespace paceline::actors
