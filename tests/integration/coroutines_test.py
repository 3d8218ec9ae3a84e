"""Coroutine methods of actors, in real processes (coroutines_script.cc checks itself)."""
import os

from harness import NODES, SANITIZED, IntegrationTest, main

COROUTINES = os.environ["PACELINE_COROUTINES"]
WAYS = (None, {"PACELINE_CHANNELS": "zmq"})  # Past the agent, and through it.


class Coroutines(IntegrationTest):
    def check(self, *arguments, **options):
        self.run_script(COROUTINES, *arguments, **options)

    def test_a_method_awaits_calls_tasks_and_its_own_actor(self):
        for nodes in NODES:
            for way in WAYS:
                self.check("relay", nodes, nodes=nodes, environment=way)

    def test_calls_overlap(self):
        for way in WAYS:
            self.check("overlap", 1000, environment=way)

    def test_calls_that_go_another_way_do_not_wait_for_those_that_wait(self):
        for way in WAYS:
            self.check("turns", environment=way)

    def test_a_flood(self):
        self.check("flood", 5_000 if SANITIZED else 50_000)

    def test_what_waits_in_a_killed_actor_ends(self):
        for way in WAYS:
            self.check("killed", 1000, environment=way)

    def test_elsewhere_they_block(self):
        self.check("elsewhere")


if __name__ == "__main__":
    main()
