#include <algorithm>

#include "cli/reproduce/study.h"
#include "runtime/base/json.h"

namespace paceline::cli::reproduce {
namespace {

const char* in_words(Method method) {
  switch (method) {
    case Method::closed_form: return "closed form";
    case Method::monte_carlo: return "Monte Carlo";
    case Method::simulation: break;
  }
  return "simulation";
}

std::string cell(const std::string& text) {
  std::string result;
  for (char c : text) result += c == '|' ? "\\|" : std::string(1, c);
  return result;
}

}  // namespace

std::string page_of(const Study& study, const std::string& command) {
  const auto held = std::count_if(study.claims.begin(), study.claims.end(), [](const Claim& c) { return c.holds; });
  std::string page =
      "# " + study.name + ": " + study.title + "\n\n`" + command + "` wrote this page. " + std::to_string(held) +
      " of " + std::to_string(study.claims.size()) +
      " claims hold here. What the paper shows with real models on real data sets is not part of it.\n\n" +
      study.setting + "\n\n";
  page += "| claim | how | the paper | here | holds | why |\n|---|---|---|---|---|---|\n";
  for (const Claim& claim : study.claims) {
    page += "| " + cell(claim.text) + " | " + in_words(claim.method) + " | " + cell(claim.paper) + " | " +
            cell(claim.ours) + " | " + (claim.holds ? "yes" : "**no**") + " | " + cell(claim.why) + " |\n";
  }
  return page + "\n" + study.plot_in_words + "\n\n![" + study.plot.title + "](" + study.name + ".svg)\n";
}

std::string json_of(const Study& study) {
  std::string lines;
  for (const Claim& claim : study.claims) {
    const nlohmann::json line = {{"paper", study.name},       {"claim", claim.text}, {"method", in_words(claim.method)},
                                 {"paper_says", claim.paper}, {"ours", claim.ours},  {"holds", claim.holds},
                                 {"why", claim.why}};
    lines += line.dump() + "\n";
  }
  return lines;
}

}  // namespace paceline::cli::reproduce
