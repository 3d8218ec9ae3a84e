"""Figures 4, 16 and 28: a worker or an agent that is stopped for a while, and what the others notice of it."""
import json
import os
import signal
import statistics
import time

from measure.bench import EXAMPLE, batches_of_its_own, interrupt, worker_pids
from measure.cluster import Cluster


def watched_freeze(bench, strategy):
    """A job of two workers, of which rank 1 stands still for 10 s: (time, clock, workers) of its events, frozen at, thawed at."""
    directory = bench.new_directory()
    job = bench.start(EXAMPLE, "--workers", "2", "--epochs", "40", "--target", "none", *batches_of_its_own(strategy, "--strategy", strategy),
                      directory=directory)
    rows, pids, frozen_at, thawed_at = [], {}, None, None
    for line in job.stdout:
        event = json.loads(line)
        if event.get("event") != "progress" or "workers" not in event:
            continue
        now = time.monotonic()
        rows.append((now, event["clock_s"], {w["rank"]: w for w in event["workers"]}))
        if not frozen_at and event["clock_s"] > 8:
            pids = worker_pids(directory)
            os.kill(pids[1], signal.SIGSTOP)
            frozen_at = now
        if frozen_at and not thawed_at and now - frozen_at > 10:
            os.kill(pids[1], signal.SIGCONT)
            thawed_at = now
        if thawed_at and now - thawed_at > 3:
            break
    interrupt(job)
    return rows, frozen_at, thawed_at


def step_and_waiting(rows, begin, end):
    """Of rank 0: its median step, and the share of the time that it waited."""
    part = [row for row in rows if begin <= row[0] <= end]
    steps = [(b[1] - a[1]) / (b[2][0]["step"] - a[2][0]["step"]) for a, b in zip(part, part[1:]) if b[2][0]["step"] > a[2][0]["step"] and b[1] > a[1]]
    waited = part[-1][2][0]["wait_s"] - part[0][2][0]["wait_s"]
    return statistics.median(steps), waited / (part[-1][1] - part[0][1])


def frozen(bench):
    """One of two workers stopped for 10 s: the other's step time and waiting, during against before."""
    values = {}
    for strategy in ("nonblocking", "wagma(late=skip,grace=2x)") * bench.rounds_or(3):
        rows, frozen_at, thawed_at = watched_freeze(bench, strategy)
        before, _ = step_and_waiting(rows, frozen_at - 6, frozen_at)
        during, waiting = step_and_waiting(rows, frozen_at, thawed_at)
        back = rows[-1][2][1]["step"] > [row for row in rows if row[0] <= thawed_at][-1][2][1]["step"]
        if not back:
            raise SystemExit(f"frozen {strategy}: the frozen worker did not come back")
        values.setdefault(f"step {strategy}", []).append(during / before)
        values.setdefault(f"waiting {strategy}", []).append(100 * waiting)
    return {4: values}


def frozen_agent(bench):
    """The agent of the second of two nodes stopped for 30 s: how long the first one stands still, and its median step then."""
    values = {}
    for strategy in ("nonblocking", "wagma(late=skip,grace=2x)") * bench.rounds_or(3):
        with Cluster(bench, 2) as cluster:
            rows, frozen_at = watched_agent(bench, strategy, cluster)
        steps = [(now, workers[0]["step"]) for now, _, workers in rows if now >= frozen_at]
        stood = max(((b[0] - a[0], b[0]) for a, b in standstills(steps)), default=(0.0, frozen_at))
        before, _ = step_and_waiting(rows, frozen_at - 6, frozen_at)
        after, _ = step_and_waiting(rows, stood[1], rows[-1][0])
        values.setdefault(f"step {strategy}", []).append(after / before)
        values.setdefault(f"stood {strategy}", []).append(stood[0])
    return {28: values}


def watched_agent(bench, strategy, cluster):
    """A job of two workers, whose second node's agent stands still: (time, clock, workers) of the first one's events, frozen at."""
    seconds = (bench.minutes or 0.5) * 60
    job = bench.start(EXAMPLE, "--workers", "2", "--epochs", "100", "--target", "none",
                      *batches_of_its_own(strategy, "--strategy", strategy), environment=cluster.environment)
    agent = cluster.process("agent-1")
    rows, frozen_at, lost = [], None, False
    for line in job.stdout:
        event = json.loads(line)
        lost = lost or event.get("event") == "node_lost"
        if event.get("event") != "progress" or event["node"] != 0 or "workers" not in event:
            continue
        now = time.monotonic()
        rows.append((now, event["clock_s"], {w["rank"]: w for w in event["workers"]}))
        if not frozen_at and event["clock_s"] > 10:
            frozen_at = now
            os.kill(agent, signal.SIGSTOP)
        if frozen_at and now - frozen_at > seconds:
            break
    os.kill(agent, signal.SIGCONT)
    interrupt(job)
    if not lost:
        raise SystemExit(f"figures.py: {strategy}: nobody noticed that the agent was frozen")
    return rows, frozen_at


def standstills(steps):
    """Pairs of moments from one row to the first with another step."""
    last = steps[0]
    for row in steps:
        if row[1] != last[1]:
            yield last, row
            last = row


def wagma_frozen(bench, phase_s=4):
    """One of 8 workers of wagma stopped between syncs: the others' mean step, each phase against the one before it without."""
    rounds = bench.rounds_or(5)
    directory = bench.new_directory()
    job = bench.start(bench.program("tests", "integration", "quadratic_worker"), "--workers", "8", "--strategy", "wagma(sync=1000000)",
                      arguments=("updates=1000000", "sleep_ms=[20]"), directory=directory)
    pids, marks, stopped, until = {}, [], False, None  # marks: when a phase ended, and the steps done then.
    for line in job.stdout:
        event = json.loads(line)
        if event.get("event") != "progress" or len(event.get("workers", [])) < 8 or event["clock_s"] < 2:
            continue
        if until is not None and event["clock_s"] < until:
            continue
        marks.append((event["clock_s"], {w["rank"]: w["step"] for w in event["workers"]}))
        until = event["clock_s"] + phase_s
        if not pids:
            pids = worker_pids(directory)
        elif len(marks) < 2 * rounds + 1:
            os.kill(pids[7], signal.SIGCONT if stopped else signal.SIGSTOP)
            stopped = not stopped
        else:
            break
    os.kill(pids[7], signal.SIGCONT)
    interrupt(job)
    steps = [statistics.median([(b[0] - a[0]) / (b[1][rank] - a[1][rank]) for rank in range(7)]) for a, b in zip(marks, marks[1:])]
    return {16: {"step": [during / before for before, during in zip(steps[::2], steps[1::2])]}}
