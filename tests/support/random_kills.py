#!/usr/bin/env python3
"""Kills workers at random in short runs of many strategies, on one node and on two, there now and then the second agent,
which may also be stopped, and says which runs did not end well: with another exit status, not at all, with a model that is
no number, or with one that a replay does not reach again. A run that has lost its second node may fail, by name, if its
strategy has no rounds of all.
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
# Those whose updates are all made in rounds: they go on without the second of two nodes.
ROUNDS = ["allreduce", "local-sgd(period=4)", "adacomm", "slowmo(period=4)", "wagma(group=2,sync=10)",
          "nonblocking(batches=2)", "eager-sgd", "decoupled-diloco(period=5)"]
DRY = "comes back to it no more, since workers have left"  # Of sgp and osgp: they end, and say so.


class RandomKills:
    def __init__(self, test, chance, strategies):
        self.test, self.chance, self.strategies = test, chance, strategies

    def kill_some(self, run, began, agent):
        """When each was killed, in words. `agent`: the signal for the second one, or None."""
        what = self.chance.choice((signal.SIGKILL, signal.SIGTERM))
        kills = [(self.chance.uniform(0.3, 2.5), f"worker {rank}", what, rank)
                 for rank in self.chance.sample(range(WORKERS), self.chance.randint(0 if agent else 1, 3))]
        if agent:
            kills.append((self.chance.uniform(0.3, 2.5), "agent 1", agent, None))
        for at, _, how, rank in sorted(kills):
            time.sleep(max(0.0, began + at - time.monotonic()))
            try:
                if run.process.poll() is None:
                    pids = [self.test.worker_pid(run, rank)] if rank is not None else self.test.agents(1)
                    for pid in filter(None, pids):
                        os.kill(pid, how)
            except OSError:
                pass  # It has ended already.
        return ", ".join(f"{how.name} {who} at {at:.2f} s" for at, who, how, _ in sorted(kills))

    def after_the_loss_of_a_node(self, run, strategy):
        """What was wrong with a run whose second agent was killed or stopped."""
        if run.wait(60) == 0:
            finals = [run.final(rank) for rank in range(WORKERS)]
            return "" if all(map(math.isfinite, filter(None, finals))) else f"models that are no numbers: {finals}"
        lines = [line for line in run.err.splitlines() if line.startswith("paceline:")]
        named = len(lines) == 1 and ("node 1" in lines[0] or "all workers have ended" in lines[0] or "worker " in lines[0])
        had_to_go_on = strategy in ROUNDS and run.update() > 0 and not {0, 1} <= set(run.left())
        return "" if named and not had_to_go_on else f"it failed: {run.said()}"

    def once(self):
        """What was done, and what was wrong with it; "" if nothing was."""
        strategy, nodes = self.chance.choice(self.strategies), self.chance.choice((1, 2))
        agent = self.chance.choice((signal.SIGKILL, signal.SIGSTOP)) if nodes == 2 and self.chance.random() < 0.3 else None
        began = time.monotonic()
        run = self.test.start_quadratic("--strategy", strategy, nodes=nodes, workers=WORKERS, updates=600, random_ms=6,
                                        evaluate_every=20, elements=3)
        done = f"{strategy}, {nodes} nodes, {self.kill_some(run, began, agent)}"
        try:
            if agent:
                return done, self.after_the_loss_of_a_node(run, strategy)
            if run.wait(60) != 0:
                ends_by_name = "sgp" in strategy and DRY in run.err
                return done, "" if ends_by_name else f"it failed: {run.said()}"
            finals = [run.final(rank) for rank in range(WORKERS)]
            if any(isinstance(final, float) and not math.isfinite(final) for final in finals):
                return done, f"models that are no numbers: {finals}"
            if any(OWN_MODEL in event.get("text", "") for event in run.metrics()):
                return done, ""
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
