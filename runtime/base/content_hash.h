#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace paceline {

/// 32 hexadecimal digits: two words, each stirred by splitmix64 with every 8 bytes; no protection against forgers.
class ContentHash {
 public:
  /// Each part is separated from the next: ("ab", "c") is not ("a", "bc").
  void add(std::string_view part);
  std::string hex() const;

 private:
  friend Result<std::string> hash_of_file(const std::string& path);
  void mix(std::uint64_t word);
  /// What is left of the last word counts as zeros: whole words but at the end.
  void mix(std::string_view bytes);

  std::uint64_t low_ = 0xcbf29ce484222325ULL;
  std::uint64_t high_ = 0x9ae16a3b2f90404fULL;
};

/// Of the whole contents as one part; `not_found` if it cannot be read.
Result<std::string> hash_of_file(const std::string& path);

/// Of the names, sizes and times of writing of the files in a folder; what they hold is not read, and folders in it are
/// passed over. `not_found` if it cannot be read.
Result<std::string> hash_of_folder(const std::string& path);

}  // namespace paceline
