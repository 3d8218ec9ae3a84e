#!/usr/bin/env python3
"""Makes the API reference from the comments of the public headers, through Doxygen (docs/api/Doxyfile).

Usage: python3 docs/api/generate.py           writes docs/api/*.md, and HTML with a search box to build/api/html
       python3 docs/api/generate.py --check   compares; exit status 1 and a line for each difference

A page a header. Every public name, classes and structs of options among them, needs a comment and an example: a use of it in examples/, or in a C++ program or
fragment on a page of docs/. A name without one is a line on stderr and exit status 1.
"""
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
XML = "build/api/xml"

# Header -> what its page is called, in the order of the index.
PAGES = {
    "algorithms/train/include/paceline/worker.h": "worker",
    "algorithms/train/include/paceline/run.h": "run",
    "algorithms/job/include/paceline/run_options.h": "run_options",
    "algorithms/job/include/paceline/run_result.h": "run_result",
    "algorithms/job/include/paceline/metric.h": "metric",
    "algorithms/train/include/paceline/data.h": "data",
    "algorithms/train/include/paceline/trainer.h": "trainer",
    "algorithms/train/include/paceline/checkpoint.h": "checkpoint",
    "actors/async.h": "async",
    "actors/handle.h": "handle",
    "actors/concurrency.h": "concurrency",
    "actors/coroutine.h": "coroutine",
    "actors/get_actor.h": "get_actor",
    "actors/future.h": "future",
    "actors/wait.h": "wait",
    "actors/map.h": "map",
    "actors/actor_pool.h": "actor_pool",
    "actors/queue.h": "queue",
    "actors/generator.h": "generator",
    "actors/stream.h": "stream",
    "actors/cancel.h": "cancel",
    "actors/exit.h": "exit",
    "actors/durable.h": "durable",
    "actors/task_error.h": "task_error",
    "actors/arguments.h": "arguments",
    "actors/serialise.h": "serialise",
}
INCLUDE = {"actors": "paceline.h", "algorithms": "paceline/train.h"}

# What objects of a class are called in examples: a method's use is `me.next(`.
RECEIVERS = {"Worker": "me", "Shared": r"shared|\w", "Batches": "batches", "Sampler": r"me\.sampler\(.*\)", "Dataset": r"data|test|text|birds",
             "Future": r"heavy|answer|a|c|\)", "Async": r"first", "Handle": r"counter|\w+", "Model": "model", "Trainer": r"\w*",
             "RunResult": r"result|first|second|\)", "TaskError": "error", "Cause": "cause", "Evaluation": r"one", "TrainingLoss": "loss",
             "LoadResult": "loaded", "Batch": "batch", "Waited": "waited", "GroupHandle": r"in_group\(.*\)",
             "ActorPool": "pool", "Queue": "queue|other", "Stream": "stream|words", "Generator": "numbers", "durable": r"keys_", "durable_array": r"table_"}
BRACED = ("Trainer",)  # Made with the names of their fields.

# Where options are given: a use of a field of theirs stands in such a statement. Other structs have fields of the same names.
GIVEN = {"CsvOptions": r"\bcsv\(", "ImageOptions": r"\bimages\(", "TokenOptions": r"\btokens\(", "BatchOptions": r"\bbatches\(",
         "LoadOptions": r"\bload\(", "ActorOptions": r"\bcreate(_many)?<", "TaskOptions": r"\basync\(", "WaitOptions": r"\bwait\(",
         "GetOptions": r"paceline::get\(", "MapOptions": r"paceline::map\(", "ForOptions": r"parallel_for\(", "ActorPoolOptions": r"paceline::ActorPool<", "QueueOptions": r"make_queue<", "CancelOptions": r"\bcancel\(", "Metric": r"\bMetric\b",
         "StepOptions": r"\.step\(", "Stopped": r"^\s*try \{", "Sampler": r"\bmake_data_loader\("}

# What else the use of a name looks like: of a class, where examples do not spell it out; of a field, where others have one so called.
USES = {"Stream": r"= paceline::async\(\{\.ahead", "Stream::begin": r": stream\) \{", "Stream::end": r": stream\) \{", "Generator::begin": r": primes\(\)\)", "Generator::end": r": primes\(\)\)", "Shared": r"= me\.share\(", "Batches": r"= me\.batches\(", "Sampler": r"me\.sampler\(", "Batch": r"\] = batches\.next\(",
        "Stopped": r"catch \(const paceline::Stopped", "Metric": r"\bMetric\b", "Future": r"= paceline::async\(", "Waited": r"= paceline::wait\(", "GroupHandle": r"\.in_group\(", "Cause": r"const auto& cause : error\.causes",
        "Batch::data": r"\bbatch\.data\b", "Batch::target": r"\bbatch\.target\b", "Trainer::metric": r"\.metric = \[",
        "Trainer::data": r"\.data = paceline::", "Trainer::test": r"\.test = paceline::"}


def said(node):
    """Doxygen's description as Markdown."""
    if node is None:
        return ""
    text = node.text or ""
    for child in node:
        inner = said(child)
        if child.tag in ("computeroutput", "ref") and inner.strip():
            inner = inner if child.tag == "ref" else f"`{inner.strip('`')}`"
        elif child.tag == "para":
            inner = inner.strip() + "\n\n"
        elif child.tag in ("programlisting", "verbatim"):
            inner = f"\n```cpp\n{inner.strip(chr(10))}\n```\n"
        elif child.tag == "codeline":
            inner += "\n"
        elif child.tag == "sp":
            inner = " "
        elif child.tag == "emphasis":
            inner = f"*{inner}*"
        elif child.tag == "ndash":
            inner = "-"
        elif child.tag == "listitem":
            inner = f"- {inner.strip()}\n"
        elif child.tag == "itemizedlist":
            inner = f"\n{inner}"
        text += inner + (child.tail or "")
    return text


def described(node):
    parts = [said(node.find("briefdescription")).strip(), said(node.find("detaileddescription")).strip()]
    return " ".join(part for part in parts if part)


def type_of(member):
    return re.sub(r"\s+", " ", "".join((member.find("type") if member.find("type") is not None else xml.Element("x")).itertext())).strip()


def template_of(node):
    parameters = node.find("templateparamlist")
    if parameters is None:
        return ""
    words = []
    for parameter in parameters:
        name = parameter.findtext("declname") or ""
        words.append(" ".join(word for word in ("".join(parameter.find("type").itertext()), name) if word))
    return f"template <{', '.join(words)}>\n"


def signature(member):
    arguments = re.sub(r"\s+", " ", member.findtext("argsstring") or "")
    kind = member.get("kind")
    if kind == "variable":
        initial = re.sub(r"\s+", " ", "".join(member.find("initializer").itertext())) if member.find("initializer") is not None else ""
        return f"{type_of(member)} {member.findtext('name')}{' ' if initial.startswith('=') else ''}{initial};"
    if kind == "enum":
        values = ", ".join(value.findtext("name") for value in member.iter("enumvalue"))
        return f"enum class {member.findtext('name')} {{ {values} }};"
    result = re.sub(r"^requires ?\(.*\) (?=\w)", "", type_of(member))
    text = f"{template_of(member)}{result} {member.findtext('name')}{arguments};".replace("\n ", "\n").strip()
    return re.sub(r" ([&*])(?=\w)", r"\1 ", text).replace("< ", "<").replace(" >", ">")


class Examples:
    """Lines of code in which names are used, the examples' before the pages'."""

    def __init__(self):
        self.files = []
        for name in sorted(os.listdir(os.path.join(ROOT, "examples"))):
            if name.endswith(".cpp"):
                self.files.append((f"examples/{name}", self.read(f"examples/{name}").splitlines()))
        for folder, _, names in sorted(os.walk(os.path.join(ROOT, "docs"))):
            for name in sorted(names):
                path = os.path.relpath(os.path.join(folder, name), ROOT)
                if name.endswith(".md") and not path.startswith("docs/api/"):
                    lines = [line for block in re.findall(r"```cpp\n(.*?)```", self.read(path), re.DOTALL) for line in block.splitlines()]
                    self.files.append((path, lines))

    @staticmethod
    def read(path):
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            return file.read()

    def find(self, patterns, given=None):
        """The first statement in which one of these is used; with `given`, in one that begins with a line that has it."""
        for pattern in patterns:
            for path, lines in self.files:
                for number, line in enumerate(lines):
                    code = line.split("//")[0]
                    statement = self.statement(lines, number) if given and re.search(given, code) else None
                    if statement and re.search(pattern, statement):
                        return path, statement
                    if not given and re.search(pattern, code):
                        return path, self.statement(lines, number)
        return None

    @staticmethod
    def statement(lines, first):
        """From this line on until its brackets are closed, at most six lines."""
        taken, depth = [], 0
        for line in lines[first:first + 6]:
            taken.append(line)
            depth += sum(line.count(c) for c in "({[") - sum(line.count(c) for c in ")}]")
            if depth <= 0:
                break
        else:
            taken.append("  // ...")
        indent = min(len(line) - len(line.lstrip()) for line in taken if line.strip())
        return "\n".join(line[indent:].rstrip() for line in taken)


def patterns_for(name, kind, owner):
    if owner is None:
        return [rf"\bpaceline::{name}\b"] if kind != "function" else [rf"\bpaceline::{name}\s*[(<]"]
    if f"{owner}::{name}" in USES:
        return [USES[f"{owner}::{name}"]]
    receiver = RECEIVERS.get(owner, r"\w+")
    if kind == "variable":
        named = rf"(?:[{{ ]|\boptions)\.{name} *="
        return [rf"(?:\b|(?<=\)))(?:{receiver})(?:\.|->){name}\b"] if owner in RECEIVERS and owner not in BRACED else [named]
    return [rf"(?:\b|(?<=\)))(?:{receiver})(?:\.|->)(?:template )?{name}\s*[(<]"]


def is_internal(member):
    """Made and used by Paceline itself, although C++ has it public."""
    return not described(member) and (re.search(r"\b(train|actors|detail)::|Archive|Source", signature(member) + (member.findtext("definition") or ""))
                                      or member.findtext("name").startswith(("operator", "~")))


class Reference:
    def __init__(self):
        self.examples = Examples()
        self.pages = {header: [] for header in PAGES}
        self.names = []
        self.commented = set()
        self.wrong = []

    def example(self, name, kind, owner, link):
        found = self.examples.find(patterns_for(name, kind, owner), GIVEN.get(owner) if kind == "variable" else None)
        full = f"{owner}::{name}" if owner else name
        if not found:
            self.wrong.append(f"{full} has no example: use it in one of examples/*.cpp, or in C++ on a page of docs/")
            return ""
        return f"\n[{os.path.basename(found[0])}](../../{found[0]}):\n\n```cpp\n{found[1]}\n```\n" if link else found[1]

    def class_example(self, name):
        given = GIVEN.get(name)
        found = self.examples.find([USES.get(name, r"\{\." if given else rf"\bpaceline::{name}\b(?!::)")], given)
        if not found:
            self.wrong.append(f"{name} has no example: use it in one of examples/*.cpp, or in C++ on a page of docs/")
            return ""
        return f"[{os.path.basename(found[0])}](../../{found[0]}):\n\n```cpp\n{found[1]}\n```\n"

    def header_of(self, node):
        path = node.find("location").get("file") if node.find("location") is not None else ""
        path = os.path.relpath(os.path.join(ROOT, path), ROOT)
        return path if path in self.pages else None

    def member(self, member, owner=None):
        """Markdown of one, or None where it is not the user's."""
        name, kind = member.findtext("name"), member.get("kind")
        if member.get("prot") not in (None, "public") or kind in ("friend", "typedef") or is_internal(member):
            return None
        text = described(member)
        full = f"{owner}::{name}" if owner else name
        constructor = owner == name
        if text or constructor or kind in ("variable", "enum"):
            self.commented.add(full)
        elif full not in self.commented:  # An overload after one that has a comment needs none.
            self.wrong.append(f"{full} has no comment")
        return name, kind, signature(member), text, constructor

    def add_class(self, path):
        node = xml.parse(path).getroot().find("compounddef")
        header = self.header_of(node)
        name = node.findtext("compoundname").removeprefix("paceline::")
        if header is None or "::" in name or node.get("prot") == "private":
            return
        members = [made for section in node.findall("sectiondef") for made in (self.member(each, name) for each in section.findall("memberdef"))
                   if made]
        lines = [f"## {name}\n", described(node) + "\n"]
        fields = [each for each in members if each[1] == "variable"]
        if not described(node):
            self.wrong.append(f"{name} has no comment")
        lines.append(self.class_example(name))
        if fields:
            lines.append("| field | | for example |\n|---|---|---|")
            for each in fields:
                lines_of = self.example(each[0], each[1], name, link=False).split("\n")
                code = next((line for line in lines_of if re.search(rf"\b{each[0]}\b", line)), lines_of[0]).strip()
                cells = (f"`{each[2].rstrip(';')}`", " ".join(each[3].split()), f"`{code}`")
                lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
            lines.append("")
        seen = set()
        for member_name, kind, text_of, text, constructor in members:
            if kind == "variable":
                continue
            if member_name not in seen:
                lines.append(f"### {name}::{member_name}\n")
            lines.append(f"```cpp\n{text_of}\n```\n")
            if text:
                lines.append(text + "\n")
            if member_name not in seen and not constructor:
                lines.append(self.example(member_name, kind, name, link=True).lstrip("\n"))
            seen.add(member_name)
        self.names += [(name, header, name)] + [(f"{name}::{each[0]}", header, f"{name}::{each[0]}" if each[1] != "variable" else name)
                                                for each in members if not each[4]]
        self.pages[header].append((int(node.find("location").get("line")), "\n".join(lines)))

    def add_concept(self, path):
        node = xml.parse(path).getroot().find("compounddef")
        header, name = self.header_of(node), node.findtext("compoundname").removeprefix("paceline::")
        if header is None:
            return
        used = self.examples.find([r"\bserialize\("])
        text = f"## {name}\n\n{described(node)}\n\n[{os.path.basename(used[0])}](../../{used[0]}):\n\n```cpp\n{used[1]}\n```\n"
        self.names.append((name, header, name))
        self.pages[header].append((int(node.find("location").get("line")), text))

    def add_functions(self, path):
        node = xml.parse(path).getroot().find("compounddef")
        seen = {}
        for member in node.iter("memberdef"):
            header = self.header_of(member)
            made = self.member(member) if header else None
            if not made:
                continue
            name, kind, text_of, text, _ = made
            lines = [] if (header, name) in seen else [f"## {name}\n"]
            lines += [f"```cpp\n{text_of}\n```\n"] + ([text + "\n"] if text else [])
            if (header, name) not in seen:
                lines.append(self.example(name, kind, None, link=True).lstrip("\n"))
                self.names.append((name, header, name))
            seen[header, name] = True
            self.pages[header].append((int(member.find("location").get("line")), "\n".join(lines)))

    def make(self):
        index = xml.parse(os.path.join(ROOT, XML, "index.xml")).getroot()
        for compound in index.findall("compound"):
            path = os.path.join(ROOT, XML, compound.get("refid") + ".xml")
            if compound.get("kind") in ("class", "struct"):
                self.add_class(path)
            elif compound.get("kind") == "concept":
                self.add_concept(path)
            elif compound.get("kind") == "namespace" and compound.findtext("name") == "paceline":
                self.add_functions(path)
        return self.texts()

    def texts(self):
        made = {}
        for header, parts in self.pages.items():
            page = PAGES[header]
            include = INCLUDE[header.split("/")[0]]
            head = f"# {page}.h\n\n`#include <{include}>` brings it. Made from [{header}](../../{header}) by `docs/api/generate.py`; " \
                   "[all names](README.md).\n"
            made[f"{page}.md"] = "\n".join([head] + [text for _, text in sorted(parts, key=lambda part: part[0])]).rstrip() + "\n"
        lines = ["# API reference\n",
                 "Made from the comments of the public headers by `python3 docs/api/generate.py`, which also writes a version with a search "
                 "box: `build/api/html/index.html`. What belongs together, and why, is in [training](../training.md) and "
                 "[actors and tasks](../actors.md).\n", "| header | |\n|---|---|"]
        for header, page in PAGES.items():
            here = ", ".join(f"`{name}`" for name, of, _ in self.names if of == header and "::" not in name)
            lines.append(f"| [{page}.h]({page}.md) | {here} |")
        lines += ["\n## All names\n"]
        for name, header, anchor in sorted(set(self.names), key=lambda each: (each[0].split("::")[-1].lower(), each)):
            anchor = anchor.lower().replace("::", "")
            lines.append(f"- [`{name}`]({PAGES[header]}.md#{anchor})")
        made["README.md"] = "\n".join(lines) + "\n"
        return made


def main():
    os.makedirs(os.path.join(ROOT, "build/api"), exist_ok=True)
    if not shutil.which("doxygen"):
        sys.exit("generate.py: there is no doxygen: apt install doxygen")
    done = subprocess.run(["doxygen", "docs/api/Doxyfile"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0 or done.stderr:
        sys.exit(f"generate.py: doxygen says:\n{done.stderr}")
    reference = Reference()
    texts = reference.make()
    wrong = reference.wrong
    listed = re.findall(r"^@example (\S+)$", Examples.read("docs/api/main.dox"), re.MULTILINE)
    if set(listed) != {os.path.basename(path) for path, _ in reference.examples.files if path.startswith("examples/")}:
        wrong.append("docs/api/main.dox lists other examples than there are in examples/")
    for name, text in texts.items():
        path = os.path.join(ROOT, "docs/api", name)
        if sys.argv[1:] == ["--check"]:
            if not os.path.exists(path) or Examples.read(f"docs/api/{name}") != text:
                wrong.append(f"docs/api/{name} is not what the headers give: run python3 docs/api/generate.py")
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    print("".join(f"generate.py: {line}\n" for line in wrong), end="", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
