#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace paceline::train {

/// What of a table in a text file is read: rows of numbers, separated by `separator`, each may be in quotes; blank
/// lines are passed over. A first line in which something is no number names the columns.
struct CsvColumns {
  std::string target{};                ///< By name, or by number from 0; empty: the last one.
  std::vector<std::string> columns{};  ///< That the target is told from, in this order; empty: all others.
  char separator = ',';
};

/// Which content a path has, as far as the file system says it.
struct FileVersion {
  std::uint64_t inode = 0;
  std::int64_t bytes = -1;
  std::int64_t written_ns = 0;

  static FileVersion of(const std::string& path);
  bool operator==(const FileVersion&) const = default;
};

struct CsvTable {
  std::int64_t rows = 0;
  std::vector<std::size_t> chosen;  ///< Numbers of the columns that are read; the target's is the last.
  std::size_t cells = 0;            ///< Of a line.
  bool has_names = false;
  FileVersion version;  ///< When its lines were counted.
};

/// Looks at the first line and counts the others. `not_found`; `invalid`: no rows, or a column that there is not.
Result<CsvTable> look_at_csv(const std::string& path, const CsvColumns& columns);

/// Reads `table.rows` rows of `table.chosen.size()` numbers into `out`, which has room for exactly these. `invalid`
/// names the line: too few or too many cells, or something that is no finite number; or says that the file is another
/// than the one whose lines were counted, when this ends at the latest.
Result<void> read_csv(const std::string& path, const CsvColumns& columns, const CsvTable& table, std::span<float> out);

}  // namespace paceline::train
