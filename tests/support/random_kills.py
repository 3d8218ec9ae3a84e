#!/usr/bin/env python3
"""Kills workers at random in short runs of many strategies, on one node, two and four, there now and then agents, too, but
the first one's, which may also be stopped, and says which runs did not end well: with another exit status, not at all, with
a model that is no number, with several models, or with one that a replay does not reach again.
Exit status 1 if there was one. Each run is a line of what it takes to repeat it.

    tests/support/random_kills.py BUILD [--seconds 120] [--seed 1] [--strategy 'wagma(sync=10)' ...]     BUILD: e.g. build/release
"""
import argparse
import math
import os
import random
import signal
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STRATEGIES = ["allreduce", "local-sgd(period=4)", "adacomm", "hier-avg", "slowmo(period=4)", "wagma(group=2,sync=10)",
              "nonblocking(batches=2)", "eager-sgd", "d-psgd", "sgp", "osgp", "ad-psgd", "matcha", "server(sync)",
              "server(async)", "noloco(period=4)", "decoupled-diloco(period=5)"]
WORKERS = 4
OWN_MODEL = "it goes on with its own"  # Of a warning: that is not in the record.


class RandomKills:
    def __init__(self, test, chance, strategies):
        self.test, self.chance, self.strategies = test, chance, strategies

    def kill_some(self, run, began, agents):
        """When each was killed, in words. `agents`: the signal for each."""
        what = self.chance.choice((signal.SIGKILL, signal.SIGTERM))
        kills = [(self.chance.uniform(0.3, 2.5), f"worker {rank}", what, rank)
                 for rank in self.chance.sample(range(WORKERS), self.chance.randint(0 if agents else 1, 3))]
        kills += [(self.chance.uniform(0.3, 2.5), f"agent {node}", how, -node) for node, how in agents.items()]
        for at, who, how, number in sorted(kills):
            time.sleep(max(0.0, began + at - time.monotonic()))
            try:
                if run.process.poll() is None:
                    pids = self.test.agents(-number) if who.startswith("agent") else [self.test.worker_pid(run, number)]
                    for pid in filter(None, pids):
                        os.kill(pid, how)
            except OSError:
                pass  # It has ended already.
        return ", ".join(f"{how.name} {who} at {at:.2f} s" for at, who, how, _ in sorted(kills))

    def after_the_loss_of_nodes(self, run):
        """What was wrong with a run whose agents, but the first, were killed or stopped."""
        if run.wait(60) == 0:
            left = run.left()  # Of a lost node some may have said what they had.
            finals = [run.final(rank) for rank in range(WORKERS) if rank not in left and run.final(rank) is not None]
            if not all(map(math.isfinite, finals)):
                return f"models that are no numbers: {finals}"
            return "" if len(set(finals)) == 1 else f"several models: {finals}"
        lines = [line for line in run.err.splitlines() if line.startswith("paceline:")]
        may_fail = run.update() == 0 or "all workers have ended" in run.err
        return "" if len(lines) == 1 and may_fail else f"it failed: {run.said()}"

    def once(self):
        """What was done, and what was wrong with it; "" if nothing was."""
        strategy, nodes = self.chance.choice(self.strategies), self.chance.choice((1, 2, 4))
        lost = self.chance.sample(range(1, nodes), self.chance.randint(1, nodes // 2)) if nodes > 1 and self.chance.random() < 0.4 else []
        agents = {node: self.chance.choice((signal.SIGKILL, signal.SIGSTOP)) for node in lost}
        began = time.monotonic()
        restarts = self.chance.choice((0, 3))
        run = self.test.start_quadratic("--strategy", strategy, "--restarts", restarts, nodes=nodes, workers=WORKERS, updates=600, random_ms=6,
                                        evaluate_every=20, elements=3)
        done = f"{strategy}, --restarts {restarts}, {nodes} nodes, {self.kill_some(run, began, agents)}"
        try:
            if agents:
                return done, self.after_the_loss_of_nodes(run)
            if run.wait(60) != 0:
                return done, f"it failed: {run.said()}"
            finals = [run.final(rank) for rank in range(WORKERS)]
            if any(isinstance(final, float) and not math.isfinite(final) for final in finals):
                return done, f"models that are no numbers: {finals}"
            if any(OWN_MODEL in event.get("text", "") for event in run.metrics()):
                return done, ""
            if "returned" in run.result():  # Such a run is not replayed: all that came back have the others' model.
                models = set(run.result()["models"].values())
                return done, "" if len(models) == 1 else f"several models: {run.result()['models']}"
            again = self.test.start("replay", run.run_directory, "--run-dir",
                                    os.path.join(self.test.folder, f"replay-{self.test.runs}"))
            if again.wait(60) != 0 or "bit-identical" not in again.out:
                return done, f"its replay: {again.said()}"
        except AssertionError as hangs:
            return done, str(hangs)
        return done, ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--strategy", action="append", default=[])
    options = parser.parse_args()
    if not os.path.exists(os.path.join(options.build, "CTestTestfile.cmake")):
        parser.error(f"{options.build} is no build folder")
    build = os.path.abspath(options.build)
    os.environ.update(PACELINE=os.path.join(build, "cli", "paceline"), PACELINE_BUILD=build, PACELINE_SOURCE=ROOT,
                      PACELINE_QUADRATIC=os.path.join(build, "tests", "integration", "quadratic_worker"))
    sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))
    from harness import IntegrationTest  # It reads the environment.

    class Around(IntegrationTest):
        """Only what a test has around it: a folder, an end of all its processes."""

        def runTest(self):
            pass

    chance = random.Random(options.seed)
    ends = time.monotonic() + options.seconds
    runs = bad = 0
    while time.monotonic() < ends:
        test = Around()
        test.setUp()
        done, wrong = RandomKills(test, chance, options.strategy or STRATEGIES).once()
        test.doCleanups()
        runs += 1
        bad += bool(wrong)
        print(f"{'NOT WELL' if wrong else 'well'}: {done}" + (f"\n{wrong}" if wrong else ""), flush=True)
    print(f"{runs - bad} of {runs} runs ended well (seed {options.seed})")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
