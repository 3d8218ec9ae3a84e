"""A node that is lost, on real processes: the models that the others end with are those of the simulated cluster, to 1e-12,
and the same workers are lost.

The schedules are in tests/support/lost_nodes.json, written by tests/sim/cluster/losses_test.cc (PACELINE_WRITE_LOSSES=1): one
of four workers, a node each, stands still with an update until all others wait; then its agent is killed. Where that is the
first node's, which leads, the driver is there, too, and goes on through another agent, or at the last one's.
"""
import json
import os
import signal
import time

from harness import SANITIZED, SLOWDOWN, SOURCE, IntegrationTest, main, state_of, wait_until

with open(os.path.join(SOURCE, "tests", "support", "lost_nodes.json"), encoding="utf-8") as file:
    SCHEDULES = json.load(file)


class Losses(IntegrationTest):
    def live(self, schedule):
        run = self.start_quadratic("--strategy", schedule["strategy"], "--seed", schedule["seed"], "--restarts", 0, nodes=4, workers=4,
                                   updates=schedule["updates"], elements=32, sleep_ms=[2], fail="freeze", fail_rank=schedule["rank"],
                                   fail_update=schedule["update"],
                                   environment={"PACELINE_NODE": "3"} if schedule["rank"] == 0 and schedule["update"] % 2 == 0 else None)
        frozen = lambda: (pid := self.worker_pid(run, schedule["rank"])) and state_of(pid) == "T"
        wait_until(frozen, 10 * SLOWDOWN, "it stands still", run)
        before = None
        while before != (before := [len(run.steps(rank)) for rank in range(4)]):
            time.sleep(0.5 * SLOWDOWN)  # The others go as far as they can.
        os.kill(self.agents(schedule["rank"])[0], signal.SIGKILL)
        self.assertEqual(run.wait(30), 0, run.said())
        return run

    def test_the_others_end_as_in_the_simulator(self):
        for schedule in SCHEDULES[::5] if SANITIZED else SCHEDULES:
            with self.subTest(strategy=schedule["strategy"], update=schedule["update"]):
                run = self.live(schedule)
                self.assertEqual(run.result()["lost"], schedule["lost"])
                for rank, model in schedule["models"].items():
                    self.assertAlmostEqual(run.final(int(rank)), model, delta=1e-12, msg=f"worker {rank}")


if __name__ == "__main__":
    main()
