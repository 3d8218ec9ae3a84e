"""The messages and bytes that docs/strategies/README.md says are those that `paceline simulate` counts."""
import json
import math
import os
import re

from harness import SOURCE, IntegrationTest, main

STEPS = 12
NUMBERS = 6  # Of a model, 8 bytes each.
VALUES = {"P": 4, "S": 2, "F": 3, "n": 8 * NUMBERS, "peers": 2}

# A strategy, and how often what the row's terms are of happens in so many steps.
CASES = {
    "allreduce": {"allreduce": [STEPS]},
    "local-sgd": {"local-sgd(period=3)": [4], "k-avg(period=4)": [3]},
    "one-shot": {"one-shot": [1]},
    "post-local": {"post-local(period=2,warmup=4)": [4 + 4]},
    "adacomm": {"adacomm(period=3,interval=1h)": [4]},
    "qsr": {"qsr(base=3,alpha=0.01)": [4]},
    "hier-avg": {"hier-avg(k1=2,k2=4,group=2)": [3, 3]},
    "slowmo": {"slowmo(period=3)": [4], "bmuf(period=3)": [4], "diloco(period=3)": [4]},
    "decoupled-diloco": {"decoupled-diloco(period=3)": [4]},
    "streaming-diloco": {"streaming-diloco(period=6,fragments=3)": [6]},
    "noloco": {"noloco(period=3)": [4]},
    "wagma": {"wagma(group=2,sync=3)": [8, 4]},
    "eager-sgd": {"eager-sgd(sync=4)": [STEPS]},
    "d-psgd": {"d-psgd(ring)": [STEPS, 0, 0], "d-psgd(bipartite)": [0, STEPS, 0], "d-psgd(complete)": [0, 0, STEPS]},
    "matcha": {"matcha(ring,budget=1)": [4 * STEPS]},
    "ad-psgd": {"ad-psgd": [4 * STEPS], "ad-psgd(bipartite)": [2 * STEPS]},
    "sgp": {"sgp(peers=2)": [STEPS]},
    "osgp": {"osgp(peers=2)": [STEPS]},
    "server(sync)": {"server(sync)": [STEPS]},
    "server(async)": {"server(async)": [4 * STEPS]},
}
OF_A_BASE = {"nonblocking", "tiers(A,B,..)"}


def value_of(formula):
    """2P(S−1)n/S, P·log₂S"""
    text = re.sub(r"log₂(\w)", r"L(\1)", formula.replace("`", "").replace("−", "-").replace("·", "*"))
    text = re.sub(r"(?<=[\dPSFn)])\s*(?=[PSFnL(])", "*", text)
    return eval(text, {"__builtins__": {}}, dict(VALUES, L=math.log2))  # pylint: disable=eval-used


def terms(cell, separator):
    """The formulas of a cell, without what they are of."""
    return [re.split(r" (?:an?|in|each)\b", term)[0] for term in cell.split(separator)]


class StrategyCosts(IntegrationTest):
    def rows(self):
        with open(os.path.join(SOURCE, "docs", "strategies", "README.md"), encoding="utf-8") as file:
            table = file.read().split("## All of them")[1].split("\n## ")[0]
        for line in table.splitlines():
            cells = line.strip("| ").split(" | ")
            name = re.match(r"\[`([^`]+)`", cells[0])
            if name:
                yield name.group(1), cells[5], cells[6]

    def simulated(self, strategy):
        job = {"problem": {"kind": "least_squares", "workers": [{"a": [1] * NUMBERS, "c": [rank] * NUMBERS}
                                                                for rank in range(VALUES["P"])]},
               "start": [0] * NUMBERS, "strategy": strategy, "lr": 0.25, "steps": STEPS,
               "compute_s": [[1] * VALUES["P"]]}
        run = self.paceline("simulate", self.write("job.json", json.dumps(job)), "--json")
        self.assertEqual(run.code, 0, run.said())
        summary = json.loads(run.out.splitlines()[-1])
        return summary["messages"], summary["bytes"]

    def test_the_table_says_what_is_counted(self):
        seen = set()
        for name, messages, size in self.rows():
            seen.add(name)
            if name in OF_A_BASE:
                self.assertRegex(messages + "; " + size, "^its .*; its ", name)
                continue
            each = size.endswith(" each")
            for strategy, times in CASES[name].items():
                with self.subTest(strategy):
                    sent = [value_of(term) * count for term, count in zip(terms(messages, ", "), times, strict=True)]
                    if each:
                        moved = sum(sent) * value_of(terms(size, "; ")[0])
                    else:
                        moved = sum(value_of(term) * count for term, count in zip(terms(size, "; "), times, strict=True))
                    self.assertEqual(self.simulated(strategy), (sum(sent), moved))
        self.assertEqual(seen, set(CASES) | OF_A_BASE)


if __name__ == "__main__":
    main()
