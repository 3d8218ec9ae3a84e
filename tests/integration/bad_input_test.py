"""Bad input gets one clear line that names the cause and the mend, and leaves nothing behind."""
import os

from harness import PACELINE, IntegrationTest, QUADRATIC, main

USAGE = 2


class BadInput(IntegrationTest):
    def assert_one_line(self, run, code, *words):
        """The last word on stderr is one line of ours that holds these words."""
        self.assertEqual(run.code, code, run.said())
        ours = [line for line in run.err.splitlines() if line.startswith("paceline: ")]
        self.assertEqual(len(ours), 1, run.said())
        for word in words:
            self.assertIn(word, ours[0])
        self.assert_nobody_left()

    def run_with(self, *flags, workers=4, **options):
        run = self.start_quadratic(*flags, workers=workers, **options)
        run.wait(30)
        return run

    # Flags ------------------------------------------------------------------------------------------------------------

    def test_an_unknown_strategy_is_named_and_the_known_ones_are_listed(self):
        self.assert_one_line(self.run_with("--strategy", "allredcue"), USAGE, "allredcue", "allreduce", "wagma")

    def test_a_flag_or_a_command_that_does_not_exist_is_named_in_one_line(self):
        for words, wrong, help_of in ((("run", "x.cpp", "--worker", 3), "--worker", "paceline run"),
                                      (("trian",), "trian", "paceline"),
                                      (("logs", "--lines", "none"), "--lines", "paceline logs")):
            run = self.paceline(*words)
            self.assertEqual(len(run.err.splitlines()), 1, run.said())
            self.assert_one_line(run, USAGE, wrong, f"`{help_of} --help`")

    def test_an_unknown_parameter_is_named(self):
        self.assert_one_line(self.run_with("--strategy", "wagma(groop=2)"), USAGE, "groop", "group")

    def test_a_parameter_out_of_range_names_the_range(self):
        self.assert_one_line(self.run_with("--strategy", "wagma(sync=0)"), USAGE, "sync", "1")

    def test_wagma_wants_a_power_of_two_and_says_what_to_do(self):
        self.assert_one_line(self.run_with("--strategy", "wagma", workers=3), USAGE, "wagma", "power of two", "3")

    def test_the_scripts_own_strategy_is_checked_too(self):
        run = self.paceline("run", QUADRATIC, "--", "strategy=wagma", "workers=6")
        self.assert_one_line(run, USAGE, "power of two")

    def test_no_workers(self):
        self.assert_one_line(self.run_with(workers=0), USAGE, "--workers", "0")

    def test_more_workers_than_there_may_be(self):
        self.assert_one_line(self.run_with(workers=10**6), USAGE, "--workers")

    def test_a_slow_worker_that_does_not_exist(self):
        self.assert_one_line(self.run_with("--slow", "4:2x"), USAGE, "--slow", "0 to 3")

    def test_flags_that_name_workers_which_the_script_has_not(self):
        for flag, value, word in (("--slow", "9:3x", "workers are numbered 0 to 3"), ("--minimum", "9", "there are only 4 workers"),
                                  ("--straggle", "9:3ms", "there are only 4 workers")):
            for more in ([], ["--compare", "allreduce,local-sgd(period=2)"]):
                with self.subTest(flag, more=more):
                    run = self.paceline("run", QUADRATIC, flag, value, *more, "--", "workers=4")
                    self.assert_one_line(run, USAGE, f"{flag} {value}: {word}")

    def test_a_job_that_has_nothing_to_do(self):
        run = self.run_with(updates=0)
        self.assert_one_line(run, 1, "nothing to do", "give more --epochs")
        self.assertEqual((run.out + run.err).count("nothing to do"), 1, run.said())

    def test_a_directory_that_holds_a_run(self):
        directory = os.path.join(self.folder, "mine")
        os.mkdir(directory)  # An empty one is taken.
        self.assertEqual(self.paceline("run", QUADRATIC, "--run-dir", directory, "--", "updates=3").code, 0)
        with open(os.path.join(directory, "metrics.jsonl"), encoding="utf-8") as file:
            before = file.read()
        self.assert_one_line(self.paceline("run", QUADRATIC, "--run-dir", directory, "--", "updates=3"), USAGE,
                             f"--run-dir {directory} holds a run already")
        self.assert_one_line(self.paceline("replay", directory, "--run-dir", directory), USAGE, "holds a run already")
        with open(os.path.join(directory, "metrics.jsonl"), encoding="utf-8") as file:
            self.assertEqual(file.read(), before)

    def test_a_comparison_is_checked_before_its_first_run(self):
        for last, word in (("bogus", "bogus"), ("wagma", "power of two")):
            with self.subTest(last):
                run = self.paceline("run", QUADRATIC, "--compare", f"allreduce,{last}", "--", "workers=6")
                self.assert_one_line(run, USAGE, word)
                self.assertNotIn("updates", run.out)

    def test_a_cluster_that_is_not_up(self):
        run = self.start_quadratic(nodes=None)
        run.wait(20)
        self.environment["PACELINE_CLUSTER"] = "nowhere"
        run = self.start_quadratic(nodes=None)
        run.wait(20)
        self.assert_one_line(run, USAGE, "nowhere", "paceline up")

    # Scripts ----------------------------------------------------------------------------------------------------------

    def test_a_script_that_does_not_exist(self):
        self.assert_one_line(self.paceline("run", "nothing.cpp"), USAGE, "nothing.cpp")

    def test_a_script_that_does_not_compile_shows_the_compilers_messages(self):
        script = self.write("broken.cpp", "int main() { return undeclared; }\n")
        run = self.paceline("run", script, timeout=60)
        self.assert_one_line(run, USAGE, "broken.cpp does not compile")
        self.assertIn("undeclared", run.err)
        self.assertRegex(run.err, r"broken\.cpp:1:\d+: error")

    def test_a_script_without_a_job_is_told_so(self):
        script = self.write("empty.cpp", "int main() { return 0; }\n")
        run = self.paceline("run", script, "--workers", 4, "--strategy", "allreduce", timeout=60)
        self.assert_one_line(run, 1, "empty.cpp ran no training job", "strategy", "workers", "paceline::run")
        run = self.paceline("run", script, timeout=60)
        self.assert_one_line(run, 0, "empty.cpp started no task, no actor and no training job")

    def test_what_is_no_program(self):
        self.assert_one_line(self.paceline("run", self.write("notes.txt", "x")), USAGE, "notes.txt")

    # The user's code --------------------------------------------------------------------------------------------------

    def fail_as(self, how, nodes):
        return self.run_with(updates=1000, sleep_ms=[2], fail=how, fail_rank=2, fail_update=20, nodes=nodes, restarts=0)

    def test_an_exception_in_a_worker_is_named(self):
        for nodes in (1, 2):
            self.assert_one_line(self.fail_as("throw", nodes), 1, "worker 2", "the user's code threw on purpose")

    def test_a_crash_in_a_worker_is_named_with_the_logs_last_lines(self):
        for nodes in (1, 2):
            self.assert_one_line(self.fail_as("segfault", nodes), 1, "worker 2", "SIGSEGV", "worker-2.log",
                                 "about to fail on purpose: segfault")

    def test_a_worker_that_exits_is_named(self):
        self.assert_one_line(self.fail_as("exit", 1), 1, "worker 2", "7", "about to fail on purpose: exit")

    def test_bytes_that_are_no_utf8_end_their_run_at_most(self):
        """The cluster they came to is the one it was, and takes the next job."""
        self.assertEqual(self.paceline("up", "--nodes", 2).code, 0)
        cluster = self.cluster()
        for how, code, word in (("throw_bytes", 1, "gr\ufffd\ufffd dich"), ("log_bytes", 1, "\u20ac\u20ac"), ("say_bytes", 0, "")):
            run = self.start_quadratic(nodes=None, updates=200, sleep_ms=[2], fail=how, fail_rank=2, fail_update=20, restarts=0)
            self.assertEqual(run.wait(30), code, run.said())
            self.assertIn(word, run.err)
            if how == "say_bytes":
                events = run.metrics()
                self.assertIn("gr\ufffd\ufffd", [event.get("name") for event in events])
                self.assertIn("gr\ufffd\ufffd dich", [event.get("text") for event in events])
        self.assertEqual(self.cluster(), cluster)
        run = self.start_quadratic(nodes=None, updates=20)
        self.assertEqual(run.wait(30), 0, run.said())
        self.assertEqual(self.paceline("down").code, 0)

    def test_options_that_do_not_fit_are_refused_before_anything_is_started(self):
        """Those of the script itself; the flags are looked at before it is started."""
        for option, word in (("workers=2000000000", "from 1 to 4096"), ("epochs=1e18", "at most 1000000"),
                             ("strategy=7", "option strategy = 7"), ("metric=[1]", "option metric"),
                             ("target=true", "option target = true: give a finite number")):
            run = self.paceline("run", QUADRATIC, "--", option)
            self.assert_one_line(run, USAGE, word)

    # The machine ------------------------------------------------------------------------------------------------------

    def test_too_little_memory_says_how_much_is_needed(self):
        run = self.run_with(elements=10**11, updates=3)
        self.assertEqual(run.code, 1, run.said())
        line = next(line for line in run.err.splitlines() if line.startswith("paceline: "))
        self.assertRegex(line, r"\d+(\.\d+)? ?(MiB|GiB|TiB|MB|GB|TB)")
        self.assertIn("windows need", line)
        self.assertIn("fewer workers", line)
        self.assert_nobody_left()

    def test_more_workers_than_descriptors_are_enough_for_are_refused_and_fewer_run(self):
        for workers, limit, code in ((16, "-n", 0), (17, "-n", 1), (17, "-Sn", 0)):
            with self.subTest(workers=workers, limit=limit):
                directory = os.path.join(self.folder, f"run-{workers}{limit}")
                run = self.start("-c", f'ulimit {limit} 256; exec "$0" "$@"', PACELINE, "run", QUADRATIC, "--workers", workers,
                                 "--run-dir", directory, "--", "updates=20", program="/bin/sh")
                self.assertEqual(run.wait(60), code, run.said())
                if code:
                    self.assert_one_line(run, 1, "worker 16", "node 0 has 16 actors", "256 descriptors", "ulimit -Hn` says 32896")

    def test_a_runtime_folder_that_others_could_read_is_refused(self):
        os.mkdir(self.runtime, 0o755)
        os.chmod(self.runtime, 0o755)
        self.assert_one_line(self.paceline("up"), USAGE, "0700")

    def test_a_run_directory_that_cannot_be_made(self):
        self.write("file", "")
        run = self.paceline("run", QUADRATIC, "--run-dir", os.path.join(self.folder, "file", "x"))
        self.assert_one_line(run, USAGE, "--run-dir")


if __name__ == "__main__":
    main()
