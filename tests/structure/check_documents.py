#!/usr/bin/env python3
"""Checks that the pages hold: every relative link and anchor leads somewhere, every path in backquotes exists, a script
that they start can be started, flags that they name are Paceline's, what they quote of an example stands in it, messages
that the README explains are the product's, and the newest version of the changes is that of the build. Prints one line a
violation; exit status 1 if there is any.

Usage: check_documents.py ROOT
"""

import os
import pathlib
import re
import sys

FENCE = re.compile(r"^(```+|~~~+)")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*\s*$")
INLINE_CODE = re.compile(r"`[^`]*`")
# [text](target), with or without a title; and what HTML that GitHub shows may point to.
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|\b(?:href|src|srcset)=\"([^\"]+)\"")
ELSEWHERE = re.compile(r"^([a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)
FLAG = re.compile(r"(?<![\w-])(--?[a-zA-Z][a-z-]*)")
EXAMPLE = re.compile(r"\]\(([^)\s]*examples/\w+\.cpp)\)")

MESSAGE_PIECE = 20  # Characters; shorter ones are found anywhere.

FOLDERS = ["cli", "algorithms", "actors", "scheduler", "runtime", "examples", "tests", "docs", "cmake"]


def documents(root):
    return sorted(root.glob("*.md")) + sorted((root / "docs").rglob("*.md"))


def lines_of(path):
    """(number, line, whether it is inside a code block, the block's language) of a page."""
    fence, language = "", ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        mark = FENCE.match(line)
        if mark and not fence:
            fence, language = mark[1], line[len(mark[1]):].strip()
        elif mark and line.startswith(fence):
            fence = ""
        else:
            yield number, line, bool(fence), language


def slug(heading):
    """The anchor that GitHub gives a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def anchors_of(path):
    anchors, seen = set(), {}
    for _, line, is_code, _ in lines_of(path):
        heading = None if is_code else HEADING.match(line)
        if not heading:
            continue
        name = slug(heading[1])
        count = seen[name] = seen.get(name, -1) + 1
        anchors.add(f"{name}-{count}" if count else name)
    return anchors


def violations_of_links(root):
    for path in documents(root):
        name = path.relative_to(root).as_posix()
        for number, line, is_code, _ in lines_of(path):
            if is_code:
                continue
            for match in LINK.finditer(INLINE_CODE.sub("``", line)):
                target = match[1] or match[2]
                if ELSEWHERE.match(target):
                    continue
                file, _, anchor = target.partition("#")
                other = (path.parent / file).resolve() if file else path.resolve()
                if not other.exists() or not other.is_relative_to(root.resolve()):
                    yield f"{name}:{number}: the link {target} leads nowhere"
                elif anchor and (other.suffix != ".md" or anchor not in anchors_of(other)):
                    yield f"{name}:{number}: the link {target} leads to no heading of that page"


def violations_of_paths(root):
    """Every path that a page writes in backquotes with a slash, below a folder of ours, exists."""
    for path in documents(root):
        name = path.relative_to(root).as_posix()
        for number, line, is_code, _ in lines_of(path):
            for quoted in [] if is_code else re.findall(r"`([^`\s]+)`", line):
                is_path = re.fullmatch(r"[\w.-]+/([\w.-]+/)*[\w.-]*", quoted) and quoted.split("/")[0] in FOLDERS
                if is_path and not (root / quoted).exists():
                    yield f"{name}:{number}: {quoted} does not exist"


def violations_of_commands(root):
    """A script of ours that a page starts by its path can be started."""
    for path in documents(root):
        name = path.relative_to(root).as_posix()
        for number, line, is_code, _ in lines_of(path):
            for text in [line] if is_code else re.findall(r"`([^`]+)`", line):
                command = re.match(r"\s*((?:tests|cmake)/[\w./-]+\.(?:py|sh))\s+\S", text)
                if command and (root / command[1]).exists() and not os.access(root / command[1], os.X_OK):
                    yield f"{name}:{number}: {command[1]} cannot be run: chmod +x"


def violations_of_flags(root):
    """Code of a page that begins with a flag is of Paceline's own, which the page of the command line has. (Whether that has
    those of the commands, and no other, tests/integration/documentation_test.py asks them.)"""
    page = root / "docs" / "command-line.md"
    if not page.exists():
        return
    first_cells = re.findall(r"^\| (`[^|]*)\|", page.read_text(encoding="utf-8"), re.MULTILINE)
    known = {flag for cell in first_cells for flag in FLAG.findall(cell)}
    for path in documents(root):
        name = path.relative_to(root).as_posix()
        for number, line, is_code, _ in lines_of(path):
            for code in [] if is_code or path.name == "ARCHITECTURE.md" else re.findall(r"`(--[^`]*)`", line):
                for flag in sorted(set(FLAG.findall(code)) - known - {"--help"}):
                    yield f"{name}:{number}: no command of Paceline has {flag}: name the program before it"


def bare(code):
    """Without comments and blanks, which pages set in their own way."""
    return "".join(re.sub(r"//.*", "", line) for line in code.splitlines()).translate({32: None, 9: None})


def violations_of_excerpts(root):
    """A C++ block that follows a link to an example has no line that the example has not."""
    for path in documents(root):
        name = path.relative_to(root).as_posix()
        example, was_code = None, False
        for number, line, is_code, language in lines_of(path):
            if not is_code:
                if was_code or HEADING.match(line):
                    example = None
                links = EXAMPLE.findall(line)
                example = (path.parent / links[-1]).resolve() if links else example
            elif language == "cpp" and example and example.exists():
                if bare(line) not in bare(example.read_text(encoding="utf-8")):
                    yield f"{name}:{number}: {example.name} has no such line: {line.strip()}"
            was_code = is_code


def said_by_the_product(root):
    """The text of all string literals, adjacent ones joined as the compiler joins them."""
    files = [path for folder in FOLDERS[:5] for path in sorted((root / folder).rglob("*")) if path.suffix in (".h", ".cc")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files + sorted((root / "cmake").glob("common.sh")))
    return re.sub(r'"\s*"', "", text)


def violations_of_messages(root):
    """Messages in the README's table of troubles: "..." stands for what differs. Those of others have words beside them."""
    said, inside = said_by_the_product(root), False
    for number, line, _, _ in lines_of(root / "README.md"):
        inside = line == "## Troubleshooting" if HEADING.match(line) else inside
        message = re.match(r"\| `([^`]*)` \|", line)
        if not inside or not message:
            continue
        pieces = [piece.strip() for piece in message[1].split("...") if len(piece.strip()) >= MESSAGE_PIECE]
        if not pieces or not all(piece in said for piece in pieces):
            yield f"README.md:{number}: the product does not say: {message[1]}"


def violations_of_version(root):
    built = re.search(r"project\(Paceline VERSION ([\d.]+)", (root / "CMakeLists.txt").read_text(encoding="utf-8"))
    newest = re.search(r"^## ([\d.]+)", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    if not built or not newest or built[1] != newest[1]:
        yield "CHANGELOG.md: its newest version is not that of CMakeLists.txt"


CHECKS = [violations_of_links, violations_of_paths, violations_of_commands, violations_of_flags, violations_of_excerpts,
          violations_of_messages, violations_of_version]


def main():
    root = pathlib.Path(sys.argv[1])
    found = [violation for check in CHECKS for violation in check(root)]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
