#pragma once

#include <string>
#include <utility>
#include <vector>

namespace paceline::cli {

/// A line of a plot: (x, y) with rising x. Points whose y is no number above 0 are left out.
struct PlotLine {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

/// Lines over a linear x and a logarithmic y, with title, axes, legend; an SVG document that needs nothing else.
struct Plot {
  std::string title, x_name, y_name;
  std::vector<PlotLine> lines;

  std::string svg() const;
  /// An HTML page of the plot, with `text` below it as it is.
  std::string html(const std::string& text) const;
};

}  // namespace paceline::cli
