#!/usr/bin/env python3
"""What takes the precompiled header of torch is compiled again when that changes: compilers do not name the headers that it
was made of, so a changed class would leave units behind that know the former.

    check_rebuilds.py BUILD      a build folder made with Ninja
"""
import re
import sys

HEADER = "scripts/pch/paceline_train.h"
COMMAND = re.compile(r"^build (\S+\.o): (\S+) (.*(?:\n  .*)*)", re.MULTILINE)


def found(text):
    """How many units begin with the header, and those of them that do not depend on it."""
    takes = [(unit, rest) for unit, rule, rest in COMMAND.findall(text)
             if rule.startswith("CXX_COMPILER") and re.search(rf"-include\s+\S*{re.escape(HEADER)}", rest)]
    lack = [unit for unit, rest in takes if HEADER + ".gch" not in rest.split("\n", 1)[0].split("||")[0]]
    return len(takes), lack


def main():
    with open(f"{sys.argv[1]}/build.ninja", encoding="utf-8") as file:
        units, lack = found(file.read())
    for unit in lack:
        print(f"check_rebuilds: {unit} takes {HEADER} and does not depend on it")
    if units < 10:  # The library's own units alone are more.
        print(f"check_rebuilds: {units} units take {HEADER}: is it called so?")
    return 1 if lack or units < 10 else 0


if __name__ == "__main__":
    sys.exit(main())
