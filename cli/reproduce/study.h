#pragma once

#include <string>
#include <vector>

#include "cli/simulate_plot.h"

namespace paceline::cli::reproduce {

enum class Method { closed_form, monte_carlo, simulation };

/// One statement of a paper, and what became of it here.
struct Claim {
  std::string text;
  Method method = Method::simulation;
  std::string paper;  ///< Its number; "-" where it states none.
  std::string ours;
  bool holds = false;
  std::string why;  ///< Setting, and what a difference comes from.
};

/// A paper's claims and one plot of them.
struct Study {
  std::string name;     ///< As on the command line.
  std::string title;    ///< The paper's.
  std::string setting;  ///< What all simulations have in common.
  std::vector<Claim> claims;
  std::string plot_in_words;
  Plot plot;
};

/// The page `name`.md, which shows `name`.svg; `command`: what made it.
std::string page_of(const Study& study, const std::string& command);
/// One line of JSON a claim.
std::string json_of(const Study& study);

}  // namespace paceline::cli::reproduce
