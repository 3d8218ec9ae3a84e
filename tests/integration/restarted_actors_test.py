"""Actors that are started again when their process dies: each call ends, in order, and is done once or says that nobody knows
(restarted_actors_script.cc compares what callers heard with what was done)."""
import os
import signal

from harness import NODES, SANITIZED, IntegrationTest, is_alive, main, wait_until

SCRIPT = os.environ["PACELINE_RESTARTED_ACTORS"]
LOAD_MS = 1500 if SANITIZED else 2500


class RestartedActors(IntegrationTest):
    def check(self, what, *arguments, nodes=1, environment=None):
        self.checks = getattr(self, "checks", 0) + 1
        folder = os.path.join(self.folder, f"effects-{self.checks}")
        os.mkdir(folder)
        run = self.start("run", SCRIPT, "--nodes", nodes, "--", what, folder, *arguments, environment=environment)
        self.assertEqual(run.wait(150), 0, f"{what} {arguments}, {nodes} nodes: {run.said()}")

    def kill_again_and_again(self, retries):
        for nodes in NODES:
            for flight in (1, 500):
                self.check("kills", retries, nodes, flight, LOAD_MS, nodes=nodes)

    def test_under_kills_a_call_is_done_once_or_unknown(self):
        self.kill_again_and_again(0)

    def test_under_kills_a_call_is_sent_again_as_often_as_it_may(self):
        self.kill_again_and_again(1)

    def test_under_kills_no_call_fails_that_may_always_be_sent_again(self):
        self.kill_again_and_again(-1)

    def test_under_kills_without_lines(self):
        self.check("kills", 0, 1, 500, LOAD_MS, environment={"PACELINE_CHANNELS": "zmq"})
        self.check("kills", -1, 1, 500, LOAD_MS, environment={"PACELINE_CHANNELS": "zmq"})

    def test_what_the_dead_process_had_not_taken_is_kept(self):
        self.check("untaken")

    def test_restarts_are_used_up(self):
        for nodes in NODES:
            self.check("used_up", nodes=nodes)

    def test_a_constructor_that_throws_at_a_restart_ends_the_actor_and_all_calls(self):
        self.check("constructor")

    def test_one_that_is_frozen_is_not_dead(self):
        self.check("frozen")

    def test_one_that_is_released_while_it_is_started_again_ends(self):
        self.check("released")

    def test_nothing_is_left_of_a_driver_that_is_killed_while_its_actor_is_started_again(self):
        folder = os.path.join(self.folder, "effects")
        os.mkdir(folder)
        run = self.start("run", SCRIPT, "--", "driver_killed", folder)
        wait_until(lambda: "restarting" in run.out and "\n" in run.out, 30, "the restart")
        os.kill(int(run.out.split("restarting ")[1].split()[0]), signal.SIGKILL)
        run.wait(30)
        with open(os.path.join(folder, "processes"), encoding="utf-8") as file:
            processes = [int(line) for line in file]
        wait_until(lambda: not any(map(is_alive, processes)), 20, "the end of the actor's processes")
        self.assert_nobody_left(20)


if __name__ == "__main__":
    main()
