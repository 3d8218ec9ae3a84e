"""Figure 35: the agent of one node is killed while a job trains, under each strategy: how long the others' longest step was."""
import json
import os
import re
import signal
import statistics
import subprocess
import time

from measure.cluster import Cluster
from measure.store import ROOT

SLEEP_MS = 10  # Of a step.
BEFORE_S, AFTER_S = 1.5, 1.5
TRIES = 3


def strategies():
    """Those that are simulated, too."""
    with open(os.path.join(ROOT, "tests", "sim", "cluster", "strategies.h"), encoding="utf-8") as file:
        return re.findall(r'^ {4}"(.+)",$', file.read(), re.MULTILINE)


def step_begins(directory):
    """Rank -> when its steps began, in seconds of the machine's steady clock."""
    with open(os.path.join(directory, "trace.json"), encoding="utf-8") as file:
        trace = json.load(file)
    events = trace if isinstance(trace, list) else trace["traceEvents"]
    begins = {}
    for event in events:
        if event.get("name") == "compute":
            begins.setdefault(event["tid"] - 1, []).append(event["ts"] / 1e6)
    return {rank: sorted(times) for rank, times in begins.items()}


def one_loss(bench, strategy, nodes):
    """Of a job of four workers, whose last node's agent is killed: the others' median step before, and their longest one since."""
    output = os.path.join(bench.folder, f"output-{time.monotonic_ns()}")
    os.mkdir(output)
    directory = bench.new_directory()
    with Cluster(bench, nodes) as cluster:
        run = subprocess.Popen([bench.paceline, "run", bench.program("tests", "integration", "quadratic_worker"), "--workers", "4", "--strategy", strategy,
                                "--run-dir", directory, "--", "updates=1000000", f"sleep_ms=[{SLEEP_MS}]", f"output={output}"],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=bench.folder, env=cluster.environment)
        deadline = time.monotonic() + 20
        while not all(os.path.exists(os.path.join(output, f"worker-{rank}.jsonl")) for rank in range(4)):
            if time.monotonic() > deadline:
                raise SystemExit(f"{strategy} on {nodes} nodes does not begin")
            time.sleep(0.05)
        time.sleep(BEFORE_S)
        killed = time.monotonic()
        os.kill(cluster.process(f"agent-{nodes - 1}"), signal.SIGKILL)
        time.sleep(AFTER_S)
        open(os.path.join(output, "enough"), "w", encoding="utf-8").close()
        printed, _ = run.communicate(timeout=60)
        if run.returncode != 0:
            raise SystemExit(f"{strategy} on {nodes} nodes did not go on: {printed}")
    with open(os.path.join(directory, "result.json"), encoding="utf-8") as file:
        lost = json.load(file)["lost"]
    before, longest = [], 0.0
    for rank, begins in step_begins(directory).items():
        steps = [(a, b - a) for a, b in zip(begins, begins[1:])]
        if rank in lost:
            continue
        before += [step for begin, step in steps if killed - 1 < begin and begin + step < killed]
        longest = max([longest] + [step for begin, step in steps if killed < begin + step < killed + AFTER_S])
    return statistics.median(before), longest


def node_killed(bench):
    """Beyond a median step, of each strategy the median of some kills; of all the longest."""
    values = {}
    for nodes in (2, 4):
        worst = []
        for strategy in strategies():
            extra = []
            for _ in range(bench.rounds_or(TRIES)):
                median, longest = one_loss(bench, strategy, nodes)
                extra.append(1000 * (longest - median))
            print(f"{strategy} on {nodes} nodes: {', '.join(f'{ms:.1f}' for ms in extra)} ms beyond {1000 * median:.1f} ms", flush=True)
            worst.append(statistics.median(extra))
        values[f"{nodes} nodes"] = worst
        values[f"{nodes} nodes, strategies"] = [len(worst)]
    return {35: values}
