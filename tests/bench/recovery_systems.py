"""How tests/bench/recovery.py starts its job under Paceline and under the peers of tests/bench/peers/recovery/."""
import os
import socket
from dataclasses import dataclass
from subprocess import DEVNULL, Popen, run

from measure.processor import processor

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = os.path.join(HERE, "peers", "recovery")
WORKERS = 4
RESTARTS = 1000  # An hour, or in all: more than are needed.
# A group that is dead is noticed after HEARTBEAT_MS; who lives and is late is waited for, JOIN_MS at most.
HEARTBEAT_MS, JOIN_MS, TICK_MS = 500, 500, 10


@dataclass(frozen=True)
class Place:
    """What a job is started with; `folder`: in memory, for what its workers note and for its checkpoints."""
    paceline: str
    peers: str
    folder: str

    def environment(self):
        own = {"OMP_NUM_THREADS": "1", "XDG_RUNTIME_DIR": self.folder, "RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": SCRIPTS, "PYTHONDONTWRITEBYTECODE": "1",
               "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.1", "TORCH_PROCESS_GROUP_SHUTDOWN_TIMEOUT_S": "1", "RAY_worker_niceness": "0",
               "PATH": os.path.join(self.peers, "bin") + ":" + os.environ["PATH"]}
        return {**os.environ, **own}

    def program(self, name):
        return os.path.join(self.peers, "bin", name)

    def start(self, command, log, **environment):
        with open(os.path.join(self.folder, f"{log}.log"), "w", encoding="utf-8") as file:
            return Popen(command, stdout=file, stderr=file, stdin=DEVNULL, cwd=self.folder, env={**self.environment(), **environment})


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def paceline(strategy):
    def start(place):
        return [place.start([place.paceline, "run", os.path.join(SCRIPTS, "paceline_worker.cpp"), "--workers", str(WORKERS), "--strategy", strategy,
                             "--restarts", str(RESTARTS), "--run-dir", os.path.join(place.folder, "run"), "--", place.folder], "paceline")]
    return start


def torchrun(place, workers, log, *command, **environment):
    return place.start([place.program("torchrun"), "--standalone", "--nproc-per-node", str(workers), "--max-restarts", str(RESTARTS), "--monitor-interval", "0.1",
                        *command], log, **environment)


def torchrun_job(place):
    """Each start of the workers with a store of its own: in torch 2.15 those that are started again otherwise find the dead ones' addresses in
    it, and do not come together."""
    return [torchrun(place, WORKERS, "torchrun", os.path.join(SCRIPTS, "torchrun_worker.py"), place.folder, TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1")]


def torchft_job(place):
    port = free_port()
    lighthouse = place.start([place.program("torchft_lighthouse"), "--bind", f"127.0.0.1:{port}", "--min_replicas", "1", "--heartbeat_timeout_ms", str(HEARTBEAT_MS),
                              "--join_timeout_ms", str(JOIN_MS), "--quorum_tick_ms", str(TICK_MS)], "lighthouse")
    groups = [torchrun(place, 1, f"group-{group}", os.path.join(SCRIPTS, "torchft_worker.py"), place.folder, str(group), TORCHFT_LIGHTHOUSE=f"http://127.0.0.1:{port}")
              for group in range(WORKERS)]
    return groups + [lighthouse]


def ray_job(place):
    return [place.start([place.program("python"), os.path.join(SCRIPTS, "ray_train.py"), place.folder], "ray")]


@dataclass(frozen=True)
class System:
    """One row of the page; `start`: gives the processes of a job, of a Place."""
    name: str
    start: callable
    version: str = "Paceline"  # Whose.
    outlives: int = 0  # So many of the last processes do not end by themselves.


SYSTEMS = (System("Paceline, `allreduce`", paceline("allreduce")),
           System("Paceline, `wagma(late=skip)`", paceline("wagma(late=skip)")),
           System("torchft", torchft_job, "torchft", outlives=1),
           System("torchrun", torchrun_job, "torch"),
           System("Ray Train", ray_job, "ray"))


def descendants(pids):
    """These processes and all that they have started, and those have."""
    children = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8") as file:
                children.setdefault(int(file.read().rpartition(")")[2].split()[1]), []).append(int(name))
        except OSError:
            continue
    found, rest = [], list(pids)
    while rest:
        found.append(rest.pop())
        rest += children.get(found[-1], [])
    return found


def versions(place):
    """Of all that is measured."""
    code = "import importlib.metadata as m, sys; print(sys.version.split()[0], *(m.version(n) for n in ('torch', 'torchft', 'ray')))"
    printed = run([place.program("python"), "-c", code], check=True, capture_output=True, text=True).stdout
    version = run([place.paceline, "version"], check=True, capture_output=True, text=True).stdout.split()[1]
    return {"Paceline": version, **dict(zip(("Python", "torch", "torchft", "ray"), printed.split()))}


def import_s(place):
    """Processor time of a Python that has torch and an optimiser: the least of three."""
    code = "import torch, resource; torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1); u = resource.getrusage(resource.RUSAGE_SELF); print(u.ru_utime + u.ru_stime)"
    return min(float(run([place.program("python"), "-c", code], check=True, capture_output=True, text=True, env=place.environment()).stdout) for _ in range(3))


def machine():
    return {**processor(), "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9)}
