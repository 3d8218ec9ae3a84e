"""Writes what was measured into docs/benchmarks.md, between marks, and finds where page and data differ."""
import os
import re

from measure import rates
from measure.store import ROOT
from measure.table import FIGURES

PAGE = os.path.join(ROOT, "docs", "benchmarks.md")
MARKS = re.compile(r"(<!-- (\w+): written by figures\.py -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def measured_text(value, measured):
    if measured is None:
        return "not measured"
    text = value.text(measured["median"])
    if measured["count"] > 1:
        ends = f"{value.number(measured['low'])} to {value.number(measured['high'])}, " if measured["low"] is not None else ""
        text = f"{text} ({ends}{measured['count']})"
    return text


def date_text(measured):
    """With a star where nobody recorded how busy the machine was."""
    if measured is None:
        return ""
    return measured["date"] + ("" if "load" in measured else " *")


def figures_table(store):
    lines = ["| # | figure | | bound | measured | | on |", "|---|---|---|---|---|---|---|"]
    for figure in FIGURES:
        first = True
        for value in figure.values:
            measured = store.measured(figure.number, value.key)
            verdict = value.verdict(measured)
            verdict = {"missed": "**missed**", "not measured": ""}.get(verdict, verdict)
            lead = f"| {figure.number} | {figure.what}" if first else "| | "
            lines.append(f"{lead} | {value.label} | {value.bound_text()} | {measured_text(value, measured)} | {verdict} | {date_text(measured)} |")
            first = False
    return "\n".join(lines) + "\n"


def commands_table(store):
    del store
    lines = ["| figure | `tests/bench/figures.py build/release` ... | minutes, estimated |", "|---|---|---|"]
    by_command = {}
    for figure in FIGURES:
        by_command.setdefault(figure.command, []).append(figure)
    for command, figures in by_command.items():
        lines.append(f"| {', '.join(str(figure.number) for figure in figures)} | `{command}` | {figures[0].minutes:g} |")
    return "\n".join(lines) + "\n"


def short_list(store):
    """What falls short."""
    missed = [f"{figure.number} ({value.label}: {value.text(store.measured(figure.number, value.key)['median'])}, bound {value.bound_text()})"
              for figure, value in all_values() if value.verdict(store.measured(figure.number, value.key)) == "missed"]
    unmeasured = sorted({figure.number for figure, value in all_values() if store.measured(figure.number, value.key) is None})
    lines = [f"**Missed:** {'; '.join(missed) or 'none'}.", ""]
    lines.append(f"**Not measured, wholly or in part:** figures {', '.join(map(str, unmeasured))}." if unmeasured else "All were measured.")
    return "\n".join(lines) + "\n"


def all_values():
    return ((figure, value) for figure in FIGURES for value in figure.values)


def note_of(number):
    return lambda store: (store.note(number) or "Not measured.") + "\n"


BLOCKS = {"figures": figures_table, "missed": short_list, "commands": commands_table, "rates": lambda store: rates.section(rates.read()),
          "note5": note_of(5), "note7": note_of(7), "note15": note_of(15), "note37": note_of(37)}


def rendered(text, store):
    """The page with its blocks as the data has them. Throws ValueError where a block is missing or unknown."""
    found = [match.group(2) for match in MARKS.finditer(text)]
    if sorted(found) != sorted(BLOCKS):
        raise ValueError(f"docs/benchmarks.md has the blocks {', '.join(found)}, not {', '.join(BLOCKS)}")
    return MARKS.sub(lambda match: match.group(1) + BLOCKS[match.group(2)](store) + match.group(4), text)


def differences(text, store):
    """Lines of the page that are not what the data says, as (page's, data's); a missing one is ''."""
    want = rendered(text, store).splitlines()
    have = text.splitlines()
    size = max(len(want), len(have))
    pairs = zip(have + [""] * (size - len(have)), want + [""] * (size - len(want)))
    return [(page, data) for page, data in pairs if page != data]


def write(store, path=PAGE):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(rendered(text, store))
