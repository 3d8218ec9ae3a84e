"""Run directories that somebody else wrote: whatever stands in them, `report`, `replay`, `export` and `logs` end with a
line that says what is wrong, or with what can be read, and never with a signal or an exception."""
import json
import os
import random
import resource
import shutil
import subprocess

from harness import PACELINE, SANITIZED, SLOWDOWN, IntegrationTest, main

ROUNDS = 60 if SANITIZED else 400
MEMORY_MAX = 4 << 30  # Bytes of addresses that a command may have (sanitizers reserve more).
FILES = ["configuration.json", "result.json", "metrics.jsonl", "trace.json", "decisions-0.bin"]
VALUES = [None, True, -1, 0, 1, 2**31, 2**63 - 1, -2**63, 2**64, 10**400, 1e308, -1e308, 1e-320, "", "x", "\ud800", "a\nb\x1b[2J",
          [], {}, [[]], [None] * 1000, {"x": {"y": "z"}}, "nan", "../../../etc/passwd", "/dev/zero", "x" * 100_000]


def paths_in(value, path=()):
    """Of all values inside."""
    yield path
    for key, inside in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from paths_in(inside, path + (key,))


def changed_value(text, draw):
    """One value somewhere is another one, or gone."""
    value = json.loads(text)
    *way, last = draw.choice([path for path in paths_in(value) if path] or [("x",)])
    at = value
    for key in way:
        at = at[key]
    if draw.random() < 0.2 and isinstance(at, dict):
        at.pop(last, None)
    else:
        at[last] = draw.choice(VALUES)
    return json.dumps(value)


def changed_line(text, draw):
    lines = text.split("\n")
    for _ in range(draw.choice([1, 1, 1, 20])):
        i = draw.randrange(len(lines))
        try:
            lines[i] = changed_value(lines[i].rstrip(","), draw) + "," * lines[i].endswith(",")
        except (ValueError, TypeError, KeyError):
            lines[i] = draw.choice(["{", "[]", "null", "\0", lines[i] * 2])
    return "\n".join(lines)


def mutate(path, draw):
    """What was done, in words."""
    with open(path, "rb") as file:
        content = file.read()
    def write(new):
        with open(path, "wb") as file:
            file.write(new)
    kind = draw.choice(["value", "value", "value", "value", "cut", "bytes", "empty", "deep", "link", "loop", "pipe", "sparse", "gone",
                        "folder", "twice", "line"])
    if kind == "value" and not path.endswith(".bin"):
        change = changed_value if path.endswith(("configuration.json", "result.json")) else changed_line
        write(change(content.decode(), draw).encode("utf-8", "surrogatepass"))
    elif kind == "cut":
        write(content[:draw.randrange(len(content) + 1)])
    elif kind in ("bytes", "value"):
        new = bytearray(content)
        for _ in range(draw.choice([1, 10, 100])):
            new[draw.randrange(len(new))] = draw.randrange(256)
        write(bytes(new))
    elif kind == "empty":
        write(b"")
    elif kind == "deep":
        write(b'{"options":' * 100_000 + b"1" + b"}" * 100_000)
    elif kind == "line":
        write(b'{"event":"' + b"x" * (20 << 20) + b'"}\n')
    elif kind == "twice":
        write(content + content)
    elif kind == "sparse":
        os.truncate(path, 1 << 40)
    else:
        os.unlink(path)
        if kind == "link":
            os.symlink(draw.choice(["/dev/zero", "/dev/stdin", "/proc/self/mem", "nowhere", "/"]), path)
        elif kind == "loop":
            os.symlink(path, path)
        elif kind == "pipe":
            os.mkfifo(path)
        elif kind == "folder":
            os.mkdir(path)
    return kind


class HostileRuns(IntegrationTest):
    def setUp(self):
        super().setUp()
        run = self.quadratic("--strategy", "wagma(group=2)", workers=2, updates=12, evaluate_every=4, log=1, nodes=1)
        self.good = run.run_directory

    def limit(self):
        if not SANITIZED:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))

    def check(self, words, what):
        try:
            done = subprocess.run([PACELINE, *words], env=self.environment, cwd=self.folder, capture_output=True, check=False,
                                  stdin=subprocess.DEVNULL, timeout=20 * SLOWDOWN, preexec_fn=self.limit)
        except subprocess.TimeoutExpired:
            self.fail(f"{what}: {words} did not end")
        said = done.stderr.decode(errors="replace")
        self.assertIn(done.returncode, (0, 1, 2), f"{what}: {words}\n{said[-2000:]}")
        self.assertNotIn("terminate called", said)
        if done.returncode != 0:
            self.assertTrue(said.strip(), f"{what}: {words} says nothing")
            self.assertLess(len(said), 5_000, f"{what}: {words}\n{said[:2000]}")
            self.assertEqual(len(said.strip().split("\n")), 1, f"{what}: {words}\n{said[-2000:]}")

    def commands(self, directory):
        return [["report", directory, "-o", os.path.join(self.folder, "page.html")], ["report", "--json", directory],
                ["replay", directory, "--simulate"], ["replay", directory, "--decisions"], ["export", directory], ["logs", directory]]

    def test_whatever_stands_in_a_run_directory_commands_end_with_a_line(self):
        for words in self.commands(self.good):
            self.check(words, "as it was")
        seed = int(os.environ.get("PACELINE_SEED", "1"))
        for number in range(seed, seed + ROUNDS):
            draw = random.Random(number)
            directory = os.path.join(self.folder, f"hostile-{number}")
            shutil.copytree(self.good, directory)
            done = [f"PACELINE_SEED={number}"]
            for name in draw.sample(FILES, draw.choice([1, 1, 1, 2])):
                done.append(f"{name} {mutate(os.path.join(directory, name), draw)}")
            for words in draw.sample(self.commands(directory), 2):
                self.check(words, done)
            shutil.rmtree(directory)


if __name__ == "__main__":
    main()
