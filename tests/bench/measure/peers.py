"""Figure 31: Ray's microbenchmarks by `paceline bench`, by both of Ray's APIs, and what of them CAF has, interleaved.

Ray is that of the virtual environment which PACELINE_RAY names (`pip install ray ray-cpp`); CAF is Debian's libcaf-dev. Ray's
programs stop all Ray clusters of this user when they end: that is what its shutdown does.
"""
import json
import os
import random
import subprocess

from measure.store import ROOT

PEERS = os.path.join(ROOT, "tests", "bench", "peers")
SECONDS = 2
NAMES = ("1_1_actor_calls_sync", "1_1_actor_calls_async", "1_n_actor_calls_async", "n_n_actor_calls_async",
         "single_client_tasks_sync", "single_client_tasks_async", "multi_client_tasks_async", "many_tasks",
         "1_1_async_actor_calls_sync", "1_1_async_actor_calls_async", "single_client_wait_1k_refs", "many_actors")


def compiled(bench, name, *flags):
    output = os.path.join(bench.folder, name.replace(".cc", "") + (".so" if "-shared" in flags else ""))
    subprocess.run(["g++", "-O2", os.path.join(PEERS, name), "-o", output, *flags], check=True)
    return output


def ray_environment():
    folder = os.environ.get("PACELINE_RAY")
    python = os.path.join(folder or "", "bin", "python")
    if not folder or not os.access(python, os.X_OK):
        raise SystemExit("figures.py: PACELINE_RAY names no virtual environment: python3 -m venv DIR; DIR/bin/pip install ray ray-cpp; "
                         "PACELINE_RAY=DIR tests/bench/figures.py BUILD peers")
    where = subprocess.run([python, "-c", "import ray, os; print(os.path.dirname(ray.__file__))"], check=True, capture_output=True, text=True)
    return os.path.abspath(folder), python, where.stdout.strip()


class Peers:
    """The commands, each of which prints {"name": ..., "per_second": ...} for those of the benchmarks that it has."""

    def __init__(self, bench):
        folder, python, ray = ray_environment()
        self.bench = bench
        self.environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "PATH": os.path.join(folder, "bin") + ":" + os.environ["PATH"]}
        # Ray's library has the old string ABI, and wants the program twice: as executable and as shared object.
        library = ["-std=c++17", "-fPIC", "-D_GLIBCXX_USE_CXX11_ABI=0", f"-I{ray}/cpp/include", f"-L{ray}/cpp/lib", "-lray_api",
                   f"-Wl,-rpath,{ray}/cpp/lib", "-ldl"]
        compiled(bench, "ray_tasks.cc", "-shared", *library)
        caf = compiled(bench, "caf_calls.cc", "-std=c++17", "-lcaf_io", "-lcaf_core")
        self.commands = {"ours": [bench.paceline, "bench", "--json", "--rounds", "1", "--seconds"],
                         "python": [python, os.path.join(PEERS, "ray_tasks.py")],
                         "cpp": [compiled(bench, "ray_tasks.cc", *library)], "caf": [caf]}

    def finished(self, command):
        """None: it hangs, as Ray's C++ API does now and then, and was ended."""
        try:
            return subprocess.run(command, capture_output=True, text=True, errors="replace", env=self.environment, cwd=self.bench.folder, timeout=300)
        except subprocess.TimeoutExpired:
            return None

    def rates(self, peer):
        """Operations a second, by name."""
        command = [*self.commands[peer], str(SECONDS), *NAMES]
        done = self.finished(command)
        if done is None and peer in ("python", "cpp"):
            print(f"{peer} hangs and is tried once more", flush=True)
            subprocess.run(["ray", "stop", "--force"], env=self.environment, capture_output=True, check=False)
            done = self.finished(command)
        if done is None:
            raise SystemExit(f"{' '.join(command)} hangs")
        rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"name"')]
        if not rows or done.returncode != 0:
            raise SystemExit(f"{' '.join(command)} failed: {done.stdout[-1000:]}{done.stderr[-2000:]}")
        return {row["name"]: row["per_second"] for row in rows}


def peers(bench):
    programs = Peers(bench)
    values = {}
    for _ in range(bench.rounds_or(3)):
        rates = {}
        for peer in random.sample(list(programs.commands), len(programs.commands)):
            rates[peer] = programs.rates(peer)
            print(peer, {name: round(rate, 1) for name, rate in rates[peer].items()}, flush=True)
        for name in NAMES:
            ours = rates["ours"][name]
            values.setdefault(f"rate {name}", []).append(ours / 1000)
            values.setdefault(name, []).append(ours / max(rates["python"][name], rates["cpp"].get(name, 0)))
            if name in rates["caf"]:
                values.setdefault(f"caf {name}", []).append(ours / rates["caf"][name])
    return {31: values}
