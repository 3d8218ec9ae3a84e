"""Jobs get more and fewer workers while they run."""
import json
import os
import signal

from harness import ENDLESS, IntegrationTest, in_release, is_alive, main, wait_until


class ScaledRuns:
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
        wait_until(lambda: len(self.said(run, "returned")) >= times, 20, f"{times} joined", run)

    def wait_for_leaves(self, run, times):
        wait_until(lambda: len(self.said(run, "left", drained=True)) >= times, 20, f"{times} left", run)

    def there(self):
        """As `status` shows it: the workers that train."""
        status = json.loads(self.paceline("status", "--json").out)
        return {row["rank"] for job in status["jobs"] for row in job["workers"] if row["state"] not in ("left", "vacant")}


class Scaling(ScaledRuns):
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
        wait_until(run.left, 10, "its leave", run)
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
        wait_until(lambda: self.there() == {0, 1, 2}, 20, "all are there", run)
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
        wait_until(lambda: "which was to join" in run.out, 20, "a word of it", run)
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
        wait_until(lambda: self.said(run, "left", worker=late, returns=False), 20, "its leave", run)
        self.end_after(run, 40)
        self.assertEqual(run.result()["lost"], [late])

    def test_workers_that_are_drained_leave_but_the_last(self):
        run = self.begin("allreduce", workers=4)
        self.wait_for_update(run, 20)
        done = self.paceline("drain", "worker-2")
        self.assertEqual((done.code, done.out), (0, "worker 2 of job 1 has been asked to leave: `paceline status` shows who is there\n"))
        self.wait_for_leaves(run, 1)
        self.assertEqual(self.there(), {0, 1, 3})
        self.assertEqual(json.loads(self.paceline("drain", "worker-0", "--job", 1, "--json").out),
                         {"worker": 0, "jobs": [1]})
        self.wait_for_leaves(run, 2)
        for rank in (1, 3):
            self.assertEqual(self.paceline("drain", f"worker-{rank}").code, 0)
        self.wait_for_leaves(run, 3)
        wait_until(lambda: "stays as long as the job needs it" in run.said(), 10, "a word of it")
        self.assertEqual(len(self.there()), 1)
        self.wait_for_update(run, run.update() + 20)
        self.scale(self.nodes)
        self.wait_for_leaves(run, 4)
        wait_until(lambda: len(self.there()) == self.nodes, 20, "others", run)
        self.end_after(run, 20)
        self.assertEqual(sum(run.result()["drained"].values()), 4, run.result())
        self.assertNotIn("lost", run.result())
        self.assert_nobody_left()

    def test_what_cannot_be_drained_is_refused(self):
        run = self.begin("allreduce", workers=4)
        self.wait_for_update(run, 10)
        for words, said in ((("worker-4",), "job 1 has no worker 4: its workers are worker-0 to worker-3"),
                            (("worker-0", "--job", 7), "no job 7 runs here"),
                            (("node-9",), "there is no node 9: `paceline status` shows those that there are"),
                            (("node-0", "--job", 1), "--job is for a worker: a node is drained of all its jobs"),
                            (("node-0x",), "cannot drain 'node-0x': say node-1 or worker-3, with the number that `paceline status` shows"),
                            (("everybody",), "cannot drain 'everybody': say node-1 or worker-3, with the number that `paceline status` shows")):
            done = self.paceline("drain", *words)
            self.assertEqual((done.code, done.err), (2, f"paceline: {said}\n"))
        self.assertEqual(self.paceline("drain").code, 2)
        self.assertEqual(self.paceline("set", 1, "--strategy", "noloco(period=3)").code, 0)
        wait_until(lambda: self.said(run, "changed"), 20, "the change")
        done = self.paceline("drain", "worker-1")
        self.assertEqual(done.code, 2)
        self.assertRegex(done.err, "^paceline: no worker can leave job 1 under noloco.*: give it another strategy first")
        self.end_after(run, 10)

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
        wait_until(lambda: len(self.there()) == 5, 20, "five are there", run)
        self.end_after(run, 20)

    def test_numbers_that_make_no_sense_are_refused(self):
        for flags, text in ((("--workers", "5..2"), "--workers 5..2: give a number, or at least and at most so many: 2..8"),
                            (("--workers", "..2"), "--workers ..2: give a number, or at least and at most so many: 2..8"),
                            (("--workers", "0..2"), "--workers 0..2: give a number from 1 to 4096"),
                            (("--workers", "2..5000"), "--workers 2..5000: give a number from 1 to 4096"),
                            (("--workers", "4", "--begin-with", "5"), "--begin-with 5: there are only 4 workers"),
                            (("--workers", "4", "--minimum", "3", "--begin-with", "2"), "--begin-with 2: --minimum asks for 3"),
                            (("--workers", "4", "--begin-with", "-2"), "--begin-with -2: give a number from -1 to 4096"),
                            (("--elastic", "maybe"), "--elastic maybe: give yes or no"),
                            (("--workers", "2..4", "--elastic", "no"), "--elastic no: then all 4 workers begin: give --workers "
                                                                       "one number, and --begin-with none")):
            done = self.paceline("run", os.environ["PACELINE_QUADRATIC"], *flags)
            self.assertEqual((done.code, done.err), (2, f"paceline: {text}\n"))

    def test_where_nobody_can_join_a_job_has_one_number_of_workers(self):
        done = self.paceline("run", os.environ["PACELINE_QUADRATIC"], "--workers", 4, "--begin-with", 2, "--strategy",
                             "noloco(period=2)", "--run-dir", os.path.join(self.folder, "none"))
        self.assertEqual(done.code, 2, done.said())
        self.assertRegex(done.err, "^paceline: no worker can join or leave a running job under noloco.*: give --workers one "
                                   "number, or take another strategy\n$")

    def test_a_job_that_needs_all_its_workers_keeps_them_or_fails(self):
        run = self.begin("allreduce", "--elastic", "no", "--restarts", 1, workers=3)
        self.wait_for_update(run, 20)
        why = "its script says elastic = false, or it was started with --elastic no\n"
        for words, text in ((("scale", 1, 2), "job 1 keeps its 3 workers: "), (("drain", "worker-1"), "no worker can leave job 1: "),
                            (("drain", "node-0"), "no worker can leave job 1: ")):
            done = self.paceline(*words)
            self.assertEqual((done.code, done.err), (2, f"paceline: {text}{why}"))
        self.signal_worker(run, 1, signal.SIGKILL)
        self.wait_for_joins(run, 1)
        self.wait_for_update(run, run.update() + 20)
        self.signal_worker(run, 1, signal.SIGKILL)
        self.assertEqual(run.wait(20), 1, run.said())
        self.assertIn("worker 1 was lost: 2 of 3 remain, and the job needs all (--elastic no)", run.said())
        self.assertEqual(run.result()["lost"], [1])

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

    def test_a_node_that_is_drained_and_lost_costs_nothing(self):
        run = self.begin("allreduce", "--begin-with", 4, workers=6)
        self.wait_for_update(run, 20)
        done = self.paceline("drain", "node-1")
        self.assertEqual((done.code, done.out), (
            0, "the workers of job 1 on node 1 have been asked to leave: `paceline status` shows who is there\n"
               "node 1 is drained: no job gets workers there\n"))
        self.wait_for_leaves(run, 2)
        wait_until(lambda: self.there() == {0, 1, 2}, 20, "those of node 0", run)
        nodes = json.loads(self.paceline("status", "--json").out)["nodes"]
        self.assertEqual([node["drained"] for node in nodes], [False, True])
        self.assertIn("1 drained", self.paceline("status").out)
        self.assertEqual(self.paceline("scale", 1, 6).code, 2, "there are three places")
        os.kill(nodes[1]["pid"], signal.SIGKILL)
        self.wait_for_update(run, run.update() + 60)
        self.assertIn("node 1 is lost", run.out)
        self.end_after(run, 20)
        self.assertNotIn("lost", run.result())
        self.assertEqual(sum(run.result()["drained"].values()), 2)
        self.assert_nobody_left()

    def check_that_the_leader_leaves(self, strategy, told=False):
        """With the agent that the job's command was started through."""
        run = self.begin(strategy, workers=4, evaluate_every=10)
        self.wait_for_update(run, 20)
        if told:
            agent = json.loads(self.paceline("status", "--json").out)["nodes"][0]["pid"]
            os.kill(agent, signal.SIGTERM)
            wait_until(lambda: not is_alive(agent), 20, "its end", run)
        else:
            self.assertEqual(self.paceline("drain", "node-0").code, 0)
        self.wait_for_leaves(run, 2)
        self.wait_for_joins(run, 2)
        wait_until(lambda: self.there() == {0, 1, 2, 3}, 20, "others in their places", run)
        status = json.loads(self.paceline("status", "--json").out)
        self.assertEqual({row["node"] for row in status["jobs"][0]["workers"]}, {1})
        evaluated = len(self.said(run, "evaluated"))
        if not told:
            os.kill(status["nodes"][0]["pid"], signal.SIGKILL)
        wait_until(lambda: len(self.said(run, "evaluated")) > evaluated, 30, "another evaluation", run)
        self.end_after(run, 40)
        result = run.result()
        self.assertNotIn("lost", result)
        self.assertEqual(result["drained"], {"0": 1, "1": 1})
        self.assertEqual([row["twice"] for row in result["ledger"]], [0] * len(result["ledger"]), result)
        self.assertEqual(len(set(result["models"].values())), 1, result)
        self.assertNotIn("stays as long", run.said())
        self.assert_nobody_left()

    def test_the_node_that_leads_is_drained_and_lost(self):
        self.check_that_the_leader_leaves("allreduce")

    def test_the_node_that_leads_is_told_to_end(self):
        self.check_that_the_leader_leaves("wagma(group=2,late=skip)", told=True)

    @in_release
    def test_the_node_that_leads_is_drained_and_lost_under_others(self):
        for strategy in ("local-sgd(period=4)", "nonblocking(batches=2)", "server(async)", "d-psgd(ring)"):
            with self.subTest(strategy=strategy):
                self.check_that_the_leader_leaves(strategy)

    def test_where_there_is_no_other_leg_it_stays(self):
        run = self.begin("decoupled-diloco", workers=4)
        self.wait_for_update(run, 20)
        done = self.paceline("drain", "node-0")
        if done.code == 0:
            wait_until(lambda: "stays as long as the job needs it" in run.said(), 20, "a word of it", run)
        self.end_after(run, 20)

    def test_a_node_that_is_told_to_end_is_drained_first(self):
        run = self.begin("wagma(group=2,late=skip)", workers=4)
        self.wait_for_update(run, 20)
        nodes = json.loads(self.paceline("status", "--json").out)["nodes"]
        os.kill(nodes[1]["pid"], signal.SIGTERM)
        wait_until(lambda: "node 1 is lost" in run.out, 20, "its end", run)
        self.assertEqual(len(self.said(run, "left", drained=True)), 2, run.said())
        self.end_after(run, 40)
        self.assertNotIn("lost", run.result())
        self.assertNotIn("which had left", run.said())
        self.assertEqual(run.result()["drained"], {"2": 1, "3": 1})
        self.assert_nobody_left()

    def test_one_that_cannot_be_drained_ends_when_it_is_told_so_again(self):
        run = self.begin("noloco(period=3)", workers=4)
        self.wait_for_update(run, 20)
        pid = json.loads(self.paceline("status", "--json").out)["nodes"][1]["pid"]
        os.kill(pid, signal.SIGTERM)
        self.wait_for_update(run, run.update() + 20)
        self.assertEqual(len(self.there()), 4)
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: "node 1 is lost" in run.out, 20, "its end", run)
        self.end_after(run, 10)
        self.assertEqual(run.result()["lost"], [2, 3])


@in_release
class OnNodesThatAreAdded(ScaledRuns, IntegrationTest):
    nodes = None

    def on_node(self, run, node):
        """Which of its workers train there, as `status` shows it."""
        status = json.loads(self.paceline("status", "--json").out)
        return {row["rank"] for job in status["jobs"] for row in job["workers"] if row["node"] == node and row["state"] not in ("left", "vacant")}

    def check_growth(self, strategy, *flags):
        """A job that began with as many workers as there were cpus has more when there are more."""
        self.assertEqual(self.paceline("up", "--cpus", 2).code, 0)
        run = self.begin(strategy, *flags, workers="2..6")
        self.wait_for_update(run, 40)
        self.assertEqual(len(self.there()), 2)
        self.assertEqual(self.paceline("up", "--add", 1).code, 0)
        self.wait_for_joins(run, 2)
        self.assertEqual(len(self.on_node(run, 1)), 2)
        self.wait_for_update(run, run.update() + 40)
        self.scale(6)
        self.wait_for_joins(run, 4)
        wait_until(lambda: self.there() == set(range(6)), 10, "all are there", run)
        self.assertEqual((len(self.on_node(run, 0)), len(self.on_node(run, 1))), (3, 3))
        self.wait_for_update(run, run.update() + 40)
        self.end_after(run, 40)
        result = run.result()
        self.assertEqual(sum(result["joined"].values()), 4, result)
        for none in ("left", "lost", "returned", "vacant"):
            self.assertNotIn(none, result)
        self.assertEqual(set(result["models"]), set("012345"), run.said())
        self.assertEqual(len(set(result["models"].values())), 1, result["models"])
        joined, = self.said(run, "node_joined")
        self.assertEqual((joined["node"], joined["leg"], joined["places"]), (1, 1, [3, 4, 5]))
        self.assertEqual([(event["node"], event["cpus"]) for event in self.said(run, "room")], [(1, 2)])
        self.assertIn("node 1 takes part in the job from here on: workers can join there", run.out)
        self.assertEqual(self.paceline("down").code, 0)
        self.assert_nobody_left()

    def test_a_job_grows_with_its_cluster(self):
        self.check_growth("allreduce")

    def test_so_it_does_under_strategies_of_every_kind(self):
        for strategy in ("wagma(group=2,grouping=strided,late=skip)", "nonblocking(batches=2)", "server(async)", "d-psgd(ring)", "sgp"):
            with self.subTest(strategy):
                self.check_growth(strategy)

    def test_another_node_is_there_in_place_of_one_that_is_lost(self):
        self.assertEqual(self.paceline("up", "--nodes", 2).code, 0)
        run = self.begin("allreduce", "--restarts", 0, workers=4)
        self.wait_for_update(run, 20)
        agent, = self.agents(1)
        os.kill(agent, signal.SIGKILL)
        wait_until(lambda: self.agents(1) not in ([], [agent]), 20, "the next agent", run)
        self.assertEqual(self.paceline("scale", 1, 4).code, 2, "there are two places")
        self.assertEqual(self.paceline("up", "--add", 1).code, 0)
        self.scale(4)
        self.wait_for_joins(run, 2)
        self.assertEqual(self.on_node(run, 2), {2, 3})
        self.assertEqual(self.on_node(run, 1), set())
        os.kill(self.agents(1)[0], signal.SIGKILL)  # It has no part in the job any more.
        self.wait_for_update(run, run.update() + 60)
        self.end_after(run, 20)
        self.assertEqual(len(set(run.result()["models"].values())), 1, run.result())
        self.assertNotIn("lost", run.result())

    def test_where_nobody_can_join_a_node_that_is_added_gets_nobody(self):
        self.assertEqual(self.paceline("up", "--cpus", 2).code, 0)
        run = self.begin("noloco(period=3)", workers=4)
        self.wait_for_update(run, 20)
        self.assertEqual(self.paceline("up", "--add", 1).code, 0)
        self.wait_for_update(run, run.update() + 40)
        self.end_after(run, 20)
        self.assertEqual(self.said(run, "room"), [])
        self.assertEqual(self.said(run, "node_joined"), [])


if __name__ == "__main__":
    main(at_once=4)
