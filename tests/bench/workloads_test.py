#!/usr/bin/env python3
"""What the page of the uneven workloads concludes from runs."""
import json
import os
import unittest

import workloads
import workloads_page as sut


def run(strategy, seed=1, pace=100.0, evaluations=((1.0, 10, 0.1), (2.0, 20, 0.5), (3.0, 30, 0.9)), workload="translation"):
    return {"workload": workload, "strategy": strategy, "rate": 2e-3, "seed": seed, "workers": 4, "samples_per_s": pace, "updates": evaluations[-1][1],
            "train_s": evaluations[-1][0], "wait_s": 1.0, "evaluations": [list(e) for e in evaluations]}


def never(strategy, **more):
    return run(strategy, evaluations=((2.0, 10, 0.1), (6.0, 30, 0.2)), **more)


class Workloads(unittest.TestCase):
    def runs(self, *runs):
        return sut.Runs(list(runs), "translation", 0.9)

    def test_workers_share_cores_until_they_are_done(self):
        self.assertAlmostEqual(sut.makespan([1, 2, 3, 4], cores=4), 4)
        self.assertAlmostEqual(sut.makespan([1, 1, 1, 1], cores=2), 2)
        self.assertAlmostEqual(sut.makespan([4, 1, 1, 1], cores=2), 2 + 3)  # Two cores' worth of 4 in 2 s, then one alone.

    def test_the_ceiling_is_1_where_all_take_as_long_and_the_longest_over_the_mean_with_cores_for_all(self):
        self.assertAlmostEqual(sut.ceiling([[3, 3, 3, 3]], cores=2), 1)
        self.assertAlmostEqual(sut.ceiling([[1, 1, 1, 5]], cores=4), 5 / 2)

    def test_a_speed_holds_with_four_fifths_of_the_papers_gain_in_the_mean_and_faster_in_every_seed(self):
        def verdict(*paces):
            of = [run(sut.WAGMA, seed, pace) for seed, pace in enumerate(paces)] + [run(sut.LOCAL, seed, 100) for seed in range(len(paces))]
            return sut.speed_claim(self.runs(*of), "claim", sut.LOCAL, paper=1.4)[4]
        self.assertEqual(verdict(115, 150), "holds")
        self.assertEqual(verdict(113, 150), "**does not hold**")
        self.assertEqual(verdict(99, 190), "**does not hold**")

    def test_who_never_reaches_the_target_is_shown_and_bounds_the_ratio(self):
        quick, slow = run(sut.WAGMA), never(sut.LOCAL)
        self.assertEqual(self.runs(quick, slow).sooner(sut.WAGMA, sut.LOCAL), [(2.0, "≥")])
        self.assertEqual(self.runs(quick, slow).sooner(sut.LOCAL, sut.WAGMA), [(0.5, "≤")])
        self.assertEqual(sut.speed_claim(self.runs(quick, slow), "claim", sut.LOCAL, paper=1.4)[-1], "holds")
        own_misses = self.runs(never(sut.WAGMA), run(sut.LOCAL))
        self.assertEqual(sut.speed_claim(own_misses, "claim", sut.LOCAL, paper=0.1)[-1], "**does not hold**")
        table = sut.results_table(self.runs(slow))
        self.assertIn("**not reached** in 1 of 1", table)

    def test_scores_at_equal_time_are_taken_when_the_first_run_has_ended(self):
        runs = self.runs(run("allreduce"), run("ad-psgd", evaluations=((1.0, 10, 0.3), (2.5, 20, 0.7))))
        self.assertEqual(runs.at_equal_time("allreduce"), [0.5])
        self.assertEqual(runs.at_equal_time("ad-psgd"), [0.7])

    def test_the_rate_is_the_one_with_the_fewest_updates_and_one_that_misses_is_worse(self):
        early, late = run("x"), run("x", evaluations=((1.0, 20, 0.2), (2.0, 40, 0.95)))
        self.assertEqual(min((never("x"), late, early), key=lambda r: sut.rank_of_rate(r, 0.9)), early)
        late["rate"], early["rate"] = 1e-3, 4e-3
        self.assertEqual(sut.best_rates([late, early, never("y")], "translation", 0.9), {"x": 4e-3, "y": 2e-3})

    def test_rates_are_tried_beyond_an_edge_that_is_best(self):
        def beyond(*updates):
            of = [run("y", evaluations=((1.0, updates[i], 0.95),)) | {"rate": 2e-3 * 2**i} for i in range(len(updates))]
            return sut.rate_beyond(of, "translation", "y", 0.9)
        self.assertEqual(beyond(10, 20, 30, 40), 1e-3)
        self.assertEqual(beyond(40, 30, 20, 10), 32e-3)
        self.assertIsNone(beyond(40, 10, 20, 30))
        self.assertIsNone(beyond(10, 20, 30, 40, 50, 60, 70))

    def test_a_rate_that_diverged_is_shown_and_never_the_best(self):
        diverged = {"workload": "translation", "strategy": "y", "rate": 1e-3, "seed": 11, "evaluations": []}
        self.assertEqual(sut.best_rates([diverged, never("y")], "translation", 0.9), {"y": 2e-3})
        table = sut.rates_table([diverged, never("y")], {"translation": {"strategies": ["y"], "target": 0.9}})
        self.assertIn("0.001: diverged; 0.002: not reached", table)

    def test_what_is_drawn_can_miss_its_bounds(self):
        def verdicts(workload, updates):
            return [row[-1] for row in sut.drawn_rows(workload, updates)]
        self.assertEqual(verdicts("reinforcement", [[1.72 / 50, 1.8 / 50, 1.9 / 50, 20 / 50]]), [True, True, True])
        self.assertEqual(verdicts("reinforcement", [[1.8 / 50, 2.5 / 50, 3 / 50, 5 / 50]]), [False, False, False])
        self.assertEqual(verdicts("translation", [[320.0] * 4]), [False, False])

    def test_an_order_of_scores_that_one_seed_contradicts_is_none(self):
        def verdicts(*scores_of_wagma):
            def ends(strategy, seed, score):
                return run(strategy, seed, evaluations=((1.0, 10, score),))
            of = [ends(strategy, seed, score if strategy == sut.WAGMA else 0.3) for seed, score in enumerate(scores_of_wagma) for strategy in (sut.WAGMA, *sut.OTHERS)]
            return [holds for claim, _, _, holds in sut.order_claims(self.runs(*of), self.runs(*of)) if "highest score" in claim]
        self.assertEqual(verdicts(0.4, 0.4), [True, True])
        self.assertEqual(verdicts(0.9, 0.2), [False, False])

    def test_every_claim_of_speed_names_a_strategy_that_is_run(self):
        for workload, _, other, _ in sut.SPEEDS:
            self.assertIn(other, workloads.WORKLOADS[workload]["strategies"])

    def test_the_page_follows_from_the_kept_figures(self):
        results = os.path.join(workloads.ROOT, "docs", "results")
        with open(os.path.join(results, "workloads.json"), encoding="utf-8") as kept, open(os.path.join(results, "workloads.md"), encoding="utf-8") as page:
            self.assertEqual(sut.page(json.load(kept), workloads.WORKLOADS).splitlines(), page.read().splitlines())

    def test_the_page_of_equal_runs_says_that_nothing_is_quicker(self):
        rows = [run(strategy, seed, workload=name) for name, settings in workloads.WORKLOADS.items() for strategy in settings["strategies"] for seed in (1, 2)]
        for row in rows:
            row["drawn"] = [[320.0] * 4] if row["workload"] == "translation" else [[0.036] * 8]
        data = {"machine": {"cores": 2, "model": "m", "load": 0.0}, "runs": rows, "rates": rows, "batch_times": [0.01, 0.02] * 4}
        page = sut.page(data, workloads.WORKLOADS)
        for _, claim, _, _ in sut.SPEEDS:
            line, = [line for line in page.splitlines() if claim in line]
            self.assertEqual(line.count("**does not hold**"), 2)


if __name__ == "__main__":
    unittest.main()
