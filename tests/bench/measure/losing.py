"""Figures 35 and 36: the agent of one node is killed, or its host cut off, while a job trains, under each strategy: how much longer the others'
longest step was."""
import contextlib
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time

from measure.cluster import Cluster
from measure.store import ROOT

sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
import cut_off

SLEEP_MS = 10  # Of a step.
BEFORE_S, AFTER_S = 1.5, 1.5
LEASE_S = 2.0
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


@contextlib.contextmanager
def killing(cluster, node):
    yield lambda: os.kill(cluster.process(f"agent-{node}"), signal.SIGKILL)


@contextlib.contextmanager
def cutting(cluster, node):
    with cut_off.CutOff(cluster.directory, node) as cut:
        yield cut.cut


def wait_until_all_train(output, what, workers=4):
    """Each of the workers of a quadratic job has begun to write what happens to it."""
    deadline = time.monotonic() + 20
    while not all(os.path.exists(os.path.join(output, f"worker-{rank}.jsonl")) for rank in range(workers)):
        if time.monotonic() > deadline:
            raise SystemExit(f"{what} does not begin")
        time.sleep(0.05)


def one_loss(bench, strategy, nodes, losing, after_s, first=False):
    """Of a job of four workers, whose last node is lost, or whose first, which leads, while its driver is at the last: how long the others stood in a step before (the median), and since (the longest)."""
    output = os.path.join(bench.folder, f"output-{time.monotonic_ns()}")
    os.mkdir(output)
    directory = bench.new_directory()
    updates = int(1000 * (BEFORE_S + after_s) / SLEEP_MS) if strategy == "one-shot" else 1_000_000  # It averages at its end only.
    with Cluster(bench, nodes) as cluster, losing(cluster, 0 if first else nodes - 1) as lose:
        run = subprocess.Popen([bench.paceline, "run", bench.program("tests", "integration", "quadratic_worker"), "--workers", "4", "--restarts", "0", "--strategy", strategy,
                                "--run-dir", directory, "--", f"updates={updates}", f"sleep_ms=[{SLEEP_MS}]", f"output={output}"],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=bench.folder,
                               env=dict(cluster.environment, PACELINE_NODE=str(nodes - 1 if first else 0)))
        wait_until_all_train(output, f"{strategy} on {nodes} nodes")
        time.sleep(BEFORE_S)
        lost_at = time.monotonic()
        lose()
        time.sleep(after_s)
        open(os.path.join(output, "enough"), "w", encoding="utf-8").close()
        printed, _ = run.communicate(timeout=60)
        if run.returncode != 0:
            raise SystemExit(f"{strategy} on {nodes} nodes did not go on: {printed}")
    with open(os.path.join(directory, "result.json"), encoding="utf-8") as file:
        lost = json.load(file)["lost"]
    if not lost:
        raise SystemExit(f"{strategy} on {nodes} nodes: nobody noticed that one was lost")
    before, longest = [], 0.0
    for rank, spans in standing(directory).items():
        if rank in lost:
            continue
        before += [end - begin for begin, end in spans if lost_at - 1 < begin and end < lost_at]
        longest = max([longest] + [end - begin for begin, end in spans if lost_at < end and begin < lost_at + after_s])
    return statistics.median(before or [0.0]), longest


def losses(bench, losing, after_s, first_too=False):
    """Seconds beyond a median step, of each strategy the median of some losses."""
    values = {}
    for nodes, first in ((2, False), (4, False), *([(4, True)] if first_too else [])):
        name = f"{nodes}{' first' if first else ''}"
        beyond = []
        for strategy in strategies():
            found = [one_loss(bench, strategy, nodes, losing, after_s, first) for _ in range(bench.rounds_or(TRIES))]
            extra = [longest - median for median, longest in found]
            print(f"{strategy} on {nodes} nodes{', the first lost' if first else ''}: {', '.join(f'{1000 * s:.1f}' for s in extra)} ms", flush=True)
            beyond.append(statistics.median(extra))
        values |= {name: beyond, f"{name} longest": [max(beyond)], f"{name} go on": [len(beyond)]}
    return values


def node_killed(bench):
    values = losses(bench, killing, AFTER_S, first_too=True)
    return {35: {key: samples if "go on" in key else [1000 * s for s in samples] for key, samples in values.items()}}


def host_cut_off(bench):
    try:
        with cut_off.private_network():
            return {36: losses(bench, cutting, LEASE_S + AFTER_S)}
    except cut_off.Unavailable as why:
        raise SystemExit(f"figures.py: nobody is cut off: {why}") from None
