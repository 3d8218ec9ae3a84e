"""What does not fit a method, a constructor or a function is one readable error of the compiler's (refused_calls.cc)."""
import json
import os
import re
import shlex
import subprocess
import tempfile
import unittest

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "refused_calls.cc")
LIKE = "calls_script.cc"  # Compiled with the same flags.


def compiler_command():
    with open(os.path.join(os.environ["PACELINE_BUILD"], "compile_commands.json")) as file:
        entry, = [entry for entry in json.load(file) if os.path.basename(entry["file"]) == LIKE]
    words = shlex.split(entry["command"])
    del words[words.index("-o"):words.index("-o") + 2]
    words = [word for word in words if word != "-c" and os.path.basename(word) != LIKE]
    return entry["directory"], words + ["-w"]


class RefusedCalls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """What all cases include is read once."""
        folder = tempfile.TemporaryDirectory(prefix="pl-", dir="/tmp")
        cls.addClassCleanup(folder.cleanup)
        cls.header = os.path.join(folder.name, "read_once.h")
        with open(cls.header, "w") as file:
            file.write("#include <paceline.h>\n")
        code, said = cls.run_compiler("-x", "c++-header", cls.header, "-o", cls.header + ".gch")
        if code != 0:
            raise AssertionError(said)

    @staticmethod
    def run_compiler(*arguments):
        directory, words = compiler_command()
        done = subprocess.run(words + list(arguments), cwd=directory, capture_output=True, text=True, timeout=100)
        return done.returncode, done.stderr

    def compile(self, case):
        return self.run_compiler("-fsyntax-only", "-include", self.header, SOURCE, f"-DCASE={case}")

    def test_what_fits_compiles(self):
        code, said = self.compile(0)
        self.assertEqual(code, 0, said)

    def test_what_does_not_fit_is_one_error(self):
        with open(SOURCE) as file:
            cases = re.findall(r"CASE == (\d+) +// (.*)", file.read())
        self.assertEqual(len(cases), 25)
        for case, text in cases:
            with self.subTest(case=case, text=text):
                code, said = self.compile(case)
                self.assertNotEqual(code, 0)
                errors = [line for line in said.splitlines() if "error:" in line]
                self.assertEqual(len(errors), 1, said)
                self.assertIn(text, errors[0])


if __name__ == "__main__":
    unittest.main()
