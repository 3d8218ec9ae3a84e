"""What users' code does that nobody should (misuse_script.cc checks itself)."""
import os
import time

from harness import SLOWDOWN, IntegrationTest, in_release, main

MISUSE = os.environ["PACELINE_MISUSE"]

OLD = """#include <paceline.h>
#include <cstdio>
struct Counter {
  long n = 7;
  long add(long k) { return n += k; }
};
int main(int argc, char** argv) {
  if (argc > 1) {
    auto counter = paceline::create<Counter>({.name = "counter", .lifetime = paceline::Lifetime::detached});
    std::printf("%ld\\n", counter.call(&Counter::add, 1).get());
  } else {
    auto counter = paceline::get_actor<Counter>("counter");
    try {
      std::printf("%ld\\n", counter.call(&Counter::add, 1).get());
    } catch (const paceline::TaskError& error) {
      std::printf("error: %s\\n", error.what());
    }
  }
}
"""


class Misuse(IntegrationTest):
    def check(self, *arguments, **options):
        return self.run_script(MISUSE, *arguments, **options)

    def test_a_copy_that_fork_made_is_refused_and_harms_nobody(self):
        self.check("forks")

    def test_destructors_that_throw(self):
        self.check("destructors")

    @in_release  # Gigabytes.
    def test_gigabytes_do_not_go_by_value(self):
        self.check("large", timeout=120)

    def test_main_may_return_with_everything_outstanding(self):
        begin = time.monotonic()
        self.check("outstanding", timeout=60)
        self.assertLess(time.monotonic() - begin, 10 * SLOWDOWN)

    @in_release  # It compiles its script.
    def test_a_script_that_was_built_anew_while_its_old_actor_lives(self):
        self.assertEqual(self.paceline("up").code, 0)
        script = self.write("counter.cpp", OLD)
        first = self.paceline("run", script, "make", timeout=60)
        self.assertEqual((first.code, first.out), (0, "8\n"), first.said())
        self.write("counter.cpp", OLD.replace("  long n = 7;", "  double before = 1;\n  long n = 100;\n  void other() {}"))
        second = self.paceline("run", script, timeout=60)
        self.assertEqual(second.code, 0, second.said())
        self.assertRegex(second.out, r"^error: .*build", second.said())
        self.write("counter.cpp", OLD)
        again = self.paceline("run", script, timeout=60)
        self.assertEqual((again.code, again.out), (0, "9\n"), again.said())


if __name__ == "__main__":
    main()
