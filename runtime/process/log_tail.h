#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

namespace paceline::process {

/// The last lines (at most `lines_max`, 2 KiB) that a log file got since it was `from` bytes long, joined by " | " for
/// an error's one line, as readable() has them. "" if there are none or the file cannot be read.
std::string log_tail(const std::string& path, off_t from, std::size_t lines_max);

/// Bytes of a file, 0 if there is none.
off_t file_size(const std::string& path);

}  // namespace paceline::process
