"""Jobs get more and fewer workers while they run."""
import json
import os
import signal

from harness import ENDLESS, IntegrationTest, in_release, main, wait_until


class Scaling:
    nodes = 1

    def begin(self, strategy, *flags, workers=6, **options):
        options.setdefault("updates", ENDLESS)
        return self.start_quadratic("--strategy", strategy, *flags, nodes=self.nodes, workers=workers, sleep_ms=[4],
                                    goes_on_writing=True, **options)

    def said(self, run, kind, **fields):
        return [event for event in run.metrics()
                if event.get("event") == kind and all(event.get(name) == value for name, value in fields.items())]

    def scale(self, workers, job=1):
        done = self.paceline("scale", job, workers)
        self.assertEqual(done.code, 0, done.said())
        return done

    def wait_for_joins(self, run, times):
        wait_until(lambda: len(self.said(run, "returned")) >= times, 20, f"{times} joined\n" + run.said())

    def wait_for_leaves(self, run, times):
        wait_until(lambda: len(self.said(run, "left", drained=True)) >= times, 20, f"{times} left\n" + run.said())

    def there(self):
        """As `status` shows it: the workers that train."""
        status = json.loads(self.paceline("status", "--json").out)
        return {row["rank"] for job in status["jobs"] for row in job["workers"] if row["state"] not in ("left", "vacant")}

    def check(self, strategy):
        run = self.begin(strategy, "--begin-with", 2)
        self.wait_for_update(run, 40)
        self.assertEqual(len(self.there()), 2)
        done = self.scale(6)
        self.assertEqual(done.out, "job 1 has been asked for 6 workers: `paceline status` shows them come and go\n")
        self.wait_for_joins(run, 4)
        self.assertEqual(self.there(), set(range(6)))
        self.wait_for_update(run, run.update() + 40)
        self.scale(3)
        self.wait_for_leaves(run, 3)
        self.assertEqual(len(self.there()), 3)
        wait_until(lambda: sum(self.worker_pid(run, rank) is not None for rank in range(6)) == 3, 5, "processes of three")
        self.wait_for_update(run, run.update() + 40)
        self.scale(4)
        self.wait_for_joins(run, 5)
        self.end_after(run, 100)
        result = run.result()
        self.assertEqual(len(result["vacant"]), 2, result)
        self.assertEqual(sum(result["joined"].values()), 5, result)
        self.assertEqual(sum(result["drained"].values()), 3, result)
        self.assertEqual(result["begun_with"], 2)
        for none in ("left", "lost", "returned"):
            self.assertNotIn(none, result)
        self.assertEqual(set(result["models"]), {str(rank) for rank in set(range(6)) - set(result["vacant"])}, run.said())
        self.assertEqual(len(set(result["models"].values())), 1, result["models"])
        self.assertRegex(run.out, r"worker \d joins, with update \d+, \d+\.\d\d s after it asked for its share")
        self.assertRegex(run.out, r"worker \d leaves, as was asked: the others go on without it")
        self.assertIn("the job is to have 3 workers", run.out)
        self.assert_nobody_left()
        return run

    def test_under_allreduce_each_average_is_of_those_that_take_part(self):
        run = self.check("allreduce")
        rows = {}
        for rank in range(6):
            for row in run.steps(rank):
                rows.setdefault(row["update"], {})[rank] = row
        sizes = []
        for update, by_rank in sorted(rows.items()):
            self.assertEqual(len({row["before"] for row in by_rank.values()}), 1, f"all begin update {update} with one model")
            mean = sum(row["gradient"] for row in by_rank.values()) / len(by_rank)
            for row in by_rank.values():
                self.assertLess(abs(row["result"] - mean), 1e-12, update)
            if sizes[-1:] != [len(by_rank)]:
                sizes.append(len(by_rank))
        self.assertEqual((sizes[0], sizes[-1], max(sizes)), (2, 4, 6), sizes)
        self.assertIn(3, sizes)

    @in_release
    def test_under_strategies_of_every_kind(self):
        for strategy in ("local-sgd(period=5)", "wagma(group=1,late=skip)", "nonblocking(batches=2)", "eager-sgd(solo,sync=5)",
                         "decoupled-diloco(period=5)", "server(bounded=2)", "ad-psgd(bipartite)", "d-psgd(ring)", "sgp"):
            with self.subTest(strategy):
                self.check(strategy)

    def test_who_was_lost_is_replaced_when_somebody_asks(self):
        run = self.begin("allreduce", "--restarts", 0, workers=4)
        self.wait_for_update(run, 20)
        self.signal_worker(run, 3, signal.SIGKILL)
        wait_until(run.left, 10, "its leave\n" + run.said())
        self.assertEqual(self.there(), {0, 1, 2})
        self.scale(4)
        self.wait_for_joins(run, 1)
        self.assertEqual(self.there(), {0, 1, 2, 3})
        self.end_after(run, 40)
        self.assertNotIn("lost", run.result())
        self.assertEqual(run.result()["joined"], {"3": 1})

    def test_one_that_is_killed_when_it_joins_comes_back(self):
        run = self.begin("allreduce", "--begin-with", 2, workers=3)
        self.wait_for_update(run, 20)
        self.scale(3)
        wait_until(lambda: self.worker_pid(run, 1) and self.worker_pid(run, 2), 10, "its process")
        for rank in (1, 2):
            self.signal_worker(run, rank, signal.SIGKILL)
        wait_until(lambda: self.there() == {0, 1, 2}, 20, "all are there\n" + run.said())
        self.end_after(run, 40)
        self.assertNotIn("lost", run.result())
        self.assertEqual(len(set(run.result()["models"].values())), 1)

    def test_one_that_never_comes_is_named_and_missed_by_nobody(self):
        late = 3 - self.nodes
        run = self.begin("allreduce", "--begin-with", 2, "--restarts", 0, workers=3,
                         load_ms=[0 if rank != late else 60_000 for rank in range(3)])
        self.wait_for_update(run, 20)
        self.scale(3)
        wait_until(lambda: self.worker_pid(run, late), 10, "its process")
        self.signal_worker(run, late, signal.SIGKILL)
        wait_until(lambda: "which was to join" in run.out, 20, "a word of it\n" + run.said())
        self.assertRegex(run.out, rf"worker {late}, which was to join, has ended: .*SIGKILL")
        self.end_after(run, 40)
        self.assertEqual(run.result()["vacant"], [late])
        for none in ("lost", "left", "joined"):
            self.assertNotIn(none, run.result())

    def test_one_that_crashes_when_it_comes_is_lost_when_it_may_not_come_again(self):
        late = 3 - self.nodes
        run = self.begin("allreduce", "--begin-with", 2, "--restarts", 1, workers=3, fail="before_start", fail_rank=late)
        self.wait_for_update(run, 20)
        self.scale(3)
        wait_until(lambda: self.said(run, "left", worker=late, returns=False), 20, "its leave\n" + run.said())
        self.end_after(run, 40)
        self.assertEqual(run.result()["lost"], [late])

    def test_what_cannot_be_is_refused(self):
        run = self.begin("allreduce", "--minimum", 2, workers=4)
        self.wait_for_update(run, 10)
        least = max(2, self.nodes)
        for workers in (0, 1, 5, 100000000000):
            done = self.paceline("scale", 1, workers)
            self.assertEqual(done.code, 2, done.said())
            self.assertEqual(done.err, f"paceline: {workers} workers cannot be: job 1 has from {least} to 4, as it was started "
                                       f"(--workers 2..8, --minimum), and each of its {self.nodes} nodes keeps one\n")
        self.assertEqual(self.paceline("scale", 7, 2).err, "paceline: no job 7 runs here\n")
        for words in (("scale",), ("scale", 1), ("scale", "one", 2), ("scale", 1, "many")):
            self.assertEqual(self.paceline(*words).code, 2)
        self.assertEqual(json.loads(self.paceline("scale", 1, 4, "--json").out), {"job": 1, "workers": 4, "least": least, "most": 4})
        self.end_after(run, 10)
        self.assertNotIn("vacant", run.result())


class OnOneNode(Scaling, IntegrationTest):
    nodes = 1

    def test_a_range_begins_with_as_many_as_there_are_cpus(self):
        run = self.start_quadratic("--strategy", "allreduce", workers="2..5", updates=ENDLESS, sleep_ms=[4], goes_on_writing=True)
        self.wait_for_update(run, 20)
        self.assertEqual(len(self.there()), min(5, max(2, len(os.sched_getaffinity(0)))))
        self.assertEqual(self.paceline("scale", 1, 1).code, 2, "two are the least")
        self.scale(5)
        wait_until(lambda: len(self.there()) == 5, 20, "five are there\n" + run.said())
        self.end_after(run, 20)

    def test_numbers_that_make_no_sense_are_refused(self):
        for flags, text in ((("--workers", "5..2"), "--workers 5..2: give a number, or at least and at most so many: 2..8"),
                            (("--workers", "..2"), "--workers ..2: give a number, or at least and at most so many: 2..8"),
                            (("--workers", "0..2"), "--workers 0..2: give a number from 1 to 4096"),
                            (("--workers", "2..5000"), "--workers 2..5000: give a number from 1 to 4096"),
                            (("--workers", "4", "--begin-with", "5"), "--begin-with 5: there are only 4 workers"),
                            (("--workers", "4", "--minimum", "3", "--begin-with", "2"), "--begin-with 2: --minimum asks for 3"),
                            (("--workers", "4", "--begin-with", "-2"), "--begin-with -2: give a number from -1 to 4096")):
            done = self.paceline("run", os.environ["PACELINE_QUADRATIC"], *flags)
            self.assertEqual((done.code, done.err), (2, f"paceline: {text}\n"))

    def test_where_nobody_can_join_a_job_has_one_number_of_workers(self):
        done = self.paceline("run", os.environ["PACELINE_QUADRATIC"], "--workers", 4, "--begin-with", 2, "--strategy",
                             "noloco(period=2)", "--run-dir", os.path.join(self.folder, "none"))
        self.assertEqual(done.code, 2, done.said())
        self.assertRegex(done.err, "^paceline: no worker can join or leave a running job under noloco.*: give --workers one "
                                   "number, or take another strategy\n$")

    def test_a_run_that_nobody_joined_is_replayed(self):
        run = self.begin("allreduce", "--begin-with", 3, workers=4)
        self.wait_for_update(run, 20)
        self.scale(2)
        self.wait_for_leaves(run, 1)
        self.end_after(run, 20)
        replay = self.paceline("replay", run.run_directory)
        self.assertEqual(replay.code, 0, replay.said())


@in_release
class OnTwoNodes(Scaling, IntegrationTest):
    nodes = 2


if __name__ == "__main__":
    main(at_once=4)
