/// What docs/strategies says of names, parameters, defaults and ranges is what the table of presets says.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>

#include "algorithms/presets.h"

namespace paceline::algorithms {
namespace {

namespace fs = std::filesystem;
using Cells = std::vector<std::string>;

const fs::path kPages = PACELINE_STRATEGY_PAGES;

std::vector<std::string> lines_of(const fs::path& page) {
  std::ifstream file(page);
  EXPECT_TRUE(file) << page;
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> split(const std::string& text, const std::string& at) {
  std::vector<std::string> pieces;
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = text.find(at, begin)) != std::string::npos; begin = end + at.size())
    pieces.push_back(text.substr(begin, end - begin));
  pieces.push_back(text.substr(begin));
  return pieces;
}

/// The body of the first table after the line `heading`.
std::vector<Cells> table_after(const std::vector<std::string>& lines, const std::string& heading) {
  std::vector<Cells> rows;
  auto line = std::find(lines.begin(), lines.end(), heading);
  while (line != lines.end() && !line->starts_with("|")) {
    if (++line != lines.end() && line->starts_with("## ")) return rows;
  }
  for (; line != lines.end() && line->starts_with("|"); ++line)
    if (line->starts_with("| ")) rows.push_back(split(line->substr(2, line->size() - 4), " | "));
  if (!rows.empty()) rows.erase(rows.begin());  // The columns' names.
  return rows;
}

/// What stands between backticks.
std::vector<std::string> quoted(const std::string& text) {
  std::vector<std::string> words;
  const auto pieces = split(text, "`");
  for (std::size_t k = 1; k < pieces.size(); k += 2) words.push_back(pieces[k]);
  return words;
}

std::string before(const std::string& text, std::string_view stop) { return text.substr(0, text.find(stop)); }

/// The presets that a page is about, by its title.
std::map<std::string, fs::path> pages() {
  std::map<std::string, fs::path> found;
  for (const auto& entry : fs::directory_iterator(kPages)) {
    const auto title = lines_of(entry.path()).at(0);
    if (entry.path().filename() == "README.md" || entry.path().filename() == "composing.md") continue;
    for (const auto& name : split(title.substr(2), ", "))
      EXPECT_TRUE(found.emplace(name, entry.path()).second) << name << " has two pages";
  }
  return found;
}

/// A row of a page's table of parameters: | `name` (`preset`, ..) or name (without a name) | default | range |
struct Row {
  std::string name;
  bool bare = false;
  std::vector<std::string> presets;  ///< Empty: all of the page.
  std::string standard;
  std::string range;
};

Row read_row(const Cells& cells) {
  Row row;
  const auto names = quoted(cells.at(0));
  row.bare = cells[0].ends_with(" (without a name)");
  row.name = row.bare ? before(cells[0], " ") : names.at(0);
  if (!row.bare) row.presets.assign(names.begin() + 1, names.end());
  const auto standards = quoted(cells.at(1));
  row.standard = standards.empty() ? before(cells[1], " ") : standards[0];
  row.range = cells.at(2);
  return row;
}

/// The names and words that a page may use of a strategy: its parameters, their values, other strategies. Numbers, and
/// what is no word, mean nothing here.
bool is_known(const Preset& preset, const std::string& text) {
  const std::string word = text.substr(0, text.find_first_of("=("));
  if (std::none_of(word.begin(), word.end(), [](unsigned char c) { return std::isalpha(c); })) return true;
  if (find_preset(word) != nullptr) return true;
  return std::any_of(preset.parameters.begin(), preset.parameters.end(), [&](const Parameter& parameter) {
    return parameter.name == word || std::count(parameter.words.begin(), parameter.words.end(), word) > 0;
  });
}

/// The upper bound is no number where the workers or another parameter bound it, too.
void check_range(const Parameter& parameter, const std::string& range) {
  static const std::regex kClosed(R"(from ([0-9.]+)( to ([0-9.]+)| to |.* divides the number of workers|.*at most ))");
  static const std::regex kOpen(R"(above ([0-9.]+) and below ([0-9.]+))");
  std::smatch match;
  ASSERT_TRUE(std::regex_search(range, match, parameter.open ? kOpen : kClosed)) << range;
  EXPECT_EQ(std::stod(match[1]), parameter.least);
  if (const auto most = match[parameter.open ? 2 : 3]; most.matched) {
    EXPECT_EQ(std::stod(most), parameter.most);
  }
}

void check_row(const Preset& preset, const Parameter& parameter, const Row& row) {
  SCOPED_TRACE(row.name);
  EXPECT_EQ(row.name, parameter.name);
  EXPECT_EQ(row.bare, parameter.bare);
  EXPECT_EQ(row.standard, parameter.standard);
  const auto named = quoted(row.range);
  for (const auto word : parameter.words) {
    EXPECT_TRUE(word == parameter.standard || std::count(named.begin(), named.end(), word)) << "not named: " << word;
  }
  for (const auto& word : named) EXPECT_TRUE(is_known(preset, word)) << word;
  if (parameter.most > 0) check_range(parameter, row.range);
}

TEST(StrategyPagesTest, EveryStrategyHasOnePage) {
  const auto found = pages();
  for (const auto& preset : presets())
    EXPECT_TRUE(found.contains(std::string(preset.name)) || preset.name == "tiers") << preset.name;
  EXPECT_EQ(found.size() + 1, presets().size());  // `tiers` is in composing.md.
}

TEST(StrategyPagesTest, TablesOfParametersSayWhatIsAccepted) {
  for (const auto& [name, page] : pages()) {
    SCOPED_TRACE(name);
    const auto* preset = find_preset(name);
    ASSERT_NE(preset, nullptr);
    std::vector<Row> rows;
    for (const auto& cells : table_after(lines_of(page), "## Parameters")) {
      const auto row = read_row(cells);
      if (row.presets.empty() || std::count(row.presets.begin(), row.presets.end(), name)) rows.push_back(row);
    }
    ASSERT_EQ(rows.size(), preset->parameters.size());
    for (std::size_t k = 0; k < rows.size(); ++k) check_row(*preset, preset->parameters[k], rows[k]);
  }
}

/// | [`name`, `name`](page.md) | what is averaged | with whom | ...
TEST(StrategyPagesTest, TheTableOfAllHasEachOnceWithItsPageItsParametersAndWhatItAverages) {
  static const std::regex kLink(R"(\]\(([^#)]+))");
  std::multiset<std::string> seen;
  for (const auto& cells : table_after(lines_of(kPages / "README.md"), "## All of them")) {
    SCOPED_TRACE(cells.at(0));
    for (const auto& text : quoted(cells[0])) {
      const auto name = before(text, "(");
      const auto* preset = find_preset(name);
      ASSERT_NE(preset, nullptr) << name;
      seen.insert(name);
      for (std::size_t k = 1; k < cells.size(); ++k) {
        for (const auto& word : quoted(cells[k])) EXPECT_TRUE(is_known(*preset, word)) << word;
      }
      const auto strategy = parse_strategy(name == "tiers" ? "tiers" : text, 4);
      ASSERT_TRUE(strategy) << strategy.error().text;
      if (coordination(*strategy) != Coordination::rounds) continue;
      const auto averages = [&](Payload payload) {
        return std::any_of(strategy->tiers.begin(), strategy->tiers.end(),
                           [payload](const Tier& tier) { return tier.payload == payload; });
      };
      EXPECT_EQ(cells.at(1).find("gradients") != std::string::npos,
                averages(Payload::gradients) || strategy->warmup > 0);
      EXPECT_EQ(cells.at(1).find("models") != std::string::npos, averages(Payload::models));
    }
    std::smatch link;
    ASSERT_TRUE(std::regex_search(cells[0], link, kLink));
    EXPECT_TRUE(fs::exists(kPages / link[1].str())) << link[1];
  }
  for (const auto& preset : presets())
    EXPECT_EQ(seen.count(std::string(preset.name)), preset.name == "server" ? 2u : 1u) << preset.name;
}

}  // namespace
}  // namespace paceline::algorithms
