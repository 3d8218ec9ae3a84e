"""Figure 44: 64 workers on eight nodes, of which one is killed every second: what head, agents and supervisor have come to hold, and what is left when the cluster is down."""
import os
import random
import signal
import statistics
import subprocess
import time

from measure.bench import worker_pids
from measure.cluster import Cluster
from measure.losing import wait_until_all_train

WORKERS, NODES = 64, 8
ELEMENTS, STEP_MS = 10_000, 200
MINUTES, WARM_S = 5.0, 15.0
EVERY_S = 1.0


def held_by(pid):
    """Resident bytes, descriptors, and those of them that are memory without a file."""
    links = []
    for descriptor in os.listdir(f"/proc/{pid}/fd"):
        try:
            links.append(os.readlink(f"/proc/{pid}/fd/{descriptor}"))
        except OSError:
            continue
    with open(f"/proc/{pid}/statm", encoding="utf-8") as file:
        resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return resident, len(links), sum(link.startswith("/memfd:") for link in links)


def growth(rows, at):
    """Of the process that grew most: the median of the last quarter less that of the first."""
    quarter = max(1, len(rows) // 4)
    return max(statistics.median(row[process][at] for row in rows[-quarter:]) - statistics.median(row[process][at] for row in rows[:quarter]) for process in range(len(rows[0])))


def left_behind(cluster, shared_before):
    """Processes of the cluster, its files, and what is new in shared memory."""
    processes = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if f"XDG_RUNTIME_DIR={cluster.runtime}".encode() in file.read().split(b"\0"):
                    processes.append(f"process {pid}")
        except OSError:
            continue
    files = [os.path.join(folder, name) for folder, _, names in os.walk(cluster.runtime) for name in names if name != ".lock"]
    return processes + files + sorted(set(os.listdir("/dev/shm")) - shared_before)


def crowd(bench):
    chance, seconds = random.Random(1), 60 * (bench.minutes or MINUTES)
    output, directory = bench.new_directory() + "-output", bench.new_directory()
    os.mkdir(output)
    shared = set(os.listdir("/dev/shm"))
    with Cluster(bench, NODES) as cluster, open(directory + "-said", "w", encoding="utf-8") as said:
        run = subprocess.Popen([bench.paceline, "run", bench.program("tests", "integration", "quadratic_worker"), "--workers", str(WORKERS), "--restarts", "1000",
                                "--run-dir", directory, "--", "updates=1000000", f"sleep_ms=[{STEP_MS}]", f"elements={ELEMENTS}", f"output={output}"],
                               stdout=said, stderr=said, cwd=bench.folder, env=cluster.environment)
        wait_until_all_train(output, "the job", WORKERS)
        rows, killed, begin = [], 0, time.monotonic()
        while (now := time.monotonic() - begin) < WARM_S + seconds:
            if run.poll() is not None:
                raise SystemExit(f"figures.py: it ended, {killed} kills after it began: see {said.name}")
            os.kill(chance.choice(sorted(worker_pids(directory).values())), signal.SIGKILL)
            killed += 1
            if now > WARM_S:
                rows.append([held_by(pid) for pid in cluster.processes()])
            time.sleep(max(0.0, begin + killed * EVERY_S - time.monotonic()))
        open(os.path.join(output, "enough"), "w", encoding="utf-8").close()
        if run.wait(120) != 0:
            raise SystemExit(f"figures.py: it did not end well: see {said.name}")
        cluster.down()
        left = left_behind(cluster, shared)
        print(f"left: {', '.join(left) or 'nothing'}", flush=True)
    values = {"kills": killed, "left": len(left), "memory": growth(rows, 0) / 1e6, "descriptors": growth(rows, 1), "memfds": growth(rows, 2)}
    return {44: {key: [value] for key, value in values.items()}}
