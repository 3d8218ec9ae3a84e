#pragma once

#include "cli/reproduce/lab.h"

namespace paceline::cli::reproduce {

// What the two files about WAGMA share: wagma.cc is about time, wagma_learning.cc about models.

std::string wagma(int group, int sync);

/// A step of ResNet-50 with a batch of 128 on a P100; an estimate.
inline constexpr double kResNetStep = .64;

/// Fig. 4's cluster: two random workers are 0.32 s late at each step. Nothing is learnt.
simulate::Job delayed(const Lab& lab, const std::string& strategy, int workers, double compute, std::uint64_t seed);

void claim_agreement(Study& study, const Lab& lab);
void claim_small_agreement(Study& study, const Lab& lab);
/// Also the study's plot.
void claim_learning(Study& study, const Lab& lab);

}  // namespace paceline::cli::reproduce
