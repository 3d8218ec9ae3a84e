"""A C++ file as tokens: which brackets belong together, what is a function. For error_texts.py."""

import bisect
import collections
import re

TOKEN = re.compile(r'''
    (?P<skip> //[^\n]* | /\*.*?\*/ | ^[ \t]*\#(?:[^\n]*\\\n)*[^\n]* | \s+ )
  | (?P<raw> (?:u8|[uUL])?R"(?P<mark>[^()\\\s]*)\((?P<content>.*?)\)(?P=mark)" )
  | (?P<text> "(?:[^"\\\n]|\\.)*" )
  | (?P<char> '(?:[^'\\\n]|\\.)+' )
  | (?P<number> \.?\d(?:[eEpP][+-]|[\w.]|'\w)* )
  | (?P<name> [A-Za-z_]\w* )
  | (?P<sign> :: | -> | \+\+ | -- | << | \+= | == | != | <= | >= | && | \|\| | . )
''', re.VERBOSE | re.DOTALL | re.MULTILINE)
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
ESCAPE = re.compile(r"\\(x[0-9a-fA-F]+|[0-7]{1,3}|.)")
ESCAPES = {"n": "\n", "t": " ", "r": "", '"': '"', "\\": "\\", "'": "'"}  # Others are no characters that one reads.

OPEN, CLOSE = ("(", "[", "{"), (")", "]", "}")
NO_FUNCTION = {"if", "for", "while", "switch", "catch", "return", "sizeof", "decltype", "constexpr", "throw"}
NO_TYPE = {"return", "else", "throw", "co_return", "case", "do", "not"}  # A name behind any other name is declared there.
BEHIND_PARAMETERS = {"const", "noexcept", "override", "final", "mutable", "->", "::", "<", ">", "&", "*"}


class Function:
    """`head`: the bracket before its parameters; `owner`: its class; `scope`: where a lambda is known by its name."""

    def __init__(self, source, name, head, body, scope=None):
        self.source, self.name, self.head, self.body, self.scope = source, name, head, body, scope
        parameters = source.parts(head, is_declaration=True)
        self.parameters = [source.declared_name(*part) for part in parameters]
        self.least = sum("=" not in (source.sign(i) for i in range(*part)) for part in parameters)
        self.owner = source.class_around(head) or source.owner_before(head)

    def takes(self, count):
        return self.least <= count <= len(self.parameters)


class Source:
    def __init__(self, name, code):
        self.name, self.tokens, self.lines, line = name, [], [], 1
        for match in TOKEN.finditer(code):
            kind = "text" if match["raw"] is not None else match.lastgroup
            if kind == "text":
                inside = match["content"]
                if inside is None:
                    inside = ESCAPE.sub(lambda escape: ESCAPES.get(escape[1], ""), match["text"][1:-1])
                self.tokens.append((kind, inside))
            elif kind != "skip":
                self.tokens.append((kind, match[0]))
            self.lines += [line] * (len(self.tokens) - len(self.lines))
            line += match[0].count("\n")
        self.includes = {name} | set(INCLUDE.findall(code))
        self.partner, stack, self.where = {}, [], collections.defaultdict(list)
        for index, (kind, text) in enumerate(self.tokens):
            if kind == "name":
                self.where[text].append(index)
            elif self.sign(index) in OPEN:
                stack.append(index)
            elif self.sign(index) in CLOSE and stack:
                self.partner[index] = stack.pop()
                self.partner[self.partner[index]] = index
        self.blocks = [(i, self.partner[i]) for i in range(len(self.tokens)) if self.sign(i) == "{" and i in self.partner]
        self.functions = list(self.find_functions())
        self.heads = {function.head for function in self.functions}

    def sign(self, index):
        """A name or sign; "" where there is a text or nothing."""
        kind, text = self.tokens[index] if 0 <= index < len(self.tokens) else ("", "")
        return "" if kind in ("text", "char") else text

    def is_name(self, index):
        return 0 <= index < len(self.tokens) and self.tokens[index][0] == "name"

    def block_around(self, index):
        for opened, closed in reversed(self.blocks[:bisect.bisect_left(self.blocks, (index, 0))]):
            if closed > index:
                return opened, closed
        return -1, len(self.tokens)

    def owner_before(self, opened):
        """X of `X::name(`; "::" of `::name(`."""
        if self.sign(opened - 2) != "::":
            return ""
        return self.sign(opened - 3) if self.is_name(opened - 3) and self.sign(opened - 3) not in NO_TYPE else "::"

    def class_around(self, index):
        """The class in whose braces something stands, if it is in one."""
        start = self.block_around(index)[0] - 1
        while start > 0 and self.sign(start) not in (";", "{", "}", ")", ">"):
            if self.sign(start) in ("class", "struct"):
                return self.sign(start + 1)
            start -= 1
        return ""

    def find(self, signs, start, end, is_declaration=False):
        """The first of these signs that stands in no bracket; `end` if there is none."""
        angles = 0
        while start < end:
            sign = self.sign(start)
            if sign in signs and angles <= 0:
                return start
            angles += (sign == "<") - (sign == ">") if is_declaration else 0
            start = self.partner.get(start, start) + 1 if sign in OPEN else start + 1
        return end

    def parts(self, opened, is_declaration=False):
        """The ranges between the commas of a bracket."""
        start, end, ranges = opened + 1, self.partner[opened], []
        while start < end:
            comma = self.find((",",), start, end, is_declaration)
            ranges.append((start, comma))
            start = comma + 1
        return ranges

    def declared_name(self, start, end):
        names = [i for i in range(start, self.find(("=",), start, end)) if self.is_name(i)]
        return self.sign(names[-1]) if names else ""

    def find_functions(self):
        for opened, closed in self.blocks:
            head = self.head_before(opened)
            if head is None:
                continue
            capture = self.partner.get(head - 1, head)
            if self.is_name(head - 1) and self.sign(head - 1) not in NO_FUNCTION:
                yield Function(self, self.sign(head - 1), head, (opened, closed))
            elif self.sign(head - 1) == "]" and self.sign(capture - 1) == "=" and self.is_name(capture - 2):
                scope = closed, self.block_around(capture)[1]
                yield Function(self, self.sign(capture - 2), head, (opened, closed), scope)

    def head_before(self, index):
        """Where the parameters begin of a body that begins at `index`."""
        for _ in range(64):
            index -= 1
            sign, opened = self.sign(index), self.partner.get(index, index)
            if sign in (")", "}") and self.is_name(opened - 1) and self.sign(opened - 2) in (",", ":"):
                index = opened - 2  # It was of a list of initialisers.
            elif sign == ")":
                return opened
            elif sign not in BEHIND_PARAMETERS and not self.is_name(index):
                return None
        return None

    def functions_around(self, index):
        """The innermost first."""
        around = [function for function in self.functions if function.body[0] < index < function.body[1]]
        return sorted(around, key=lambda function: -function.body[0])

    def is_call(self, index):
        """A name that is followed by arguments and is not declared there."""
        if self.sign(index + 1) != "(" or index + 1 in self.heads:
            return False
        before = self.sign(index - 1)
        if self.is_name(index - 1):
            return before in NO_TYPE
        behind_type = self.is_name(index - 2) and self.sign(index - 2) not in NO_TYPE or self.sign(index - 2) in (">", "*", "&")
        return not (before in ("&", "*", ">") and behind_type)
