"""`paceline replay RUN --simulate`: where the time of a run's workers went, held to its trace."""
import glob
import json
import os

from harness import IntegrationTest, main

UPDATES = 40


class ReplayTimes(IntegrationTest):
    def times(self, run):
        """Where the time of four workers went, of which the last is the slowest: what each computed is what the trace
        says, and its neighbour waited for as long as the slowest computed longer."""
        times = json.loads(self.paceline("replay", run.run_directory, "--simulate", "--json").out)
        self.assertEqual(times["critical"], 3)
        workers = times["workers"]
        self.assertEqual([worker["worker"] for worker in workers], [0, 1, 2, 3])
        with open(os.path.join(run.run_directory, "trace.json"), encoding="utf-8") as file:
            computing = [event for event in json.load(file)["traceEvents"] if event.get("cat") == "compute"]
        computed = [sum(event["dur"] for event in computing if event["tid"] == rank + 1) / 1e6 for rank in range(4)]
        for worker, seconds in zip(workers, computed):
            self.assertAlmostEqual(worker["compute_s"], seconds, delta=1e-3)
            spent = sum(worker[name] for name in worker if name.endswith("_s") and name != "awaited_s")
            self.assertLessEqual(spent, times["duration_s"])
        self.assertAlmostEqual(workers[0]["waiting_s"], computed[3] - computed[0], delta=0.1 * times["duration_s"])
        return workers

    def test_where_time_went_without_rounds(self):
        for strategy, every in (("d-psgd(ring)", 1), ("d-psgd(ring,order=atc)", 1), ("server(bounded=1)", 1),
                                ("streaming-diloco(period=4,fragments=2,delay=0)", 2)):
            with self.subTest(strategy):
                run = self.quadratic(nodes=2, strategy=strategy, updates=UPDATES, sleep_ms=[4, 4, 4, 24])
                self.assertEqual([worker["contributions"] for worker in self.times(run)], [UPDATES // every] * 4)
        run = self.quadratic(nodes=1, strategy="ad-psgd", updates=UPDATES, sleep_ms=[4])
        shown = self.paceline("replay", run.run_directory, "--simulate")
        self.assertEqual(shown.code, 0, shown.said())
        self.assertIn("nobody was waited for", shown.out)

    def test_where_time_went(self):
        run = self.quadratic(nodes=2, strategy="wagma(group=2,sync=10)", updates=UPDATES, sleep_ms=[4, 4, 4, 24])
        shown = self.paceline("replay", run.run_directory, "--simulate")
        self.assertEqual(shown.code, 0, shown.said())
        self.assertIn("worker 3 is the critical one", shown.out)
        self.assertFalse(glob.glob(os.path.join(self.runtime, "*")), "a cluster was started")
        for worker in self.times(run):
            self.assertEqual(worker["contributions"] + worker["missed"], UPDATES)


if __name__ == "__main__":
    main()
