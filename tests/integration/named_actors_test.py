"""Actors that have names: found, unique while they live, detached, listed, killed (named_actors_script.cc)."""
import json
import os
import signal

from harness import NODES, SANITIZED, IntegrationTest, is_alive, main, wait_until

SCRIPT = os.environ["PACELINE_NAMED_ACTORS"]
RACED = 5 if SANITIZED else 20


class NamedActors(IntegrationTest):
    def script(self, *arguments, timeout=60):
        """A driver's lines, of one that ends well."""
        done = self.paceline("run", SCRIPT, "--", *map(str, arguments), timeout=timeout)
        self.assertEqual(done.code, 0, f"{arguments}: {done.said()}")
        return done.out.splitlines()

    def refused(self, *arguments):
        done = self.paceline("run", SCRIPT, "--", *map(str, arguments))
        self.assertEqual(done.code, 1, f"{arguments}: {done.said()}")
        return done.err

    def up(self, nodes=1):
        up = self.paceline("up", "--nodes", nodes)
        self.assertEqual(up.code, 0, up.said())

    def actors(self):
        """By name, as `list` shows them."""
        listed = self.paceline("list", "actors", "--json")
        self.assertEqual(listed.code, 0, listed.said())
        return {actor["name"]: actor for actor in map(json.loads, listed.out.splitlines())}

    def wait_for_workers(self, count):
        def workers():
            return sum(node.get("workers", -1) for node in json.loads(self.paceline("status", "--json").out)["nodes"])
        wait_until(lambda: workers() == count, 10, f"{count} workers")

    def test_a_name_finds_its_actor_and_no_other_has_it(self):
        for nodes in NODES:
            done = self.paceline("run", SCRIPT, "--nodes", nodes, "--", "names", timeout=60)
            self.assertEqual(done.code, 0, done.said())

    def test_a_name_is_free_as_soon_as_its_actor_is_dead(self):
        for nodes in NODES:
            done = self.paceline("run", SCRIPT, "--nodes", nodes, "--", "free_again", 2 if SANITIZED else 8, timeout=100)
            self.assertEqual(done.code, 0, done.said())

    def test_of_drivers_that_race_for_a_name_one_creates_the_actor(self):
        for nodes in NODES:
            self.up(nodes)
            file = os.path.join(self.folder, f"constructed-{nodes}")
            runs = [self.start("run", SCRIPT, "--", "race", RACED, file) for _ in range(3)]
            for run in runs:
                self.assertEqual(run.wait(60), 0, run.said())
            self.assertEqual({run.out for run in runs}, {runs[0].out})
            with open(file, encoding="utf-8") as constructed:
                self.assertEqual(len(constructed.readlines()), RACED)
            self.assertEqual(self.paceline("down").code, 0)
            self.assert_nobody_left()

    def test_a_detached_actor_outlives_its_driver_and_a_killed_head(self):
        self.up(2)
        for node in range(2):
            name = f"kept-{node}"
            pid, = self.script("detach", name, node)
            self.assertEqual(self.script("find", name), [f"2 {pid}"])
            head, = self.cluster("head")
            os.kill(head, signal.SIGKILL)
            self.assertEqual(self.script("find", name), [f"3 {pid}"])
            self.assertIn(f"actor '{name}' lives already, on node {node}", self.refused("own", name))
            self.assertIn("detached actors", self.paceline("status").out)

    def test_what_a_detached_actor_owns_lives_and_ends_with_it(self):
        self.up()
        self.script("parent")
        child, = self.script("ask_parent")
        self.assertEqual(self.paceline("kill", "parent").code, 0)
        wait_until(lambda: not is_alive(int(child)), 10, "the end of its actor")
        self.wait_for_workers(0)

    def test_the_name_of_a_detached_actor_whose_process_is_killed_is_free(self):
        self.up()
        pid, = self.script("detach", "x", 0)
        os.kill(int(pid), signal.SIGKILL)
        wait_until(lambda: "x" not in self.actors(), 10, "its end")
        self.assertIn("no actor 'x' lives", self.refused("find", "x"))
        again, = self.script("detach", "x", 0)
        self.assertEqual(self.script("find", "x"), [f"2 {again}"])

    def test_an_actor_that_is_started_again_keeps_its_name(self):
        self.up()
        pid, = self.script("detach", "x", 0, 2)
        os.kill(int(pid), signal.SIGKILL)
        wait_until(lambda: self.actors()["x"]["pid"] not in (-1, int(pid)), 10, "its next process")
        self.assertEqual(self.script("find", "x"), [f"1 {self.actors()['x']['pid']}"])
        self.assertEqual(self.paceline("kill", "x").code, 0)
        self.assertIn("no actor 'x' lives", self.refused("find", "x"))

    def test_the_name_of_a_detached_actor_whose_node_is_killed_is_free(self):
        self.up(2)
        self.script("detach", "x", 1)
        agent, = self.agents(1)
        waits = self.start("run", SCRIPT, "--", "wait", "x", 60)
        wait_until(lambda: "waits" in waits.out, 20, "its call")
        os.kill(agent, signal.SIGKILL)
        self.assertEqual(waits.wait(20), 0, waits.said())
        self.assertIn("node 1 is gone", waits.out)
        again, = self.script("detach", "x", 0)
        self.assertEqual(self.script("find", "x"), [f"2 {again}"])

    def test_calls_to_a_detached_actor_of_a_frozen_node_end(self):
        self.up(2)
        pid, = self.script("detach", "x", 1)
        waits = self.start("run", SCRIPT, "--", "wait", "x", 10)  # What comes after it waits so long.
        wait_until(lambda: "waits" in waits.out, 20, "its call")
        agent, = self.agents(1)
        os.kill(agent, signal.SIGSTOP)
        wait_until(lambda: "node 1 is gone" in waits.out, 20, "an error")
        os.kill(agent, signal.SIGCONT)
        self.assertEqual(self.script("find", "x")[0].split()[1], pid)

    def test_the_name_of_an_actor_whose_driver_is_killed_is_free(self):
        for nodes in NODES:
            self.up(nodes)
            owner = self.start("run", SCRIPT, "--", "own", "x")
            wait_until(lambda: owner.out, 20, "its actor")
            self.assertIn("actor 'x' lives already, on node ", self.refused("own", "x"))
            os.killpg(owner.process.pid, signal.SIGKILL)
            owner.process.wait()
            wait_until(lambda: "x" not in self.actors(), 10, "its end")
            again, = self.script("detach", "x", 0)
            self.assertEqual(self.script("find", "x"), [f"2 {again}"])
            self.assertEqual(self.paceline("down").code, 0)
            self.assert_nobody_left()

    def test_calls_to_an_actor_whose_owner_is_killed_say_so(self):
        for nodes in NODES:
            self.up(nodes)
            owner = self.start("run", SCRIPT, "--", "own", "x")
            wait_until(lambda: owner.out, 20, "its actor")
            waits = self.start("run", SCRIPT, "--", "wait", "x", 60)
            wait_until(lambda: "waits" in waits.out, 20, "its call")
            os.killpg(owner.process.pid, signal.SIGKILL)
            owner.process.wait()
            self.assertEqual(waits.wait(20), 0, waits.said())
            self.assertRegex(waits.out, "actor 'x' has ended: owner died: driver/")
            self.assertEqual(self.paceline("down").code, 0)
            self.assert_nobody_left()

    def test_actors_are_listed_and_killed_by_name_or_id(self):
        self.up(2)
        self.assertEqual(self.paceline("list", "actors").out, "no actor lives\n")
        pids = [self.script("detach", f"kept-{node}", node)[0] for node in range(2)]
        owner = self.start("run", SCRIPT, "--", "own", "owned")
        wait_until(lambda: owner.out, 20, "its actor")
        actors = self.actors()
        self.assertEqual(set(actors), {"kept-0", "kept-1", "owned"})
        for node, pid in enumerate(pids):
            actor = actors[f"kept-{node}"]
            self.assertEqual((actor["node"], str(actor["pid"]), actor["state"], actor["detached"], actor["calls"]),
                             (node, pid, "alive", True, 0))
            self.assertIn("Counter", actor["class"])
        self.assertTrue(actors["owned"]["owner"].startswith("driver/"), actors["owned"])
        self.assertIn("kept-1", self.paceline("list", "actors").out)

        waits = self.start("run", SCRIPT, "--", "wait", "kept-1", 60)
        wait_until(lambda: "waits" in waits.out, 20, "its call")
        self.assertEqual(self.paceline("kill", "kept-1").out, f"actor {actors['kept-1']['id']} has ended\n")
        self.assertEqual(waits.wait(20), 0, waits.said())
        self.assertRegex(waits.out, "actor 'kept-1' has ended: cli/[0-9]+ has killed it")
        self.assertEqual(self.paceline("kill", actors["kept-0"]["id"]).code, 0)
        self.assertEqual(set(self.actors()), {"owned"})
        self.assertEqual(self.paceline("kill", "owned", "--json").code, 0)
        self.assertEqual(self.actors(), {})
        for actor, error in (("kept-1", "no actor 'kept-1' lives, nor any other"), (actors["kept-0"]["id"], "has killed it"),
                             ("5", "actor 5 does not exist on node 0")):
            killed = self.paceline("kill", actor)
            self.assertEqual(killed.code, 2, killed.said())
            self.assertIn(error, killed.err)
        self.assertIn("there is no list of things", self.paceline("list", "things").err)

    def test_down_ends_detached_actors(self):
        self.up(2)
        self.script("detach", "x", 1)
        self.assertEqual(self.paceline("down").code, 0)
        self.assert_nobody_left()


if __name__ == "__main__":
    main(at_once=3)
