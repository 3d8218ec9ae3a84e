"""Figures 38 and 42: a worker of four, or the agent of one of two nodes, is killed while they train a model of 25 MB: until another process in its place takes part, and how long the others' longest step is meanwhile."""
import json
import os
import signal
import statistics
import subprocess
import time

from measure.cluster import Cluster
from measure.losing import wait_until_all_train

STRATEGIES = {"allreduce": "allreduce", "local-sgd": "local-sgd(period=2)", "wagma": "wagma(late=skip)", "nonblocking": "nonblocking",
              "server": "server(async)", "d-psgd": "d-psgd(ring)"}
ELEMENTS = 3_276_800  # Of 8 bytes.
STEP_MS = 100
OF_NODES = {"allreduce": "allreduce", "wagma": "wagma(late=skip)", "nonblocking": "nonblocking(batches=2)", "server": "server(async)"}
BEFORE_S, AFTER_S = 2.0, 3.0
TRIES = 9


def worker_process(directory, rank):
    """Who has this worker's log open as its stdout."""
    log = os.path.join(directory, "logs", f"worker-{rank}.log")
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{name}/fd/1") == log:
                return int(name)
        except OSError:
            continue
    raise SystemExit(f"worker {rank} of {directory} has no process")


def spans_of(directory):
    """Rank -> [(name, begin, end)] in seconds of the machine's steady clock, in order."""
    with open(os.path.join(directory, "trace.json"), encoding="utf-8") as file:
        trace = json.load(file)
    spans = {}
    for event in trace if isinstance(trace, list) else trace["traceEvents"]:
        if event.get("ph") == "X" and event["tid"] > 0:
            spans.setdefault(event["tid"] - 1, []).append((event["name"], event["ts"] / 1e6, (event["ts"] + event["dur"]) / 1e6))
    return {rank: sorted(of, key=lambda span: span[1]) for rank, of in spans.items()}


def steps_of(spans):
    """When each step of a worker was over: it has published."""
    return [end for name, _, end in spans if name in ("compute", "abandoned")]


def one_return(bench, strategy, kill, victims, how, environment=None):
    """`kill`: of the run's directory; `how`: these come back, in the words of its result."""
    output = bench.new_directory() + "-output"
    os.mkdir(output)
    directory = bench.new_directory()
    run = subprocess.Popen([bench.paceline, "run", bench.program("tests", "integration", "quadratic_worker"), "--workers", "4", "--strategy", strategy,
                            "--run-dir", directory, "--", "updates=1000000", f"sleep_ms=[{STEP_MS}]", f"elements={ELEMENTS}", f"output={output}"],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=bench.folder, env=environment)
    wait_until_all_train(output, strategy)
    time.sleep(BEFORE_S)
    killed_at = time.monotonic()
    kill(directory)
    time.sleep(AFTER_S)
    open(os.path.join(output, "enough"), "w", encoding="utf-8").close()
    printed, _ = run.communicate(timeout=60)
    with open(os.path.join(directory, "result.json"), encoding="utf-8") as file:
        result = json.load(file)
    if run.returncode != 0 or result.get(how) != {str(rank): 1 for rank in victims}:
        raise SystemExit(f"{strategy}: workers {victims} did not come back: {printed}")
    spans = spans_of(directory)
    firsts = [next((begin, end) for name, begin, end in spans[rank] if begin > killed_at and name in ("compute", "abandoned")) for rank in victims]
    begin, end = max(begin for begin, _ in firsts), max(end for _, end in firsts)
    others = [steps_of(of) for rank, of in spans.items() if rank not in victims]
    gaps = [(b - a, a, b) for steps in others for a, b in zip(steps, steps[1:])]
    before = [(length, a) for length, a, b in gaps if b < killed_at]
    median = statistics.median([length for length, a in before if killed_at - 1.5 < a] or [length for length, _ in before])  # Steps may be long.
    longest = max(length for length, a, b in gaps if b > killed_at and a < end + 0.5)
    return {"begins": 1000 * (begin - killed_at), "beyond": 1000 * (end - killed_at) - 1000 * median, "until": end - killed_at, "longest": longest / median}


def one_worker(bench, strategy, victim=3):
    return one_return(bench, strategy, lambda directory: os.kill(worker_process(directory, victim), signal.SIGKILL), [victim], "returned")


def one_node(bench, strategy):
    """Of a cluster of its own, since a node's agent comes back that often only."""
    with Cluster(bench, 2) as cluster:
        return one_return(bench, strategy, lambda _: os.kill(cluster.process("agent-1"), signal.SIGKILL), [2, 3], "joined", cluster.environment)


def returning(bench):
    values = {}
    for name, strategy in STRATEGIES.items():
        found = [one_worker(bench, strategy) for _ in range(bench.rounds_or(TRIES))]
        for key in ("begins", "beyond", "longest"):
            values[f"{name} {key}"] = [one[key] for one in found]
            print(f"{strategy} {key}: {', '.join(f'{one[key]:.2f}' for one in found)}", flush=True)
    return {38: values}


def node_returns(bench):
    values = {}
    for name, strategy in OF_NODES.items():
        found = [one_node(bench, strategy) for _ in range(bench.rounds_or(TRIES))]
        for key in ("until", "longest"):
            values[f"{name} {key}"] = [one[key] for one in found]
            print(f"{strategy} {key}: {', '.join(f'{one[key]:.2f}' for one in found)}", flush=True)
    return {42: values}
