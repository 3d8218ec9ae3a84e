"""The page of benchmarks: what is missed is said so, page and data belong together, and which run of the grid of learning rates is next."""
import contextlib
import io
import math
import os
import re
import tempfile
import unittest

from measure import averaging, bounds, page, programs, rates
from measure.store import Store, summary
from measure.table import FIGURES, Value


def fault_text(store, text):
    return "\n".join(bounds.faults(store, text))


class PageTest(unittest.TestCase):
    def setUp(self):
        self.store = Store()
        with open(page.PAGE, encoding="utf-8") as file:
            self.text = page.rendered(file.read(), self.store)

    def exit_status(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".md", encoding="utf-8") as file, contextlib.redirect_stdout(io.StringIO()):
            file.write(text)
            file.flush()
            return bounds.check(self.store, file.name)

    def test_a_page_written_from_its_data_passes(self):
        self.assertEqual(bounds.faults(self.store, self.text), [])
        self.assertEqual(self.exit_status(self.text), 0)

    def test_a_miss_that_is_not_marked_fails(self):
        self.store.data["measured"]["10"]["status"]["median"] = 101
        self.assertIn("a missed bound is not marked as missed", fault_text(self.store, self.text))
        self.assertEqual(self.exit_status(self.text), 1)
        self.assertEqual(self.exit_status(page.rendered(self.text, self.store)), 0)

    def test_a_mark_that_was_taken_out_fails(self):
        self.store.data["measured"]["10"]["status"]["median"] = 101
        marked = page.rendered(self.text, self.store)
        self.assertEqual(self.exit_status(marked.replace("| **missed** |", "| holds |", 1)), 1)

    def test_another_number_than_the_data_fails(self):
        other, found = re.subn(r"(\| memory a node \| .* \|) [0-9.]+ MB \|", r"\1 1.0 MB |", self.text)
        self.assertEqual(found, 1)
        self.assertIn("the page says", fault_text(self.store, other))

    def test_a_row_that_is_left_out_fails(self):
        rows = self.text.splitlines(keepends=True)
        status, = [row for row in rows if "| status |" in row]
        self.assertEqual(self.exit_status(self.text.replace(status, "")), 1)

    def test_a_block_that_is_left_out_fails(self):
        self.assertIn("blocks", fault_text(self.store, self.text.replace("<!-- missed: written by figures.py -->", "")))

    def test_a_value_that_no_figure_has_fails(self):
        self.store.record(10, {"statsu": [1.0]})
        self.assertIn("10 'statsu'", fault_text(self.store, self.text))

    def test_what_is_recorded_is_what_the_page_shows(self):
        self.store.record(9, {"unchanged": [1.7, 1.6, 1.9]})
        row, = [line for line in page.rendered(self.text, self.store).splitlines() if "script unchanged" in line and line.startswith("| 9")]
        self.assertIn("| 1.70 s (1.60 to 1.90, 3) | **missed** |", row)

    def test_a_store_keeps_what_it_is_given(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "data.json")
            self.store.path = path
            self.store.record(9, {"edited": [6.0]})
            self.store.save()
            self.assertEqual(Store(path).data, self.store.data)

    def test_figures_are_numbered_without_a_gap_and_keys_are_unique(self):
        self.assertEqual([figure.number for figure in FIGURES], list(range(1, len(FIGURES) + 1)))
        for figure in FIGURES:
            self.assertEqual(len({value.key for value in figure.values}), len(figure.values), figure.number)


class ValueTest(unittest.TestCase):
    def verdict(self, comparison, bound, median):
        return Value("key", "label", comparison, bound).verdict(median if median is None else summary([median]))

    def test_a_bound_holds_up_to_itself(self):
        for comparison, bound, median, verdict in (("≥", 3, 3, "holds"), ("≥", 3, 2.99, "missed"), ("≤", 3, 3, "holds"), ("≤", 3, 3.01, "missed"),
                                                   ("<", 3, 3, "missed"), ("<", 3, 2.99, "holds"), ("≥", 3, None, "not measured")):
            self.assertEqual(self.verdict(comparison, bound, median), verdict, (comparison, bound, median))

    def test_without_a_bound_there_is_no_verdict(self):
        self.assertEqual(self.verdict("", 0, 1), "")


def run(strategy, rate, seed, time_s):
    return {"strategy": strategy, "rate": rate, "seed": seed, "diverged": False, "time_to_target_s": time_s, "updates": 500, "train_s": time_s or 90.0,
            "samples_per_s": 5000.0, "test_accuracy": 0.88 if time_s else 0.8, "date": "2026-01-01", "load": 0}


def measured_grid(time_of):
    """All runs that the plan asks for, with these times."""
    runs = []
    while todo := rates.next_run(runs):
        runs.append(run(*todo, time_of(*todo)))
    return runs


def best_at(best, per_step=10.0):
    """A time that grows with the distance from a strategy's best rate."""
    return lambda strategy, rate, seed: 10 + per_step * abs(rates.RATES.index(rate) - rates.RATES.index(best[strategy])) + 0.1 * seed


BEST = {"allreduce": 0.06, "nonblocking": 0.1, "wagma": 0.03, "wagma(late=skip)": 0.2, "local-sgd": 0.15}


class RatesTest(unittest.TestCase):
    def test_the_whole_grid_comes_first_and_strategies_take_turns(self):
        runs = measured_grid(best_at(BEST))
        first = runs[:len(rates.RATES) * len(rates.STRATEGIES)]
        self.assertEqual({run["seed"] for run in first}, {1})
        self.assertEqual(len({(run["strategy"], run["rate"]) for run in first}), len(first))
        self.assertEqual(tuple(run["strategy"] for run in first[:len(rates.STRATEGIES)]), rates.STRATEGIES)

    def test_five_seeds_at_the_best_two_beside_it_one_elsewhere(self):
        runs = measured_grid(best_at(BEST))
        for strategy, best in BEST.items():
            self.assertEqual(rates.best_rate(runs, strategy), best)
            for rate in rates.RATES:
                distance = abs(rates.RATES.index(rate) - rates.RATES.index(best))
                self.assertEqual(len(rates.runs_of(runs, strategy, rate)), {0: 5, 1: 2}.get(distance, 1), (strategy, rate))

    def test_a_neighbour_that_turns_out_better_gets_the_seeds(self):
        def time_of(strategy, rate, seed):
            lucky = strategy == "allreduce" and rate == 0.1 and seed == 1
            return 1.0 if lucky else best_at(BEST)(strategy, rate, seed)
        runs = measured_grid(time_of)
        self.assertEqual(rates.best_rate(runs, "allreduce"), 0.06)
        self.assertEqual(len(rates.runs_of(runs, "allreduce", 0.06)), 5)

    def test_what_was_done_is_not_done_again(self):
        runs = measured_grid(best_at(BEST))
        self.assertEqual(len({(run["strategy"], run["rate"], run["seed"]) for run in runs}), len(runs))
        self.assertEqual(rates.next_run(runs[:-1]), (runs[-1]["strategy"], runs[-1]["rate"], runs[-1]["seed"]))

    def test_who_does_not_reach_the_target_is_not_the_best(self):
        runs = [run("allreduce", 0.03, 1, 5.0), run("allreduce", 0.03, 2, None), run("allreduce", 0.03, 3, None), run("allreduce", 0.06, 1, 50.0)]
        self.assertTrue(math.isinf(rates.median_time(runs, "allreduce", 0.03)))
        self.assertEqual(rates.best_rate(runs, "allreduce"), 0.06)
        self.assertIsNone(rates.best_rate(runs, "wagma"))

    def test_a_strategy_that_never_reaches_it_ends_the_plan_all_the_same(self):
        runs = measured_grid(lambda strategy, rate, seed: None if strategy == "wagma" else best_at(BEST)(strategy, rate, seed))
        self.assertEqual(len([one for one in runs if one["strategy"] == "wagma"]), len(rates.RATES))
        self.assertIn("| `wagma` | none reached it |", rates.section(runs))

    def test_best_is_held_against_best_seed_by_seed(self):
        runs = [run("allreduce", 0.06, seed, 40.0 + seed) for seed in (1, 2)] + [run("allreduce", 0.1, 1, 80.0)]
        runs += [run("nonblocking", 0.1, seed, 10.0) for seed in (1, 2, 3)]
        self.assertEqual(rates.sooner(runs, "nonblocking"), [4.1, 4.2])

    def test_who_diverged_is_in_the_table_and_nowhere_else(self):
        diverged = {"diverged": True, **dict.fromkeys(rates.KEPT)}
        runs = [run("allreduce", 0.06, 1, 40.0), run("allreduce", 0.2, 1, None) | diverged,
                run("allreduce", 0.1, 1, 30.0), run("allreduce", 0.1, 2, 32.0), run("allreduce", 0.1, 3, None) | diverged]
        self.assertEqual(rates.best_rate(runs, "allreduce"), 0.1)
        part = rates.section(runs)
        self.assertIn("| `allreduce` | 0.1 | 31.0 s (30.0 to 32.0), 2 of 3 seeds |", part)
        self.assertIn("| 0 of 1 reached it, 1 diverged |", part)
        self.assertIn("| 2 of 3 reached it, 1 diverged, 88.0 % at the end |", part)

    def test_the_section_says_what_is_missing(self):
        self.assertEqual(rates.section([]), "Not measured.\n")
        part = rates.section([run("allreduce", 0.06, 1, 40.0), run("allreduce", 0.1, 1, None)])
        self.assertIn("| `allreduce` | 0.06 | 40.0 s (40.0 to 40.0), 1 of 1 seeds |", part)
        self.assertIn("0 of 1 reached it, 80.0 % at the end", part)
        self.assertIn("The grid is not complete.", part)
        self.assertNotIn("not complete", rates.section(measured_grid(best_at(BEST))))


class ProgramsTest(unittest.TestCase):
    def test_more_processes_than_cores_are_not_bound(self):
        self.assertIn("bound to cores", averaging.settings(2, 2))
        self.assertNotIn("bound to cores", averaging.settings(2, 4))

    def test_failures_and_successes_are_told_apart(self):
        printed = ("[ RUN      ] A.Passes\\n[       OK ] A.Passes (0 ms)\\n[ RUN      ] B/C.Fails/0\\n"
                   "[  FAILED  ] B/C.Fails/0, where GetParam() = x (3 ms)\\n[  FAILED  ] 1 test, listed below:\\n[  FAILED  ] B/C.Fails/0, where GetParam() = x\\n")
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "tests")
            with open(program, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/sh\nprintf '{printed}'\nexit 1\n")
            os.chmod(program, 0o755)
            names, failed, _ = programs.googletest(program)
        self.assertEqual((names, failed), (["A.Passes", "B/C.Fails/0"], ["B/C.Fails/0"]))


if __name__ == "__main__":
    unittest.main()
