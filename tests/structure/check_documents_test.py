"""The checker of pages finds what it is there to find."""

import pathlib
import tempfile
import unittest

import check_documents


class DocumentsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.write("README.md", "# Title\n\n## Two words, `code` and a.dot\n")
        self.write("CHANGELOG.md", "# Changes\n\n## 1.2.3 (today)\n\n## 1.2.2\n")
        self.write("CMakeLists.txt", "project(Paceline VERSION 1.2.3 LANGUAGES CXX)\n")
        self.write("cli/a.cc", 'fail("there is no file " + name + ": give one that"\n     " exists, or none");\n')
        self.write("docs/page.md", "# Page\n\n## Same\n\n## Same\n")
        self.write("examples/a.cpp", "int main() {\n  return f(1,  // Why.\n           2);\n}\n")

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def found(self, text):
        self.write("docs/new.md", text)
        return [violation for check in check_documents.CHECKS for violation in check(self.root)]

    def assert_one(self, text, *words):
        found = self.found(text)
        self.assertEqual(len(found), 1, found)
        for word in words:
            self.assertIn(word, found[0])

    def test_links_that_lead_somewhere_pass(self):
        self.assertEqual(self.found("# New\n[a](page.md) [b](../README.md#two-words-code-and-adot) [c](#new) [d](page.md#same-1) "
                                    "[e](https://example.org/x) [f](../examples/) ![g](page.md)\n"), [])

    def test_a_link_to_a_file_that_is_not_there(self):
        self.assert_one("text\n\n[a](gone.md)\n", "docs/new.md:3", "gone.md leads nowhere")

    def test_a_script_that_cannot_be_started(self):
        self.write("tests/tool.py", "print(1)\n")
        self.assert_one("```\ntests/tool.py build/release\n```\n", "docs/new.md:2", "tests/tool.py cannot be run")
        self.assert_one("`tests/tool.py --json`\n", "docs/new.md:1")
        self.assertEqual(self.found("`tests/tool.py`\n"), [])
        (self.root / "tests/tool.py").chmod(0o755)
        self.assertEqual(self.found("`tests/tool.py --json`\n"), [])

    def test_a_flag_that_no_command_has(self):
        self.write("docs/command-line.md", "# The command line\n\n| flag | meaning |\n|---|---|\n| `--workers 4`, `-w 4` | x |\n")
        self.assert_one("`--minutes 0.3` is short\n", "docs/new.md:1", "has --minutes")
        self.assertEqual(self.found("`--workers 2`, `--help`, `other --minutes 3`\n"), [])

    def test_a_link_out_of_the_tree(self):
        self.assert_one("[a](../../)\n", "leads nowhere")

    def test_a_picture_that_is_not_there(self):
        self.assert_one("![a](gone.svg)\n", "gone.svg")
        self.assert_one('<img src="gone.svg">\n', "gone.svg")

    def test_an_anchor_that_is_no_heading(self):
        self.assert_one("[a](page.md#other)\n", "page.md#other leads to no heading")
        self.assert_one("[a](page.md#same-2)\n", "same-2")
        self.assert_one("# New\n```\n# no heading\n```\n[a](#no-heading)\n", "no-heading")

    def test_what_is_code_is_no_link(self):
        self.assertEqual(self.found("`[a](gone.md)`\n```\n[a](gone.md)\n```\n"), [])

    def test_a_path_in_backquotes_that_does_not_exist(self):
        self.assertEqual(self.found("`examples/a.cpp` `other/x.cc` `build/cli/x`\n"), [])
        self.assert_one("See `examples/b.cpp`.\n", "examples/b.cpp does not exist")

    def test_an_excerpt_may_set_lines_and_comments_in_its_own_way(self):
        self.assertEqual(self.found("[a](../examples/a.cpp):\n\n```cpp\nint main() {  // Ours.\n  return f(1, 2);\n```\n"), [])

    def test_an_excerpt_with_a_line_that_the_example_has_not(self):
        self.assert_one("[a](../examples/a.cpp):\n\n```cpp\n  return f(1, 3);\n```\n", "docs/new.md:4", "a.cpp", "f(1, 3)")

    def test_code_that_follows_no_example_is_free(self):
        self.assertEqual(self.found("[a](../examples/a.cpp)\n\n## Next\n```cpp\nint x;\n```\n"), [])

    def trouble(self, cell):
        self.write("README.md", f"# Title\n\n## Troubleshooting\n\n| message | mend |\n|---|---|\n| {cell} | as it says |\n")

    def test_messages_of_the_product_and_of_others_pass(self):
        self.trouble("`... is no file ...: give one that exists, or none`")
        self.assertEqual(self.found(""), [])
        self.trouble("`Segmentation fault in the linker` (the compiler's)")
        self.assertEqual(self.found(""), [])

    def test_a_message_that_nobody_says(self):
        self.trouble("`... is no file ...: give one that exists, or two`")
        self.assert_one("", "README.md:7", "or two")

    def test_a_message_of_which_nothing_can_be_looked_up(self):
        self.trouble("`... is ...`")
        self.assert_one("", "README.md:7")

    def test_a_version_that_is_not_the_builds(self):
        self.write("CMakeLists.txt", "project(Paceline VERSION 1.3.0 LANGUAGES CXX)\n")
        self.assert_one("", "CHANGELOG.md")


if __name__ == "__main__":
    unittest.main()
