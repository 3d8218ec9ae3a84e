"""A slow worker is not a silent one: it is waited for, however long it takes, unless the user says otherwise. On one node
and on two."""
import os
import signal
import time

from harness import ENDLESS, IntegrationTest, in_release, main, wait_until

LONG = 6000  # ms, more than patience.
ONE_LONG_STEP = [2, 2, 2, [2, 2, LONG, 2, 2, 2]]  # Worker 3's third.


class SlowWorkers:
    nodes = 1

    def all_of(self, strategies, *flags, **options):
        """Runs of these strategies at once, to their ends."""
        runs = {strategy: self.start_quadratic("--strategy", strategy, *flags, nodes=self.nodes, **options) for strategy in strategies}
        for strategy, run in runs.items():
            self.assertEqual(run.wait(40), 0, f"{strategy}: {run.said()}")
        return runs

    def assert_all_took_part(self, runs, updates):
        for strategy, run in runs.items():
            with self.subTest(strategy):
                self.assertEqual(run.left(), {}, run.said())
                self.assertEqual(run.result()["updates"], updates)
                self.assertEqual(len({run.final(rank) for rank in range(4)}), 1, "they end with one model")
        self.assert_nobody_left()

    def test_a_step_may_take_longer_than_patience(self):
        runs = self.all_of(("allreduce", "wagma(sync=2)", "d-psgd(ring)", "server(bounded=1)"), updates=6, sleep_ms=ONE_LONG_STEP)
        self.assert_all_took_part(runs, 6)

    def test_a_worker_may_share_its_model_later_than_patience(self):
        runs = self.all_of(("allreduce", "d-psgd(ring)", "ad-psgd", "server(async)"), updates=6, sleep_ms=[2], load_ms=[0, 0, 0, LONG])
        self.assert_all_took_part(runs, 6)

    @in_release
    def test_who_waits_for_nobody_begins_without_a_worker_that_comes_later(self):
        run = self.start_quadratic("--strategy", "nonblocking(batches=4)", nodes=self.nodes, updates=ENDLESS, sleep_ms=[10],
                                   load_ms=[0, 0, 0, LONG])
        self.wait_for_update(run, 20)
        self.assertNotIn(3, run.worker_rows())
        wait_until(lambda: run.worker_rows().get(3, {}).get("samples", 0) > 0, LONG / 1000 + 5, "worker 3 takes part")
        self.end_after(run, 100)
        self.assertEqual(run.left(), {}, run.said())

    @in_release
    def test_who_is_waited_for_is_said(self):
        run = self.start_quadratic("--strategy", "allreduce", nodes=self.nodes, updates=6, sleep_ms=[2], load_ms=[0, 0, 4000, 4000])
        self.assertEqual(run.wait(30), 0, run.said())
        self.assertRegex(run.out, r"waiting for workers 2, 3 to share their models, \d s so far")

    def test_patience_bounds_also_the_living(self):
        runs = self.all_of(("allreduce", "d-psgd(ring)", "server(bounded=1)"), "--patience", "2s", updates=6, sleep_ms=ONE_LONG_STEP)
        for strategy, run in runs.items():
            with self.subTest(strategy):
                self.assertEqual(list(run.left()), [3], run.said())
                self.assertRegex(run.left()[3], r"worker 3 was waited for at update \d for \d+\.\d s, longer than patience allows")
                self.assertEqual(run.result()["lost"], [3])
        replay = self.paceline("replay", runs["allreduce"].run_directory)
        self.assertEqual(replay.code, 0, replay.said())
        self.assertIn("weights are bit-identical", replay.out)

    def test_each_strategy_may_have_a_patience_of_its_own(self):
        runs = self.all_of(("wagma(sync=2,patience=2s)", "d-psgd(ring,patience=2s)", "server(bounded=1,patience=1h)"),
                           "--patience", "4s", updates=6, sleep_ms=ONE_LONG_STEP)
        for strategy, run in runs.items():
            with self.subTest(strategy):
                self.assertEqual(list(run.left()), [] if "1h" in strategy else [3], run.said())

    def test_a_worker_that_shares_no_model_in_time_leaves(self):
        runs = self.all_of(("allreduce", "nonblocking(batches=4)", "server(async)"), "--start-limit", "2s", updates=6, sleep_ms=[2],
                           load_ms=[0, 0, 0, 4000])
        for strategy, run in runs.items():
            with self.subTest(strategy):
                self.assertEqual(list(run.left()), [3], run.said())
                self.assertIn("worker 3 leaves: it did not share its model within 2 s, see --start-limit", run.left()[3])
                self.assertEqual(run.result()["updates"], 6)
        self.assert_nobody_left(6)

    @in_release
    def test_nobody_leaves_since_an_agent_stood_still(self):
        run = self.start_quadratic("--strategy", "allreduce", nodes=self.nodes, updates=ENDLESS, sleep_ms=[4, 1000])
        self.wait_for_update(run, 2)
        for agent in self.agents():
            os.kill(agent, signal.SIGSTOP)
        time.sleep(LONG / 1000)
        for agent in self.agents():
            os.kill(agent, signal.SIGCONT)
        self.end_after(run, 2)
        self.assertEqual(run.left(), {}, run.said())


class OnOneNode(SlowWorkers, IntegrationTest):
    nodes = 1


@in_release
class OnTwoNodes(SlowWorkers, IntegrationTest):
    nodes = 2


if __name__ == "__main__":
    main(at_once=4)
