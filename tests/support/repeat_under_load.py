#!/usr/bin/env python3
"""Runs suites of a build over and over beside busy loops, and says how often each passed: a suite that uses real time
has to pass each time. Exit status 1 if one failed; what it said then is printed.

    tests/support/repeat_under_load.py BUILD SUITE... [--times 20] [--loops 2]     BUILD: e.g. build/release
"""
import argparse
import os
import subprocess
import sys
import time

# Ends with its starter, however that ends.
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"


def once(build, suite):
    """Whether it passed, and what it said. A skip is no pass."""
    done = subprocess.run(["ctest", "--test-dir", build, "--tests-regex", f"^{suite}$", "--no-tests=error",
                           "--output-on-failure"], check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode == 0 and "did not run" not in done.stdout, done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("suites", nargs="+", metavar="suite")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--loops", type=int, default=2)
    options = parser.parse_args()
    if not os.path.exists(os.path.join(options.build, "CTestTestfile.cmake")):
        parser.error(f"{options.build} is no build folder")
    loops = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(options.loops)]
    failed = False
    try:
        for suite in options.suites:
            passed, longest = 0, 0.0
            for turn in range(1, options.times + 1):
                began = time.monotonic()
                good, said = once(options.build, suite)
                longest = max(longest, time.monotonic() - began)
                passed += good
                if not good:
                    print(f"== {suite} failed at turn {turn}\n{said}", flush=True)
            failed |= passed < options.times
            print(f"{suite}: passed {passed} of {options.times} times beside {options.loops} busy loops, "
                  f"at most {longest:.0f} s", flush=True)
    finally:
        for loop in loops:
            loop.kill()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
