"""How a job ends: all workers at the same version and with the same model, on one node and on two."""
from harness import IntegrationTest, main

# A worker that is busy for 40 ms while the others' updates take 2 ms misses many of them, the last one included.
LATE = [2, 2, 2, 40]


class Endings:
    nodes = 1

    def check_all_equal(self, run, workers=4):
        finals = [[line for line in run.output(rank) if "final" in line] for rank in range(workers)]
        self.assertTrue(all(len(lines) == 1 for lines in finals), run.said())
        self.assertEqual(len({lines[0]["final"] for lines in finals}), 1, finals)
        self.assertEqual({lines[0]["updates"] for lines in finals}, {run.result()["updates"]}, finals)
        self.assertEqual(run.left(), {}, run.said())
        self.assert_nobody_left()
        return run.result()["updates"]

    def run_to_the_end(self, strategy, *flags, workers=4, **options):
        run = self.quadratic("--strategy", strategy, *flags, nodes=self.nodes, workers=workers, **options)
        return self.check_all_equal(run, workers)

    def test_a_worker_that_missed_the_last_update_gets_its_model(self):
        for strategy in ("nonblocking(batches=2)", "wagma(late=skip,grace=4ms)", "wagma(grace=4ms,sync=5)"):
            with self.subTest(strategy):
                self.assertEqual(self.run_to_the_end(strategy, updates=60, busy_ms=LATE), 60)

    def test_also_where_it_is_alone_on_its_node(self):
        self.assertEqual(self.run_to_the_end("nonblocking", workers=2, updates=60, busy_ms=[2, 40]), 60)

    def test_also_while_another_evaluates(self):
        self.assertEqual(self.run_to_the_end("nonblocking", updates=60, busy_ms=LATE, evaluate_every=10), 60)

    def test_an_evaluation_that_outlasts_the_updates_is_waited_for(self):
        # The others do not wait for it, and come to the end of the job while it runs.
        for strategy in ("nonblocking(d-psgd(ring),batches=2)", "ad-psgd"):
            with self.subTest(strategy):
                self.assertEqual(self.run_to_the_end(strategy, updates=60, sleep_ms=[2, 2, 2, 4], evaluate_every=30,
                                                     evaluate_ms=1500), 60)

    def test_one_that_asks_to_stop_ends_all_at_one_version(self):
        for strategy in ("allreduce", "local-sgd(period=4)", "wagma(sync=6)", "wagma(late=skip,sync=6)", "nonblocking(batches=2)"):
            with self.subTest(strategy):
                updates = self.run_to_the_end(strategy, updates=10**6, busy_ms=[2, 2, 2, 8], stop_rank=1, stop_update=30)
                self.assertTrue(30 < updates <= 45, updates)

    def test_a_time_limit_ends_all_at_one_version(self):
        for strategy in ("allreduce", "local-sgd(period=4)", "wagma(late=skip,sync=6)", "nonblocking(batches=2)",
                         "d-psgd(ring)", "ad-psgd", "server(async)", "noloco(period=4)"):
            with self.subTest(strategy):
                done = self.run_to_the_end(strategy, "--time-limit", "0.5s", updates=10**6, busy_ms=[2, 2, 2, 8])
                self.assertGreater(done, 0)
        self.run_to_the_end("allreduce", "--time-limit", "0.5s", workers=1, updates=10**6, busy_ms=[1])

    def test_one_worker_alone_stops_where_it_says(self):
        self.assertEqual(self.run_to_the_end("allreduce", workers=1, updates=10**6, busy_ms=[1], stop_rank=0, stop_update=30), 31)

    def test_one_whose_workers_return_early_is_not_as_if_it_had_come_to_its_end(self):
        for strategy in ("allreduce", "wagma(sync=6)", "ad-psgd"):
            with self.subTest(strategy):
                run = self.start_quadratic("--strategy", strategy, nodes=self.nodes, updates=1000, sleep_ms=[2], return_update=30)
                self.assertEqual(run.wait(30), 1, run.said())
                self.assertRegex(run.result()["failure"], r"^the job ended at update \d+ of 1000, and nobody has said why: ")

    def test_the_job_ends_where_an_evaluation_reached_the_target(self):
        run = self.quadratic("--strategy", "nonblocking", "--target", "0.1", nodes=self.nodes, updates=10**6, busy_ms=LATE,
                             evaluate_every=10)
        self.assertEqual(self.check_all_equal(run), 10, "the first evaluation is above it")
        self.assertIsNotNone(run.result()["time_to_target_s"])


class OneNode(Endings, IntegrationTest):
    pass


class TwoNodes(Endings, IntegrationTest):
    nodes = 2

    def test_who_is_late_does_not_wait_for_one_that_is_later(self):
        # Both workers of a node miss the end. The first that notices gets the last model from the other node: not what
        # its neighbour has, which is in its first update for a minute, and is left behind.
        run = self.start_quadratic("--strategy", "local-sgd(period=4,grace=5ms)", nodes=2, updates=16, sleep_ms=[2, 2, 80, 60_000])
        self.assertEqual(run.wait(30), 0, run.said())
        self.assertEqual(list(run.left()), [3], run.said())
        self.assertEqual(len({run.final(rank) for rank in range(3)}), 1)


if __name__ == "__main__":
    main(at_once=4)
