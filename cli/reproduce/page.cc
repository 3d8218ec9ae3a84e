#include <algorithm>

#include "cli/reproduce/study.h"
#include "runtime/base/check.h"
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

/// "12 hold, 3 hold by construction, .., of 20 claims".
std::string tally(const Study& study) {
  std::string text;
  for (const Verdict verdict : kVerdicts) {
    const auto count = std::count_if(study.claims.begin(), study.claims.end(),
                                     [=](const Claim& claim) { return claim.verdict() == verdict; });
    text += (text.empty() ? "" : "; ") + std::string(in_words(verdict)) + ": " + std::to_string(count);
  }
  return std::to_string(study.claims.size()) + " claims. " + text + ".";
}

std::string named(const Check& check, const std::string& text) {
  return check.name.empty() ? text : check.name + ": " + text;
}

std::string figures(const Claim& claim) {
  std::string text;
  for (const Check& check : claim.checks)
    text += (text.empty() ? "" : "; ") + named(check, check.figure.text(check.digits));
  return text.empty() ? "-" : text;
}

/// The bounds, once where they are all alike; behind them which are missed, and how.
std::string bounds(const Claim& claim) {
  const auto& checks = claim.checks;
  if (checks.empty()) return "-";
  const bool alike = std::all_of(checks.begin(), checks.end(),
                                 [&](const Check& check) { return check.bound_text() == checks[0].bound_text(); });
  std::string text = alike ? checks[0].bound_text() : "", missed;
  for (const Check& check : checks) {
    if (!alike) text += (text.empty() ? "" : "; ") + named(check, check.bound_text());
    if (check.keeps()) continue;
    const char* how = check.bound.reversed(check.figure) ? "reversed" : "missed";
    missed += "; **" + (checks.size() == 1 ? how : named(check, how)) + "**";
  }
  return text + missed;
}

}  // namespace

Claim not_tried(std::string text, std::string paper, std::string why) {
  return {std::move(text), Method::simulation, std::move(paper), {}, std::move(why)};
}

Plot plot_of(const Study& study) {
  const auto shown = std::find_if(study.claims.begin(), study.claims.end(),
                                  [&](const Claim& claim) { return claim.text.starts_with(study.plotted); });
  PACELINE_CHECK(shown != study.claims.end(), "a plot shows a claim");
  Plot plot = study.plot;
  plot.title += "; " + shown->text.substr(0, shown->text.find(':')) + ": " + in_words(shown->verdict());
  return plot;
}

std::string page_of(const Study& study, const std::string& command) {
  std::string page = "# " + study.name + ": " + study.title + "\n\n`" + command + "` wrote this page. " + tally(study) +
                     "\n\n" + study.setting + "\n\n";
  page += "| claim | how | the paper | here | bound | verdict | why |\n|---|---|---|---|---|---|---|\n";
  for (const Claim& claim : study.claims) {
    const Verdict verdict = claim.verdict();
    const std::string word = in_words(verdict);
    page += "| " + cell(claim.text) + " | " + (verdict == Verdict::not_tried ? "-" : in_words(claim.method)) + " | " +
            cell(claim.paper) + " | " + cell(figures(claim)) + " | " + cell(bounds(claim)) + " | " +
            (verdict == Verdict::does_not_hold ? "**" + word + "**" : word) + " | " + cell(claim.why) + " |\n";
  }
  return page + "\n" + study.plot_in_words + "\n\n![" + plot_of(study).title + "](" + study.name + ".svg)\n";
}

std::string json_of(const Study& study) {
  std::string lines;
  for (const Claim& claim : study.claims) {
    nlohmann::json checks = nlohmann::json::array();
    for (const Check& check : claim.checks) {
      checks.push_back({{"name", check.name},
                        {"values", check.figure.values},
                        {"bound", check.bound_text()},
                        {"keeps", check.keeps()}});
    }
    const nlohmann::json line = {{"paper", study.name},
                                 {"claim", claim.text},
                                 {"method", in_words(claim.method)},
                                 {"paper_says", claim.paper},
                                 {"verdict", in_words(claim.verdict())},
                                 {"checks", checks},
                                 {"why", claim.why}};
    lines += json_text(line) + "\n";
  }
  return lines;
}

}  // namespace paceline::cli::reproduce
