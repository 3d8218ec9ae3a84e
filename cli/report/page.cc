#include "cli/report/page.h"

#include <string_view>

#include "cli/report/assets.h"
#include "runtime/base/check.h"
#include "runtime/base/json.h"

namespace paceline::report {

namespace {

constexpr std::string_view kOpen = "{{";
constexpr std::string_view kClose = "}}";

/// In JSON '<' stands inside strings only, where it may be escaped: "</script>" would end the script element.
std::string safe_in_script(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

}  // namespace

std::string page(const nlohmann::json& data) {
  std::string_view rest = asset("page.html");
  std::string html;
  for (auto at = rest.find(kOpen); at != std::string_view::npos; at = rest.find(kOpen)) {
    const auto end = rest.find(kClose, at);
    PACELINE_CHECK(end != std::string_view::npos, "page.html opens a placeholder that it does not close");
    const std::string_view name = rest.substr(at + kOpen.size(), end - at - kOpen.size());
    html += rest.substr(0, at);
    html += name == "data" ? safe_in_script(json_text(data)) : std::string(asset(name));
    rest.remove_prefix(end + kClose.size());
  }
  return html.append(rest);
}

}  // namespace paceline::report
