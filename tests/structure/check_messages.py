#!/usr/bin/env python3
"""Checks that every error text has its entry in docs/troubleshooting.md, and every entry a text. Prints one line a violation;
exit status 1 if there is any.

An entry is a row of a table whose first cell holds patterns in backquotes: "..." stands for anything, also nothing. A cell that
says whose the text is, as in (the compiler's), holds patterns of texts that are not ours. error_texts.py finds ours.

Usage: check_messages.py ROOT [--list]    (--list: prints the texts instead, each with its place)
"""

import pathlib
import re
import sys

import cpp_source
import error_texts

PAGE = "docs/troubleshooting.md"
FOLDERS = ["cli", "algorithms", "actors", "runtime", "scheduler"]
NO_PRODUCT = re.compile(r"_test\.|_test_support|_script\.cc$|_bench\.cc$|(^|/)test_")

COMMON = 8  # So many characters has a pattern in common with a text, or as many as the text has.
HOLE = "\0"  # In a text: what is known only when the program runs. Only "..." matches it.

# Lines on stderr that say what is going on.
NO_ERRORS = ["run directory: ...", "...: ... simulations, ... s", "[K...", "...resumed from the averaged model of ..."]

SHELL_TEXT = re.compile(r'\bfail "((?:[^"\\]|\\.)*)"')
CMAKE_TEXT = re.compile(r'\bmessage\((?:FATAL_ERROR|WARNING)\s+"((?:[^"\\]|\\.)*)"')
VARIABLE = re.compile(r"\$\{[^}]*\}|\$\w+|\$[*@#]")
CODE = re.compile(r"``\s?(.+?)\s?``|`([^`]+)`")
OF_OTHERS = re.compile(r"\([\w ]+'s\)")


def literals(text):
    """How many characters a text or pattern says itself."""
    return len(text.replace(HOLE, "").replace("...", ""))


def on_one_line(text):
    return " ".join(text.split())


def texts_of_sources(root):
    """{text: (file, line)} of C++, scripts and CMake files."""
    files = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*")) if path.suffix in (".h", ".cc")]
    named = [(path.relative_to(root).as_posix(), path) for path in files]
    sources = [cpp_source.Source(name, path.read_text(encoding="utf-8")) for name, path in named if not NO_PRODUCT.search(name)]
    found = {}
    for text, place in error_texts.ErrorTexts(sources).all().items():
        found.setdefault(on_one_line("".join(HOLE if part is error_texts.HOLE else part for part in text)), place)
    scripts = [root / "quickstart", root / "check", *sorted((root / "cmake").glob("*.sh"))]
    lists = [*sorted((root / "cmake").glob("*.cmake")), *(p for f in FOLDERS for p in sorted((root / f).rglob("CMakeLists.txt")))]
    for pattern, paths in ((SHELL_TEXT, scripts), (CMAKE_TEXT, lists)):
        for path in paths:
            code = path.read_text(encoding="utf-8") if path.exists() else ""
            for match in pattern.finditer(code):
                text = re.sub(r"\\(.)", r"\1", VARIABLE.sub(HOLE, match[1]))
                found.setdefault(on_one_line(text), (path.relative_to(root).as_posix(), code.count("\n", 0, match.start()) + 1))
    return {text.removeprefix("paceline: "): place for text, place in found.items()}


def texts(root):
    """Those of errors, without those that say nothing themselves."""
    no_errors = [expression_of(pattern) for pattern in NO_ERRORS]
    return {text: place for text, place in texts_of_sources(root).items()
            if any(map(str.isalnum, text)) and not any(expression.fullmatch(text) for expression in no_errors)}


def expression_of(pattern):
    return re.compile(".*".join(re.escape(piece) for piece in on_one_line(pattern).split("...")), re.DOTALL)


def patterns(page):
    """(line, pattern, whether its text is ours) of the first cells of all tables."""
    for number, line in enumerate(page.splitlines(), 1):
        if not line.startswith("|"):
            continue
        cell = re.split(r"(?<!\\)\|", line)[1]
        for match in CODE.finditer(cell):
            yield number, (match[1] or match[2]).replace("\\|", "|"), not OF_OTHERS.search(CODE.sub("", cell))


def shown(text):
    return text.replace(HOLE, "...")


def violations(root):
    page = (root / PAGE).read_text(encoding="utf-8")
    entries = [(number, pattern, expression_of(pattern)) for number, pattern, is_ours in patterns(page) if is_ours]
    of_sources, used = texts(root), set()
    for text, (file, line) in of_sources.items():
        matching = [entry for entry in entries if entry[2].fullmatch(text)]
        enough = [entry for entry in matching if literals(entry[1]) >= min(COMMON, literals(text))]
        used.update(number_and_pattern[:2] for number_and_pattern in enough)
        if not matching:
            yield f'{file}:{line}: no entry for "{shown(text)}": add a row with it to {PAGE}, "..." for what differs'
        elif not enough:
            yield f'{file}:{line}: the entry `{matching[0][1]}` fits "{shown(text)}", and nearly everything else: say more in it'
    for number, pattern, _ in entries:
        if (number, pattern) not in used:
            yield f"{PAGE}:{number}: nothing says `{pattern}` (any more): mend or remove it, or say whose it is: (the compiler's)"


def main():
    root = pathlib.Path(sys.argv[1])
    if "--list" in sys.argv[2:]:
        for text, (file, line) in sorted(texts(root).items(), key=lambda item: item[1]):
            print(f"{file}:{line}: {shown(text)}")
        return 0
    found = list(violations(root))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
