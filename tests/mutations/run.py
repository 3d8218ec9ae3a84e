#!/usr/bin/env python3
"""Puts defects into the production code, one at a time, and says which test finds each.

    tests/mutations/run.py            all; exit status 1 if one is not found, 2 if they cannot be tried: a text is not
                                      there (any more), it does not build, or a test fails as it is
    tests/mutations/run.py PATTERN    those whose defect or file matches this regular expression
    tests/mutations/run.py --check    only whether each text is there, once
    tests/mutations/run.py --jobs 2   two at a time, each in a copy of its own
    tests/mutations/run.py --keep DIR the copies are built there, and the next time what is there is built on
    tests/mutations/run.py --tried FILE  those only that are not in this file, which says of each what found it (empty:
                                      nothing) and at which commit: so that the whole can be done in parts

Builds a copy of the sources in a temporary folder (TMPDIR), and leaves the ones here as they are.
"""
import argparse
import concurrent.futures
import contextlib
import filecmp
import json
import os
import pathlib
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from mutations import MUTATIONS, TESTS

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A test that takes twice as long as without a defect, and a minute, hangs: a finding.
SLOWER, MORE_SECONDS = 2, 60


def unfit():
    """What is wrong with the list itself, a line each."""
    lines = []
    for one in MUTATIONS:
        count = (ROOT / one.path).read_text(encoding="utf-8").count(one.now)
        if count != 1:
            lines.append(f"{one.path}: {count} times, not once: {one.now!r} ({one.defect})")
        if one.now == one.then:
            lines.append(f"{one.path}: no defect: {one.defect}")
    return lines


def run(*command, **more):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          env={**os.environ, "PACELINE_EVERY_MOMENT": "1"}, **more)


def give_up(text):
    """What follows would say nothing of the tests."""
    print(f"mutations: {text}", file=sys.stderr)
    sys.exit(2)


class Copy:
    """The sources and a build of their tests."""

    def __init__(self, folder):
        self.source = folder
        self.build = folder / "build" / "release"  # As here: what the compiler cache has is not compiled again.
        files = run("git", "-C", ROOT, "ls-files", "-z").stdout.split("\0")
        for name in filter(None, files):
            here, there = ROOT / name, self.source / name
            if not here.is_file() or (there.is_file() and filecmp.cmp(here, there, shallow=False)):
                continue
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(here, there)
            shutil.copymode(here, there)
        made = run("cmake", "-S", self.source, "-B", self.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                   "-DPACELINE_TRAIN=OFF", "-DPACELINE_UNITY=OFF")
        if made.returncode != 0:
            give_up(f"cmake failed: {made.stdout[-2000:]}{made.stderr[-2000:]}")

    def make(self, tests):
        return run("cmake", "--build", self.build, "--target", *(TESTS[test][0] for test in tests))

    def seconds(self, test):
        """What it takes as it is; it passes."""
        began = time.monotonic()
        ran = run(self.build / TESTS[test][1])
        if ran.returncode != 0:
            give_up(f"{test} fails as it is: {ran.stdout[-3000:]}")
        return time.monotonic() - began

    def finder(self, mutation, seconds):
        """The first test that fails with it; '' if all pass. `seconds`: what each test takes without."""
        path = self.source / mutation.path
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(mutation.now, mutation.then), encoding="utf-8")
        try:
            for test in mutation.tests:
                made = self.make([test])
                if made.returncode != 0:
                    give_up(f"with '{mutation.defect}' it does not build: {made.stdout[-3000:]}")
                try:
                    if run(self.build / TESTS[test][1], "--gtest_fail_fast", timeout=SLOWER * seconds[test] + MORE_SECONDS).returncode != 0:
                        return test
                except subprocess.TimeoutExpired:
                    return f"{test} (hangs)"
            return ""
        finally:
            path.write_text(text, encoding="utf-8")


class Copies:
    """So many copies, one for each that works at a time."""

    def __init__(self, folder, count):
        self.free = queue.SimpleQueue()
        for number in range(count):
            self.free.put(Copy(folder / str(number)))

    def work(self, task):
        copy = self.free.get()
        try:
            return task(copy)
        finally:
            self.free.put(copy)


class Tried:
    """What has found each defect, in a file that is whole after each."""

    def __init__(self, path):
        self.path = pathlib.Path(path) if path else None
        known = json.loads(self.path.read_text(encoding="utf-8")) if self.path and self.path.exists() else {}
        self.of = {one.defect: known[one.defect] for one in MUTATIONS if one.defect in known}
        self.commit = run("git", "-C", ROOT, "rev-parse", "--short", "HEAD").stdout.strip()
        self.lock = threading.Lock()

    def has(self, mutation):
        return mutation.defect in self.of

    def add(self, mutation, finder):
        with self.lock:
            self.of[mutation.defect] = {"found": finder, "commit": self.commit}
            if self.path:
                self.path.write_text(json.dumps(self.of, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", default="")
    parser.add_argument("--tried", default="")
    given = parser.parse_args()
    lines = unfit()
    for line in lines:
        print(line)
    if lines or given.check:
        return 2 if lines else 0
    tried = Tried(given.tried)
    chosen = [one for one in MUTATIONS if (re.search(given.pattern, one.defect) or re.search(given.pattern, one.path)) and not tried.has(one)]
    if not chosen:
        print("nothing is left to be tried")
        return 0
    tests = sorted({test for one in chosen for test in one.tests})

    def build(copy):
        made = copy.make(tests)
        if made.returncode != 0:
            give_up(f"it does not build as it is: {made.stdout[-3000:]}")

    def find(one):
        began = time.monotonic()
        finder = copies.work(lambda copy: copy.finder(one, seconds))
        tried.add(one, finder)
        print(f"{finder or 'NOT FOUND':14} {time.monotonic() - began:5.0f} s  {one.path}: {one.defect}", flush=True)
        return bool(finder)

    kept = contextlib.nullcontext(given.keep) if given.keep else tempfile.TemporaryDirectory()
    with kept as folder, concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        began = time.monotonic()
        copies = Copies(pathlib.Path(folder), given.jobs)
        for _ in range(given.jobs):
            copies.work(build)
        print(f"built in {time.monotonic() - began:.0f} s", flush=True)
        seconds = dict(zip(tests, pool.map(lambda test: copies.work(lambda copy: copy.seconds(test)), tests)))
        print("as it is: " + ", ".join(f"{test} {seconds[test]:.0f} s" for test in tests), flush=True)
        found = sum(pool.map(find, chosen))
    print(f"{found} of {len(chosen)} defects found")
    return 0 if found == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
