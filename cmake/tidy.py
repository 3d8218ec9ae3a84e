#!/usr/bin/env python3
"""clang-tidy on what changed since the last time that it passed here (at first: since the last commit but one).

Every unit that changed is looked at, and every header through one unit that includes it. What passed is remembered under
build/tidy by the contents of the unit and of what it includes, so that a second run costs nothing.

Environment: ALL=1           every unit
             TIDY_SECONDS    for at most so long (1800); fails if that was too short, and goes on from there when run again
Reads a compilation database of the `dev` build that has each source by itself (cmake/lint.sh makes it), and none that includes
torch: clang 14 cannot read torch 1.13's headers.
"""
import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import time

ROOT = os.getcwd()
HERE = os.path.join("build", "tidy")
INCLUDE = re.compile(rb'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def git(*arguments):
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    return done.stdout.split() if done.returncode == 0 else []


def read(path):
    with open(path, "rb") as file:
        return file.read()


class Unit:
    def __init__(self, entry):
        words = shlex.split(entry["command"])
        self.path = os.path.relpath(os.path.join(entry["directory"], entry["file"]), ROOT)
        self.arguments = without_precompiled(words)
        self.entry = {"directory": entry["directory"], "file": entry["file"], "arguments": self.arguments}
        self.folders = [os.path.normpath(word[2:]) for word in words if word.startswith("-I" + ROOT)]
        self.files = {self.path}  # Itself and all of ours that it includes, directly or not.

    def follow_includes(self, contents):
        pending = [self.path]
        while pending:
            path = pending.pop()
            for name in INCLUDE.findall(contents(path)):
                for folder in (os.path.join(ROOT, os.path.dirname(path)), *self.folders):
                    found = os.path.relpath(os.path.join(folder, name.decode()), ROOT)
                    if found in self.files or os.path.isfile(found):
                        if found not in self.files:
                            self.files.add(found)
                            pending.append(found)
                        break

    def key(self, contents, tools):
        text = hashlib.sha256(tools + "\0".join(self.arguments).encode())
        for path in sorted(self.files):
            text.update(path.encode() + b"\0" + hashlib.sha256(contents(path)).digest())
        return text.hexdigest()


def without_precompiled(words):
    """A header that g++ has precompiled cannot be read by clang, and repeats what the unit includes itself."""
    kept = []
    for word in words:
        if kept and kept[-1] == "-include" and "cmake_pch" in word:
            kept.pop()
        elif word not in ("-Winvalid-pch", "-fpch-preprocess"):
            kept.append(word)
    return kept


def read_units(contents):
    with open(os.path.join(HERE, "units", "compile_commands.json"), encoding="utf-8") as file:
        entries = json.loads(file.read().replace(os.path.join(HERE, "units"), os.path.join("build", "dev")))  # What is generated.
    units = {unit.path: unit for unit in map(Unit, entries) if not unit.path.startswith("build")}
    for unit in units.values():
        unit.follow_includes(contents)
    os.makedirs(HERE, exist_ok=True)
    with open(os.path.join(HERE, "compile_commands.json"), "w", encoding="utf-8") as file:
        json.dump([unit.entry for unit in units.values()], file)
    return units


def changed_files():
    """None: all."""
    if os.environ.get("ALL") == "1":
        return None
    since = "HEAD~1"
    if os.path.exists(os.path.join(HERE, "last")):
        last = read(os.path.join(HERE, "last")).decode().strip()
        if git("merge-base", last, "HEAD") == [last]:
            since = last
    if not git("rev-parse", "-q", "--verify", since):
        return None
    changed = set(git("diff", "--name-only", "--diff-filter=d", since)) | set(
        git("ls-files", "--others", "--exclude-standard"))
    return None if ".clang-tidy" in changed else changed


def choose(units, changed):
    """The units to look at, and the changed files that no unit has."""
    if changed is None:
        return list(units.values()), []
    chosen = {path: units[path] for path in changed if path in units}
    unseen = []
    for header in sorted(path for path in changed if path.endswith((".h", ".cc", ".cpp")) and path not in chosen):
        if any(header in unit.files for unit in chosen.values()):
            continue
        users = [unit for unit in units.values() if header in unit.files]
        if users:
            unit = min(users, key=lambda user: (len(user.files), user.path))
            chosen[unit.path] = unit
        else:
            unseen.append(header)
    return list(chosen.values()), unseen


def look_at(unit, deadline):
    """None: there was no time. Otherwise whether it passed; says what is wrong."""
    if time.monotonic() >= deadline:
        return None
    done = subprocess.run(["clang-tidy", "-p", HERE, "--quiet", unit.path], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stdout or done.stderr, flush=True)
    return done.returncode == 0


def main():
    cache = {}

    def contents(path):
        if path not in cache:
            cache[path] = read(path)
        return cache[path]

    units = read_units(contents)
    chosen, unseen = choose(units, changed_files())
    tools = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout + read(".clang-tidy")
    passed_folder = os.path.join(HERE, "passed")
    os.makedirs(passed_folder, exist_ok=True)
    stamps = {unit: os.path.join(passed_folder, unit.key(contents, tools)) for unit in chosen}
    todo = sorted((unit for unit in chosen if not os.path.exists(stamps[unit])),
                  key=lambda unit: -sum(len(contents(path)) for path in unit.files))  # The longest first: cores stay busy.
    limit = float(os.environ.get("TIDY_SECONDS", "1800"))
    deadline = time.monotonic() + limit
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = dict(zip(todo, pool.map(lambda unit: look_at(unit, deadline), todo)))
    for unit in todo:
        if results[unit]:
            open(stamps[unit], "w", encoding="utf-8").close()
    left = [unit.path for unit in todo if results[unit] is None]
    failed = [unit.path for unit in todo if results[unit] is False]
    print(f"lint: {len(todo)} of {len(chosen)} units to look at, {len(chosen) - len(todo)} passed before as they are")
    if unseen:
        print("lint: in no unit of the dev build: " + " ".join(unseen))
    if failed:
        print("lint: clang-tidy is not content with: " + " ".join(failed))
    if left:
        print(f"lint: {limit:g} s (TIDY_SECONDS) were too short; not looked at: " + " ".join(left))
    if failed or left:
        return 1
    with open(os.path.join(HERE, "last"), "w", encoding="utf-8") as file:
        file.write("".join(git("rev-parse", "HEAD")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
