#include "algorithms/simulate/job_lines.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace paceline::simulate {
namespace {

void append(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  std::array<char, 40> digits{};
  out.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr);
}
void append(std::string& out, std::int64_t value) { out += std::to_string(value); }
void append(std::string& out, Rank rank) { out += std::to_string(rank.value); }
void append(std::string& out, Duration time) { append(out, seconds(time)); }

template <class Range>
void append_list(std::string& out, const Range& values) {
  out += '[';
  const char* separator = "";
  for (const auto& value : values) {
    out += std::exchange(separator, ",");
    append(out, value);
  }
  out += ']';
}
template <class T>
void append(std::string& out, const std::vector<T>& values) {
  append_list(out, values);
}
void append(std::string& out, const Members& members) { append_list(out, members); }

template <class T>
void member(std::string& out, const char* name, const T& value) {
  out += ",\"";
  out += name;
  out += "\":";
  append(out, value);
}

}  // namespace

void append_line(std::string& out, const Row& row) {
  out += "{\"worker\":" + std::to_string(row.worker.value);
  member(out, "step", row.step.value);
  member(out, "time_s", row.time);
  member(out, "model", row.model);
  out += row.fresh ? ",\"fresh\":true" : ",\"fresh\":false";
  member(out, "group", row.group);
  member(out, "weight", row.weight);
  member(out, "period", row.period);
  member(out, "batches_done", row.batches_done);
  member(out, "loss", row.loss);
  out += "}\n";
}

void append_line(std::string& out, const Summary& summary) {
  out += "{\"summary\":true";
  member(out, "model", summary.model);
  member(out, "virtual_s", summary.time);
  member(out, "messages", summary.messages);
  member(out, "bytes", summary.bytes);
  member(out, "wait_s", summary.waited);
  out += "}\n";
}

}  // namespace paceline::simulate
