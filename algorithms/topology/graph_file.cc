#include "algorithms/topology/graph_file.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/base/check.h"

namespace paceline::algorithms {
namespace {

using Lists = std::vector<std::vector<std::int32_t>>;

constexpr std::string_view kBlanks = " \t\r\f\v";

/// At most 40 characters of what a file holds, fit to be printed.
std::string quoted(std::string_view text) {
  std::string shown(text.substr(0, 40));
  for (char& c : shown)
    if (c < ' ' || c > '~') c = '?';
  return "'" + shown + (text.size() > 40 ? "...'" : "'");
}

/// Takes the first word off a line; empty: there is none.
std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.size(), line.find_first_not_of(kBlanks)));
  const auto word = line.substr(0, line.find_first_of(kBlanks));
  line.remove_prefix(word.size());
  return word;
}

/// Reads the edges of one file, line by line.
class Reader {
 public:
  Reader(std::string_view name, std::int32_t workers, bool directed)
      : name_(name), workers_(workers), directed_(directed) {}

  Result<std::vector<Edge>> read(std::string_view text) {
    std::vector<Edge> edges;
    while (!text.empty()) {
      ++line_;
      const auto line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(text.size(), line.size() + 1));
      auto rest = line.substr(0, line.find('#'));
      const auto first = take_word(rest), second = take_word(rest);
      if (first.empty()) continue;
      if (second.empty() || !take_word(rest).empty())
        return bad(quoted(line) + " is no edge: write " + (directed_ ? "'from to'" : "'i j'") + ", two ranks");
      const auto a = read_rank(first);
      if (!a) return tl::unexpected(a.error());
      const auto b = read_rank(second);
      if (!b) return tl::unexpected(b.error());
      if (const auto added = check(*a, *b); !added) return tl::unexpected(added.error());
      edges.push_back({*a, *b});
      if (edges.size() > kGraphEdgesMax)
        return bad("more than " + std::to_string(kGraphEdgesMax) + " edges: use a sparser graph");
    }
    return edges;
  }

 private:
  tl::unexpected<Error> bad(const std::string& what) const {
    return fail(ErrorKind::invalid, std::string(name_) + ", line " + std::to_string(line_) + ": " + what);
  }

  Result<std::int32_t> read_rank(std::string_view word) const {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (end != word.data() + word.size() || error == std::errc::invalid_argument)
      return bad(quoted(word) + " is not a number: write a rank, 0 to " + std::to_string(workers_ - 1));
    if (error != std::errc{} || value < 0 || value >= workers_)
      return bad("there is no rank " + std::string(word.substr(0, 40)) + " among " + std::to_string(workers_) +
                 (workers_ == 1 ? " worker" : " workers") + ": ranks are 0 to " + std::to_string(workers_ - 1) +
                 ", or use more workers");
    return static_cast<std::int32_t>(value);
  }

  Result<void> check(std::int32_t a, std::int32_t b) {
    const auto edge = std::to_string(a) + " " + std::to_string(b);
    if (a == b) return bad("edge " + edge + " leads from a rank to itself: remove it, everybody keeps a share anyway");
    const bool turned = !directed_ && a > b;
    const auto key = static_cast<std::uint64_t>(turned ? b : a) << 32 | static_cast<std::uint32_t>(turned ? a : b);
    const auto [it, is_new] = first_line_.emplace(key, line_);
    if (!is_new)
      return bad("edge " + edge + " is given twice, first in line " + std::to_string(it->second) + ": remove one" +
                 (directed_ ? "" : "; edges here have no direction, 'i j' is 'j i'"));
    return {};
  }

  std::string_view name_;
  std::int32_t workers_;
  bool directed_;
  std::int64_t line_ = 0;
  std::unordered_map<std::uint64_t, std::int64_t> first_line_;  // Of each edge.
};

/// "3, 4, 5 and 7 more" of what is false in `reached`; empty if all are reached.
std::string missing(const std::vector<bool>& reached) {
  constexpr int kNamed = 8;
  std::string text;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < reached.size(); ++i)
    if (!reached[i] && ++count <= kNamed) text += (count > 1 ? ", " : "") + std::to_string(i);
  return count > kNamed ? text + " and " + std::to_string(count - kNamed) + " more" : text;
}

/// From whom each node hears.
Lists turned(const Lists& out) {
  Lists in(out.size());
  for (std::size_t from = 0; from < out.size(); ++from)
    for (const std::int32_t to : out[from]) in[static_cast<std::size_t>(to)].push_back(static_cast<std::int32_t>(from));
  return in;
}

/// Fewer nodes than workers: the ranks that no edge names.
Result<void> check_all_named(const std::vector<Edge>& edges, std::string_view name, std::int32_t workers) {
  if (workers == 1) return {};
  std::vector<bool> named(static_cast<std::size_t>(workers));
  for (const Edge& edge : edges)
    named[static_cast<std::size_t>(edge.a)] = named[static_cast<std::size_t>(edge.b)] = true;
  const auto count = std::count(named.begin(), named.end(), true);
  if (count == workers) return {};
  return fail(ErrorKind::invalid, std::string(name) + ": names " + std::to_string(count) + " of the " +
                                      std::to_string(workers) + " workers, in no edge is " + missing(named) +
                                      ": add edges, or use fewer workers");
}

Result<std::string> content_of(const std::filesystem::path& file) {
  const auto name = file.string();
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (status.type() == std::filesystem::file_type::not_found)
    return fail(ErrorKind::not_found, name + ": there is no such file: name one with an edge 'i j' a line");
  if (status.type() != std::filesystem::file_type::regular)
    return fail(ErrorKind::invalid, name + ": not a file that can be read: name one with an edge 'i j' a line");
  const auto size = std::filesystem::file_size(file, error);
  const auto too_big = [&] {
    return fail(ErrorKind::invalid, name + ": bigger than " + std::to_string(kGraphBytesMax >> 20) +
                                        " MiB, the most that is read: use a sparser graph");
  };
  if (!error && size > kGraphBytesMax) return too_big();
  std::ifstream in(file, std::ios::binary);
  std::string text(error ? 0 : size + 1, '\0');  // One more, to see that it did not grow.
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (error || in.bad() || !in.is_open() || static_cast<std::uintmax_t>(in.gcount()) != size)
    return fail(ErrorKind::invalid, name + ": cannot be read: check its permissions, and that nobody writes it");
  text.resize(size);
  return text;
}

}  // namespace

Result<Graph> parse_graph(std::string_view text, std::string_view name, std::int32_t workers) {
  PACELINE_CHECK(workers >= 1, "a job has at least one worker");
  auto edges = Reader(name, workers, /*directed=*/false).read(text);
  if (!edges) return tl::unexpected(std::move(edges).error());
  PACELINE_TRY(check_all_named(*edges, name, workers));
  Graph graph{.nodes = workers, .edges = std::move(*edges)};
  if (const auto lost = missing(reached_from_0(neighbours_of(graph))); !lost.empty())
    return fail(ErrorKind::invalid, std::string(name) + ": not connected, from 0 no path leads to " + lost +
                                        ": add an edge between the parts");
  return graph;
}

Result<Digraph> parse_digraph(std::string_view text, std::string_view name, std::int32_t workers) {
  PACELINE_CHECK(workers >= 1, "a job has at least one worker");
  const auto edges = Reader(name, workers, /*directed=*/true).read(text);
  if (!edges) return tl::unexpected(edges.error());
  PACELINE_TRY(check_all_named(*edges, name, workers));
  Digraph graph{.out = Lists(static_cast<std::size_t>(workers))};
  for (const Edge& edge : *edges) graph.out[static_cast<std::size_t>(edge.a)].push_back(edge.b);
  for (auto& list : graph.out) std::sort(list.begin(), list.end());
  const auto problem = [&](const char* what, const std::string& lost) {
    return fail(ErrorKind::invalid, std::string(name) + ": not strongly connected, " + what + lost +
                                        ": add an edge, so that what one worker sends comes to all");
  };
  if (const auto lost = missing(reached_from_0(graph.out)); !lost.empty())
    return problem("from 0 no path leads to ", lost);
  if (const auto lost = missing(reached_from_0(turned(graph.out))); !lost.empty())
    return problem("no path leads to 0 from ", lost);
  return graph;
}

Result<Graph> read_graph(const std::filesystem::path& file, std::int32_t workers) {
  const auto text = content_of(file);
  if (!text) return tl::unexpected(text.error());
  return parse_graph(*text, file.string(), workers);
}

Result<Digraph> read_digraph(const std::filesystem::path& file, std::int32_t workers) {
  const auto text = content_of(file);
  if (!text) return tl::unexpected(text.error());
  return parse_digraph(*text, file.string(), workers);
}

}  // namespace paceline::algorithms
