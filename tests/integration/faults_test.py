"""What happens when processes are killed, on one node and on two."""
import os
import pathlib
import re
import signal
import time

from harness import ENDLESS, SLOWDOWN, IntegrationTest, command_line, in_release, is_alive, main, wait_until

# What is said of another agent. One that died may be there again before anybody has asked whether it listens.
DIED = "agent/1 (is gone: nobody listens at its address any more|was started anew)"
FROZEN = "agent/1 has not answered for 2.0 s"


class LongRuns:
    nodes = 1

    def start_long(self, strategy, *flags, **options):
        return self.start_quadratic("--strategy", strategy, "--restarts", "0", *flags, nodes=self.nodes, updates=ENDLESS, sleep_ms=[4],
                                    **options)

    def go_on_without(self, node, strategy, how, ranks):
        """That node's agent is killed or frozen; the workers of the others go on, and end with one model."""
        cause = (FROZEN if how == signal.SIGSTOP else DIED).replace("agent/1", f"agent/{node}")
        run = self.start_long(strategy)
        self.wait_for_update(run, 40)
        agent, = self.agents(node)
        os.kill(agent, how)
        wait_until(lambda: set(run.left()) == set(ranks), 10 * SLOWDOWN, f"{strategy}: its workers are gone", run)
        for rank in ranks:
            self.assertRegex(run.left()[rank], f"^worker {rank} is gone: node {node} is lost \\({cause}\\); the others go on without it$")
        self.wait_for_update(run, run.update() + 100)
        if how == signal.SIGSTOP:  # It goes on, and hears that its part of the job is over.
            self.assertTrue(any(self.worker_pid(run, rank) for rank in ranks))
            os.kill(agent, signal.SIGCONT)
            wait_until(lambda: not any(self.worker_pid(run, rank) for rank in ranks), 5 * SLOWDOWN, "its workers end", run)
        self.end_after(run, 100)
        self.assertEqual(run.result()["lost"], ranks, strategy)
        others = [rank for rank in range(4) if rank not in ranks]
        self.assertEqual(len({run.final(rank) for rank in others}), 1, strategy)
        self.assertEqual(set(run.result()["models"]), {str(rank) for rank in others}, "whatever the others did afterwards")
        self.assert_nobody_left()


class Faults(LongRuns):
    def check_kill(self, strategy):
        run = self.start_long(strategy)
        self.wait_for_update(run, 40)
        victim = 3
        self.signal_worker(run, victim, signal.SIGKILL)
        self.end_after(run, 200)
        self.assertEqual(list(run.left()), [victim], run.said())
        self.assertIn(f"worker {victim} ended", run.out)
        self.assertEqual(run.result()["left"], [victim])
        finals = {run.final(rank) for rank in (0, 1, 2)}
        self.assertEqual(len(finals), 1, finals)
        self.assert_nobody_left()

    @in_release
    def test_allreduce_goes_on_without_a_worker_that_was_killed(self):
        self.check_kill("allreduce")

    @in_release
    def test_wagma_goes_on_without_a_worker_that_was_killed(self):
        self.check_kill("wagma")

    def test_nonblocking_goes_on_without_a_worker_that_was_killed(self):
        self.check_kill("nonblocking(batches=4)")

    @in_release
    def test_decoupled_diloco_goes_on_without_a_worker_that_was_killed(self):
        self.check_kill("decoupled-diloco(period=5)")

    def test_lost_workers_fail_a_run_if_the_user_says_so(self):
        def kill_one(*flags):
            run = self.start_long("allreduce", *flags)
            self.wait_for_update(run, 40)
            self.signal_worker(run, 3, signal.SIGKILL)
            return run
        enough, at_the_end, at_once = kill_one("--minimum", 3), kill_one("--lost", "fail"), kill_one("--minimum", 4)
        self.end_after(enough, 100)
        self.end_after(at_the_end, 100, code=1)
        self.assertEqual(at_once.wait(20), 1, at_once.said())
        self.assertIn("paceline: worker 3 was lost, and --lost says that the run fails then", at_the_end.err)
        self.assertIn("paceline: worker 3 was lost: 3 of 4 remain, and --minimum asks for 4", at_once.err)
        for run in (enough, at_the_end, at_once):
            self.assertEqual(run.result()["lost"], [3])
        self.assert_nobody_left()

    def test_allreduce_goes_on_without_worker_0(self):
        run = self.start_long("allreduce")
        self.wait_for_update(run, 40)
        self.signal_worker(run, 0, signal.SIGKILL)
        self.end_after(run, 200)
        self.assertEqual(list(run.left()), [0])

    def test_a_worker_that_dies_before_the_job_began_is_named(self):
        for moment, text in (("before_open", "worker 0 ended before it took part in the job"),
                             ("before_start", "worker 0 ended before it gave the others the model to start from")):
            run = self.start_long("allreduce", fail=moment, fail_rank=0)
            self.assertEqual(run.wait(10), 1, run.said())
            self.assertIn(text, run.err)
            self.assertIn("SIGKILL", run.err)
            self.assert_nobody_left()

    @in_release
    def test_a_node_all_of_whose_workers_die_before_the_job_began_is_named(self):
        run = self.start_quadratic("--restarts", "0", nodes=2, workers=3, strategy="allreduce", updates=500, fail="before_start",
                                   fail_rank=2)
        self.assertEqual(run.wait(20), 1, run.said())
        self.assertIn("all workers of node 1 ended before they began to train", run.err)
        self.assert_nobody_left()

    def test_a_run_all_of_whose_workers_were_killed_has_failed(self):
        run = self.start_long("allreduce")
        self.wait_for_update(run, 20)
        for rank in range(4):
            self.signal_worker(run, rank, signal.SIGKILL)
        self.assertEqual(run.wait(10), 1, run.said())
        self.assertIn("all workers have ended", run.err)
        self.assert_nobody_left()

    @in_release
    def test_training_goes_on_when_a_whole_nodes_share_of_workers_dies(self):
        run = self.start_long("allreduce")
        self.wait_for_update(run, 20)
        for rank in (2, 3):
            self.signal_worker(run, rank, signal.SIGKILL)
        self.end_after(run, 200)
        self.assertEqual(set(run.left()), {2, 3})

    def test_workers_go_on_when_the_fork_server_is_killed(self):
        run = self.start_long("allreduce")
        self.wait_for_update(run, 40)
        servers = self.fork_servers(run)
        self.assertEqual(len(servers), self.nodes)
        before = [self.worker_pid(run, rank) for rank in range(4)]
        for pid in servers:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: len(set(self.fork_servers(run)) - set(servers)) == self.nodes, 5, "new fork servers")
        self.assertEqual([self.worker_pid(run, rank) for rank in range(4)], before)
        self.end_after(run, 200)
        self.assertEqual(run.left(), {})

    def test_a_killed_cluster_takes_everything_with_it(self):
        run = self.start_long("allreduce")
        self.wait_for_update(run, 20)
        self.signal_worker(run, 1, signal.SIGSTOP)  # Even one that cannot react.
        cluster = [pid for pid in self.processes() if pid != run.process.pid]
        killed = self.cluster()
        self.assertEqual(len(killed), 2 + self.nodes, "supervisor, head and agents")
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not [pid for pid in cluster if is_alive(pid)], 2.5,
                   "remain: " + "; ".join(command_line(pid) for pid in cluster if is_alive(pid)))
        self.assertNotEqual(run.wait(5), 0)
        self.assertEqual([line for line in run.err.splitlines() if line.startswith("paceline:")][:1],
                         run.err.splitlines()[:1], "one clear line\n" + run.said())
        stale = self.paceline("status")
        self.assertEqual(stale.code, 2, stale.said())
        self.assertIn("paceline up", stale.err)
        left = [name for name in os.listdir(self.runtime) if not name.startswith(".")]
        self.assertEqual(left, [], "the next command sweeps what a killed cluster left")


@in_release  # Two nodes do all that one does.
class OnOneNode(Faults, IntegrationTest):
    nodes = 1


class OnTwoNodes(Faults, IntegrationTest):
    nodes = 2

    @in_release
    def test_eager_sgd_goes_on_without_a_worker_that_starts_rounds_or_makes_up_the_number(self):
        self.check_kill("eager-sgd(majority,sync=50)")
        self.check_kill("eager-sgd(quorum=4,sync=50)")

    def test_training_goes_on_without_the_second_node_when_its_agent_freezes(self):
        self.go_on_without(1, "nonblocking(batches=4)", signal.SIGSTOP, [2, 3])
        self.go_on_without(1, "wagma(late=skip,grace=2x)", signal.SIGSTOP, [2, 3])

    def test_training_goes_on_without_the_second_node_when_its_agent_is_killed(self):
        self.go_on_without(1, "allreduce", signal.SIGKILL, [2, 3])


class OnFourNodes(LongRuns, IntegrationTest):
    """A worker each. What a lost one had given to some reaches all: the models at the end are the same, bit for bit."""
    nodes = 4

    def test_rounds_go_on_without_one_of_four_nodes(self):
        for strategy in ("allreduce", "wagma(group=2,sync=4,late=skip)", "local-sgd(period=4)", "nonblocking(batches=4)"):
            self.go_on_without(2, strategy, signal.SIGKILL, [2])

    def test_workers_at_versions_of_their_own_go_on_without_one_of_four_nodes(self):
        for strategy in ("d-psgd(ring)", "sgp", "ad-psgd", "server(async)", "streaming-diloco(period=4,fragments=2)"):
            self.go_on_without(3, strategy, signal.SIGKILL, [3])

    @in_release
    def test_others_go_on_without_one_of_four_nodes(self):
        for strategy in ("eager-sgd(majority,sync=50)", "osgp(bound=2)", "nonblocking(d-psgd(ring),batches=3)"):
            self.go_on_without(1, strategy, signal.SIGKILL, [1])

    def test_a_stop_is_agreed_on_without_a_node_that_does_not_answer(self):
        run = self.start_long("d-psgd(ring)")
        self.wait_for_update(run, 40)
        agent, = self.agents(3)
        os.kill(agent, signal.SIGSTOP)
        self.end_after(run, 0)
        self.assertEqual(run.result()["lost"], [3])
        self.assertEqual(len({run.final(rank) for rank in range(3)}), 1)
        self.assert_nobody_left()

    def test_a_frozen_one_of_four_is_gone_on_without_and_so_is_the_next(self):
        run = self.start_long("allreduce")
        self.wait_for_update(run, 40)
        for node, how in ((1, signal.SIGSTOP), (3, signal.SIGKILL)):
            agent, = self.agents(node)
            os.kill(agent, how)
            wait_until(lambda: node in run.left(), 10 * SLOWDOWN, "its worker is gone", run)
            self.wait_for_update(run, run.update() + 50)
            if how == signal.SIGSTOP:
                os.kill(agent, signal.SIGCONT)
        self.end_after(run, 100)
        self.assertEqual(run.result()["lost"], [1, 3])
        self.assertEqual(run.final(0), run.final(2))
        self.assert_nobody_left()


if __name__ == "__main__":
    main(at_once=4)
