"""What cmake/tidy.py looks at, tried on a small repository with a clang-tidy that dislikes the word `bad`."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

TIDY = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "cmake", "tidy.py")
FAKE = """#!/bin/sh
[ "$1" = --version ] && echo fake && exit 0
echo "$4" >> looked_at
! grep -H bad "$4" used.h
"""


class Tidy(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="paceline-tidy-")
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)
        self.write(".gitignore", "build/\nlooked_at\nbin/\n")
        self.write("bin/clang-tidy", FAKE)
        os.chmod(os.path.join(self.folder, "bin", "clang-tidy"), 0o755)
        self.write(".clang-tidy", "Checks: '*'\n")
        self.write("used.h", "int used();\n")
        self.write("one.cc", '#include "used.h"\n')
        self.write("two.cc", '#include "used.h"\nint two();\n')
        self.write("three.cc", "int three();\n")
        self.write("build/tidy/units/compile_commands.json", json.dumps(
            [{"directory": self.folder, "file": name, "command": f"c++ -I{self.folder} -include cmake_pch.hxx -c {name}"}
             for name in ("one.cc", "two.cc", "three.cc")]))
        self.git("init", "-q")
        self.commit()
        self.write("three.cc", "int three(int);\n")
        self.commit()

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def git(self, *arguments):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *arguments], cwd=self.folder, check=True)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x")

    def tidy(self, code=0, **variables):
        """The units that were looked at, and what was said."""
        environment = {key: value for key, value in os.environ.items() if key not in ("ALL", "TIDY_SECONDS")}
        environment["PATH"] = os.path.join(self.folder, "bin") + ":" + environment["PATH"]
        environment.update(variables)
        done = subprocess.run([sys.executable, TIDY], cwd=self.folder, env=environment, check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, code, done.stdout)
        looked_at = os.path.join(self.folder, "looked_at")
        units = []
        if os.path.exists(looked_at):
            with open(looked_at, encoding="utf-8") as file:
                units = sorted(file.read().split())
            os.remove(looked_at)
        return units, done.stdout

    def test_what_changed_is_looked_at_once(self):
        self.assertEqual(self.tidy()[0], ["three.cc"])
        self.assertEqual(self.tidy()[0], [])
        self.write("two.cc", '#include "used.h"\nint two(int);\n')
        self.assertEqual(self.tidy()[0], ["two.cc"])
        self.commit()
        self.write("one.cc", '#include "used.h"\nint one();\n')
        self.commit()
        self.assertEqual(self.tidy()[0], ["one.cc"], "the other one passed as it is")

    def test_a_header_is_looked_at_through_a_unit(self):
        self.tidy()
        self.write("used.h", "bad\n")
        units, said = self.tidy(code=1)
        self.assertEqual(units, ["one.cc"])
        self.assertIn("used.h:bad", said)
        self.assertEqual(self.tidy(code=1)[0], ["one.cc"], "what failed is not remembered")
        self.write("used.h", "good\n")
        self.tidy()

    def test_all_are_looked_at_on_demand(self):
        self.assertEqual(self.tidy(ALL="1")[0], ["one.cc", "three.cc", "two.cc"])
        self.assertEqual(self.tidy(ALL="1")[0], [])

    def test_too_short_a_time_is_a_failure_that_names_what_is_left_and_the_next_run_goes_on(self):
        said = self.tidy(code=1, ALL="1", TIDY_SECONDS="0")[1]
        for name in ("one.cc", "two.cc", "three.cc"):
            self.assertIn(name, said)
        self.assertEqual(self.tidy(ALL="1")[0], ["one.cc", "three.cc", "two.cc"])

    def test_a_file_that_is_in_no_unit_is_named(self):
        self.write("lonely.h", "int lonely();\n")
        self.assertIn("lonely.h", self.tidy()[1])


if __name__ == "__main__":
    unittest.main(verbosity=2)
