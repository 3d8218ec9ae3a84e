"""Which libtorch the build takes (cmake/PacelineTorch.cmake), tried on folders that look like one."""
import os
import shutil
import subprocess
import tempfile
import unittest

MODULE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "cmake", "PacelineTorch.cmake")
PROJECT = f"""
cmake_minimum_required(VERSION 3.25)
project(choice NONE)
include("{MODULE}")
message(STATUS "CHOSEN ${{PACELINE_TORCH_FROM}} ${{PACELINE_TORCH_VERSION}} ${{PACELINE_TORCH_ROOT}}")
"""


class TorchChoice(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="paceline-torch-")
        self.addCleanup(shutil.rmtree, self.folder)
        os.makedirs(os.path.join(self.folder, "project"))
        with open(os.path.join(self.folder, "project", "CMakeLists.txt"), "w", encoding="utf-8") as file:
            file.write(PROJECT)

    def libtorch(self, name, version="2.15.0", new_abi=True):
        """A folder with what is looked at: two libraries and the headers."""
        root = os.path.join(self.folder, name)
        api = os.path.join(root, "include", "torch", "csrc", "api", "include", "torch")
        for folder in (os.path.join(root, "lib"), api, os.path.join(root, "share", "cmake", "Torch")):
            os.makedirs(folder)
        numbers = version.split(".")
        contents = {
            os.path.join(root, "lib", "libtorch_cpu.so"): "",
            os.path.join(root, "lib", "libc10.so"): "_ZNSt7__cxx1112basic_string" if new_abi else "_ZNSs4_Rep",
            os.path.join(api, "torch.h"): "",
            os.path.join(api, "version.h"): "".join(f"#define TORCH_VERSION_{part} {number}\n"
                                                    for part, number in zip(("MAJOR", "MINOR", "PATCH"), numbers)),
            os.path.join(root, "__init__.py"): "raise RuntimeError('must not be imported')\n",
        }
        for path, text in contents.items():
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return root

    def configure(self, *options, **variables):
        environment = {key: value for key, value in os.environ.items() if key not in ("Torch_DIR", "CMAKE_PREFIX_PATH", "PYTHONPATH")}
        build = tempfile.mkdtemp(dir=self.folder)
        done = subprocess.run(["cmake", "-S", os.path.join(self.folder, "project"), "-B", build, *options], check=False, text=True,
                              capture_output=True, env={**environment, **variables})
        return done.returncode, " ".join((done.stdout + done.stderr).split())

    def test_the_one_that_is_named_is_taken_also_by_the_folder_of_its_cmake_files(self):
        root = self.libtorch("mine")
        for named in (root, os.path.join(root, "share", "cmake", "Torch")):
            code, said = self.configure(f"-DTorch_DIR={named}")
            self.assertEqual(code, 0, said)
            self.assertIn(f"CHOSEN named 2.15.0 {root}", said)
        code, said = self.configure(Torch_DIR=root)
        self.assertIn(f"CHOSEN named 2.15.0 {root}", said)

    def test_a_prefix_is_taken_before_the_wheel_of_python(self):
        root = self.libtorch("prefix")
        self.libtorch("site/torch", "2.9.1")
        site = os.path.join(self.folder, "site")
        code, said = self.configure(f"-DCMAKE_PREFIX_PATH={root}", PYTHONPATH=site)
        self.assertIn(f"CHOSEN prefix 2.15.0 {root}", said)
        code, said = self.configure(PYTHONPATH=site)
        self.assertEqual(code, 0, said)
        self.assertIn(f"CHOSEN wheel 2.9.1 {site}/torch", said)

    def test_one_that_is_named_and_cannot_be_used_is_refused_in_one_line(self):
        for root, reason in ((self.libtorch("old", "1.12.1"), "it is version 1.12.1: 1.13 or newer is needed"),
                             (self.libtorch("abi", "2.3.0", new_abi=False), "it was built without the C++11 string ABI")):
            for option in (f"-DTorch_DIR={root}", f"-DCMAKE_PREFIX_PATH={root}"):
                code, said = self.configure(option)
                self.assertNotEqual(code, 0, said)
                self.assertIn(f"libtorch in {root} cannot be used: {reason}", said)

    def test_a_name_that_leads_nowhere_is_refused(self):
        code, said = self.configure("-DTorch_DIR=/nowhere/at/all")
        self.assertNotEqual(code, 0)
        self.assertIn("Torch_DIR=/nowhere/at/all: no libtorch_cpu.so", said)

    def test_a_wheel_of_the_old_abi_is_passed_over_and_named(self):
        root = self.libtorch("site/torch", "2.3.0", new_abi=False)
        _, said = self.configure(PYTHONPATH=os.path.join(self.folder, "site"))
        self.assertIn(f"libtorch in {root} is not used: it was built without the C++11 string ABI", said)
        self.assertNotIn("CHOSEN wheel", said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
