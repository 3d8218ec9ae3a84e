"""docs/command-line.md says what the commands say themselves: flags, columns of tables, events and their fields."""
import glob
import os
import re
import shlex
import signal
import subprocess
import xml.etree.ElementTree

from harness import ENDLESS, IntegrationTest, PACELINE, SOURCE, main, wait_until

PAGE = os.path.join(SOURCE, "docs", "command-line.md")


def sections():
    """{heading: lines} of the page."""
    found, name = {}, ""
    with open(PAGE, encoding="utf-8") as file:
        for line in file.read().splitlines():
            heading = re.match(r"#+ (.*)", line)
            name = heading[1] if heading else name
            found.setdefault(name, []).append(line)
    return found


def rows(lines, head):
    """(first cell, other cells) of each row of the table whose head begins with `head`."""
    inside = False
    for line in lines:
        cells = re.split(r"(?<!\\)\|", line.strip().strip("|"), maxsplit=1)
        if not line.startswith("|"):
            inside = False
        elif cells[0].strip().strip("`") == head:
            inside = True
        elif inside and not cells[0].strip().startswith("---"):
            yield cells[0].strip(), cells[1]


def in_backquotes(text):
    return re.findall(r"`([^`]*)`", text)


def flags_in(text):
    return set(re.findall(r"(?<![\w-])(--?[a-zA-Z][a-z-]*)", text))


class Documentation(IntegrationTest):
    def help_of(self, *command):
        run = self.paceline(*command, "--help")
        self.assertEqual(run.code, 0, run.said())
        return run.out

    def flags_of(self, command):
        """Those that its help lists, each in all its spellings."""
        listed = re.findall(r"^ +(-[^\s]*)", self.help_of(command), re.MULTILINE)
        return {flag for entry in listed for flag in entry.split(",")} - {"-h", "--help", "-h,--help"}

    def commands(self):
        after = self.help_of().split("Subcommands:")[1]
        return re.findall(r"^  ([a-z]+) ", after, re.MULTILINE)

    def test_every_flag_of_every_command_is_documented_and_no_other(self):
        pages = sections()
        self.assertGreater(len(self.commands()), 9)
        for command in self.commands():
            with self.subTest(command):
                lines = pages.get(f"paceline {command}", [])
                self.assertTrue(lines, "has no section")
                documented = {flag for cell, _ in rows(lines, "flag") for code in in_backquotes(cell) for flag in
                              flags_in(code)}
                self.assertEqual(documented, self.flags_of(command))

    def test_flags_that_pages_name_exist(self):
        known = set().union(*(self.flags_of(command) for command in self.commands()), {"--help"})
        pages = set(glob.glob(os.path.join(SOURCE, "docs", "**", "*.md"), recursive=True)) | {os.path.join(SOURCE, "README.md")}
        for path in sorted(pages - {os.path.join(SOURCE, "docs", "ARCHITECTURE.md")}):  # Which names the linker's, too.
            with open(path, encoding="utf-8") as file:
                text = file.read()
            spans = re.findall(r"`((?:--|paceline )[^`\n]*)`", text)
            commands = re.findall(r"^(?:[\w./]*/)?(paceline [^\n#]*)", text, re.MULTILINE)
            for code in spans + [re.split(r" -- |\|", command)[0] for command in commands]:
                self.assertLessEqual(flags_in(code), known, f"{os.path.relpath(path, SOURCE)}: {code}")

    def assert_columns(self, out, section):
        head = next(line for line in out.splitlines() if line.startswith("strategy "))
        columns = re.split(r"\s{2,}", head.strip())[1:]
        documented = [name for cell, _ in rows(sections()[section], "column") for name in cell.split(", ")]
        self.assertEqual(documented, columns)

    def test_columns_of_a_comparison(self):
        run = self.compare("allreduce", "nonblocking(batches=2)")
        self.assert_columns(run.out, "The table of a comparison")

    def compare(self, *strategies):
        run = self.start_quadratic("--compare", ",".join(strategies), updates=40, sleep_ms=[2, 2, 2, 8],
                                   metric={"name": "accuracy"})
        self.assertEqual(run.wait(30), 0, run.said())
        return run

    def test_programs_on_pages_run(self):
        """Those that are whole: they begin with an include and have a main, and do not train."""
        programs = 0
        for path in sorted(glob.glob(os.path.join(SOURCE, "docs", "*.md"))):
            with open(path, encoding="utf-8") as file:
                blocks = re.findall(r"^```cpp\n(#include <paceline\.h>.*?)^```", file.read(), re.MULTILINE | re.DOTALL)
            for block in filter(lambda text: "int main(" in text, blocks):
                programs += 1
                with self.subTest(f"{os.path.basename(path)}: {block.splitlines()[-3]}"):
                    run = self.paceline("run", self.write(f"program{programs}.cpp", block), timeout=60)
                    self.assertEqual(run.code, 0, run.said())
                    self.assertTrue(run.out, "it prints something")
        self.assertGreaterEqual(programs, 3)

    def test_the_picture_of_the_readme_can_be_made(self):
        """A panel a run: its strategy, its workers and what they did, over the same time."""
        run = self.compare("allreduce", "nonblocking(batches=2)")
        picture, build = os.path.join(self.folder, "picture.svg"), os.path.dirname(os.path.dirname(PACELINE))
        subprocess.run([os.path.join(SOURCE, "tests", "bench", "timeline_svg.py"), build, run.run_directory, "-o", picture],
                       check=True, env=self.environment, timeout=30)
        shapes = [(shape.tag.split("}")[1], shape.get("class"), "".join(shape.itertext()).strip())
                  for shape in xml.etree.ElementTree.parse(picture).iter()]
        texts = [text for tag, _, text in shapes if tag == "text"]
        self.assertEqual(len([text for text in texts if text.startswith("worker 3")]), 2, texts)
        self.assertTrue(any(text.startswith("nonblocking(batches=2)") for text in texts), texts)
        ends = [int(text.split()[0]) for text in texts if re.fullmatch(r"\d+ updates? in \d+ ms", text)]
        self.assertEqual(len(ends), 2, texts)
        self.assertGreater(ends[1], ends[0], "who does not wait makes more updates in the same time")
        self.assertEqual(sum(ends), len([tag for tag, name, _ in shapes if tag == "line" and name == "end"]) - 1, "one in the key")
        self.assertGreater(len([tag for tag, name, _ in shapes if tag == "rect" and name == "compute"]), 8)

    def test_columns_of_a_simulation(self):
        run = self.paceline("simulate", "--compare", "allreduce,nonblocking", "--steps", 5)
        self.assert_columns(run.out, "Its columns")

    def test_the_simulation_that_is_shown_prints_what_is_shown(self):
        with open(PAGE, encoding="utf-8") as file:
            shown = re.search(r"```\n(paceline simulate --compare [^\n]*)\n```\n\n```\n(.*?)```", file.read(), re.DOTALL)
        run = self.paceline(*shlex.split(shown[1])[1:])
        self.assertEqual(run.out.split(), shown[2].split())

    # Events -----------------------------------------------------------------------------------------------------------

    def documented_fields(self):
        """{event or object: fields}; an object's name may stand for fields of an event."""
        lines = sections()["Events"]
        fields = {in_backquotes(cell)[0]: set(in_backquotes(text)) for cell, text in rows(lines, "event")}
        fields.update({in_backquotes(cell)[0]: set(in_backquotes(text)) for cell, text in rows(lines, "object")})
        fields["closed"] = fields["progress"]
        return fields

    def events(self):
        """Of a run in which workers wait, one is killed, comes back, and is killed, and nobody throws, of one that fails, and of one that is scaled and changed."""
        run = self.start_quadratic("--strategy", "allreduce", nodes=2, updates=ENDLESS, sleep_ms=[2, 2, 2, 15], evaluate_every=50,
                                   restarts=1)
        self.wait_for_update(run, 60)
        wait_until(lambda: any("waiting" in event for event in run.metrics()), 5, "somebody waits")
        self.signal_worker(run, 2, signal.SIGKILL)
        wait_until(lambda: any(event["event"] == "returned" for event in run.metrics()), 10, "it is back")
        self.signal_worker(run, 2, signal.SIGKILL)
        self.end_after(run, 100)
        failed = self.start_quadratic(updates=1000, sleep_ms=[2], fail="throw", fail_rank=2, fail_update=20)
        self.assertEqual(failed.wait(30), 1, failed.said())
        return run.metrics() + failed.metrics() + self.events_of_scaling()

    def events_of_scaling(self):
        run = self.start_quadratic("--begin-with", 2, workers=3, updates=ENDLESS, sleep_ms=[4])
        self.wait_for_update(run, 20)
        for workers, kind in ((3, "returned"), (2, "left")):
            self.assertEqual(self.paceline("scale", 1, workers).code, 0)
            wait_until(lambda: any(event["event"] == kind for event in run.metrics()), 10, f"one that has {kind}", run)
        self.assertEqual(self.paceline("set", 1, "--strategy", "local-sgd(period=2)").code, 0)
        wait_until(lambda: any(event["event"] == "changed" for event in run.metrics()), 10, "its change", run)
        self.end_after(run, 20)
        return run.metrics()

    def test_every_event_and_every_field_is_documented(self):
        fields, seen = self.documented_fields(), {}
        for event in self.events():
            kind = event.pop("event")
            seen.setdefault(kind, set()).update(event)
            for name in ("counters", "starting", "waiting"):
                seen.setdefault(name, set()).update(event.get(name, {}))
            for worker in event.get("workers", []) if kind != "scale" else []:
                seen.setdefault("workers", set()).update(worker)
        self.assertLessEqual(set(seen), set(fields))
        for kind, names in seen.items():
            self.assertLessEqual(names, fields[kind], f"of {kind}, fields that are not documented")
        for kind in ("memory", "started", "evaluated", "left", "returned", "changed", "stopping", "failed", "counters", "workers", "starting", "waiting"):
            self.assertEqual(fields[kind], seen[kind], f"of {kind}, fields that are documented but not there")
        self.assertEqual(fields["progress"], seen["progress"])
        self.assertEqual(fields["result"] - seen["result"], {"files", "logged", "test_accuracy"},
                         "of jobs that read files, that log, and that evaluate an accuracy")


if __name__ == "__main__":
    main()
