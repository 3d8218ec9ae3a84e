#!/usr/bin/env python3
"""Checks the shape of the sources: include direction, pure cores, third-party headers behind their adapters, calls that
only few may make. Prints one line a violation; exit status 1 if there is any.

Usage: check_structure.py ROOT
"""

import pathlib
import re
import sys

# A folder may include itself and what stands to the right of it.
LAYERS = ["cli", "algorithms", "actors", "scheduler", "runtime"]

# Third-party header -> where it may be included (prefixes of the path, or name patterns with *).
ADAPTERS = {
    r"zmq": ["runtime/transport/"],
    r"(capnp|kj)/|.*\.capnp\.h": ["runtime/wire/", "runtime/transport/", "*_wire.h", "*_wire.cc", "*_wire_test.cc", "tests/bench/messages_bench.cc"],
    r"(torch|ATen|c10)/": ["algorithms/train/", "examples/", "tests/bench/", "tests/integration/", "tests/support/"],
    r"cereal/": ["actors/", "algorithms/train/", "examples/"],
    r"Eigen/": ["algorithms/topology/matcha.cc", "actors/serialise_test.cc"],
    r"utf8": ["runtime/base/"],
    r"spdlog/": ["runtime/base/", "runtime/observe/"],
    r"CLI/": ["cli/", "examples/"],
    r"sqlite3": ["runtime/store/"],
    r"httplib": ["runtime/http/"],
    r"zlib": ["algorithms/train/", "runtime/base/"],
    r"elfutils/": ["cli/native/"],
    r"sodium": ["runtime/transport/", "runtime/base/"],
    r"cuda|nccl": ["runtime/memory/device/", "runtime/collective/"],
}

# What decides reads no clock, owns no thread, no socket, no lock. Shells that wait, or touch the world (*_service), and tests may.
CORE_FOLDERS = ["scheduler/", "algorithms/"]  # Of algorithms only the top folder.
NOT_IN_A_CORE = re.compile(
    r'(runtime/base/steady_now\.h|runtime/transport/|runtime/process/|thread|mutex|condition_variable|atomic|future|random'
    r'|unistd\.h|sys/|poll\.h|zmq|spdlog/|iostream)')

# What may be called at few places only: pattern -> (where, what to do elsewhere).
CALLS = {
    r"\.dump\(|->dump\(": (["runtime/base/json.cc", "algorithms/train/safetensors.cc"],
                          "it throws at bytes that are no UTF-8: write JSON with json_text()"),
    r"json::parse\(": (["runtime/base/json.cc", "algorithms/train/safetensors.cc", "algorithms/simulate/"],
                     "it throws at what is no JSON: read it with parse_json()"),
}

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')


def sources(root):
    for folder in LAYERS + ["examples", "tests"]:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cc", ".cpp"):
                yield path.relative_to(root).as_posix(), path


def includes(path):
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(2)


def is_core(name):
    if name.endswith("_test.cc") or "_service" in name:
        return False
    if name.startswith("scheduler/"):
        return True
    return name.startswith("algorithms/") and name.count("/") == 1


def allowed(name, places):
    return any(name.endswith(p[1:]) if p.startswith("*") else name.startswith(p) for p in places)


def violations_of_includes(root):
    for name, path in sources(root):
        layer = name.split("/")[0]
        for number, header in includes(path):
            where = f"{name}:{number}"
            other = header.split("/")[0]
            if layer in LAYERS and other in LAYERS and LAYERS.index(other) < LAYERS.index(layer):
                yield f"{where}: {layer} must not include {header}: dependencies point {' -> '.join(LAYERS)}"
            if layer in LAYERS and other in ("examples", "tests") and not name.endswith("_test.cc"):
                yield f"{where}: product code must not include {header}"
            for pattern, places in ADAPTERS.items():
                if re.match(pattern, header) and not allowed(name, places):
                    yield f"{where}: {header} stays behind its adapter ({', '.join(places)})"
            if is_core(name) and NOT_IN_A_CORE.match(header):
                yield f"{where}: a core is sans-I/O and must not include {header}: do it in a *_service"
            if header.startswith(".."):
                yield f"{where}: include from the root of the sources, not {header}"


def violations_of_calls(root):
    for name, path in sources(root):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for pattern, (places, mend) in CALLS.items():
                if re.search(pattern, line) and not allowed(name, places) and not name.endswith("_test.cc"):
                    yield f"{name}:{number}: {line.strip()}: {mend}"


def main():
    root = pathlib.Path(sys.argv[1])
    found = list(violations_of_includes(root)) + list(violations_of_calls(root))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
