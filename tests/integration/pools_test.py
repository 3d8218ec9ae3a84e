"""Pools of actors and queues on real processes (pools_script.cc checks itself)."""
import os

from harness import NODES, SANITIZED, IntegrationTest, main

POOLS = os.environ["PACELINE_POOLS"]


class Pools(IntegrationTest):
    def check(self, *arguments, **options):
        return self.run_script(POOLS, *arguments, **options)

    def test_slow_actors_get_fewer_calls(self):
        for nodes in NODES:
            self.check("pool", nodes=nodes)

    def test_a_dead_actor_gets_next_to_none(self):
        self.check("dead")

    def test_each_value_of_a_queue_comes_out_once(self):
        for nodes in NODES:
            self.check("once", 200 if SANITIZED else 2_000, nodes=nodes)
        self.check("once", 200, environment={"PACELINE_CHANNELS": "zmq"})

    def test_queues_have_deadlines(self):
        self.check("deadlines")

    def test_who_asks_for_a_name_has_the_same_queue(self):
        for nodes in NODES:
            self.check("name", nodes=nodes)

    def test_main_may_return_while_somebody_gets(self):
        self.check("left", timeout=30)


if __name__ == "__main__":
    main()
