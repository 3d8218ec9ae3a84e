#!/usr/bin/env python3
"""What docs/recovery.md concludes from the lines of workers, and that it says what was measured."""
import os
import unittest

import recovery
import recovery_page as sut
from recovery_lines import History, Kill, figures

STEP = 0.1


def done(worker, pid, step, time, samples=32):
    """A step that was computed and committed."""
    return [{"event": "computed", "worker": worker, "pid": pid, "step": step, "time": time - 0.01, "samples": 32},
            {"event": "committed", "worker": worker, "pid": pid, "step": step, "time": time, "samples": samples}]


def steps(worker, pid, first, begin, end):
    """One each 0.1 s."""
    number = round((end - begin) / STEP)
    return [line for i in range(number) for line in done(worker, pid, first + i, begin + STEP * i)]


class Lines(unittest.TestCase):
    def test_a_worker_that_comes_back_while_another_goes_on(self):
        lines = steps(0, 1, 0, 0.0, 10.0) + steps(1, 2, 0, 0.0, 3.0) + steps(1, 3, 50, 5.0, 10.0)
        rows, job = figures(lines, [Kill(2.95, 1, 2)], 0.0)
        self.assertAlmostEqual(job["mean_step_s"], STEP)
        self.assertAlmostEqual(rows[0]["back_s"], 2.05)
        self.assertAlmostEqual(rows[0]["longest_steps"], 1)
        self.assertAlmostEqual(rows[0]["lost_s"], (5.0 - 2.9 - STEP) / 2)  # Of two workers.
        self.assertEqual(rows[0]["lost_samples"], 0)

    def test_all_begin_again_three_steps_before(self):
        lines = [line for worker in (0, 1) for line in steps(worker, worker, 0, 0.0, 3.0) + steps(worker, 10 + worker, 27, 5.0, 10.0)]
        rows, _ = figures(lines, [Kill(2.95, 1, 1)], 0.0)
        self.assertAlmostEqual(rows[0]["longest_s"], 2.4)  # From the last step that stays.
        self.assertAlmostEqual(rows[0]["lost_s"], 2.3)
        self.assertEqual(rows[0]["lost_samples"], 2 * 3 * 32)

    def test_what_is_computed_and_not_committed_is_lost(self):
        lines = steps(0, 1, 0, 0.0, 3.0)
        given_up = [line for line in done(0, 1, 30, 3.0) if line["event"] == "computed"]
        self.assertEqual(History(lines + given_up + done(0, 1, 30, 3.2)).lost, [(2.99, 32)])

    def test_what_a_healing_worker_computes_is_lost_and_its_next_step_is_the_first_that_counts(self):
        lines = steps(0, 1, 0, 0.0, 1.0) + done(0, 2, 20, 2.0, samples=0) + done(0, 2, 21, 2.1)
        history = History(lines)
        self.assertEqual(history.back(Kill(0.95, 0, 1)).time, 2.1)
        self.assertEqual([samples for _, samples in history.lost], [32])

    def test_a_batch_that_nobody_committed_before_the_job_ended_is_no_loss(self):
        self.assertEqual(History(steps(0, 1, 0, 0.0, 1.0) + done(0, 1, 10, 1.0)[:1]).lost, [])


class Page(unittest.TestCase):
    def test_the_99th_of_few_is_the_largest(self):
        self.assertEqual(sut.quantile([3, 1, 2], 0.99), 3)
        self.assertEqual(sut.quantile(list(range(1, 101)), 0.99), 99)
        self.assertEqual(sut.quantile([3, 1, 2], 0.5), 2)

    def test_a_kill_after_which_a_job_was_over_is_told(self):
        kill = {"back_s": 1.0, "longest_s": 1.0, "longest_steps": 2.0, "lost_s": 0.5, "lost_samples": 32}
        cells = sut.row("x", [{"kills": [kill, kill], "median_step_s": 0.1}, {"kills": [kill], "median_step_s": 0.1, "stuck": "..."}])
        self.assertEqual(cells[1], "3, and 1 after which it was over")

    def test_the_page_follows_from_the_kept_figures(self):
        with open(recovery.PAGE, encoding="utf-8") as page:
            self.assertEqual(sut.page(recovery.load(recovery.RAW)).splitlines(), page.read().splitlines())

    def test_rows_with_few_kills_are_named(self):
        jobs = [{"system": system.name, "kills": [{}] * (sut.ENOUGH - (system.name == "torchft"))} for system in recovery.SYSTEMS]
        self.assertEqual(sut.few_text(jobs), " **Fewer than 20 kills: torchft.**")
        self.assertEqual(sut.few_text([*jobs, {"system": "torchft", "kills": [], "stuck": "..."}]), "")


class Files(unittest.TestCase):
    def test_the_installed_versions_are_pinned(self):
        with open(os.path.join(recovery.ROOT, "tests", "bench", "peers", "recovery", "setup.sh"), encoding="utf-8") as script:
            text = script.read()
        versions = recovery.load(recovery.RAW)["versions"]
        for pin in (f"torch=={versions['torch']}", f"torchft=={versions['torchft']}", f"ray[train]=={versions['ray']}"):
            self.assertIn(pin, text)


if __name__ == "__main__":
    unittest.main()
