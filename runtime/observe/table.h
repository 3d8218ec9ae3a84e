#pragma once

#include <string>
#include <vector>

namespace paceline::observe {

/// A table for a terminal: columns as wide as their widest cell, two spaces between them, a rule under the head. A
/// column whose cells are all numbers
/// ("12", "1.5 s", "88.1 %", "3x", "-") is aligned right, others left. UTF-8.
class Table {
 public:
  explicit Table(std::vector<std::string> head);
  /// Missing cells are empty; more cells than the head has are a programmer's error.
  void add(std::vector<std::string> row);
  /// Lines without '\n' and without spaces at their end.
  std::vector<std::string> lines() const;
  /// The lines, each with its '\n'.
  std::string text() const;

 private:
  std::vector<std::string> head_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace paceline::observe
