"""The strategy of a job is changed while it runs."""
import json
import signal

from harness import ENDLESS, SLOWDOWN, IntegrationTest, in_release, main, wait_until

# One of each kind of core.
CHAIN = ["wagma(group=2,late=skip)", "local-sgd(period=5)", "nonblocking(batches=2)", "server(bounded=2)", "d-psgd(ring)", "noloco(period=3)",
         "ad-psgd(bipartite)", "eager-sgd(solo,sync=5)", "slowmo(period=3)", "sgp", "nonblocking(d-psgd(ring),batches=2)", "adacomm(period=4)",
         "hier-avg(k1=2,k2=4,group=2)", "allreduce"]


class Changes:
    nodes = 1

    def begin(self, strategy, *flags, workers=4, **options):
        options.setdefault("updates", ENDLESS)
        options.setdefault("sleep_ms", [4])
        run = self.start_quadratic("--strategy", strategy, *flags, nodes=self.nodes, workers=workers, goes_on_writing=True, **options)
        self.wait_for_update(run, 20)
        return run

    def changes(self, run):
        return [event for event in run.metrics() if event.get("event") == "changed"]

    def set(self, run, strategy):
        before = len(self.changes(run))
        done = self.paceline("set", 1, "--strategy", strategy)
        self.assertEqual(done.code, 0, done.said())
        wait_until(lambda: len(self.changes(run)) > before, 20, f"it goes on with {strategy}", run)
        self.wait_for_update(run, run.update() + 20)

    def legs(self, run, rank):
        return [(line["update"], line["x"]) for line in run.output(rank) if line.get("event") == "leg"]

    def check(self, run, changes, ranks=range(4)):
        self.end_after(run, 20)
        result = run.result()
        self.assertEqual([change["strategy"] for change in result["changes"]], changes)
        updates = [change["update"] for change in result["changes"]]
        self.assertEqual(updates, sorted(set(updates)))
        for change in result["changes"]:
            self.assertGreaterEqual(change["after_s"], 0)
        for none in ("left", "lost"):
            self.assertNotIn(none, result, run.said())
        self.assertEqual(len(set(result["models"].values())), 1, result["models"])
        self.assertEqual(set(result["models"]), {str(rank) for rank in ranks})
        self.assert_nobody_left()
        return result

    def test_all_begin_the_next_leg_at_one_update_with_one_model(self):
        run = self.begin("allreduce")
        self.set(run, "local-sgd(period=5)")
        self.set(run, "allreduce")
        result = self.check(run, ["local-sgd(period=5)", "allreduce"])
        legs = [self.legs(run, rank) for rank in range(4)]
        self.assertEqual(legs, [legs[0]] * 4)
        self.assertEqual([update for update, _ in legs[0]], [change["update"] for change in result["changes"]])
        # None of the updates before it, and of those after it, is missing or done twice.
        for rank in range(4):
            updates = [step["update"] for step in run.steps(rank)]
            self.assertEqual(updates, list(range(len(updates))), rank)
        self.assertRegex(run.out, r"from update \d+ on with local-sgd\(period=5\): its workers were held for \d\.\d\d s\n")

    @in_release
    def test_from_each_kind_to_another(self):
        run = self.begin("allreduce")
        for strategy in CHAIN:
            self.set(run, strategy)
        self.check(run, CHAIN)

    @in_release
    def test_the_newest_that_is_asked_for_holds(self):
        run = self.begin("allreduce", sleep_ms=[30])
        for strategy in ("local-sgd(period=3)", "wagma(group=2)", "local-sgd(period=7)"):
            self.assertEqual(self.paceline("set", 1, "--strategy", strategy).code, 0)
        wait_until(lambda: [event["strategy"] for event in self.changes(run)][-1:] == ["local-sgd(period=7)"], 20, "the last one", run)
        self.check(run, [event["strategy"] for event in self.changes(run)])

    def test_workers_that_are_killed_in_a_later_leg_come_back(self):
        run = self.begin("local-sgd(period=5)")
        self.set(run, "allreduce")
        self.signal_worker(run, 3, signal.SIGKILL)
        wait_until(lambda: any(event.get("event") == "returned" for event in run.metrics()), 20, "it is back", run)
        self.wait_for_update(run, run.update() + 20)
        self.set(run, "wagma(group=2,late=skip)")
        self.check(run, ["allreduce", "wagma(group=2,late=skip)"])

    @in_release
    def test_workers_that_are_killed_when_it_is_asked_for_come_back(self):
        run = self.begin("allreduce")
        self.assertEqual(self.paceline("set", 1, "--strategy", "local-sgd(period=4)").code, 0)
        for rank in (1, 2):
            self.signal_worker(run, rank, signal.SIGKILL)
        wait_until(lambda: len([event for event in run.metrics() if event.get("event") == "returned"]) >= 2, 20, "they are back", run)
        self.check(run, ["local-sgd(period=4)"])

    @in_release
    def test_who_stands_still_is_left_as_at_any_average_of_all(self):
        run = self.begin("wagma(group=1,late=skip)", "--patience", 1)
        self.signal_worker(run, 3, signal.SIGSTOP)
        self.assertEqual(self.paceline("set", 1, "--strategy", "allreduce").code, 0)
        wait_until(lambda: self.changes(run), 30, "it goes on without it", run)
        self.wait_for_update(run, run.update() + 20)
        self.enough(run)
        self.assertEqual([change["strategy"] for change in run.result()["changes"]], ["allreduce"])

    @in_release
    def test_a_time_limit_is_of_all_legs(self):
        run = self.begin("allreduce", "--time-limit", "6s")
        self.wait_for_update(run, 400)
        self.set(run, "local-sgd(period=4)")
        self.assertEqual(run.wait(30), 0, run.said())
        self.assertEqual(len(run.result()["changes"]), 1)
        self.assertLess(run.result()["train_s"], 7 * SLOWDOWN)

    def test_learning_rates_and_one_parameter_are_changed_alone(self):
        run = self.begin("local-sgd(period=4)")
        for words, told in ((("--lr-factor", 0.5), "local-sgd(period=4), learning rates times 0.5"), (("--period", 2), "local-sgd(period=2), learning rates times 0.5"),
                            (("--strategy", "wagma(late=skip)", "--grace", "20ms", "--lr-factor", 1), "wagma(late=skip,grace=20ms)")):
            before = len(self.changes(run))
            done = self.paceline("set", 1, *words)
            self.assertEqual((done.code, done.out), (0, f"job 1 is to go on with {told}, from its next average of all on: the run's own output says when it does\n"), done.said())
            wait_until(lambda: len(self.changes(run)) > before, 20, told, run)
            self.wait_for_update(run, run.update() + 20)
        result = self.check(run, ["local-sgd(period=4)", "local-sgd(period=2)", "wagma(late=skip,grace=20ms)"])
        self.assertEqual([change["lr_factor"] for change in result["changes"]], [0.5, 0.5, 1])

    @in_release
    def test_workers_join_a_later_leg(self):
        run = self.begin("allreduce", "--begin-with", 2)
        self.set(run, "local-sgd(period=3)")
        self.assertEqual(self.paceline("scale", 1, 4).code, 0)
        wait_until(lambda: len([event for event in run.metrics() if event.get("event") == "returned"]) == 2, 20, "they join", run)
        self.set(run, "allreduce")
        self.check(run, ["local-sgd(period=3)", "allreduce"])

    @in_release
    def test_evaluations_go_on(self):
        run = self.begin("allreduce", evaluate_every=10)
        self.set(run, "server(async)")
        self.set(run, "allreduce")
        self.check(run, ["server(async)", "allreduce"])
        evaluated = [event["update"] for event in run.metrics() if event["event"] == "evaluated"]
        self.assertEqual(evaluated, sorted(set(evaluated)))
        first, last = (change["update"] for change in run.result()["changes"])
        for begin, end in ((0, first), (last, evaluated[-1])):
            inside = [update for update in evaluated if begin < update <= end]
            self.assertEqual(inside[:-1], list(range((begin // 10 + 1) * 10, inside[-1], 10)), evaluated)

    def test_what_cannot_be_is_refused(self):
        run = self.begin("allreduce")

        def refused(text, *words, code=2):
            done = self.paceline("set", *words)
            self.assertEqual((done.code, done.err), (code, f"paceline: {text}\n"), done.said())

        refused("no job 7 runs here", 7, "--strategy", "allreduce")
        refused("the strategy of job 1 cannot be changed: it is allreduce already", 1, "--strategy", "allreduce")
        for words in ((), ("one", "--strategy", "allreduce"), (1, "--lr-factor", "much")):
            self.assertEqual(self.paceline("set", *words).code, 2)
        refused("say what is to change: --strategy, --period, --grace or --lr-factor", 1)
        refused("the strategy of job 1 cannot be changed: it is allreduce already", 1, "--lr-factor", 1)
        for factor in (0, -1, 1e7, "nan", "inf"):
            done = self.paceline("set", 1, "--lr-factor", factor)
            self.assertEqual((done.code, done.err.count("\n")), (2, 1), done.said())
            self.assertIn("lr-factor", done.err)
        for words in (("--period", "8"), ("--grace", "20ms"), ("--period", "8)"), ("--period", "\xff")):
            done = self.paceline("set", 1, *words)
            self.assertEqual((done.code, done.err.count("\n")), (2, 1), done.said())
        for strategy, part in (("sgd", "strategies are allreduce"), ("wagma(group=3)", "group"), ("", "strateg"), ("d-psgd(file=/none)", "/none"),
                               ("local-sgd(period=0)", "period"), ("bytes \x01", "strateg"), ("x" * 100000, "strateg")):
            done = self.paceline("set", 1, "--strategy", strategy)
            self.assertEqual(done.code, 2, done.said())
            self.assertIn(part, done.err)
            self.assertEqual(done.err.count("\n"), 1, done.err)
        told = json.loads(self.paceline("set", 1, "--strategy", "local-sgd(period=4)", "--json").out)
        self.assertEqual(told, {"job": 1, "strategy": "local-sgd(period=4)", "lr_factor": 1, "text": "local-sgd(period=4)", "before": "allreduce"})
        wait_until(lambda: self.changes(run), 20, "it goes on", run)
        self.check(run, ["local-sgd(period=4)"])


class OnOneNode(Changes, IntegrationTest):
    nodes = 1

    @in_release
    def test_of_one_worker_or_one_average_nothing_can_be_changed(self):
        run = self.begin("allreduce", workers=1)
        self.assertEqual(self.paceline("set", 1, "--strategy", "local-sgd(period=4)").err,
                         "paceline: the strategy of job 1 cannot be changed: it has one worker, which averages with nobody\n")
        self.end_after(run, 5)
        run = self.start_quadratic("--strategy", "one-shot", workers=2, updates=400, sleep_ms=[4])
        self.wait_for_update(run, 0)
        wait_until(lambda: "one-shot" in self.paceline("status").out, 10, "it runs")
        self.assertEqual(self.paceline("set", 1, "--strategy", "allreduce").err,
                         "paceline: the strategy of job 1 cannot be changed: under one-shot its workers have one model at its end only\n")
        self.assertEqual(run.wait(30), 0, run.said())

    @in_release
    def test_a_run_that_was_changed_is_not_replayed(self):
        run = self.begin("allreduce")
        self.set(run, "local-sgd(period=4)")
        self.check(run, ["local-sgd(period=4)"])
        replay = self.paceline("replay", run.run_directory)
        self.assertEqual(replay.code, 2, replay.said())
        self.assertIn("cannot be replayed: its strategy was changed while it ran", replay.err)


@in_release
class OnTwoNodes(Changes, IntegrationTest):
    nodes = 2


if __name__ == "__main__":
    main(at_once=3)
