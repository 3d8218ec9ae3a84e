"""What workers print, on the driver's terminal and in the run's logs (output_script.cc prints)."""
import json
import os
import pty
import re
import signal
import subprocess
import threading
import time

from harness import ENDLESS, NODES, PACELINE, QUADRATIC, SANITIZED, SLOWDOWN, IntegrationTest, main, wait_until

OUTPUT = os.environ["PACELINE_OUTPUT_SCRIPT"]


def shown(run):
    """The lines of workers, with "PID" for each process's number."""
    return [re.sub(r"pid=\d+", "pid=PID", line) for line in run.err.splitlines() if line.startswith("(")]


class Output(IntegrationTest):
    def script(self, *arguments, flags=(), nodes=1, environment=None, timeout=60):
        """Run with `paceline run`; its directory is `run.run_directory`."""
        directory = os.path.join(self.folder, f"run-{self.runs}")
        run = self.start("run", OUTPUT, "--nodes", nodes, "--run-dir", directory, *flags, "--", *arguments,
                         environment=environment)
        run.run_directory = directory
        self.assertEqual(run.wait(timeout), 0, run.said())
        return run

    def by_itself(self, *arguments, environment=None):
        """The script started without `paceline run`, in an empty folder of its own."""
        folder = os.path.join(self.folder, f"alone-{self.runs}")
        os.mkdir(folder)
        path = os.path.dirname(PACELINE) + ":" + os.environ["PATH"]
        run = self.start(*arguments, program=OUTPUT, directory=folder, environment=dict({"PATH": path}, **(environment or {})))
        self.assertEqual(run.wait(30), 0, run.said())
        return run, folder

    def logs(self, run):
        """The run's logs of workers: text by name."""
        folder = os.path.join(run.run_directory, "logs")
        texts = {}
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), encoding="utf-8", errors="surrogateescape") as file:
                texts[name] = file.read()
        return texts

    def test_lines_begin_with_who_has_printed_them(self):
        for nodes in NODES:
            run = self.script("lines", nodes, nodes=nodes)
            expected = ["(Counter counter-0 pid=PID) aloud"]
            for node in range(nodes):
                where = " node 1" if node == 1 else ""
                expected += [f"(Counter counter-{node} pid=PID{where}) counted to 3", f"(Counter pid=PID{where}) counted to 3",
                             f"(tasks, worker N pid=PID{where}) task {node}"]
            lines = [re.sub(r"worker \d+", "worker N", line) for line in shown(run)]
            self.assertEqual(sorted(lines), sorted(expected), run.said())

    def test_what_workers_start_prints_there_too(self):
        run = self.script("nested")
        self.assertEqual([line.partition(") ")[2] for line in shown(run)], ["task 17"], run.said())
        self.assertIn("task 17\n", self.logs(run).values())

    def test_what_was_printed_before_the_end_of_main_is_shown(self):
        for _ in range(3):
            run = self.script("last")
            self.assertEqual(shown(run), ["(Counter counter pid=PID) whole", "(Counter counter pid=PID) half"], run.said())

    def test_last_words_are_shown(self):
        for number in (signal.SIGKILL, signal.SIGABRT):  # Which sanitizers leave alone.
            run = self.script("crash", int(number))
            self.assertEqual(shown(run), ["(Counter counter pid=PID) last wor"], run.said())
            self.assertEqual(self.logs(run)["counter.log"], "last wor")

    def test_bytes_are_shown_as_they_are_and_long_lines_are_cut(self):
        run = self.script("bytes")
        with open(run.err_path, "rb") as file:
            lines = re.sub(rb"pid=\d+", b"pid=PID", file.read()).splitlines()
        who = b"(Counter counter pid=PID) "
        self.assertEqual(lines[0], who + b"\xff\xfe|\x01|")
        self.assertRegex(lines[1], re.escape(who) + rb"x{8000,8200} \.\.\. \(\d+ more bytes\)$")
        self.assertEqual(lines[2], who)

    def test_it_is_off_where_somebody_says_so(self):
        for flags, environment in ((["--no-output"], None), ([], {"PACELINE_OUTPUT": "off"})):
            run = self.script("lines", 1, flags=flags, environment=environment)
            self.assertEqual(shown(run), [], run.said())
            self.assertEqual(self.logs(run)["counter-0.log"], "counted to 3\naloud\n")

    def test_logs_are_kept_in_the_run_s_folder_and_errors_name_them(self):
        run = self.script("named")
        log = re.search(r"log (\S+counter\.log)", run.out).group(1)
        self.assertEqual(log, os.path.join(run.run_directory, "logs", "counter.log"))
        self.assertEqual(self.logs(run), {"counter.log": "counted to 1\n"})
        self.assertIn("counted to 1", self.paceline("logs", run.run_directory).out)

    def test_nothing_is_kept_of_who_prints_nothing(self):
        run = self.script("quiet")
        self.assertEqual(os.listdir(run.run_directory), ["overrides.json"])
        _, folder = self.by_itself("quiet")
        self.assertEqual(os.listdir(folder), [])

    def test_a_driver_by_itself_shows_and_keeps_it_too(self):
        run, folder = self.by_itself("named")
        self.assertEqual(shown(run), ["(Counter counter pid=PID) counted to 1"], run.said())
        log = re.search(r"log (\S+counter\.log)", run.out).group(1)
        self.assertRegex(log, re.escape(os.path.join(folder, "runs")) + r"/[0-9_-]+-output_script-\d+/logs/counter\.log$")
        with open(log, encoding="utf-8") as file:
            self.assertEqual(file.read(), "counted to 1\n")
        self.assertIn("counted to 1", self.paceline("logs", directory=folder).out)

    def test_where_no_folder_can_be_made_workers_run_all_the_same(self):
        folder = os.path.join(self.folder, "closed")
        os.mkdir(folder, 0o500)
        if os.access(folder, os.W_OK):  # Root may everything.
            os.rmdir(folder)
            folder = "/proc/self"
        path = os.path.dirname(PACELINE) + ":" + os.environ["PATH"]
        run = self.start("named", program=OUTPUT, directory=folder, environment={"PATH": path})
        self.assertEqual(run.wait(30), 0, run.said())
        self.assertEqual(shown(run), ["(Counter counter pid=PID) counted to 1"], run.said())

    def test_two_drivers_of_a_cluster_show_their_own(self):
        self.assertEqual(self.paceline("up").code, 0)
        self.addCleanup(self.paceline, "down")
        runs = []
        for number in (1, 2):
            folder = os.path.join(self.folder, f"driver-{number}")
            os.mkdir(folder)
            runs.append(self.start("run", OUTPUT, "--", "lines", 1, f"counter-{number}", directory=folder))
        for run in runs:
            self.assertEqual(run.wait(30), 0, run.said())
            self.assertEqual(len(shown(run)), 4, run.said())

    def counted(self, lines):
        """How many lines of a flood were shown, and how many counted only."""
        left_out = re.compile(rb"^\(Counter counter pid=\d+\) \.\.\. ([\d,]+) lines? left out, which stands? in (\S+)$")
        told = [left_out.match(line) for line in lines]
        for match in filter(None, told):
            self.assertTrue(os.path.exists(match.group(2)), match.group(2))
        return (sum(b") line " in line for line in lines),
                sum(int(match.group(1).replace(b",", b"")) for match in told if match))

    def start_flood(self, lines, stderr, *until):
        """With a stderr of the test's own."""
        self.flood_directory = os.path.join(self.folder, "flood")
        self.flood_out = os.path.join(self.folder, "flood-out")
        with open(self.flood_out, "wb") as out:
            process = subprocess.Popen(
                [PACELINE, "run", OUTPUT, "--run-dir", self.flood_directory, "--", "flood", str(lines), "40", *until],
                stdout=out, stderr=stderr, stdin=subprocess.DEVNULL, cwd=self.folder, env=self.environment, start_new_session=True)
        self.addCleanup(lambda: process.poll() is None and os.killpg(process.pid, signal.SIGKILL))
        return process

    def grown(self):
        """By how many MiB the driver has grown when all has been printed; None: it has not yet."""
        with open(self.flood_out, encoding="utf-8") as file:
            found = re.search(r"grown by (\d+)\n", file.read())
        return found and int(found.group(1))

    def check_flood(self, process, lines):
        self.assertEqual(process.wait(100 * SLOWDOWN), 0)
        self.assertLess(self.grown(), 100 * SLOWDOWN)
        with open(os.path.join(self.flood_directory, "logs", "counter.log"), "rb") as file:
            self.assertEqual(sum(1 for _ in file), lines + 1)

    def test_of_a_flood_every_line_is_shown_or_counted(self):
        lines = 100_000 if SANITIZED else 1_000_000
        path = os.path.join(self.folder, "err")
        with open(path, "wb") as err:
            process = self.start_flood(lines, err)
        self.check_flood(process, lines)
        with open(path, "rb") as file:
            self.assertEqual(sum(self.counted(file.read().splitlines())), lines)

    def test_a_terminal_that_takes_nothing_keeps_no_call_and_is_told_later_what_it_has_missed(self):
        lines = 1_000_000
        until = os.path.join(self.folder, "until")
        out, into = os.pipe()
        with os.fdopen(out, "rb") as terminal:
            process = self.start_flood(lines, into, until)
            os.close(into)
            wait_until(lambda: self.grown() is not None, 100 * SLOWDOWN, "all to be printed")
            text = []

            def read():
                for line in terminal:
                    text.append(line)

            reader = threading.Thread(target=read)
            reader.start()
            try:
                wait_until(lambda: text and b"line %d " % (lines - 1) in text[-1], 100 * SLOWDOWN, "the last line")
            finally:
                with open(until, "wb"):
                    pass
                self.check_flood(process, lines)
                reader.join()
        shown_lines, left_out = self.counted(text)
        self.assertEqual(shown_lines + left_out, lines)
        self.assertGreater(left_out, lines // 2)

    def test_a_terminal_that_takes_nothing_does_not_keep_main_from_its_end(self):
        lines = 200_000
        out, into = os.pipe()
        self.addCleanup(os.close, out)
        process = self.start_flood(lines, into)
        os.close(into)
        self.check_flood(process, lines)

    def test_who_printed_is_in_colour_on_a_terminal_only(self):
        terminal, end = pty.openpty()
        self.addCleanup(os.close, terminal)
        run = subprocess.Popen([PACELINE, "run", OUTPUT, "--", "last"], stderr=end, stdin=subprocess.DEVNULL, cwd=self.folder,
                               env=dict(self.environment, NO_COLOR="", TERM="xterm"), start_new_session=True)
        os.close(end)
        text = b""
        try:
            while piece := os.read(terminal, 4096):
                text += piece
        except OSError:  # All others have closed it.
            pass
        self.assertEqual(run.wait(30), 0)
        self.assertRegex(text, rb"\x1b\[36m\(Counter counter pid=\d+\)\x1b\[0m whole\r\n")

    def test_a_driver_that_is_killed_leaves_its_logs(self):
        run = self.start("run", OUTPUT, "--run-dir", os.path.join(self.folder, "killed"), "--", "wait")
        run.run_directory = os.path.join(self.folder, "killed")
        wait_until(lambda: "printed" in run.out, 30, "its line")
        wait_until(lambda: shown(run), 30, "the worker's")
        os.killpg(run.process.pid, signal.SIGKILL)
        self.assert_nobody_left(10)
        self.assertEqual(self.logs(run), {"counter.log": "counted to 1\n"})


class OfJobs(IntegrationTest):
    """What a job's workers print comes the same way, and stands where the run's progress is shown."""

    def words(self, text):
        """What stands behind who has printed it, by who."""
        found = {}
        for who, words in re.findall(r"(?m)^\(([^)\n]*)\) (.*)$", text):
            found.setdefault(re.sub(r" pid=\d+|worker \d+", "", who), []).append(words)
        return found

    def test_it_stands_before_the_result_also_the_last_of_it(self):
        for nodes in NODES:
            run = self.quadratic(nodes=nodes, updates=3, say="hello", say_last="whole\nhalf")
            before, _, after = run.out.partition("run directory: ")
            expected = {f"paceline::Worker worker-{rank}" + (" node 1" if rank >= 4 // nodes else ""): ["hello", "whole", "half"]
                        for rank in range(4)}
            self.assertEqual(self.words(before), expected, run.said())
            self.assertEqual((self.words(after), run.err), ({}, ""))

    def test_what_its_workers_start_prints_there_too(self):
        run = self.quadratic(updates=3, say_in_task=True)
        lines = sorted(line for lines in self.words(run.out).values() for line in lines)
        self.assertEqual(lines, [f"a task of worker {rank}" for rank in range(4)], run.said())

    def test_lines_stand_above_the_live_block(self):
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        run = subprocess.Popen(
            [PACELINE, "run", QUADRATIC, "--workers", "2", "--", "updates=200", "sleep_ms=[20]", "say_every=10"], stdin=theirs,
            stdout=theirs, stderr=theirs, cwd=self.folder, env=dict(self.environment, TERM="xterm"), start_new_session=True)
        self.addCleanup(run.kill)
        os.close(theirs)
        printed = b""
        try:
            while piece := os.read(ours, 1 << 16):
                printed += piece
        except OSError:  # All others have closed it.
            pass
        self.assertEqual(run.wait(10), 0, printed[-2000:])
        screen = [""]
        erased = 0
        for up, text in re.findall(r"(?:\x1b\[(\d+)A\r\x1b\[J)?((?:[^\x1b]|\x1b(?!\[\d+A))*)", printed.decode()):
            if up:
                erased += 1
                self.assertEqual(screen[-1], "", "the cursor is at the beginning of a line")
                screen[-1 - int(up):] = [""]
            first, *more = text.split("\r\n")
            screen[-1] += first
            screen += more
        for rank in (0, 1):
            self.assertEqual(self.words("\n".join(screen))[f"paceline::Worker worker-{rank}"],
                             [f"at update {update}" for update in range(0, 200, 10)], "\n".join(screen))
        self.assertGreater(erased, 20)
        self.assertEqual(sum("update 200/200" in line for line in screen), 1, "\n".join(screen))

    def test_as_json_it_is_on_stderr(self):
        run = self.quadratic("--json", updates=3, say="hello", say_no_text=True)
        for line in run.out.splitlines():
            self.assertIsInstance(json.loads(line), dict)
        with open(run.err_path, "rb") as file:
            lines = file.read().splitlines()
        self.assertEqual(len(lines), 8, run.said())
        self.assertEqual(sum(line.endswith(b") \xff\xfe|\0|\x01") for line in lines), 4, "bytes are as they were printed")

    def test_it_is_off_where_somebody_says_so_and_stands_in_the_logs_of_all(self):
        run = self.quadratic("--no-output", updates=3, say="hello", say_last="bye\n")
        self.assertEqual(self.words(run.out + run.err), {}, run.said())
        for rank in range(4):
            with open(os.path.join(run.run_directory, "logs", f"worker-{rank}.log"), encoding="utf-8") as file:
                self.assertEqual(file.read(), "hello\nbye\n")

    def test_each_run_of_a_process_shows_its_own(self):
        run = self.quadratic(updates=3, runs=3, say="hello", say_last="bye")
        parts = run.out.split("run directory: ")
        self.assertEqual(len(parts), 4, run.said())
        for part in parts[:-1]:
            self.assertEqual(self.words(part), {f"paceline::Worker worker-{rank}": ["hello", "bye"] for rank in range(4)}, run.said())
        self.assertEqual(self.words(parts[-1] + run.err), {})

    def flooded(self, text, lines):
        """Of how many workers every line was shown or counted."""
        whole = 0
        for words in self.words(text).values():
            left_out = [re.match(r"\.\.\. ([\d,]+) lines? left out, ", line) for line in words]
            whole += (sum(int(match.group(1).replace(",", "")) for match in left_out if match) +
                      sum(line.startswith("line ") for line in words)) == lines
        return whole

    def test_of_a_flood_every_line_is_shown_or_counted(self):
        lines = 30_000 if SANITIZED else 300_000
        run = self.quadratic(timeout=60, updates=30, sleep_ms=[20], say_lines=lines)
        self.assertEqual(self.flooded(run.out.partition("run directory: ")[0], lines), 4, run.said())

    def test_ctrl_c_ends_a_flood(self):
        run = self.start_quadratic(updates=ENDLESS, sleep_ms=[5], say_lines=5_000_000)
        wait_until(lambda: "line 1000 " in run.out, 30, "lines")
        self.interrupt(run)

    def test_an_agent_that_is_frozen_at_the_end_does_not_keep_the_result(self):
        run = self.start_quadratic(nodes=2, updates=3, linger_ms=[1000, 1000, 0, 0], say="hello", say_last="bye\n")
        wait_until(lambda: run.final(2) and run.final(3), 30, "the second node's workers")
        time.sleep(0.3)  # Their answers are with the driver.
        os.kill(self.agents(1)[0], signal.SIGSTOP)
        wait_until(lambda: run.final(0) and run.final(1), 30, "the first node's")
        begin = time.monotonic()
        run.wait(20)
        self.assertLess(time.monotonic() - begin, 5 * SLOWDOWN)  # Until the node counts as lost, and a second.
        before = self.words(run.out.partition("run directory: ")[0])
        for rank in (0, 1):
            self.assertEqual(before[f"paceline::Worker worker-{rank}"], ["hello", "bye"], run.said())


if __name__ == "__main__":
    main()
