"""Figures 22, 24, 29 and 30: what channels cost beside what they are made of, and a flood of calls."""
import os
import re
import subprocess
import time

from measure.bench import output_of, repetitions


def interleaved(bench, *program):
    """Ratios of two benchmarks of a program, run in one go and interleaved at random, repetition by repetition."""
    times = {}
    for row in repetitions(bench.program(*program), bench.rounds_or(9)):
        times.setdefault(row["run_name"].removesuffix("/real_time"), {})[row["repetition_index"]] = row["real_time"]
    return lambda over, under: [times[over][k] / times[under][k] for k in sorted(times[over])]


def messages(bench):
    ratio = interleaved(bench, "tests", "bench", "messages_bench")
    return {29: {"pipelined": ratio("ours/batch:1000", "bare/batch:1000"), "round trip": ratio("ours/batch:1", "bare/batch:1")}}


def channel(bench):
    ratio = interleaved(bench, "runtime", "channel", "paceline_channel_bench")
    spins = 1 << 20
    return {22: {"pipelined": ratio("pipelined_channel", "pipelined_bare_ring"),
                 "sleeping": ratio("ping_pong_channel/spins:0", "ping_pong_bare/spins:0"),
                 "spinning": ratio(f"ping_pong_channel/spins:{spins}", f"ping_pong_bare/spins:{spins}")}}


def resident(pid):
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("VmRSS")), 0)
    except OSError:
        return 0


def peaks(bench, calls, flight):
    """Seconds of a flood, and the largest memory (kB) of the agent and of the caller, which is the first of the script's."""
    script = bench.program("tests", "integration", "calls_script")
    begin = time.monotonic()
    run = subprocess.Popen([bench.paceline, "run", script, "--", "flood", str(calls), str(flight)], cwd=bench.folder)
    largest = {}
    while run.poll() is None:
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                program = os.readlink(f"/proc/{pid}/exe")
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    is_agent = b"\0agent\0" in file.read()
            except OSError:
                continue
            if program == script or (program == os.path.realpath(bench.paceline) and is_agent):
                kind = "agent" if is_agent else "script"
                largest[kind, int(pid)] = max(largest.get((kind, int(pid)), 0), resident(pid))
        time.sleep(0.05)
    if run.returncode != 0:
        raise SystemExit(f"figures.py: a flood of {calls} calls failed")
    agent = max((kilobytes for (kind, _), kilobytes in largest.items() if kind == "agent"), default=0)
    caller = next((largest[key] for key in sorted(largest) if key[0] == "script"), 0)  # 0: over too soon to be seen.
    return time.monotonic() - begin, agent, caller


def flood(bench):
    """A million calls in flights of 100,000, against as many in flights of 1,000: what a pending call takes."""
    values = {"agent": [], "caller": [], "seconds": [], "task": []}
    tasks = bench.program("tests", "integration", "tasks_script")
    for _ in range(bench.rounds_or(3)):
        _, idle_agent, _ = peaks(bench, 1000, 1000)
        _, _, small = peaks(bench, 1_000_000, 1000)
        seconds, agent, large = peaks(bench, 1_000_000, 100_000)
        values["agent"].append((agent - idle_agent) / 1e3)
        values["caller"].append((large - small) * 1024 / 99_000)
        values["seconds"].append(seconds)
        printed = output_of(bench.paceline, "run", tasks, "--", "pending", "1000000")
        values["task"].append(float(re.search(r"(\d+) bytes each", printed)[1]))
    return {24: values}
