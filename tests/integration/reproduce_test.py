"""paceline reproduce: a page and a plot for every paper, the same ones every time."""
import json
import os
import re
import xml.etree.ElementTree

from harness import IntegrationTest, main

USAGE = 2
PAPERS = ("wagma", "adacomm", "nonblocking", "hier-avg", "sgp")
HEAD = "| claim | how | the paper | here | holds | why |"


class ReproduceTest(IntegrationTest):
    def read(self, *names):
        with open(os.path.join(self.folder, *names), encoding="utf-8") as file:
            return file.read()

    def assert_refused(self, *arguments, words):
        run = self.paceline("reproduce", *arguments)
        self.assertEqual((run.code, run.out), (USAGE, ""), run.said())
        for word in words:
            self.assertIn(word, run.err)

    def test_every_paper_has_its_table_and_its_plot(self):
        for paper in PAPERS:
            with self.subTest(paper=paper):
                run = self.paceline("reproduce", paper, "--quick", "--json", "-o", "made")
                self.assertEqual(run.code, 0, run.said())
                claims = [json.loads(line) for line in run.out.splitlines()]
                page = self.read("made", paper + ".md")
                rows = [line for line in page.split(HEAD)[1].splitlines() if line.startswith("| ")]
                self.assertEqual(len(rows), len(claims))
                self.assertGreaterEqual(len(claims), 9)
                for row, claim in zip(rows, claims):
                    cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
                    self.assertEqual(len(cells), 6, row)
                    self.assertTrue(all(cells), row)
                    self.assertIn(cells[1], ("closed form", "Monte Carlo", "simulation"))
                    self.assertEqual(cells[4], "yes" if claim["holds"] else "**no**")
                    self.assertNotRegex(row, r"\b(nan|inf)\b")
                self.assertIn(f"]({paper}.svg)", page)
                root = xml.etree.ElementTree.parse(os.path.join(self.folder, "made", paper + ".svg")).getroot()
                lines = root.findall("{http://www.w3.org/2000/svg}polyline")
                self.assertGreaterEqual(len(lines), 2)
                self.assertTrue(all(len(line.get("points").split()) > 1 for line in lines))

    def test_the_same_numbers_every_time(self):
        for folder in ("first", "second"):
            run = self.paceline("reproduce", "adacomm", "--quick", "-o", folder)
            self.assertEqual(run.code, 0, run.said())
        for name in ("adacomm.md", "adacomm.svg"):
            self.assertEqual(self.read("first", name), self.read("second", name))

    def test_what_needs_no_luck_holds(self):
        run = self.paceline("reproduce", "nonblocking", "--quick", "--json")
        claims = {claim["claim"]: claim for claim in map(json.loads, run.out.splitlines())}
        twice = next(claim for text, claim in claims.items() if text.startswith("Section 6: up to 2x"))
        self.assertTrue(twice["holds"])
        self.assertEqual(twice["ours"], "2.000 (2.000 to 2.000)")
        self.assertIn("the paper", self.read("results", "nonblocking.md"))

    def test_what_is_refused(self):
        self.assert_refused("wagna", words=["wagna", "wagma", "all"])
        self.assert_refused("sgp", "--quick", "-o", "/dev/null/x", words=["-o /dev/null/x"])
        self.assert_refused(words=["paper"])


if __name__ == "__main__":
    main()
