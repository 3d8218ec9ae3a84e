#include "cli/report/timeline.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "runtime/base/json.h"

namespace paceline::report {

namespace {

using nlohmann::json;

constexpr double kUpdatesShown = 16;  // In an excerpt, of the fastest worker.
constexpr int kHalvingsMax = 40;

struct Window {
  double begin_s;
  double end_s;
  bool holds(const recorded::Span& span) const { return span.begin_s < end_s && span.end_s > begin_s; }
};

const char* name_of(recorded::Activity activity) {
  return recorded::kActivities[static_cast<std::size_t>(activity)].data();
}

double microseconds(double seconds) { return std::round(seconds * 1e6) / 1e6; }

json totals_of(const recorded::Track& track) {
  json totals = json::object();
  for (const recorded::Span& span : track.spans) {
    json& total = totals[name_of(span.activity)];
    total = (total.is_null() ? 0.0 : total.get<double>()) + span.end_s - span.begin_s;
  }
  for (json& total : totals) total = microseconds(total);
  return totals;
}

json shares_of(const recorded::Track& track, double duration_s, std::size_t slices) {
  const double slice_s = duration_s / static_cast<double>(slices);
  std::array<std::vector<double>, recorded::kActivities.size()> times;
  for (const recorded::Span& span : track.spans) {
    auto& time = times[static_cast<std::size_t>(span.activity)];
    time.resize(slices);
    for (auto k = static_cast<std::size_t>(span.begin_s / slice_s); k < slices; ++k) {
      const double begin = slice_s * static_cast<double>(k);
      if (begin >= span.end_s) break;
      time[k] += std::max(0.0, std::min(span.end_s, begin + slice_s) - std::max(span.begin_s, begin));
    }
  }
  json shares = json::object();
  for (std::size_t activity = 0; activity < times.size(); ++activity) {
    json percents = json::array();
    for (const double time : times[activity]) percents.push_back(std::lround(100 * time / slice_s));
    if (!percents.empty()) shares[recorded::kActivities[activity].data()] = std::move(percents);
  }
  return shares;
}

/// From the first to the last update that was computed.
Window computing(const recorded::RunTrace& trace) {
  Window window{trace.duration_s, 0};
  for (const recorded::Track& track : trace.tracks)
    for (const recorded::Span& span : track.spans) {
      if (span.activity != recorded::Activity::compute) continue;
      window.begin_s = std::min(window.begin_s, span.begin_s);
      window.end_s = std::max(window.end_s, span.end_s);
    }
  return window.begin_s < window.end_s ? window : Window{0, trace.duration_s};
}

/// Long enough for kUpdatesShown updates of the fastest worker.
double excerpt_length(const recorded::RunTrace& trace, const Window& work) {
  std::ptrdiff_t updates = 1;
  for (const recorded::Track& track : trace.tracks) {
    updates = std::max(updates, std::count_if(track.spans.begin(), track.spans.end(), [](const recorded::Span& span) {
                         return span.activity == recorded::Activity::compute ||
                                span.activity == recorded::Activity::abandoned;
                       }));
  }
  return (work.end_s - work.begin_s) * std::min(1.0, kUpdatesShown / static_cast<double>(updates));
}

std::size_t spans_in(const recorded::RunTrace& trace, const Window& window) {
  std::ptrdiff_t count = 0;
  for (const recorded::Track& track : trace.tracks)
    count +=
        std::count_if(track.spans.begin(), track.spans.end(), [&](const recorded::Span& s) { return window.holds(s); });
  return static_cast<std::size_t>(count);
}

json excerpt(const recorded::RunTrace& trace, const char* name, Window window, std::size_t spans_max) {
  for (int k = 0; k < kHalvingsMax && spans_in(trace, window) > spans_max; ++k)
    window.end_s = (window.begin_s + window.end_s) / 2;
  json spans = json::array();
  for (std::size_t track = 0; track < trace.tracks.size(); ++track)
    for (const recorded::Span& span : trace.tracks[track].spans)
      if (window.holds(span) && spans.size() < spans_max)
        spans.push_back({track, name_of(span.activity), microseconds(span.begin_s), microseconds(span.end_s)});
  return {{"name", name},
          {"begin_s", microseconds(window.begin_s)},
          {"end_s", microseconds(window.end_s)},
          {"spans", std::move(spans)}};
}

/// Where an excerpt of this length from `begin_s` on shows work: not while an evaluation holds everybody.
double after_holds(const recorded::RunTrace& trace, double begin_s, double length) {
  const Window window{begin_s, begin_s + length};
  for (const recorded::Track& track : trace.tracks)
    for (const recorded::Span& span : track.spans)
      if (span.activity == recorded::Activity::hold && window.holds(span)) begin_s = std::max(begin_s, span.end_s);
  return begin_s + length <= trace.duration_s ? begin_s : window.begin_s;
}

json excerpts_of(const recorded::RunTrace& trace, std::size_t spans_max) {
  const Window work = computing(trace);
  const double length = excerpt_length(trace, work);
  if (3 * length >= trace.duration_s && spans_in(trace, {0, trace.duration_s}) <= spans_max)
    return json::array({excerpt(trace, "whole run", {0, trace.duration_s}, spans_max)});
  const double middle = after_holds(trace, (work.begin_s + work.end_s) / 2, length);
  return json::array({excerpt(trace, "beginning", {work.begin_s, work.begin_s + length}, spans_max),
                      excerpt(trace, "middle", {middle, middle + length}, spans_max),
                      excerpt(trace, "end", {work.end_s - length, work.end_s}, spans_max)});
}

}  // namespace

json timeline(const recorded::RunTrace& trace, const TimelineLimits& limits) {
  json tracks = json::array();
  json totals = json::array();
  json shares = json::array();
  for (const recorded::Track& track : trace.tracks) {
    tracks.push_back(track.name);
    totals.push_back(totals_of(track));
    shares.push_back(shares_of(track, trace.duration_s, limits.slices));
  }
  return {{"duration_s", microseconds(trace.duration_s)},
          {"tracks", std::move(tracks)},
          {"totals", std::move(totals)},
          {"shares", std::move(shares)},
          {"excerpts", excerpts_of(trace, limits.spans_max)}};
}

}  // namespace paceline::report
