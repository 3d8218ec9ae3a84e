"""Workers whose processes have ended come back: others are started in their place, and go on with the state of one that is there."""
import os
import signal

from harness import ENDLESS, IntegrationTest, in_release, main, wait_until


class ComingBack:
    nodes = 1

    def begin(self, strategy, *flags, **options):
        options.setdefault("updates", ENDLESS)
        return self.start_quadratic("--strategy", strategy, *flags, nodes=self.nodes, sleep_ms=[4], goes_on_writing=True, **options)

    def returned(self, run):
        return [event for event in run.metrics() if event.get("event") == "returned"]

    def wait_until_back(self, run, times=1):
        wait_until(lambda: len(self.returned(run)) >= times, 20, f"{times} returned", run)

    def kill_and_wait(self, run, rank, times=1):
        self.signal_worker(run, rank, signal.SIGKILL)
        self.wait_until_back(run, times)

    def assert_one_model(self, run, workers=4):
        models = run.result()["models"]
        self.assertEqual(set(models), {str(rank) for rank in range(workers)}, run.said())
        self.assertEqual(len(set(models.values())), 1, models)

    def check_return(self, strategy):
        run = self.begin(strategy)
        self.wait_for_update(run, 40)
        self.kill_and_wait(run, 3)
        text = self.returned(run)[0]["text"]
        self.assertRegex(text, r"^worker 3 is back, with update \d+, \d+\.\d\d s after it ended; it was given \d+\.\d\d MB$")
        self.assertIn(text, run.out)
        self.end_after(run, 200)
        self.assertRegex(run.left()[3], r"^worker 3 ended \(killed by SIGKILL \(Killed\)\): the others go on without it until its "
                                        "next process is there$")
        self.assertEqual(run.result()["returned"], {"3": 1})
        self.assertNotIn("left", run.result())
        self.assertNotIn("lost", run.result())
        self.assert_one_model(run)
        self.assert_nobody_left()
        return run

    def test_such_a_run_is_not_replayed(self):
        run = self.begin("allreduce")
        self.wait_for_update(run, 40)
        self.kill_and_wait(run, 3)
        self.end_after(run, 20)
        replay = self.paceline("replay", run.run_directory)
        self.assertEqual(replay.code, 2, replay.said())
        self.assertRegex(replay.err, "^paceline: .* cannot be replayed: a worker came back, or joined, while it ran")
        for flag in ("--simulate", "--decisions"):
            read = self.paceline("replay", run.run_directory, flag)
            self.assertEqual(read.code, 0, read.said())

    def test_under_allreduce_each_average_is_of_those_that_take_part(self):
        run = self.check_return("allreduce")
        begun_again = [index for index, line in enumerate(run.output(3)) if line.get("event") == "restore"][-1]
        last_before = max(line["update"] for line in run.output(3)[:begun_again] if line.get("event") == "step")
        first_after = self.returned(run)[0]["update"]
        rows = {}
        for rank in range(4):
            for row in run.steps(rank):
                rows.setdefault(row["update"], {})[rank] = row
        self.assertGreater(first_after, last_before)
        for update, by_rank in sorted(rows.items()):
            away = last_before < update < first_after
            self.assertEqual(set(by_rank), {0, 1, 2} if away else {0, 1, 2, 3}, update)
            self.assertEqual(len({row["before"] for row in by_rank.values()}), 1, f"all begin update {update} with one model")
            if update == last_before + 1:  # It may have given its gradient to that before it ended.
                continue
            mean = sum(row["gradient"] for row in by_rank.values()) / len(by_rank)
            for row in by_rank.values():
                self.assertLess(abs(row["result"] - mean), 1e-12, update)

    @in_release
    def test_under_strategies_of_every_kind(self):
        for strategy in ("local-sgd(period=5)", "wagma(late=skip)", "nonblocking(batches=2)", "decoupled-diloco(period=5)",
                         "server(bounded=2)", "ad-psgd(bipartite)", "d-psgd(ring)", "sgp", "hier-avg(k1=2,k2=4,group=2)"):
            with self.subTest(strategy):
                self.check_return(strategy)

    @in_release
    def test_worker_0_comes_back_too_and_again(self):
        run = self.begin("allreduce", "--restarts", 5)
        self.wait_for_update(run, 40)
        for times in range(1, 4):
            self.kill_and_wait(run, 0, times)
        self.end_after(run, 200)
        self.assertEqual(run.result()["returned"], {"0": 3})
        self.assert_one_model(run)

    def test_one_that_crashes_does_as_well(self):
        run = self.begin("allreduce", updates=300, fail="segfault", fail_rank=2, fail_update=50)
        self.assertEqual(run.wait(30), 0, run.said())
        self.assertRegex(run.left()[2], r"(?s)^worker 2 ended \(killed by SIGSEGV .*its log .* ends with: about to fail on purpose: segfault\)")
        self.assertEqual(run.result()["returned"], {"2": 1})
        self.assert_one_model(run)

    def test_one_that_crashes_again_and_again_fails_the_run_by_name(self):
        for fail in ({"fail_from": 50}, {"fail": "before_start"}):
            run = self.begin("allreduce", "--restarts", 2, **{"fail": "segfault", "fail_rank": 2, **fail})
            if "fail_from" not in fail and self.nodes == 4:
                self.assertEqual(run.wait(30), 1, run.said())
                self.assertIn("all workers of node 2 ended before they began to train", run.err)
                continue
            if "fail_from" not in fail:
                self.wait_for_update(run, 10)
                self.end_after(run, 10)
                self.assertEqual(run.result()["lost"], [2])
                self.assertEqual(len([event for event in run.metrics() if "is started again" in event.get("text", "")]), 2)
                continue
            self.assertEqual(run.wait(30), 1, run.said())
            self.assertRegex(run.err, "^paceline: worker 2 ended: killed by SIGSEGV")
            self.assertEqual(len(run.err.splitlines()), 1, run.said())
            self.assertEqual(self.returned(run), [], "it never comes to its first step")

    def test_one_that_is_killed_more_often_than_it_may_be_started_again_stays_gone(self):
        run = self.begin("allreduce", "--restarts", 1)
        self.wait_for_update(run, 40)
        self.kill_and_wait(run, 3)
        self.signal_worker(run, 3, signal.SIGKILL)
        wait_until(lambda: run.left()[3].endswith(": the others go on without it"), 10, "its leave", run)
        self.end_after(run, 100)
        self.assertEqual(run.result()["lost"], [3])
        self.assertEqual(run.result()["returned"], {"3": 1})

    @in_release
    def test_who_comes_back_is_not_missing(self):
        run = self.begin("allreduce", "--minimum", 4, "--lost", "fail")
        self.wait_for_update(run, 40)
        self.kill_and_wait(run, 1)
        self.end_after(run, 100)
        self.assert_one_model(run)

    def test_where_all_are_killed_at_once_nobody_has_the_model(self):
        run = self.begin("allreduce")
        self.wait_for_update(run, 40)
        pids = [self.worker_pid(run, rank) for rank in range(4)]
        for how in (signal.SIGSTOP, signal.SIGKILL):  # Nobody is back before the last one is killed.
            for pid in pids:
                os.kill(pid, how)
        self.assertEqual(run.wait(20), 1, run.said())
        lines = [line for line in run.err.splitlines() if line.startswith("paceline:")]
        self.assertEqual(len(lines), 1, run.said())
        self.assertIn("all workers have ended", lines[0])
        self.assert_nobody_left()

    @in_release
    def test_one_that_is_killed_as_the_run_ends_delays_nothing(self):
        run = self.begin("allreduce", load_ms=[0, 0, 0, 3000])
        self.wait_for_update(run, 40)
        self.signal_worker(run, 3, signal.SIGKILL)
        wait_until(run.left, 10, "its leave", run)
        began = run.update()
        self.enough(run)
        self.assertEqual(run.wait(2.5), 0, run.said())
        self.assertGreaterEqual(run.update(), began)
        self.assertEqual(run.result()["lost"], [3])
        self.assert_nobody_left()


class OnOneNode(ComingBack, IntegrationTest):
    nodes = 1


@in_release
class OnTwoNodes(ComingBack, IntegrationTest):
    nodes = 2


@in_release
class OnFourNodes(ComingBack, IntegrationTest):
    """Each worker is the only one of its node: it has the state of one on another."""
    nodes = 4


if __name__ == "__main__":
    main(at_once=4)
