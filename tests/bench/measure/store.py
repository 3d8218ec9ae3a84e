"""What was measured: docs/benchmarks.json, written by the commands that measure, read by the page and by `figures.py --bounds`."""
import datetime
import json
import os
import statistics

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
DATA = os.path.join(ROOT, "docs", "benchmarks.json")


def summary(samples):
    """What the page shows of the values of several rounds."""
    return {"median": statistics.median(samples), "low": min(samples), "high": max(samples), "count": len(samples)}


class Store:
    """{"measured": {figure: {key: {median, low, high, count, date, load}}}, "notes": {figure: text}}. Values that were taken over from an
    older page have no load, and no low and high where it had none."""

    def __init__(self, path=DATA):
        self.path = path
        with open(path, encoding="utf-8") as file:
            self.data = json.load(file)

    def measured(self, number, key):
        """None: not measured."""
        return self.data["measured"].get(str(number), {}).get(key)

    def note(self, number):
        return self.data["notes"].get(str(number), "")

    def record(self, number, values):
        """values: {key: samples}."""
        now = {"date": datetime.date.today().isoformat(), "load": round(os.getloadavg()[0], 1)}
        figure = self.data["measured"].setdefault(str(number), {})
        figure.update({key: {**summary(samples), **now} for key, samples in values.items()})

    def save(self):
        with open(self.path, "w", encoding="utf-8") as file:
            json.dump(self.data, file, indent=1, ensure_ascii=False)
            file.write("\n")
