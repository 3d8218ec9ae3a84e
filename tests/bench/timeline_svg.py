#!/usr/bin/env python3
"""Draws what the workers of some runs did, over the same stretch of time, one panel a run: the picture of the README.

    build/release/cli/paceline run examples/fashion_mnist.cpp --workers 4 --slow 3:4x --epochs 1 --target none \
        --compare 'allreduce,nonblocking' --run-dir runs/picture
    tests/bench/timeline_svg.py build/release runs/picture -o docs/timeline.svg

The data are those of `paceline report --json`: of each run the excerpt from its middle. Every panel shows as much time as
the shortest of these excerpts. Colours follow the reader's light or dark setting.
"""
import argparse
import json
import os
import subprocess
from html import escape

WIDTH, MARGIN, NAMES, ROW, BAR = 880, 20, 152, 22, 15
TITLE, GAP, KEY = 26, 18, 30
CAPTIONS = {"allreduce": "everybody waits for the slowest", "nonblocking": "the first to finish ends the update"}
KEYS = [("compute", "computes"), ("abandoned", "computes, is cut short: what it has finished counts"), ("wait", "waits")]
STYLE = """
  text { font: 13px system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif; fill: #1f2328; }
  .title { font-weight: 600; font-size: 14px; }  .soft { fill: #59636e; }
  .page { fill: #ffffff; stroke: #d1d9e0; }  .lane { fill: #f6f8fa; }  .end { stroke: #59636e; stroke-width: 1; }
  .compute { fill: #2f6db3; }  .wait { fill: #d1d9e0; }  .abandoned { fill: #8bb8e8; }  .evaluate { fill: #2e8b57; }
  .hold { fill: #eaeef2; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; }  .soft { fill: #9198a1; }
    .page { fill: #0d1117; stroke: #3d444d; }  .lane { fill: #161b22; }  .end { stroke: #9198a1; }
    .compute { fill: #4493f8; }  .wait { fill: #3d444d; }  .abandoned { fill: #2c5a94; }  .evaluate { fill: #5cc98b; }
    .hold { fill: #212830; }
  }
"""


def report_of(build, run):
    done = subprocess.run([os.path.join(build, "cli", "paceline"), "report", run, "--json"], stdout=subprocess.PIPE, text=True,
                          check=True)
    return json.loads(done.stdout)["runs"]


def middle_of(run):
    excerpts = run["timeline"]["excerpts"]
    return excerpts[len(excerpts) // 2]


def workers_of(run):
    """{track: name}, with how much longer it was made to take."""
    slow = dict(part.split(":") for part in run["options"].get("slow", "").split(",") if part)
    factors = {f"worker {rank}": f" ({factor.rstrip('x')}× as long)" for rank, factor in slow.items()}
    return {k: name + factors.get(name, "") for k, name in enumerate(run["timeline"]["tracks"]) if name.startswith("worker")}


def window_of(run, length):
    """Begins with an update of the first worker."""
    excerpt = middle_of(run)
    begins = [begin for track, activity, begin, _ in excerpt["spans"]
              if track == 0 and activity in ("compute", "abandoned") and begin >= excerpt["begin_s"]]
    begin = min(begins, default=excerpt["begin_s"])
    return (begin, begin + length) if begin + length <= excerpt["end_s"] else (excerpt["end_s"] - length, excerpt["end_s"])


def updates_in(run, begin, end):
    """When updates ended: the first worker began the next."""
    return sorted(start for track, activity, start, _ in middle_of(run)["spans"]
                  if track == 0 and activity in ("compute", "abandoned") and begin < start <= end)


def in_words(ends, length):
    return f"{len(ends)} update{'' if len(ends) == 1 else 's'} in {1000 * length:.0f} ms"


def panel(run, top, length):
    begin, end = window_of(run, length)
    right = WIDTH - MARGIN
    at = lambda time: MARGIN + NAMES + (min(max(time, begin), end) - begin) / length * (right - MARGIN - NAMES)
    ends = updates_in(run, begin, end)
    caption = CAPTIONS.get(run["strategy"].split("(")[0], "")
    yield f'<text class="title" x="{MARGIN}" y="{top + 14}">{escape(run["strategy"])}'
    yield f'<tspan class="soft" dx="10" font-weight="400">{caption}</tspan></text>'
    yield f'<text class="title" x="{right}" y="{top + 14}" text-anchor="end">{in_words(ends, length)}</text>'
    rows = workers_of(run)
    for row, (track, name) in enumerate(rows.items()):
        y = top + TITLE + row * ROW
        yield f'<text class="soft" x="{MARGIN}" y="{y + 12}">{name}</text>'
        yield f'<rect class="lane" x="{MARGIN + NAMES}" y="{y}" width="{right - MARGIN - NAMES}" height="{BAR}"/>'
        for of, activity, start, stop in middle_of(run)["spans"]:
            if of != track or stop <= begin or start >= end or activity not in ("compute", "abandoned", "wait", "evaluate", "hold"):
                continue
            height = BAR if activity not in ("wait", "hold") else 7
            yield (f'<rect class="{activity}" x="{at(start):.1f}" y="{y + BAR - height}" '
                   f'width="{max(0.5, at(stop) - at(start) - 0.6):.1f}" height="{height}"/>')
    for time in ends:
        x, y = at(time), top + TITLE - 3
        yield f'<line class="end" x1="{x:.1f}" y1="{y}" x2="{x:.1f}" y2="{y + len(rows) * ROW}"/>'


def key(top):
    x = MARGIN
    for activity, words in KEYS:
        height = 7 if activity == "wait" else 11
        yield f'<rect class="{activity}" x="{x}" y="{top + 11 - height}" width="24" height="{height}"/>'
        yield f'<text class="soft" x="{x + 30}" y="{top + 11}">{words}</text>'
        x += 58 + 6.4 * len(words)
    yield f'<line class="end" x1="{x:.0f}" y1="{top - 2}" x2="{x:.0f}" y2="{top + 13}"/>'
    yield f'<text class="soft" x="{x + 8:.0f}" y="{top + 11}">an update ends</text>'


def picture(runs):
    length = min(middle_of(run)["end_s"] - middle_of(run)["begin_s"] for run in runs)
    shapes, top = [], MARGIN
    for run in runs:
        shapes += panel(run, top, length)
        top += TITLE + len(workers_of(run)) * ROW + GAP
    shapes += key(top)
    height = top + KEY
    names = " and ".join(run["strategy"] for run in runs)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
            f'aria-label="What workers do under {escape(names)}">\n<style>{STYLE}</style>\n'
            f'<rect class="page" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>\n' + "\n".join(shapes) + "\n</svg>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="a release build, e.g. build/release")
    parser.add_argument("run", help="directory of a run, or of a comparison")
    parser.add_argument("-o", "--output", required=True)
    given = parser.parse_args()
    runs = [run for run in report_of(given.build, given.run) if run["timeline"]]
    if not runs:
        parser.error(f"{given.run} has no trace")
    drawn = picture(runs)
    with open(given.output, "w", encoding="utf-8") as file:
        file.write(drawn)


if __name__ == "__main__":
    main()
