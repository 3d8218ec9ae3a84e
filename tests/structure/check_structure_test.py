"""The structure checker finds what it is there to find."""

import pathlib
import tempfile
import unittest

import check_structure


class StructureTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.write("runtime/base/a.h", "#include <vector>\n")

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def found(self):
        return list(check_structure.violations_of_includes(self.root))

    def assert_one(self, text):
        self.assertEqual(len(self.found()), 1, self.found())
        self.assertIn(text, self.found()[0])

    def test_a_clean_tree_passes(self):
        self.write("cli/main.cc", '#include "algorithms/strategy.h"\n#include <CLI/CLI.hpp>\n')
        self.assertEqual(self.found(), [])

    def test_a_lower_folder_must_not_include_a_higher_one(self):
        self.write("runtime/base/b.cc", '#include "scheduler/graph.h"\n')
        self.assert_one("runtime must not include")

    def test_zmq_stays_behind_the_transport(self):
        self.write("actors/b.cc", "#include <zmq.hpp>\n")
        self.assert_one("adapter")

    def test_torch_stays_in_train(self):
        self.write("actors/b.cc", "#include <torch/torch.h>\n")
        self.assert_one("adapter")

    def test_a_core_reads_no_clock(self):
        self.write("scheduler/rounds/b.cc", '#include "runtime/base/steady_now.h"\n')
        self.assert_one("sans-I/O")

    def test_a_service_may_read_the_clock(self):
        self.write("scheduler/rounds/b_service.cc", '#include "runtime/base/steady_now.h"\n')
        self.assertEqual(self.found(), [])


if __name__ == "__main__":
    unittest.main()
