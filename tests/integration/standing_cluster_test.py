"""A cluster that stays up: what runs leave behind on it is bounded, however many there are and however they end."""
import json
import os
import signal

from harness import ENDLESS, SANITIZED, IntegrationTest, in_release, main, wait_until

CALLS = os.environ["PACELINE_CALLS"]
RUNS = 16 if SANITIZED else 48
SETTLED = 8  # Runs after which as many fork servers are kept as ever will be.


class StandingCluster(IntegrationTest):
    def descriptors(self):
        """Of head and agents, once all workers of the runs before are gone."""
        def idle():
            status = self.paceline("status", "--json")
            return all(node["workers"] == 0 for node in json.loads(status.out)["nodes"])
        wait_until(idle, 10, "no worker left")
        return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in self.cluster("head", "agent"))

    def one_run(self, number):
        """A job, a job whose driver is killed, or calls; each with arguments of its own, and so with a fork server."""
        if number % 4 == 1:
            run = self.start_quadratic(nodes=None, updates=ENDLESS, seed=number)
            self.wait_for_update(run, 5)
            os.killpg(run.process.pid, signal.SIGKILL)
            run.process.wait()
        elif number % 4 == 2:
            run = self.paceline("run", CALLS, "--", "flood", 100, number)
            self.assertEqual(run.code, 0, run.said())
        else:
            self.quadratic(nodes=None, updates=5, seed=number)

    def test_runs_leave_neither_processes_nor_descriptors(self):
        self.assertEqual(self.paceline("up", "--nodes", 2).code, 0)
        for number in range(SETTLED):
            self.one_run(number)
        descriptors, processes = self.descriptors(), len(self.processes())
        for number in range(SETTLED, RUNS):
            self.one_run(number)
        self.assertLessEqual(self.descriptors(), descriptors)
        self.assertLessEqual(len(self.processes()), processes)

    def longest_turn_s(self):
        """Of the agents' threads since it was last asked for: processor time, which others on the machine do not add to."""
        status = json.loads(self.paceline("status", "--json").out)
        return max(node["longest_turn_cpu_s"] for node in status["nodes"])

    @in_release
    def test_a_flood_of_calls_does_not_keep_an_agent_from_others(self):
        self.assertEqual(self.paceline("up").code, 0)
        self.longest_turn_s()
        run = self.paceline("run", CALLS, "--", "flood", 200_000, 100_000, timeout=60)
        self.assertEqual(run.code, 0, run.said())
        self.assertLess(self.longest_turn_s(), 0.005)

    @in_release
    def test_large_windows_are_made_and_given_back_beside_the_agents_thread(self):
        self.assertEqual(self.paceline("up").code, 0)
        self.longest_turn_s()
        self.quadratic("--strategy", "wagma", nodes=None, workers=2, updates=5, elements=5_000_000)
        self.assertLess(self.longest_turn_s(), 0.05)

    def test_a_worker_keeps_no_descriptor_that_its_agent_sent_for_mapping_only(self):
        run = self.start_quadratic(updates=ENDLESS)
        self.wait_for_update(run, 5)
        pid = self.worker_pid(run, 0)
        open_files = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        self.assertEqual([name for name in open_files if "paceline-control" in name], [])
        self.interrupt(run)


if __name__ == "__main__":
    main()
