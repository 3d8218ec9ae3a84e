"""Figure 35: the agent of one node is killed while a job trains, under each strategy: how much longer the others' longest step was."""
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


def standing(directory):
    """Rank -> (begin, end) of what is no computing nor publishing, in seconds of the machine's steady clock: what a step takes besides."""
    with open(os.path.join(directory, "trace.json"), encoding="utf-8") as file:
        trace = json.load(file)
    spans = {}
    for event in trace if isinstance(trace, list) else trace["traceEvents"]:
        if event.get("ph") == "X" and event["tid"] > 0 and event["name"] not in ("compute", "abandoned", "publish"):
            spans.setdefault(event["tid"] - 1, []).append((event["ts"] / 1e6, (event["ts"] + event["dur"]) / 1e6))
    return spans


def one_loss(bench, strategy, nodes):
    """Of a job of four workers, whose last node's agent is killed: how long the others stood in a step before (the median), and since (the longest)."""
    output = os.path.join(bench.folder, f"output-{time.monotonic_ns()}")
    os.mkdir(output)
    directory = bench.new_directory()
    updates = int(1000 * (BEFORE_S + AFTER_S) / SLEEP_MS) if strategy == "one-shot" else 1_000_000  # It averages at its end only.
    with Cluster(bench, nodes) as cluster:
        run = subprocess.Popen([bench.paceline, "run", bench.program("tests", "integration", "quadratic_worker"), "--workers", "4", "--strategy", strategy,
                                "--run-dir", directory, "--", f"updates={updates}", f"sleep_ms=[{SLEEP_MS}]", f"output={output}"],
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
    for rank, spans in standing(directory).items():
        if rank in lost:
            continue
        before += [end - begin for begin, end in spans if killed - 1 < begin and end < killed]
        longest = max([longest] + [end - begin for begin, end in spans if killed < end and begin < killed + AFTER_S])
    return statistics.median(before or [0.0]), longest


def node_killed(bench):
    """Beyond a median step, of each strategy the median of some kills."""
    values = {}
    for nodes in (2, 4):
        beyond = []
        for strategy in strategies():
            found = [one_loss(bench, strategy, nodes) for _ in range(bench.rounds_or(TRIES))]
            extra = [1000 * (longest - median) for median, longest in found]
            print(f"{strategy} on {nodes} nodes: {', '.join(f'{ms:.1f}' for ms in extra)} ms", flush=True)
            beyond.append(statistics.median(extra))
        values |= {f"{nodes}": beyond, f"{nodes} longest": [max(beyond)], f"{nodes} go on": [len(beyond)]}
    return {35: values}
