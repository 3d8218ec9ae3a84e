#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "algorithms/topology/graph.h"
#include "runtime/base/result.h"

namespace paceline::algorithms {

/// Graphs of a user's own, as text: one edge "i j" a line, in a digraph "from to"; '#' begins a comment, empty lines do
/// not count.
///
///   # Four workers on a path.
///   0 1
///   1 2
///   2 3
///
/// Nodes are the ranks 0..workers-1 and each of them must be in an edge, unless there is but one. An undirected graph
/// names an edge once, in either direction, and is connected; a digraph is strongly connected. Every error is one line
/// that names the file, the line where there is one, the cause and the mend: `invalid` where the content is wrong or
/// too big, `not_found` where there is no such file.
inline constexpr std::size_t kGraphBytesMax = std::size_t{16} << 20;  ///< Checked before anything is read.
inline constexpr std::size_t kGraphEdgesMax = std::size_t{1} << 20;

/// Whether what stands for a graph is a file's name, which has a '.' or a '/', and not a graph's own.
inline bool names_graph_file(std::string_view graph) { return graph.find_first_of("./") != std::string_view::npos; }

Result<Graph> read_graph(const std::filesystem::path& file, std::int32_t workers);
Result<Digraph> read_digraph(const std::filesystem::path& file, std::int32_t workers);

/// The same for text that is already in memory; `name` is what errors call the file. Pure.
Result<Graph> parse_graph(std::string_view text, std::string_view name, std::int32_t workers);
Result<Digraph> parse_digraph(std::string_view text, std::string_view name, std::int32_t workers);

}  // namespace paceline::algorithms
