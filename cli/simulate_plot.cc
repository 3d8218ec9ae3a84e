#include "cli/simulate_plot.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/observe/format.h"

namespace paceline::cli {

namespace {

constexpr double kWidth = 860, kHeight = 460, kLeft = 80, kRight = 24, kTop = 48, kBottom = 64, kLegendRow = 20;
constexpr double kDecadesMax = 12;    // Below the highest.
constexpr double kLetter = 7.2;       // The most that a letter of the legend is wide, on average.
constexpr double kTitleLetter = 9.6;  // The same of the title.

// Okabe and Ito's colours, which people with colour blindness can tell apart; the second round is dashed. In the dark
// the blue is lighter, and black is white.
constexpr std::size_t kColors = 7;
constexpr const char* kStyle = R"(<style>
.paper{fill:#fff} text{fill:#222} .axis{stroke:#444} .grid{stroke:#e4e4e4} .line{fill:none;stroke-width:2}
.c0{stroke:#0072b2} .c1{stroke:#d55e00} .c2{stroke:#009e73} .c3{stroke:#cc79a7} .c4{stroke:#e69f00} .c5{stroke:#56b4e9} .c6{stroke:#000}
@media (prefers-color-scheme: dark) {
.paper{fill:#14171a} text{fill:#e6e8ea} .axis{stroke:#a2abb4} .grid{stroke:#2b3036} .c0{stroke:#4a9fe0} .c6{stroke:#fff}
}
</style>
)";

using observe::format;

std::string escaped(const std::string& text) {
  std::string result;
  for (char c : text) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '"')
      result += "&quot;";
    else
      result += c;
  }
  return result;
}

std::string label(double x, double y, const char* attributes, const std::string& text) {
  return format("<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes) + escaped(text) + "</text>\n";
}
std::string rule(double x1, double y1, double x2, double y2, const char* what) {
  return format("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n", x1, y1, x2, y2, what);
}

bool is_shown(double y) { return std::isfinite(y) && y > 0; }

/// From values to places: x linear, y in whole decades.
struct Scale {
  double x_most = 0;
  int least = 0, most = 1;  // Powers of ten.

  explicit Scale(const std::vector<PlotLine>& lines) {
    double low = 0, high = 0;
    for (const PlotLine& line : lines) {
      for (const auto& [at, value] : line.points) {
        x_most = std::max(x_most, at);
        if (!is_shown(value)) continue;
        low = low > 0 ? std::min(low, value) : value;
        high = std::max(high, value);
      }
    }
    if (x_most <= 0) x_most = 1;
    if (high <= 0) return;
    most = static_cast<int>(std::ceil(std::log10(high)));
    least = std::max(static_cast<int>(std::floor(std::log10(low))), most - static_cast<int>(kDecadesMax));
    if (least == most) --least;
  }

  double x(double value) const { return kLeft + (kWidth - kLeft - kRight) * value / x_most; }
  double y(double value) const {
    const double share = (std::log10(value) - least) / (most - least);
    return kHeight - kBottom - (kHeight - kTop - kBottom) * std::clamp(share, 0.0, 1.0);
  }
  /// 1, 2 or 5 times a power of ten, so that about six fit.
  double x_step() const {
    const double rough = x_most / 6, power = std::pow(10, std::floor(std::log10(rough)));
    for (double factor : {1.0, 2.0, 5.0}) {
      if (factor * power >= rough) return factor * power;
    }
    return 10 * power;
  }
};

std::string axes(const Scale& scale) {
  std::string svg;
  const double bottom = kHeight - kBottom;
  for (int power = scale.least; power <= scale.most; ++power) {
    const double y = scale.y(std::pow(10, power));
    svg += rule(kLeft, y, kWidth - kRight, y, "grid");
    svg +=
        format("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">10<tspan dy=\"-5\" font-size=\"9\">%d</tspan></text>\n",
               kLeft - 8, y + 4, power);
  }
  const double step = scale.x_step();
  for (double at = 0; at <= scale.x_most * 1.0001; at += step) {
    svg += rule(scale.x(at), bottom, scale.x(at), bottom + 5, "axis");
    svg += label(scale.x(at), bottom + 20, "text-anchor=\"middle\"", format("%.6g", at));
  }
  return svg + rule(kLeft, kTop, kLeft, bottom, "axis") + rule(kLeft, bottom, kWidth - kRight, bottom, "axis");
}

std::string style_of(std::size_t k) {
  const char* dashes[] = {"", " stroke-dasharray=\"7 4\"", " stroke-dasharray=\"2 3\""};
  return format("class=\"line c%zu\"", k % kColors) + dashes[k / kColors % std::size(dashes)];
}

std::string curve(const Scale& scale, const PlotLine& line, std::size_t k) {
  std::string points;
  for (const auto& [at, value] : line.points) {
    if (is_shown(value)) points += format("%.1f,%.1f ", scale.x(at), scale.y(value));
  }
  return "<polyline " + style_of(k) + " points=\"" + points + "\"/>\n";
}

}  // namespace

std::string Plot::svg() const {
  const Scale scale(lines);
  const double height = kHeight + kLegendRow * static_cast<double>(lines.size()) + 8;
  double width = std::max(kWidth, kLeft + kTitleLetter * static_cast<double>(title.size()) + kRight);
  for (const PlotLine& line : lines)
    width = std::max(width, kLeft + 42 + kLetter * static_cast<double>(line.name.size()) + kRight);
  std::string svg = format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
      "height=\"%.0f\" font-family=\"sans-serif\" font-size=\"12\">\n",
      width, height, width, height);
  svg +=
      "<title>" + escaped(title) + "</title>\n" + kStyle + "<rect width=\"100%\" height=\"100%\" class=\"paper\"/>\n";
  svg += label(kLeft, 28, "font-size=\"16\" font-weight=\"bold\"", title) + axes(scale);
  const double middle = (kTop + kHeight - kBottom) / 2;
  svg += label((kLeft + kWidth - kRight) / 2, kHeight - kBottom + 42, "text-anchor=\"middle\"", x_name);
  svg += label(20, middle, format("text-anchor=\"middle\" transform=\"rotate(-90 20 %.1f)\"", middle).c_str(), y_name);
  for (std::size_t k = 0; k < lines.size(); ++k) {
    const double y = kHeight + kLegendRow * static_cast<double>(k);
    svg += curve(scale, lines[k], k);
    svg += format("<path d=\"M%.1f %.1fh32\" ", kLeft, y) + style_of(k) + "/>\n";
    svg += label(kLeft + 42, y + 4, "", lines[k].name);
  }
  return svg + "</svg>\n";
}

std::string Plot::html(const std::string& text) const {
  // The table keeps its lines, what is said after it may be wrapped.
  const auto table_end = std::min(text.find("\n\n"), text.size());
  return "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
         "content=\"width=device-width\"><title>" +
         escaped(title) +
         "</title>\n<style>:root{color-scheme:light dark} body{font-family:sans-serif;margin:24px;max-width:1100px} "
         "svg{max-width:100%;height:auto} pre{overflow-x:auto} .said{white-space:pre-wrap;overflow-wrap:anywhere}\n"
         "@media (prefers-color-scheme: dark){body{background:#14171a;color:#e6e8ea}}</style></head>\n<body>\n" +
         svg() + "<pre>" + escaped(text.substr(0, table_end)) + "</pre>\n<pre class=\"said\">" +
         escaped(text.substr(table_end)) + "</pre>\n</body></html>\n";
}

}  // namespace paceline::cli
