#pragma once

namespace paceline::explorer {

/// A defect of a shell, a transport or a plan around the core. `harmless` ones a core must bear.
enum class Mutation {
  none,
  // The node's shell
  drops_a_seal,
  answers_a_seal_unpinned,
  does_not_pin,
  reuses_a_pinned_buffer,
  calls_all_fresh,
  gives_a_gradient_twice,
  executes_twice,
  reports_before_it_reduces,
  retains_nothing,
  drops_a_merge,
  merges_with_an_older_sum,
  merges_with_the_newest_sum,
  loses_a_late_gradient,
  loses_a_verdict,
  gives_a_verdict_twice,
  gives_a_verdict_to_another,
  forgets_to_abandon,
  forgets_the_dead,
  ignores_deadlines,
  is_impatient,
  // The network
  loses_a_partial,
  mixes_up_partials,
  loses_activations,
  loses_an_arrival,
  loses_a_count,
  counts_twice,
  hides_who_left,
  passes_nothing_on,
  // The plan
  skips_a_version_on_one_agent,
  groups_differ_on_one_agent,
  // Harmless
  duplicates_partials,
  duplicates_activations,
};

}  // namespace paceline::explorer
