"""`figures.py --bounds`: every figure against its bound, and the page against the data."""
from measure import page
from measure.table import FIGURES


def unknown_keys(store):
    """Measured values that no figure has."""
    known = {(str(figure.number), value.key) for figure, value in page.all_values()}
    return [f"{number} '{key}'" for number, values in store.data["measured"].items() for key in values if (number, key) not in known]


def report(store):
    """One line a value, then what falls short."""
    counts = {}
    for figure in FIGURES:
        for value in figure.values:
            measured = store.measured(figure.number, value.key)
            verdict = value.verdict(measured)
            counts.setdefault(verdict, []).append(figure.number)
            yield f"{figure.number:3} {verdict or '-':12} {value.label}: {page.measured_text(value, measured)}{', bound ' + value.bound_text() if value.comparison else ''}"
    yield f"{len(counts.get('holds', []))} hold, {len(counts.get('missed', []))} missed, {len(counts.get('not measured', []))} not measured"


def faults(store, text):
    """Why page and data do not belong together; empty: they do."""
    found = [f"docs/benchmarks.json has a value that no figure has: {key}" for key in unknown_keys(store)]
    try:
        pairs = page.differences(text, store)
    except ValueError as error:
        return found + [str(error)]
    for have, want in pairs:
        if "**missed**" in want and "**missed**" not in have:
            found.append("a missed bound is not marked as missed")
        found.append(f"the page says   {have}\nthe data is     {want}")
    return found


def check(store, path=page.PAGE):
    """Prints all; the exit status."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    print("\n".join(report(store)))
    wrong = faults(store, text)
    if wrong:
        print("\n".join(["", *wrong, "", "write the page from the data with tests/bench/figures.py --page"]))
    return 1 if wrong else 0
