"""What a TaskError tells of where it comes from, on real processes (errors_script.cc checks itself)."""
import os

from harness import IntegrationTest, main

ERRORS = os.environ["PACELINE_ERRORS"]
WITHOUT_LINES = {"PACELINE_CHANNELS": "zmq"}


class Errors(IntegrationTest):
    def test_errors_name_their_first_cause(self):
        self.run_script(ERRORS, 0)

    def test_errors_name_their_first_cause_without_lines(self):
        self.run_script(ERRORS, 0, environment=WITHOUT_LINES)

    def test_errors_of_another_node_name_their_first_cause(self):
        self.run_script(ERRORS, 1, nodes=2)

    def test_an_actor_that_exits_ends_after_its_answer(self):
        for number, (node, environment) in enumerate(((0, None), (1, None), (0, WITHOUT_LINES))):
            path = os.path.join(self.folder, f"exits-{number}-")
            self.run_script(ERRORS, node, path, nodes=node + 1, environment=environment)


if __name__ == "__main__":
    main()
