"""What happens when workers are frozen, on one node and on two. Measures time."""
import os
import re
import signal
import statistics
import time

from harness import ENDLESS, IntegrationTest, in_release, is_alive, main, wait_until

PATIENCE = 5.0  # Seconds that others wait for a silent worker.


class Freezes:
    nodes = 1

    def start_long(self, strategy, sleep_ms=4, workers=4):
        return self.start_quadratic("--strategy", strategy, nodes=self.nodes, workers=workers, updates=ENDLESS,
                                    sleep_ms=[sleep_ms])

    def test_allreduce_goes_on_without_a_worker_that_is_frozen_too_long(self):
        run = self.start_long("allreduce")
        self.wait_for_update(run, 40)
        pid = self.signal_worker(run, 2, signal.SIGSTOP)
        left, = wait_until(run.left, PATIENCE + 4, "the frozen worker leaves").values()
        silent = re.match(r"worker 2 was silent for (\d+\.\d) s while the others waited for it at update \d+", left)
        self.assertTrue(silent, left)
        self.assertGreaterEqual(float(silent[1]), PATIENCE)
        self.assertLess(float(silent[1]), PATIENCE + 0.5)
        self.end_after(run, 200)
        self.assertFalse(is_alive(pid), "its node ends a worker that left")
        self.assertEqual(run.result()["returned"], {"2": 1}, "another process came in its place")

    def test_who_misses_an_update_goes_on_where_all_that_have_its_model_are_frozen(self):
        """Worker 0 makes updates alone, which worker 1 misses, and is frozen with the only model of the newest. Once in
        some ten runs worker 1 has just taken that model: then it misses nothing, and there is another run."""
        words = []
        for _ in range(5):
            run = self.start_quadratic("--strategy", "nonblocking(batches=2)", nodes=self.nodes, workers=2, updates=ENDLESS,
                                       sleep_ms=[2, 0], busy_ms=[0, 60], fail="freeze_in_step", fail_rank=0, fail_update=40)
            self.wait_for_update(run, 40)
            self.wait_for_update(run, 60, timeout=20)
            words = [event["text"] for event in run.metrics() if event["event"] == "warning"]
            self.assertEqual(run.left(), {}, run.said())
            os.kill(self.worker_pid(run, 0), signal.SIGCONT)
            self.end_after(run, 40)
            self.assertEqual(run.final(0), run.final(1))
            if words:
                break
        self.assertEqual(len(words), 1, words)
        self.assertRegex(words[0], r"worker 1 missed update \d+, and who has its model is frozen or gone")

    def check_freeze(self, strategy, workers, sleep_ms):
        """A worker is frozen for a while, five times: the others go on at their pace, and it comes back. Phases with and
        without it alternate, so that load of the machine is in both."""
        run = self.start_long(strategy, sleep_ms, workers)
        self.wait_for_update(run, 40)
        frozen, others = workers - 1, range(workers - 1)
        slower, waited = [], []
        rows = self.rows_from_now(run)
        for _ in range(5):
            before, usual, rows = self.pace(run, others, rows)
            self.signal_worker(run, frozen, signal.SIGSTOP)
            stopped = rows[frozen]["step"]
            during, share, rows = self.pace(run, others, rows)
            slower.append(during / before)
            waited.append(share - usual)
            self.assertLess(rows[frozen]["step"], stopped + 0.5 * (rows[0]["step"] - stopped), "it was not frozen")
            self.assertEqual(run.left(), {}, run.said())
            self.signal_worker(run, frozen, signal.SIGCONT)
            there = rows[0]["step"]
            wait_until(lambda there=there: self.rows_from_now(run)[frozen]["step"] >= there, 10,
                       f"the frozen worker comes back\n{run.said()}")
            rows = run.worker_rows()
        self.assertLessEqual(statistics.median(slower), 1.1, f"steps of the others, of those before: {slower}")
        self.assertLessEqual(statistics.median(waited), 0.05, f"shares of time that the others waited more: {waited}")
        self.assertEqual(run.left(), {}, run.said())
        os.killpg(run.process.pid, signal.SIGINT)
        self.assertEqual(run.wait(10), 130, run.said())

    def pace(self, run, ranks, first):
        """Of the slowest of these workers since the rows `first`, as the record tells it: seconds a step, the share of
        them that it waits; and the rows now."""
        time.sleep(2.0)  # Long enough that load of the machine is in it as in any other.
        last = self.rows_from_now(run)
        clock = {rank: last[rank]["clock_s"] - first[rank]["clock_s"] for rank in ranks}
        return (max(clock[rank] / (last[rank]["step"] - first[rank]["step"]) for rank in ranks),
                max((last[rank]["wait_s"] - first[rank]["wait_s"]) / clock[rank] for rank in ranks), last)

    def rows_from_now(self, run):
        """The workers' figures as of an event that was written after this call, from every node."""
        seen = len(run.metrics())

        def fresh():
            new = [event for event in run.metrics()[seen:] if event.get("event") == "progress"]
            return {event["node"] for event in new} >= set(range(self.nodes))
        wait_until(fresh, 5, "news of the workers")
        return run.worker_rows()

    def test_nonblocking_does_not_wait_for_a_frozen_worker_that_then_comes_back(self):
        self.check_freeze("nonblocking(batches=4)", 3, 10)

    @in_release
    def test_wagma_with_late_skip_does_not_wait_for_a_frozen_worker_that_then_comes_back(self):
        self.check_freeze("wagma(late=skip,grace=2x)", 4, 20)


@in_release  # Two nodes do all that one does.
class OnOneNode(Freezes, IntegrationTest):
    nodes = 1


class OnTwoNodes(Freezes, IntegrationTest):
    nodes = 2


if __name__ == "__main__":
    main(at_once=8)
