#pragma once

#include <string>
#include <vector>

#include "cli/reproduce/verdict.h"
#include "cli/simulate_plot.h"

namespace paceline::cli::reproduce {

enum class Method { closed_form, monte_carlo, simulation };

/// One statement of a paper, and what became of it here.
struct Claim {
  std::string text;
  Method method = Method::simulation;
  std::string paper;          ///< Its number; "-" where it states none.
  std::vector<Check> checks;  ///< None: not tried.
  std::string why;            ///< Setting, and what a difference comes from.
  Evidence evidence = Evidence::measured;

  Verdict verdict() const { return verdict_of(checks, evidence); }
};

Claim not_tried(std::string text, std::string paper, std::string why);

/// A paper's claims and one plot of them.
struct Study {
  std::string name;     ///< As on the command line.
  std::string title;    ///< The paper's.
  std::string setting;  ///< What all simulations have in common.
  std::vector<Claim> claims;
  std::string plot_in_words;
  Plot plot;
  std::string plotted;  ///< How the text of the claim begins that the plot shows.
};

/// The study's plot, whose title ends with the verdict on what it shows.
Plot plot_of(const Study& study);
/// The page `name`.md, which shows `name`.svg; `command`: what made it.
std::string page_of(const Study& study, const std::string& command);
/// One line of JSON a claim.
std::string json_of(const Study& study);

}  // namespace paceline::cli::reproduce
