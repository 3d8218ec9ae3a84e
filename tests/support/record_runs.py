#!/usr/bin/env python3
"""Makes the recorded runs that tests/integration/simulate_from_test.py fits models to: real runs of the quadratic job on a
machine with nothing else to do, since the model knows nothing of cores that are shared with others.

    tests/support/record_runs.py BUILD     writes tests/integration/recorded_runs.tar.xz; BUILD: a release build

What is told of this machine (paths) is taken out; of a run's files those are kept that `paceline simulate --from` reads.
"""
import argparse
import json
import os
import subprocess
import tarfile
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TARGET = os.path.join(ROOT, "tests", "integration", "recorded_runs.tar.xz")
READ = ("configuration.json", "metrics.jsonl", "result.json", "trace.json")
ALONE = {"skipping": "wagma(late=skip)"}
TOGETHER = {"allreduce": "allreduce", "beside-skipping": "wagma(late=skip)", "beside-nonblocking": "nonblocking(batches=1)"}


def start(build, folder, name, strategy):
    words = ["updates=60", f"sleep_ms={json.dumps([40, 50, 44, 120])}", f"output={os.path.join(folder, name)}"]
    command = [os.path.join(build, "cli", "paceline"), "run", os.path.join(build, "tests", "integration", "quadratic_worker"),
               "--workers", "4", "--nodes", "1", "--strategy", strategy, "--run-dir", os.path.join(folder, name), "--", *words]
    os.makedirs(os.path.join(folder, name))
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)


def finish(runs):
    for name, run in runs.items():
        if run.wait() != 0:
            raise SystemExit(f"the run {name} failed")


def clean(path, folder, build):
    """Paths of this machine as names."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(folder, "runs").replace(build, "build"))


def nobodys(info):
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mode = 0o644
    return info


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    build = os.path.abspath(parser.parse_args().build)
    with tempfile.TemporaryDirectory(prefix="record-", dir="/tmp") as folder:
        finish({name: start(build, folder, name, strategy) for name, strategy in ALONE.items()})
        finish({name: start(build, folder, name, strategy) for name, strategy in TOGETHER.items()})
        with tarfile.open(TARGET, "w:xz") as archive:
            for name in (*ALONE, *TOGETHER):
                for file in READ:
                    path = os.path.join(folder, name, file)
                    clean(path, folder, build)
                    archive.add(path, arcname=os.path.join(name, file), filter=nobodys)
    print(f"{TARGET}: {os.path.getsize(TARGET)} bytes")


if __name__ == "__main__":
    main()
