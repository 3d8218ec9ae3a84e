"""Actors with durable state: whatever their processes are killed in the middle of, each call is done once
(durable_actors_script.cc compares what callers heard with what the state says)."""
import os

from harness import NODES, SANITIZED, IntegrationTest, main

SCRIPT = os.environ["PACELINE_DURABLE_ACTORS"]
LARGE_MIB = 20 if SANITIZED else 100


class DurableActors(IntegrationTest):
    def check(self, what, *arguments, nodes=1, environment=None):
        self.checks = getattr(self, "checks", 0) + 1
        folder = os.path.join(self.folder, f"processes-{self.checks}")
        os.mkdir(folder)
        run = self.start("run", SCRIPT, "--nodes", nodes, "--", what, folder, *arguments, environment=environment)
        self.assertEqual(run.wait(150), 0, f"{what} {arguments}, {nodes} nodes: {run.said()}")
        return run.out

    def test_under_kills_each_call_is_done_once(self):
        for nodes in NODES:
            for flight in (1, 300):
                self.check("kills", nodes, flight, nodes=nodes)

    def test_under_kills_without_lines(self):
        self.check("kills", 1, 300, environment={"PACELINE_CHANNELS": "zmq"})

    def test_a_call_that_is_cut_short_is_undone_and_one_that_is_over_is_not_done_again(self):
        for nodes in NODES:
            self.check("half", nodes=nodes)

    def test_without_retries_the_state_is_whole(self):
        self.check("unknown")

    def test_nothing_is_left_of_the_state_of_an_actor_that_has_ended(self):
        self.check("released")

    def test_what_cannot_be_durable_says_so(self):
        self.check("refused")

    def test_large_state_is_there_after_a_restart(self):
        print(self.check("large", LARGE_MIB, 5).strip(), end=" ", flush=True)


if __name__ == "__main__":
    main()
