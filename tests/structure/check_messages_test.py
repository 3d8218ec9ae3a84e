"""The checker of messages finds all texts, and what its page lacks or has too much."""

import pathlib
import tempfile
import unittest

import check_messages


class MessagesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def texts(self, code=""):
        self.write("cli/a.cc", code)
        return sorted(check_messages.shown(text) for text in check_messages.texts(self.root))

    def body(self, code):
        return self.texts("Result<int> f(int n, const std::string& path) {\n" + code + "\n}\n")

    def found(self, code, *rows):
        self.write("cli/a.cc", code)
        self.write(check_messages.PAGE, "| message | mend |\n|---|---|\n" + "".join(f"| {row} | so |\n" for row in rows))
        return list(check_messages.violations(self.root))

    # What is a text
    # --------------

    def test_literals_are_joined_and_the_rest_left_out(self):
        self.assertEqual(self.body('return fail(ErrorKind::invalid, "no \\"file\\" " + g(n, "x") +\n "\\tat" " all: " + path);'),
                         ['no "file" ... at all: ...'])

    def test_calls_and_brackets_inside(self):
        self.assertEqual(self.body('return fail(ErrorKind::invalid, std::string("a (b, ") + to_string(n) + h({1, 2}) + ")");'),
                         ["a (b, ...)"])

    def test_all_that_gives_an_error(self):
        for code in ('return fail(ErrorKind::invalid, "a text");', 'return fail(other.error().kind, "a text");',
                     'tell({ErrorKind::internal, "a text"});', 'e = Error{ErrorKind::stale, "a text"};',
                     'refuse(ErrorKind::invalid, "a text");', 'throw std::runtime_error("a text");',
                     'throw TaskError({ErrorKind::invalid, "a text"});', 'send({{"error", "a text"}}, n);',
                     'error_ = "a text";', 'summary["failure"] = "a text";', 'log_.warning("a text");',
                     'tell(Failed{"a text"});', 'std::fprintf(stderr, "paceline: a text\\n");',
                     'static_assert(n > 0, "a text");', 'events.push_back({.kind = n, .text = "a text"});'):
            self.assertEqual(self.body(code), ["a text"], code)
        self.assertEqual(self.body('return fail_errno("open " + path);'), ["open ...: ..."])
        self.assertEqual(self.body('error.text += ": the end";'), ["...: the end"])

    def test_what_gives_none(self):
        self.assertEqual(self.body('// fail(ErrorKind::invalid, "x")\n/* throw a("y"); */ log_.info("a"); g("b"); fail(k, t);'), [])
        self.assertEqual(self.body('if (error.kind == ErrorKind::invalid) return {ErrorKind::stale, ErrorKind::invalid};'), [])

    def test_formats(self):
        self.assertEqual(self.body('return fail(ErrorKind::invalid, observe::format("%5.1f %% of %lld, %s", x, n, b ? "u" : "v"));'),
                         ["... % of ..., u", "... % of ..., v"])
        self.assertEqual(self.body('std::fprintf(stderr, "paceline: the driver %s ended\\n", name.c_str());'), ["the driver ... ended"])

    def test_choices(self):
        self.assertEqual(self.body('return fail(ErrorKind::invalid, "it " + (n ? "is" : "was " + path) + " so");'),
                         ["it is so", "it was ... so"])

    def test_variables_and_constants(self):
        self.write("cli/names.h", 'constexpr const char* kName = "PACELINE_X";\n')
        self.assertEqual(self.body('const std::string why = n ? " lately" : "";\nstd::string text = std::string(kName) + why;\n'
                                   'if (n > 2) text += path;\nreturn fail(ErrorKind::invalid, text);'),
                         ["PACELINE_X", "PACELINE_X lately", "PACELINE_X lately...", "PACELINE_X..."])

    def test_a_function_that_hands_its_parameter_on(self):
        code = ('tl::unexpected<Error> bad(const std::string& flag, const std::string& takes) {\n'
                '  return fail(ErrorKind::invalid, flag + ": " + takes);\n}\n'
                'Result<int> g(int n) {\n  if (n) return bad("--x", "give " + to_string(n));\n  return bad("--y", other);\n}\n')
        self.assertEqual(self.texts(code), ["--x: give ...", "--y: ..."])

    def test_a_lambda_that_does_and_one_of_its_name_elsewhere(self):
        self.assertEqual(self.texts('void f(const std::string& path) {\n'
                                    '  const auto bad = [&](std::string what) { return fail(ErrorKind::invalid, path + " is " + what); };\n'
                                    '  return bad("torn");\n}\n'
                                    'void g() {\n  const auto bad = [](std::string what) { throw Stopped("no " + what); };\n'
                                    '  bad("way");\n}\n'),
                         ["... is torn", "no way"])

    def test_one_that_hands_on_to_another(self):
        self.assertEqual(self.texts('void refuse(Kind kind, std::string text) { tell(Error{kind, std::move(text)}); }\n'
                                    'void Reader::complain(const std::string& what, int line = 0) { refuse(kind, "line: " + what); }\n'
                                    'void Reader::read() { complain("too long", 3); complain("too short"); }\n'),
                         ["line: too long", "line: too short"])

    def test_one_of_a_header_is_known_to_who_includes_it(self):
        self.write("runtime/b.h", "void refuse(const std::string& text);\n")
        self.write("runtime/b.cc", '#include "runtime/b.h"\nvoid refuse(const std::string& text) { throw x("b: " + text); }\n')
        self.write("cli/c.cc", 'void refuse(std::string text);\nvoid g() { refuse("not it"); }\n')
        self.assertEqual(self.texts('#include "runtime/b.h"\nvoid f() { refuse("it"); }\n'), ["b: it"])

    def test_a_function_that_returns_the_text(self):
        self.assertEqual(self.texts('std::string damaged(Rank rank) { return "the window of " + to_string(rank); }\n'
                                    'void f() { throw x(damaged(rank)); }\n'), ["the window of ..."])

    def test_one_that_calls_itself_comes_to_an_end(self):
        code = 'void f(const std::string& text) { if (n) f("again " + text); throw x(text); }\nvoid g() { f("over"); }\n'
        self.assertIn("again over", self.texts(code))

    def test_a_parameter_that_nobody_gives(self):
        self.assertEqual(self.texts('void f(const std::string& text) { throw x("worse: " + text); }\n'), ["worse: ..."])

    def test_tests_are_no_product(self):
        self.write("cli/a_test.cc", 'void f() { throw x("of a test"); }\n')
        self.write("cli/test_support/b.cc", 'void f() { throw x("of its help"); }\n')
        self.assertEqual(self.texts(), [])

    def test_scripts_and_cmake(self):
        self.write("quickstart", 'x || fail "no $name: install ${missing# }, or $*"\n')
        self.write("cmake/a.cmake", 'message(STATUS "fine")\nmessage(FATAL_ERROR "no ${what}: give \\"one\\"")\n')
        self.assertEqual(self.texts(), ['no ...: give "one"', "no ...: install ..., or ..."])

    def test_progress_is_no_error(self):
        self.assertEqual(self.body('std::fprintf(stderr, "run directory: %s\\n", path.c_str());'), [])

    # The page
    # --------

    ONE = 'void f() { throw x("there is no worker " + n + ": give another"); }\n'

    def test_a_page_that_has_them_all(self):
        self.assertEqual(self.found(self.ONE, "`there is no worker ...: give another`"), [])
        self.assertEqual(self.found(self.ONE, "`... give another`<br>`there is no worker ...`"), [])
        self.assertEqual(self.found('void f() { throw x("start one with `paceline up`, or a|b"); }\n',
                                    "``start one with `paceline up`, or a\\|b``"), [])

    def test_a_text_without_an_entry(self):
        violations = self.found(self.ONE, "`there is no ...: give one` (the compiler's)")
        self.assertEqual(len(violations), 1, violations)
        self.assertRegex(violations[0], r'^cli/a\.cc:1: .*"there is no worker \.\.\.: give another"')

    def test_what_differs_is_matched_by_dots_only(self):
        self.assertEqual(len(self.found(self.ONE, "`there is no worker 3: give another` (the compiler's)")), 1)

    def test_an_entry_that_says_too_little(self):
        for pattern in ("`...`", "`...: ...`", "`... no ...`"):
            violations = self.found(self.ONE, pattern)
            self.assertEqual(len(violations), 2, violations)
            self.assertIn("say more", violations[0])
            self.assertIn("nothing says", violations[1])
        self.assertEqual(self.found('void f() { fail_errno("poll"); }\n', "`poll: ...`"), [])

    def test_an_entry_that_nothing_says(self):
        violations = self.found(self.ONE, "`there is no worker ...`", "`there is no node ...`")
        self.assertEqual(len(violations), 1, violations)
        self.assertRegex(violations[0], r"^docs/troubleshooting\.md:4: .*there is no node")
        self.assertEqual(self.found(self.ONE, "`there is no worker ...`", "`Segmentation fault` (the linker's)"), [])

    def test_only_first_cells_of_tables_are_entries(self):
        self.assertEqual(self.found(self.ONE, "`there is no worker ...` | `as it says`"), [])


if __name__ == "__main__":
    unittest.main()
