#include "runtime/observe/table.h"

#include <algorithm>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/observe/text_width.h"

namespace paceline::observe {
namespace {

/// "", "-", "–" (nothing to tell), or a sign and digits with at most one short unit behind.
bool is_number(std::string_view cell) {
  if (cell.empty() || cell == "-" || cell == "–") return true;
  std::size_t i = cell[0] == '-' || cell[0] == '+' ? 1 : 0;
  const std::size_t digits = i;
  while (i < cell.size() && ((cell[i] >= '0' && cell[i] <= '9') || cell[i] == '.' || cell[i] == ',')) ++i;
  if (i == digits) return false;
  const std::string_view unit = cell.substr(i);
  return text_width(unit) <= 6 && unit.find_first_of("0123456789") == std::string_view::npos;
}

}  // namespace

Table::Table(std::vector<std::string> head) : head_(std::move(head)) {}

void Table::add(std::vector<std::string> row) {
  PACELINE_CHECK(row.size() <= head_.size(), "a table's row has more cells than its head");
  row.resize(head_.size());
  rows_.push_back(std::move(row));
}

std::vector<std::string> Table::lines() const {
  std::vector<std::size_t> widths;
  std::vector<bool> right;
  for (std::size_t column = 0; column < head_.size(); ++column) {
    std::size_t width = text_width(head_[column]);
    bool numbers = !rows_.empty();
    for (const auto& row : rows_) {
      width = std::max(width, text_width(row[column]));
      numbers &= is_number(row[column]);
    }
    widths.push_back(width);
    right.push_back(numbers);
  }
  const auto line = [&](const std::vector<std::string>& row) {
    std::string out;
    for (std::size_t column = 0; column < row.size(); ++column) {
      const std::string space(widths[column] - text_width(row[column]), ' ');
      out += (column ? "  " : "") + (right[column] ? space + row[column] : row[column] + space);
    }
    out.erase(out.find_last_not_of(' ') + 1);
    return out;
  };
  std::vector<std::string> all{line(head_)};
  std::string rule;
  for (std::size_t column = 0; column < widths.size(); ++column) {
    if (column) rule += "  ";
    for (std::size_t i = 0; i < widths[column]; ++i) rule += "─";
  }
  all.push_back(rule);
  for (const auto& row : rows_) all.push_back(line(row));
  return all;
}

std::string Table::text() const {
  std::string all;
  for (const std::string& one : lines()) all += one + '\n';
  return all;
}

}  // namespace paceline::observe
