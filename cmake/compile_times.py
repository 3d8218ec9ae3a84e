#!/usr/bin/env python3
"""Prints what a build made by compile_times.sh cost: compile_times.py TREE"""
import collections
import json
import pathlib
import re
import resource
import subprocess
import sys

SHOWN = 10


def units(tree):
    """Unit -> processor seconds."""
    cost = collections.Counter()
    for line in (tree / "units.log").read_text().splitlines():
        source, user, system = line.rsplit(" ", 2)
        cost[source] += sum(60 * float(minutes) + float(seconds)
                            for minutes, seconds in re.findall(r"(\d+)m([\d.]+)s", user + system))
    return cost


def included_by(tree):
    """Header -> in how many units it is parsed."""
    count = collections.Counter()
    listing = subprocess.run(["ninja", "-C", tree, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    for line in listing.splitlines():
        if line.startswith("    "):
            count[str((tree / line.strip()).resolve())] += 1
    return count


def parse_seconds(command, include):
    """Processor seconds of parsing one header alone, with the flags of a unit; None where it is not found."""
    words = [word for word in command.split() if word.startswith(("-I", "-D", "-std")) or word == "-isystem"
             or word.startswith("/usr/include/")]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(["c++", *words, "-fsyntax-only", "-H", "-x", "c++", "-"], input=f"#include {include}\n",
                          capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    first = next((line[2:] for line in done.stderr.splitlines() if line.startswith(". ")), None)
    if done.returncode or not first:
        return None
    return first, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def headers(tree):
    """Of those that our sources name: (seconds over all units, seconds, units, header), dearest first."""
    built = units(tree)
    commands = [entry for entry in json.loads((tree / "compile_commands.json").read_text()) if entry["file"] in built]
    flags = max((entry["command"] for entry in commands), key=len)
    named = set()
    for entry in commands:
        text = pathlib.Path(entry["file"]).read_text(errors="replace")
        named.update(re.findall(r'^#include ([<"][^>"]+[>"])', text, re.M))
    count = included_by(tree)
    rows = []
    for include in sorted(named):
        found = parse_seconds(flags, include)
        if found:
            path, seconds = found
            times = count[str(pathlib.Path(path).resolve())]
            rows.append((seconds * times, seconds, times, include))
    return sorted(rows, reverse=True)


def main():
    tree = pathlib.Path(sys.argv[1]).resolve()
    cost = units(tree)
    print(f"\n{sum(cost.values()):.0f} s of processor time for {len(cost)} units; the dearest:")
    for source, seconds in cost.most_common(SHOWN):
        print(f"{seconds:8.1f} s  {source}")
    print("\nthe dearest headers (seconds to parse one, alone; units):")
    for total, seconds, times, include in headers(tree)[:SHOWN]:
        print(f"{total:8.1f} s  = {seconds:.2f} s x {times:3d}  {include}")


if __name__ == "__main__":
    main()
