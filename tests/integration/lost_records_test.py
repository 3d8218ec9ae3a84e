"""A node is lost, and the records of all that are left say that they went on with the very same of it.

What a lost node gave is used by all or by nobody: of each averaging (version, group) all that executed it were told the same
partial sums before. The others' records are read after an agent was killed at a random moment of a job. PACELINE_LOST_RUNS:
kills a strategy, one where it is not given.
"""
import dataclasses
import json
import os
import random
import signal
import time
import unittest

import records
from harness import ENDLESS, SANITIZED, SLOWDOWN, IntegrationTest, in_release, main, wait_until

RUNS = int(os.environ.get("PACELINE_LOST_RUNS", "1"))
ROUNDS = ("allreduce", "local-sgd(period=2)", "wagma(group=2,sync=4)", "nonblocking(batches=2)", "diloco(period=3)",
          "decoupled-diloco(period=3)")
# Where all mix the same they agree on contributions; where neighbours do, on how many mini-batches were done.
ALIKE = ("streaming-diloco(period=4,fragments=2)",)
APART = ("d-psgd(ring)", "sgp", "ad-psgd", "server(async)", "nonblocking(d-psgd(ring),batches=3,normalise=d)")


def without_last(decisions, **fields):
    """Takes out the last decision with these fields."""
    where, = [i for i, d in enumerate(decisions) if all(getattr(d, name) == value for name, value in fields.items())][-1:]
    del decisions[where]


class LostRecords(IntegrationTest):
    def start_job(self, strategy, nodes, **options):
        return self.start_quadratic("--strategy", strategy, "--restarts", 0, nodes=nodes, updates=ENDLESS, **options)

    def wait_for_steps(self, run, steps):
        """Of worker 0; sooner than by the run's metrics."""
        wait_until(lambda: len(run.steps(0)) >= steps or run.process.poll() is not None, 60, f"{steps} steps", run)
        self.assertIsNone(run.process.poll(), run.said())

    def told(self, run, nodes, lost):
        """Of those that are left."""
        found = {}
        for node in range(nodes):
            if node != lost:
                found[node], ended = records.read(run.run_directory, node)
                self.assertTrue(ended, f"node {node}'s record has no end")
        return found

    def lose(self, run, nodes, lost, killed_ns, alike=False):
        """It was killed: the others go on, end with one model, and have the same of it. Their records."""
        strategy = run.arguments[run.arguments.index("--strategy") + 1]
        ranks = [rank for rank in range(4) if rank * nodes // 4 == lost]
        self.wait_for_steps(run, len(run.steps(0)) + 10)
        self.enough(run)
        self.assertEqual(run.result()["lost"], ranks, run.said())
        told = self.told(run, nodes, lost)
        # Before the models are looked at: an average makes them the same again.
        self.assertEqual(records.disagreements(told, lost, alike), [], f"{strategy}, {nodes} nodes")
        self.assertEqual(len({run.final(rank) for rank in range(4) if rank not in ranks}), 1, strategy)
        of_lost = [[records.of_lost(decisions, lost, kind) for decisions in told.values()] for kind in ("partial", "exchanged")]
        print(f"{strategy}, {nodes} nodes: of node {lost} the others were told {[[len(each) for each in kind] for kind in of_lost]} "
              f"(sums, messages), {[sum(d.at > killed_ns for d in each) for each in of_lost[0]]} sums after its death", flush=True)
        return told

    def kill_at_random(self, strategy, nodes, seed, alike=False):
        chance = random.Random(f"{strategy} {nodes} {seed}")
        lost = chance.randrange(1, nodes)
        with self.subTest(strategy=strategy, nodes=nodes, seed=seed, lost=lost):
            # The lost one is the fastest, so that it gives before the others.
            run = self.start_job(strategy, nodes, sleep_ms=[0 if rank * nodes // 4 == lost else 2 for rank in range(4)],
                                 random_ms=chance.choice((2, 6)), elements=chance.choice((1, 20_000)))
            self.wait_for_steps(run, chance.randint(5, 60))
            time.sleep(chance.uniform(0, 0.1))  # Any moment of an update.
            agent, = self.agents(lost)
            killed_ns = time.monotonic_ns()
            os.kill(agent, signal.SIGKILL)
            return self.lose(run, nodes, lost, killed_ns, alike)

    def test_rounds_have_the_same_of_a_node_that_was_killed(self):
        for seed in range(RUNS):
            for strategy in ROUNDS[:3] if SANITIZED else ROUNDS:
                told = self.kill_at_random(strategy, 4, seed)
                self.assertTrue(all(records.counted(decisions) for decisions in told.values()), "no averagings: this shows nothing")

    def test_neighbours_and_pairs_have_the_same_of_a_node_that_was_killed(self):
        for seed in range(RUNS):
            for strategy in ALIKE:
                self.kill_at_random(strategy, 4, seed, alike=True)
            for strategy in APART[:2] if SANITIZED else APART:
                told = self.kill_at_random(strategy, 4, seed)
                if strategy.startswith("nonblocking"):
                    self.assertTrue(any(d.kind == "partial" for d in told[0]), "nobody's batch was over first: this shows nothing")

    @in_release
    def test_one_of_two_nodes_takes_nothing_more_of_the_other(self):
        for strategy in ("allreduce", "nonblocking(batches=2)", "sgp", "server(async)"):
            self.kill_at_random(strategy, 2, 0)

    def test_what_only_some_have_of_a_lost_node_reaches_all(self):
        """One that has given its sum stands still until all others, the lost node too, have given theirs: it has a part of the
        lost one's at most, and others have executed that. Its worker is the fastest, so that it gives before the others."""
        self.environment["PACELINE_LEASE"] = "60"
        for strategy in ("allreduce",) if SANITIZED else ("allreduce", "local-sgd(period=2)"):
            with self.subTest(strategy):
                run = self.start_job(strategy, 4, sleep_ms=[300, 1, 300, 300], elements=1_000_000)
                self.wait_for_steps(run, 2)
                still, lost = self.agents(1) + self.agents(3)
                begun = len(run.steps(1))
                wait_until(lambda: len(run.steps(1)) > begun, 10, "worker 1 has done a step", run)
                time.sleep(0.15)  # Its sum is with the others, theirs are not made.
                os.kill(still, signal.SIGSTOP)
                before = None
                while before != (before := [len(run.steps(rank)) for rank in range(4)]):
                    time.sleep(1.0 * SLOWDOWN)  # The others go as far as they can.
                killed_ns = time.monotonic_ns()
                os.kill(lost, signal.SIGKILL)
                os.kill(still, signal.SIGCONT)
                told = self.lose(run, 4, 3, killed_ns)
                last = {node: max(records.of_lost(decisions, 3, "partial"), key=lambda d: d.version) for node, decisions in told.items()}
                self.assertEqual(len({decision.version for decision in last.values()}), 1)
                self.assertLess(last[0].at, killed_ns)
                self.assertLess(killed_ns, last[1].at, "it had all of it: this shows nothing")
                without_last(told[1], kind="partial", node=3)
                self.assertIn(f"version {last[0].version}, group 0: not of the same nodes", "\n".join(records.disagreements(told, 3)))

    def test_what_the_others_went_by_is_shown_and_not_reenacted(self):
        run = self.start_job("allreduce", 2)
        self.wait_for_steps(run, 5)
        agent, = self.agents(1)
        os.kill(agent, signal.SIGKILL)
        self.wait_for_steps(run, len(run.steps(0)) + 5)
        self.enough(run)
        printed = self.paceline("replay", run.run_directory, "--decisions", "--json")
        self.assertEqual(printed.code, 0, printed.said())
        lines = [json.loads(line) for line in printed.out.splitlines()]
        self.assertEqual(len([line for line in lines if line["node"] == 0]), len(records.read(run.run_directory, 0)[0]))
        self.assertEqual([line["from"] for line in lines if line["kind"] == "node_gone"], [1])
        again = self.paceline("replay", run.run_directory, "--simulate")
        self.assertEqual(again.code, 2, again.said())
        self.assertIn("lost node 1 on the way", again.err)

    def test_records_are_read_as_the_command_prints_them(self):
        run = self.quadratic(nodes=2, strategy="wagma(group=2,sync=4,late=skip)", updates=20, random_ms=6)
        printed = self.paceline("replay", run.run_directory, "--decisions", "--json")
        self.assertEqual(printed.code, 0, printed.said())
        lines = [json.loads(line) for line in printed.out.splitlines()]
        start = min(d.at for node in (0, 1) for d in records.read(run.run_directory, node)[0] if d.at)
        for node in (0, 1):
            decisions, ended = records.read(run.run_directory, node)
            self.assertTrue(ended)
            theirs = [line for line in lines if line["node"] == node]
            self.assertEqual(len(theirs), len(decisions))
            for line, decision in zip(theirs, decisions):
                self.assertEqual([line["kind"], line.get("worker", -1), line.get("from", -1), line.get("version", -1), line.get("group", 0)],
                                 [decision.kind, decision.rank, decision.node, decision.version, decision.group])
                self.assertEqual([(c["worker"], c.get("iteration"), c.get("batches", 0)) for c in line.get("contributions", [])],
                                 list(decision.contributions))
                if "at_s" in line:
                    self.assertAlmostEqual(line["at_s"], (decision.at - start) / 1e9, delta=1e-6)


class CheckerTest(unittest.TestCase):
    """What is put into good records is found."""

    def setUp(self):
        def record(node):
            for version in range(3):
                yield records.Decision("sealed", version=version)
                for other in {0, 1, 2, 3} - {node} - ({3} if version == 2 else set()):
                    yield records.Decision("partial", node=other, version=version)
                yield records.Decision("executed", version=version)
                yield records.Decision("exchanged", node=3, rank=3) if version < 2 else records.Decision("alive", rank=node)
                if version == 1:
                    yield records.Decision("node_gone", node=3)
        self.told = {node: list(record(node)) for node in range(3)}
        self.assertEqual(records.disagreements(self.told, 3, alike=True), [])

    def assert_found(self, words, alike=False):
        self.assertIn(words, "\n".join(records.disagreements(self.told, 3, alike)))

    def take_out(self, told_to, **fields):
        without_last(self.told[told_to], **fields)

    def test_a_sum_that_one_has_not(self):
        self.take_out(1, kind="partial", node=3, version=1)
        self.assert_found("version 1, group 0: not of the same nodes: node 0 has those of [0, 1, 2, 3], node 1 has those of [0, 1, 2]")

    def test_a_sum_that_came_too_late(self):
        self.take_out(1, kind="partial", node=3, version=1)
        where = self.told[1].index(records.Decision("executed", version=1))
        self.told[1].insert(where + 1, records.Decision("partial", node=3, version=1))
        self.assert_found("node 1 has those of [0, 1, 2]")

    def test_something_after_the_loss(self):
        self.told[2].append(records.Decision("partial", node=3, version=2))
        self.assert_found("node 2 takes something of node 3")

    def test_an_averaging_that_one_left_out(self):
        self.take_out(2, kind="executed", version=2)
        self.assert_found("version 2, group 0: node 2 has not executed what it gave to")

    def test_who_was_not_told(self):
        self.take_out(0, kind="node_gone")
        self.assert_found("node 0 was not told")

    def test_a_contribution_that_one_has_not(self):
        self.take_out(0, kind="exchanged")
        self.assert_found("not as many contributions of node 3 are known", alike=True)

    def test_a_batch_that_one_does_not_know_of(self):
        self.told = {node: [d for d in told if d.kind != "executed"] for node, told in self.told.items()}
        self.assertEqual(records.disagreements(self.told, 3), [])
        self.told[1] = [dataclasses.replace(d, version=7) if d.kind == "partial" and d.node == 3 else d for d in self.told[1]]
        self.assert_found("not the same batches of node 3")


if __name__ == "__main__":
    main(at_once=3)
