"""Figure 43: a run on two nodes to which 60 kills happen, of workers, agents, the head and the terminal that the command writes to, beside the same run without."""
import json
import os
import pty
import random
import signal
import subprocess
import time

from measure.bench import worker_pids
from measure.cluster import Cluster
from measure.ledgers import FATES

KILLS, SEEDS = 60, 5
KILLS_AN_EPOCH = 12
FLAGS = ("--workers", "4", "--strategy", "allreduce", "--batch", "32", "--accumulate", "1", "--target", "none", "--straggle", "4:40ms", "--evaluate-every-epochs", "1",
         "--restarts", "100")
KINDS = ("worker", "agent", "head")
WORKERS_OF = {0: {0, 1}, 1: {2, 3}}


class Run:
    """One run of the example, on a cluster that is up."""

    def __init__(self, bench, cluster, kills, *flags):
        self.cluster, self.directory = cluster, bench.new_directory()
        self.here, self.read = set(range(4)), 0  # Who takes part, as far as the run has said.
        inside, outside = pty.openpty()
        self.terminal = subprocess.Popen(["cat"], stdin=inside, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(inside)
        self.began = time.monotonic()
        self.process = subprocess.Popen([bench.paceline, "run", bench.program("examples", "example_fashion_mnist"), *FLAGS, *flags,
                                         "--epochs", str(kills / KILLS_AN_EPOCH), "--run-dir", self.directory],
                                        stdin=subprocess.DEVNULL, stdout=outside, stderr=outside, env=cluster.environment, cwd=bench.folder, start_new_session=True)
        os.close(outside)

    def events(self):
        """Those that came since."""
        try:
            with open(os.path.join(self.directory, "metrics.jsonl"), encoding="utf-8") as file:
                file.seek(self.read)
                text = file.read()
        except OSError:
            return []
        whole = text[:text.rfind("\n") + 1]
        self.read += len(whole.encode())
        return [json.loads(line) for line in whole.splitlines()]

    def listen(self):
        events = self.events()
        for event in events:
            if event["event"] == "left":
                self.here.discard(event["worker"])
            elif event["event"] == "returned":
                self.here.add(event["worker"])
        return events

    def wait_until_it_trains(self):
        while not any(event["event"] == "first_step" for event in self.listen()):
            if self.process.poll() is not None:
                raise SystemExit(f"figures.py: {self.directory}: it ended before it trained")
            time.sleep(0.02)

    def may_lose(self, ranks):
        """Somebody is left who has the model, on whichever node."""
        self.listen()
        return ranks <= self.here and self.here - ranks

    def kill(self, chance, kind):
        """In words who was killed; none, where a kill would leave nobody, or there is no such process now."""
        node, rank = chance.randrange(2), chance.randrange(4)
        victims = {"worker": {rank}, "agent": WORKERS_OF[node]}.get(kind, set())
        if not self.may_lose(victims):
            return None
        pid = {"worker": lambda: worker_pids(self.directory)[rank], "agent": lambda: self.cluster.process(f"agent-{node}"),
               "head": lambda: self.cluster.process("head"), "terminal": lambda: self.terminal.pid}[kind]
        try:
            os.kill(pid(), signal.SIGKILL)
        except (KeyError, ProcessLookupError, FileNotFoundError, ValueError):
            return None
        self.here -= victims
        return {"worker": f"worker {rank}", "agent": f"agent {node}"}.get(kind, kind)

    def disturb(self, chance, kills, seconds):
        """At moments drawn over the length of the run: a kind of process each, once the terminal. Where this one cannot be killed then, another."""
        moments = sorted(chance.uniform(0.02, 0.95) * seconds for _ in range(kills))
        kinds = [chance.choice(KINDS) for _ in range(kills - 1)]
        kinds.insert(chance.randrange(kills), "terminal")
        begin, done = time.monotonic(), []
        for moment, kind in zip(moments, kinds):
            time.sleep(max(0.0, begin + moment - time.monotonic()))
            while self.process.poll() is None and not (killed := self.kill(chance, kind)):
                time.sleep(0.02)
            if self.process.poll() is not None:
                break
            done.append(f"{time.monotonic() - begin:.2f} {killed}")
        return done

    def end(self):
        """Its result, and how long it took."""
        try:
            code = self.process.wait(600)
        finally:
            self.terminal.kill()
            self.terminal.wait()
        took = time.monotonic() - self.began
        if code != 0:
            raise SystemExit(f"figures.py: {self.directory} ended with {code}")
        with open(os.path.join(self.directory, "result.json"), encoding="utf-8") as file:
            return json.load(file), took


def one_run(bench, seed, kills, seconds=0.0):
    """`seconds`: over which time it is disturbed. Its result, how long it took, and what was done to it."""
    with Cluster(bench, 2) as cluster:
        run = Run(bench, cluster, kills, "--seed", str(seed))
        done = []
        if seconds:
            run.wait_until_it_trains()
            done = run.disturb(random.Random(seed), kills, seconds)
            print(f"seed {seed}: {', '.join(done)}", flush=True)
        return *run.end(), done


def wrong_samples(ledger, over):
    """Those of the epochs that are over that stand in the ledger under no name, or too often, and those that were used twice."""
    return sum(abs(sum(row[fate] for fate in FATES) - row["samples"]) for row in ledger[:over]) + sum(row["twice"] for row in ledger)


def kills(bench):
    number, undisturbed = bench.rounds_or(KILLS), []
    for seed in range(1, (SEEDS if number == KILLS else 1) + 1):
        result, took, _ = one_run(bench, seed, number)
        undisturbed.append(100 * result["test_accuracy"])
        print(f"seed {seed}: without kills {took:.1f} s, accuracy {undisturbed[-1]:.2f} %", flush=True)
        if seed > 1:
            continue
        disturbed, longer, done = one_run(bench, seed, number, result["train_s"])
        print(f"seed {seed}: {longer:.1f} s, accuracy {100 * disturbed['test_accuracy']:.2f} %, {disturbed['ledger']}", flush=True)
        values = {"kills": [len(done)], "longer": [longer / took], "committed": [100 * disturbed["samples"] / result["samples"]],
                  "wrong": [wrong_samples(disturbed["ledger"], number // KILLS_AN_EPOCH)], "accuracy": [100 * disturbed["test_accuracy"]]}
    values["below"] = [max(0.0, min(undisturbed) - values["accuracy"][0])]
    values["seeds"] = undisturbed
    return {43: values}
