"""Figure 32: what an actor takes, and how soon its callers hear when it dies."""
import os
import re
import subprocess

from measure.bench import output_of
from measure.cluster import is_program


def number_in(pattern, text):
    found = re.search(pattern, text)
    if not found:
        raise SystemExit(f"figures.py: no '{pattern}' in what was printed:\n{text}")
    return float(found[1])


def private_bytes(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as file:
        return 1024 * sum(int(line.split()[1]) for line in file if line.startswith("Private_"))


def idle_memory(bench, script, count):
    """Private memory of each of so many actors that have answered once; without the driver and the fork server."""
    run = subprocess.Popen([bench.paceline, "run", script, "--", "idle", str(count)], cwd=bench.folder, stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, text=True)
    if not run.stdout.readline().startswith("idle"):
        raise SystemExit("figures.py: the actors did not start")
    sizes = sorted(private_bytes(pid) for pid in filter(str.isdigit, os.listdir("/proc")) if is_program(pid, script))
    run.stdin.close()
    run.wait()
    if len(sizes) < count:
        raise SystemExit(f"figures.py: {len(sizes)} processes where {count} actors are")
    return sizes[len(sizes) // 2]


def actors(bench):
    calls = bench.program("tests", "integration", "calls_script")
    durable = bench.program("tests", "integration", "durable_actors_script")
    values = {"restart": [], "killed": [], "memory": [], "thousand": []}
    for _ in range(bench.rounds_or(5)):
        printed = output_of(bench.paceline, "run", durable, "--", "large", bench.folder, "100", "20")
        values["restart"].append(number_in(r"median ([0-9.]+) ms", printed))
        printed = output_of(bench.paceline, "run", calls, "--", "killed", "10000", "100")
        values["killed"].append(number_in(r"all had ended ([0-9.]+) ms", printed))
        values["memory"].append(idle_memory(bench, calls, 50) / 1e6)
        printed = output_of(bench.paceline, "run", calls, "--", "many", "1000")
        values["thousand"].append(1000 / number_in(r"1000 actors answered after ([0-9.]+) s", printed))
    return {32: values}
