"""paceline reproduce: a page and a plot for every paper, the same ones every time, and those of docs/results."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

from harness import SOURCE, IntegrationTest, main

USAGE = 2
PAPERS = ("wagma", "adacomm", "nonblocking", "hier-avg", "sgp")
HEAD = "| claim | how | the paper | here | bound | verdict | why |"
VERDICTS = ("holds", "holds by construction", "fitted", "does not hold", "not tried")


def text_of(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def rows_of(page):
    """The cells of every row of the table."""
    rows = [line for line in page.split(HEAD)[1].splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]


class ReproduceTest(IntegrationTest):
    def assert_refused(self, *arguments, words):
        run = self.paceline("reproduce", *arguments)
        self.assertEqual((run.code, run.out), (USAGE, ""), run.said())
        for word in words:
            self.assertIn(word, run.err)

    def test_the_pages_in_the_sources_are_what_the_command_writes(self):
        """All of it, in full: about two minutes on one core."""
        runs = {paper: self.start("reproduce", paper, "-o", "made") for paper in PAPERS}
        for paper, run in runs.items():
            self.assertEqual(run.wait(500), 0, run.said())
            for name in (paper + ".md", paper + ".svg"):
                with self.subTest(name=name):
                    made, kept = text_of(self.folder, "made", name), text_of(SOURCE, "docs", "results", name)
                    self.assertEqual(made.splitlines(), kept.splitlines(),
                                     "docs/results is not what this build says; see docs/results/README.md")

    def test_a_page_says_what_the_lines_of_json_say(self):
        for paper in PAPERS:
            with self.subTest(paper=paper):
                run = self.paceline("reproduce", paper, "--quick", "--json", "-o", "made")
                self.assertEqual(run.code, 0, run.said())
                claims = [json.loads(line) for line in run.out.splitlines()]
                self.assertEqual(len({claim["claim"] for claim in claims}), len(claims), "a claim is there twice")
                page = text_of(self.folder, "made", paper + ".md")
                rows = rows_of(page)
                self.assertEqual(len(rows), len(claims))
                for row, claim in zip(rows, claims):
                    self.assertEqual(len(row), 7, row)
                    self.assertEqual(row[5].strip("*"), claim["verdict"])
                    self.assertNotRegex(" ".join(row), r"\b(nan|inf)\b")
                    if claim["verdict"] == "not tried":
                        self.assertEqual((row[1], row[3], row[4], claim["checks"]), ("-", "-", "-", []))
                        continue
                    self.assertTrue(all(row), row)
                    self.assertIn(row[1], ("closed form", "Monte Carlo", "simulation"))
                    self.assertRegex(row[4], r"[<>=≥≤]|\d to -?\d")
                    self.assertEqual(row[5] == "**does not hold**", not all(check["keeps"] for check in claim["checks"]))
                self.assert_counted(page, [claim["verdict"] for claim in claims])
                root = xml.etree.ElementTree.parse(os.path.join(self.folder, "made", paper + ".svg")).getroot()
                lines = root.findall("{http://www.w3.org/2000/svg}polyline")
                self.assertGreaterEqual(len(lines), 2)
                self.assertTrue(all(len(line.get("points").split()) > 1 for line in lines))

    def assert_counted(self, page, verdicts):
        counts = "; ".join(f"{verdict}: {verdicts.count(verdict)}" for verdict in VERDICTS)
        self.assertIn(f"{len(verdicts)} claims. {counts}.", page)

    def test_what_needs_no_luck_holds_by_construction(self):
        run = self.paceline("reproduce", "nonblocking", "--quick", "--json")
        claims = {claim["claim"]: claim for claim in map(json.loads, run.out.splitlines())}
        twice = next(claim for text, claim in claims.items() if text.startswith("Theorem 1, section 6"))
        self.assertEqual(twice["verdict"], "holds by construction")
        self.assertEqual([round(value, 3) for value in twice["checks"][0]["values"]], [2, 2, 2])
        self.assertIn("the paper", text_of(self.folder, "results", "nonblocking.md"))

    def test_what_is_refused(self):
        self.assert_refused("wagna", words=["wagna", "wagma", "all"])
        self.assert_refused("sgp", "--quick", "-o", "/dev/null/x", words=["-o /dev/null/x"])
        self.assert_refused(words=["paper"])


class RealNetworksTest(unittest.TestCase):
    """The page of real runs against figures that are kept; no runs."""

    def page(self, figures):
        with tempfile.TemporaryDirectory(prefix="pl-") as folder:
            page = os.path.join(folder, "page.md")
            subprocess.run([sys.executable, os.path.join(SOURCE, "tests", "bench", "orderings.py"), "--load", figures, "-o", page], check=True)
            return text_of(page)

    def verdicts(self, accuracies):
        """By claim; `accuracies`: of each strategy without flags, one a seed, reached after 10 s."""
        return self.verdicts_of([
            {"strategy": strategy, "flags": [], "seed": seed, "updates": 100, "train_s": 10.0, "evaluations": [[10.0, value]]}
            for strategy, values in accuracies.items() for seed, value in enumerate(values, 1)])

    def verdicts_of(self, runs):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"runs": runs}, file)
            file.flush()
            rows = [row.split(" | ") for row in self.page(file.name).splitlines() if row.startswith("| ")]
        return {row[1]: row[4].rstrip(" |") for row in rows}

    def test_the_page_follows_from_the_kept_figures(self):
        self.assertEqual(self.page(os.path.join(SOURCE, "docs", "results", "real-networks.json")).splitlines(),
                         text_of(SOURCE, "docs", "results", "real-networks.md").splitlines())

    def test_an_order_that_one_seed_contradicts_does_not_hold(self):
        claim = "a long fixed period ends less accurate"
        for short, verdict in (((.84, .86), "holds"), ((.84, .82), "**does not hold**: within noise"), ((.80, .82), "**does not hold**: reversed")):
            self.assertEqual(self.verdicts({"local-sgd(period=1)": short, "local-sgd(period=30)": (.83, .83)})[claim], verdict)

    def test_a_loss_is_reached_when_the_mean_of_ten_reports_is_down_to_it(self):
        claim = "the same training loss in half the time of allreduce where the slowest takes twice as long"

        def run(strategy, flags, low_from):  # A report a second; early on some are low by chance.
            losses = [[second, 0.1 if second in (0, 3, 6) else 1.0 if second < low_from else 0.45] for second in range(60)]
            return {"strategy": strategy, "flags": ["--slow", "3:2x", *flags], "seed": 1, "updates": 100, "train_s": 60.0,
                    "evaluations": [[60.0, 0.8]], "losses": losses}
        other = run("allreduce", ["--accumulate", "4"], 30)  # After 39 s.
        for low_from, verdict in ((9, "holds"), (20, "**does not hold**: missed"), (35, "**does not hold**: reversed")):
            self.assertEqual(self.verdicts_of([run("nonblocking(batches=4)", [], low_from), other])[claim], verdict)

    def test_a_mean_that_just_misses_its_bound_does_not_hold(self):
        claim = "within 1.2 points of allreduce"
        self.assertEqual(self.verdicts({"sgp": (.8401, .8385), "allreduce": (.85, .85)})[claim], "holds")
        self.assertEqual(self.verdicts({"sgp": (.8379, .8379), "allreduce": (.85, .85)})[claim], "**does not hold**: missed")

    def test_who_never_comes_to_the_accuracy_is_not_sooner(self):
        claim = "sooner accurate than K-AVG with half the averages"
        hier, k_avg = "hier-avg(k1=4,k2=8,group=2)", "k-avg(period=4)"
        self.assertEqual(self.verdicts({hier: (.80, .80), k_avg: (.80, .86)})[claim], "**does not hold**: reversed")
        self.assertEqual(self.verdicts({hier: (.86, .86), k_avg: (.86, .86)})[claim], "**does not hold**: within noise")
        self.assertEqual(self.verdicts({})[claim], "not tried")


if __name__ == "__main__":
    main()
