"""A suite whose tests are skipped says so by its exit status, and has failed where CI is set: in Python and in C++."""
import os
import subprocess
import sys
import tempfile
import unittest

HARNESS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration")
SKIPPED = 77

SUITE = """
import unittest
from harness import left_out, main

class Machine(unittest.TestCase):
    @unittest.skipIf({lacks}, "no anvil")
    def test_lacks_something(self):
        pass

    def test_has_the_rest(self):
        self.assertFalse({fails})

@left_out(True)
class OtherBuilds(unittest.TestCase):
    def test_fails(self):
        self.fail()

main()
"""


class Skips(unittest.TestCase):
    def check(self, command, code, said="skipped: ", **environment):
        inherited = {name: value for name, value in os.environ.items() if name != "CI"}
        done = subprocess.run(command, check=False, capture_output=True, text=True,
                              env={**inherited, "PYTHONPATH": HARNESS, **environment})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertIn(said, done.stdout)

    def python(self, lacks, fails=False):
        file = tempfile.NamedTemporaryFile("w", suffix="_test.py")  # Lives as long as the test.
        self.addCleanup(file.close)
        file.write(SUITE.format(lacks=lacks, fails=fails))
        file.flush()
        return [sys.executable, file.name]

    def test_of_a_python_suite(self):
        self.check(self.python(lacks=True), SKIPPED, "skipped: __main__.Machine.test_lacks_something: no anvil")
        self.check(self.python(lacks=True), 1, CI="true")
        self.check(self.python(lacks=True, fails=True), 1)
        self.check(self.python(lacks=False), 0, "", CI="true")

    def test_of_a_googletest_suite(self):
        program = os.environ["PACELINE_SKIPPED_TEST"]
        self.check([program], SKIPPED, "skipped: Machine.LacksSomething: no anvil")
        self.check([program], 1, CI="true")
        self.check([program, "--gtest_filter=*Rest"], 0, "", CI="true")


if __name__ == "__main__":
    unittest.main(verbosity=2)
