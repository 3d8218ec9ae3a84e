#include "algorithms/train/csv.h"
#include "runtime/base/read_number.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <string_view>

namespace paceline::train {
namespace {

/// Without blanks around it, or the quotes.
std::string_view bare(std::string_view cell) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!cell.empty() && is_blank(cell.front())) cell.remove_prefix(1);
  while (!cell.empty() && is_blank(cell.back())) cell.remove_suffix(1);
  if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"') cell = cell.substr(1, cell.size() - 2);
  return cell;
}

void split(std::string_view line, char separator, std::vector<std::string_view>& cells) {
  cells.clear();
  while (true) {
    const std::size_t end = std::min(line.find(separator), line.size());
    cells.push_back(bare(line.substr(0, end)));
    if (end == line.size()) return;
    line.remove_prefix(end + 1);
  }
}

std::optional<float> number(std::string_view cell) {
  if (cell.starts_with('+')) cell.remove_prefix(1);
  const auto value = read_number<float>(cell);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

bool is_blank(std::string_view line) { return bare(line).empty(); }

/// By name, where there are names, else by number.
Result<std::size_t> column_named(const std::string& wanted, const std::vector<std::string_view>& first,
                                 bool has_names) {
  if (has_names) {
    const auto found = std::find(first.begin(), first.end(), wanted);
    if (found != first.end()) return static_cast<std::size_t>(found - first.begin());
  }
  const auto position = read_number<std::size_t>(wanted);
  if (position && *position < first.size()) return *position;
  std::string names;
  for (const auto& name : first) names += (names.empty() ? "" : ", ") + std::string(name);
  return fail(
      ErrorKind::invalid,
      "there is no column '" + wanted + "': " +
          (has_names ? "there are " + names : "there are " + std::to_string(first.size()) + ", from 0, without names"));
}

Result<std::vector<std::size_t>> choose(const CsvColumns& columns, const std::vector<std::string_view>& first,
                                        bool has_names) {
  std::vector<std::size_t> chosen;
  Result<std::size_t> target = first.size() - 1;
  if (!columns.target.empty()) target = column_named(columns.target, first, has_names);
  if (!target) return tl::unexpected(target.error());
  for (const std::string& name : columns.columns) {
    const auto column = column_named(name, first, has_names);
    if (!column) return tl::unexpected(column.error());
    chosen.push_back(*column);
  }
  for (std::size_t k = 0; columns.columns.empty() && k < first.size(); ++k)
    if (k != *target) chosen.push_back(k);
  if (chosen.empty()) return fail(ErrorKind::invalid, "there is one column only, which is the target");
  chosen.push_back(*target);
  return chosen;
}

}  // namespace

FileVersion FileVersion::of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  return {status.st_ino, status.st_size,
          static_cast<std::int64_t>(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec};
}

Result<CsvTable> look_at_csv(const std::string& path, const CsvColumns& columns) {
  std::ifstream file(path);
  if (!file) return fail(ErrorKind::not_found, "cannot read " + path + ": is the path right?");
  CsvTable table;
  table.version = FileVersion::of(path);
  std::vector<std::string_view> cells;
  for (std::string line; std::getline(file, line);) {
    if (is_blank(line)) continue;
    if (table.cells > 0) {
      ++table.rows;
      continue;
    }
    split(line, columns.separator, cells);
    table.cells = cells.size();
    table.has_names = !std::all_of(cells.begin(), cells.end(), [](auto cell) { return number(cell).has_value(); });
    table.rows = table.has_names ? 0 : 1;
    auto chosen = choose(columns, cells, table.has_names);
    if (!chosen) return fail(ErrorKind::invalid, path + ": " + chosen.error().text);
    table.chosen = std::move(*chosen);
  }
  if (table.rows == 0) return fail(ErrorKind::invalid, path + " has no rows of numbers");
  return table;
}

Result<void> read_csv(const std::string& path, const CsvColumns& columns, const CsvTable& table, std::span<float> out) {
  std::ifstream file(path);
  if (!file) return fail(ErrorKind::not_found, "cannot read " + path + ": is the path right?");
  const auto changed = [&] { return fail(ErrorKind::invalid, path + " has changed while it was read"); };
  std::vector<std::string_view> cells;
  std::vector<std::string> names;
  std::size_t at = 0;
  bool is_first = true;
  std::int64_t number_of_line = 0;
  for (std::string line; std::getline(file, line);) {
    ++number_of_line;
    if (is_blank(line)) continue;
    split(line, columns.separator, cells);
    const auto bad = [&](const std::string& what) {
      return fail(ErrorKind::invalid, path + ", line " + std::to_string(number_of_line) + ": " + what);
    };
    if (cells.size() != table.cells)
      return bad(std::to_string(cells.size()) + " cells, not " + std::to_string(table.cells) + " as in the first line");
    if (std::exchange(is_first, false) && table.has_names) {
      names.assign(cells.begin(), cells.end());
      continue;
    }
    if (at + table.chosen.size() > out.size()) return changed();
    for (const std::size_t column : table.chosen) {
      const auto value = number(cells[column]);
      if (!value)
        return bad("'" + std::string(cells[column]) + "' in column " +
                   (names.empty() ? std::to_string(column) : "'" + names[column] + "'") + " is no number");
      out[at++] = *value;
    }
  }
  if (at != out.size() || FileVersion::of(path) != table.version) return changed();
  return {};
}

}  // namespace paceline::train
