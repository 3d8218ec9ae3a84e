#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <iostream>

#include "tests/sim/explorer/walk.h"

namespace paceline::explorer {

/// Walks a model that must keep its promises.
template <class Model>
void expect_kept(const Model& model) {
  const auto begin = std::chrono::steady_clock::now();
  const Walk walked = walk(model);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::cout << model.name << ": " << walked.states << " states, " << walked.ends << " ends, " << took.count() << " s"
            << std::endl;
  EXPECT_EQ(walked.violation, "") << walked.way;
  EXPECT_GT(walked.states, 100U);
  EXPECT_GT(walked.ends, 0U);
}

/// Walks one with a defect around the engines, which must be found.
template <class Case>
void expect_found(const Case& c) {
  const Walk walked = walk(c.model, c.mutation);
  std::cout << c.name << ": " << walked.states << " states, " << walked.violation << std::endl;
  EXPECT_NE(walked.violation, "") << "not found in " << walked.states << " states";
}

}  // namespace paceline::explorer
