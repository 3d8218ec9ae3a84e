#!/usr/bin/env python3
"""Runs a command and checks its answer: exit status 0, and every expected pattern in what it printed.

Usage: run_example.py [--print PATTERN]... [--result FIELD=LOW..HIGH]... -- COMMAND [ARGUMENT]...

--print   a regular expression that a line of the output matches as a whole
--result  a number in the `result` events of `paceline run --json` (metric.value: within its metric), and the range it lies
          in, in all of them
--runs    how many such events there are; else 1

The command has a runtime directory of its own, so that a cluster that is up does not take part, and nothing is left of it.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile


def parse(arguments):
    split = arguments.index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--print", dest="printed", action="append", default=[], metavar="PATTERN")
    parser.add_argument("--result", dest="results", action="append", default=[], metavar="FIELD=LOW..HIGH")
    parser.add_argument("--runs", type=int, default=1)
    options = parser.parse_args(arguments[:split])
    command = arguments[split + 1:]
    if not command or not (options.printed or options.results):
        parser.error("a command and something to expect of it are needed")
    return options, command


def results_in(lines):
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and event.get("event") == "result":
            yield event


def complaints(options, status, lines):
    if status != 0:
        yield f"exit status {status}"
    for pattern in options.printed:
        if not any(re.fullmatch(pattern, line) for line in lines):
            yield f"no line matches {pattern}"
    if not options.results:
        return
    results = list(results_in(lines))
    if len(results) != options.runs:
        yield f"{len(results)} result events were printed, not {options.runs}"
    for result in results:
        for wanted in options.results:
            field, low, high = re.fullmatch(r"([\w.]+)=(.*)\.\.(.*)", wanted).groups()
            value = result
            for name in field.split("."):
                value = value.get(name) if isinstance(value, dict) else None
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not float(low) <= value <= float(high):
                yield f"{result.get('strategy')}: {field} is {value}, not in {low}..{high}"


def main():
    options, command = parse(sys.argv[1:])
    if "--run-dir" in command:  # Of the last time; a directory holds one run.
        shutil.rmtree(command[command.index("--run-dir") + 1], ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="pl-") as runtime:
        environment = dict(os.environ, XDG_RUNTIME_DIR=runtime)
        environment.pop("PACELINE_CLUSTER", None)
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", check=False)
        left = [name for name in os.listdir(os.path.join(runtime, "paceline")) if not name.startswith(".")] \
            if os.path.isdir(os.path.join(runtime, "paceline")) else []
    found = list(complaints(options, done.returncode, done.stdout.splitlines()))
    if left:
        found.append(f"left behind in the runtime directory: {', '.join(left)}")
    if found:
        print(done.stdout)
        print("\n".join(found), file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
