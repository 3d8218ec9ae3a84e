#!/usr/bin/env python3
"""What a killed worker costs, under Paceline and under its peers: the same job, the same kills. Measures, and writes
docs/results/recovery.json (what was measured) and docs/recovery.md (the page).

    tests/bench/peers/recovery/setup.sh DIR                     the peers, once
    tests/bench/recovery.py build/release --peers DIR           measure with this build what is not kept yet, and write both:
                                                                40 minutes on two cores (to measure anew, delete the figures)
    tests/bench/recovery.py --load docs/results/recovery.json   write the page from figures that were kept
"""
import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import recovery_page
from recovery_lines import Kill, figures
from recovery_systems import SYSTEMS, WORKERS, Place, descendants, import_s, machine, versions

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(ROOT, "docs", "recovery.md")
RAW = os.path.join(ROOT, "docs", "results", "recovery.json")
ROUNDS, KILLS = 2, 10  # Jobs of each system, and kills of each.
STEPS_BEFORE = 15
CALM_S, MORE_S = 3.0, 3.0  # From when all take part again to the next kill, and up to so much more.
MINUTES = 40  # What it takes.
START_S, BACK_S, END_S = 240, 120, 60  # Who takes longer never does.


class Lines:
    """What the workers of a job have noted so far."""

    def __init__(self, folder):
        self.files, self.all, self.last = {rank: os.path.join(folder, f"worker-{rank}.jsonl") for rank in range(WORKERS)}, [], {}
        self.read_until = dict.fromkeys(self.files, 0)

    def read(self):
        for rank, path in self.files.items():
            if not os.path.exists(path):
                continue
            with open(path, "rb") as file:
                file.seek(self.read_until[rank])
                text = file.read()
            whole = text.rfind(b"\n") + 1
            self.read_until[rank] += whole
            for line in map(json.loads, text[:whole].splitlines()):
                self.all.append(line)
                self.last[rank] = line

    def counted(self, rank, since=0.0):
        return [line for line in self.all if line["worker"] == rank and line["event"] == "committed" and line["samples"] and line["time"] > since]

    def is_whole(self, kill):
        """All take part again."""
        back = [line["time"] for line in self.counted(kill.victim, kill.time) if line["pid"] != kill.pid]
        return bool(back) and all(self.counted(rank, back[0] - 0.001) for rank in self.files)


class Job:
    """One that runs for the length of a block."""

    def __init__(self, system, place, logs):
        self.logs, self.system, self.place, self.lines, self.processes = logs, system, place, Lines(place.folder), []

    def __enter__(self):
        self.processes = self.system.start(self.place)
        return self

    def __exit__(self, *_):
        if self.logs:
            subprocess.run(["cp", "-r", self.place.folder, os.path.join(self.logs, f"{time.strftime('%H%M%S')}-{os.path.basename(self.place.folder)}")], check=False)
        for pid in descendants([process.pid for process in self.processes]):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for process in self.processes:
            process.wait()

    def wait(self, what, until, seconds):
        deadline = time.monotonic() + seconds
        while not until():
            if time.monotonic() > deadline or any(process.poll() is not None for process in self.processes):
                self.fail(what)
            time.sleep(0.02)
            self.lines.read()

    def fail(self, what):
        tails = ""
        for name in sorted(os.listdir(self.place.folder)):
            if name.endswith(".log"):
                with open(os.path.join(self.place.folder, name), encoding="utf-8", errors="replace") as file:
                    tails += f"{name}: {file.read()[-1500:]}\n"
        raise TimeoutError(f"{self.system.name}: {what}\n{tails}")

    def kill(self, victim):
        self.lines.read()
        pid = self.lines.last[victim]["pid"]
        kill = Kill(time.monotonic(), victim, pid)
        os.kill(pid, signal.SIGKILL)
        return kill

    def end(self):
        """At a step that all of them reach."""
        path = os.path.join(self.place.folder, "enough")
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(str(max(line["step"] for line in self.lines.last.values()) + 10))
        os.replace(path + ".new", path)
        for process in self.processes[:len(self.processes) - self.system.outlives]:
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                print(f"{self.system.name} does not end and is ended", file=sys.stderr, flush=True)
        self.lines.read()


def measure(system, place, kills, dice, logs=None):
    """One job: {"kills": what each did, ...}. A kill after which not all take part again ends it, and is told as `stuck`."""
    done, stuck = [], None
    with Job(system, place, logs) as job:
        job.wait("the job does not begin", lambda: all(len(job.lines.counted(rank)) >= STEPS_BEFORE for rank in range(WORKERS)), START_S)
        begin = time.monotonic() - 1
        while len(done) < kills and not stuck:
            time.sleep(CALM_S + MORE_S * dice.random())
            kill = job.kill(dice.randrange(WORKERS))
            try:
                job.wait(f"worker {kill.victim} was not back within {BACK_S} s", lambda at=kill: job.lines.is_whole(at), BACK_S)
                done.append(kill)
                print(f"  worker {kill.victim}: {time.monotonic() - kill.time:.2f} s", file=sys.stderr, flush=True)
            except TimeoutError as failure:
                stuck = str(failure).splitlines()[0]
                print(failure, file=sys.stderr, flush=True)
        if not stuck:
            time.sleep(CALM_S)  # What the last one leaves behind.
            job.end()
    rows, steps = figures(job.lines.all, done, begin) if done else ([], {})
    return {"system": system.name, "kills": rows, **steps, **({"stuck": stuck} if stuck else {})}


def ledger(folder):
    """What Paceline says became of the job's samples; nothing for others."""
    path = os.path.join(folder, "run", "result.json")
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        epochs = json.load(file)["ledger"]
    return {"ledger": {fate: sum(epoch[fate] for epoch in epochs) for fate in ("committed", "lost", "late", "abandoned", "skipped", "twice")}}


def kills_of(raw, system, number):
    """How many this system had in this round."""
    return sum(len(job["kills"]) + ("stuck" in job) for job in raw["jobs"] if (job["system"], job["round"]) == (system.name, number))


def measure_missing(arguments, raw):
    """Round after round, so that what changes on the machine meets all of them. Each job is kept once it is done; after one that got stuck there
    is another, for the kills that are left."""
    for number in range(arguments.rounds):
        for system in SYSTEMS:
            while (not arguments.only or arguments.only in system.name) and (left := arguments.kills - kills_of(raw, system, number)) > 0:
                raw["jobs"].append(one_job(arguments, raw, system, number, left))
                save(raw, arguments.save)


def one_job(arguments, raw, system, number, kills):
    with tempfile.TemporaryDirectory(prefix="plr-", dir="/dev/shm") as folder:
        place = Place(os.path.join(os.path.abspath(arguments.build), "cli", "paceline"), os.path.abspath(arguments.peers), folder)
        load_before = os.getloadavg()[0]
        print(f"{system.name}, round {number}, load {load_before:.1f}", file=sys.stderr, flush=True)
        found = measure(system, place, kills, random.Random(f"{number} {kills}"), arguments.logs)
        raw.update({"machine": machine(), "versions": versions(place), "import_s": round(import_s(place), 2), "calm_s": [CALM_S, CALM_S + MORE_S], "minutes": MINUTES})
        return {"round": number, "date": time.strftime("%Y-%m-%d"), "load": round(load_before, 1), **found, **ledger(folder)}


def save(raw, path):
    jobs = ",\n".join(json.dumps(job) for job in raw["jobs"])
    rest = json.dumps({key: value for key, value in raw.items() if key != "jobs"}, ensure_ascii=False)
    with open(path, "w", encoding="utf-8") as file:
        file.write(rest[:-1] + ', "jobs": [\n' + jobs + "\n]}\n")


def load(path):
    if not os.path.exists(path):
        return {"machine": {}, "versions": {}, "notes": [], "jobs": []}
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", help="a release build, e.g. build/release")
    parser.add_argument("--peers", metavar="DIR", help="what setup.sh made")
    parser.add_argument("--load", metavar="FILE", help="measure nothing: the page of these figures")
    parser.add_argument("--save", metavar="FILE", default=RAW, help="where what is measured is kept")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--kills", type=int, default=KILLS, help="of each job")
    parser.add_argument("--only", metavar="NAME", help="systems whose name has this")
    parser.add_argument("--logs", metavar="DIR", help="where what the jobs printed is kept")
    parser.add_argument("-o", "--output", default=PAGE)
    arguments = parser.parse_args()
    if bool(arguments.build) == bool(arguments.load) or bool(arguments.build) != bool(arguments.peers):
        parser.error("give a build to measure with and --peers DIR, or --load FILE")
    for ends in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ends, lambda *_: sys.exit("ended"))  # What runs is ended, too.
    raw = load(arguments.load or arguments.save)
    if arguments.build:
        measure_missing(arguments, raw)
    with open(arguments.output, "w", encoding="utf-8") as file:
        file.write(recovery_page.page(raw))


if __name__ == "__main__":
    main()
