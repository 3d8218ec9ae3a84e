"""Finds the error texts in C++ sources, for check_messages.py.

A text is what is given to `fail(kind, TEXT)`, `Error{kind, TEXT}`, `fail_errno(TEXT)`, `throw x(TEXT)`, `fprintf(stderr, ..)`,
`static_assert(.., TEXT)`, a warning or error of the log, a member `text`, `error` or `failure`, or a variable of such a name, or
a message's `setText(TEXT)`. A function, also a lambda, that hands a parameter of its own on to one of these is itself one of
these: then its calls are looked at instead.

A text comes out as a tuple of literals and HOLE, which stands for what is known only when the program runs. Choices
(`a ? b : c`) give several texts. Variables are followed and, where nothing else is known, functions that return texts.
"""

import collections
import functools
import itertools
import re

HOLE = None
Parameter = collections.namedtuple("Parameter", "function index")  # In a text: what the function is called with.

CONVERSION = re.compile(r"%[-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z|j|t)?([a-zA-Z%])")
CONVERTERS = {"string", "string_view", "move", "forward", "bounded"}
UNWRAPPERS = {"c_str", "value", "string"}
HANDED_ON = {"Failed", "paceline_session_fail", "paceline_session_warn", "setText"}  # Their last argument is told to the user somewhere else.
ERROR_MEMBERS = {"error", "failure", "text"}
ERROR_VARIABLE = re.compile(r"(?:error|failure|complaints|problem)_?")

CHOICES_MAX = 32
DEPTH_MAX = 8


def letters(text):
    return sum(character.isalnum() for part in text if isinstance(part, str) for character in part)


def joined(parts):
    """Adjacent literals become one, and adjacent holes."""
    result = []
    for part in parts:
        if part == "" or part is HOLE and result and result[-1] is HOLE:
            continue
        if isinstance(part, str) and result and isinstance(result[-1], str):
            result[-1] += part
        else:
            result.append(part)
    return tuple(result)


def combined(pieces):
    """The texts that come from pieces one after the other, for each of which there is a choice."""
    count = 1
    for index, piece in enumerate(pieces):
        count *= len(piece)
        if count > CHOICES_MAX:
            pieces = pieces[:index] + [[(HOLE,)]]
            break
    return list(dict.fromkeys(joined(itertools.chain(*choice)) for choice in itertools.product(*pieces)))


def formatted(pattern, arguments):
    """What printf makes of a pattern; `arguments` are the choices for each."""
    arguments, pieces = list(arguments), []
    for part in pattern:
        if not isinstance(part, str):
            pieces.append([(part,)])
            continue
        at = 0
        for match in CONVERSION.finditer(part):
            pieces.append([(part[at:match.start()],)])
            at = match.end()
            known = [("%",)] if match[1] == "%" else arguments.pop(0) if arguments else [(HOLE,)]
            pieces.append(known if match[1] in "s%" else [(HOLE,)])
        pieces.append([(part[at:],)])
    return combined(pieces)


class ErrorTexts:
    def __init__(self, sources):
        self.sources = sources
        self.functions, self.calls = collections.defaultdict(list), collections.defaultdict(list)
        self.headers = collections.defaultdict(dict, {source.name: source.where for source in sources})
        self.includes = {source.name: source.includes for source in sources}
        self.constants = collections.defaultdict(list)
        for source in sources:
            for function in source.functions:
                self.functions[function.name].append(function)
            for name, places in source.where.items():
                self.calls[name] += [(source, i + 1) for i in places if source.is_call(i)]
                if re.match("k[A-Z]", name):
                    self.constants[name] += [(source, i) for i in places]

    # What an expression can read
    # ---------------------------

    def texts(self, source, start, end, deep=False, depth=0):
        while source.sign(start) in ("*", "&"):
            start += 1
        if start >= end or depth > DEPTH_MAX:
            return [(HOLE,)]

        def read(a, b):
            return self.texts(source, a, b, deep, depth)

        question = source.find(("?",), start, end)
        if question < end:
            colon = source.find((":",), question, end)
            return list(dict.fromkeys(read(question + 1, colon) + read(colon + 1, end)))
        plus = source.find(("+",), start, end)
        if plus < end:
            return combined([read(start, plus), read(plus + 1, end)])
        kinds = {source.tokens[i][0] for i in range(start, end)}
        if kinds == {"text"}:
            return [joined(source.tokens[i][1] for i in range(start, end))]
        if end - start == 1:
            return self.named(source, start, deep, depth + 1) if kinds == {"name"} else [(HOLE,)]
        opened = source.partner.get(end - 1, end)
        if opened == start and source.sign(start) == "(":
            return read(start + 1, end - 1)
        if opened == end - 2 and source.sign(opened - 1) in UNWRAPPERS and source.sign(opened - 2) in (".", "->"):
            return read(start, opened - 2)
        if opened < end and all(source.is_name(i) or source.sign(i) in ("::", ".", "->") for i in range(start, opened)):
            return self.called(source, opened, deep, depth + 1)
        return [(HOLE,)]

    def called(self, source, opened, deep, depth):
        name, parts = source.sign(opened - 1), source.parts(opened)
        if name in CONVERTERS and len(parts) < 2:
            return [()] if not parts else self.texts(source, *parts[0], deep, depth)
        if name == "format" and parts:
            arguments = [self.texts(source, *part, deep, depth) for part in parts[1:]]
            return [text for pattern in self.texts(source, *parts[0], deep, depth) for text in formatted(pattern, arguments)]
        found = [f for f in self.functions[name] if deep and name != "to_string" and (source, opened) in self.calls_of(f)]
        texts = []
        for function in found if len(found) == 1 else []:
            inside = function.source
            for i in inside.where["return"]:
                if function.body[0] < i < function.body[1]:
                    for text in self.texts(inside, i + 1, inside.find((";",), i, function.body[1]), deep, depth + 1):
                        texts += self.with_arguments(text, function, source, opened, deep, depth)
        return list(dict.fromkeys(text if letters(text) else (HOLE,) for text in texts)) or [(HOLE,)]

    def named(self, source, index, deep, depth):
        name = source.sign(index)
        for function in source.functions_around(index):
            assigned = self.assigned(source, index, name, function.body[0], deep, depth)
            if name in function.parameters:
                assigned.insert(0, (Parameter(function, function.parameters.index(name)),))
            if assigned:
                return assigned
        assigned = self.assigned(source, index, name, -1, deep, depth)
        for other, i in [] if assigned else self.constants.get(name, []):
            assigned += self.assigned(other, i + 1, name, i - 1, deep, depth)
        return assigned[:CHOICES_MAX] or [(HOLE,)]

    def assigned(self, source, index, name, since, deep, depth):
        """What stands in a variable where it is used."""
        texts, grows = [], False
        for i in source.where[name]:
            block = source.block_around(i)
            if not since < i < index or not block[1] > index and source.sign(i + 1) not in ("=", "+="):
                continue
            before, behind = source.sign(i - 1), source.sign(i + 1)
            grows |= behind == "+="
            if behind in ("(", "{") and before in ("string", "string_view", "auto"):
                texts += self.texts(source, i + 2, source.partner[i + 1], deep, depth)
            elif behind == "=" and before not in (".", "->"):
                end = source.find((";", ")", "}", ","), i + 2, len(source.tokens))
                if end > index and index > i + 1:
                    continue
                texts += self.texts(source, i + 2, end, deep, depth)
        texts = list(dict.fromkeys(texts))
        return texts + [joined(text + (HOLE,)) for text in texts if grows and text[-1:] != (HOLE,)]

    # Where texts are given
    # ---------------------

    def calls_of(self, function):
        """Where it is called: lambdas where they are known, others in their file, those of headers everywhere."""
        for source, opened in self.calls[function.name]:
            if not function.takes(len(source.parts(opened))):
                continue
            lambdas = [other for other in self.functions[function.name]
                       if other.scope and other.source is source and other.scope[0] < opened < other.scope[1]]
            if function.scope or lambdas:
                if function in lambdas:
                    yield source, opened
                continue
            named, of_class = source.owner_before(opened), function.owner[:1].isupper()
            of_object = source.sign(opened - 2) in (".", "->")
            if named == "::" or named[:1].isupper() and named != function.owner or of_object and not of_class:
                continue
            known = self.all_includes(source) if of_class else source.includes
            declaring = {header for header in function.source.includes if function.name in self.headers[header]}
            if source is function.source or declaring & known:
                yield source, opened

    @functools.cache
    def all_includes(self, source):
        """What a class may inherit from, and an object be of: all that is included, however deep."""
        found, waiting = set(), [*source.includes]
        while waiting:
            name = waiting.pop()
            if name not in found and (name in self.includes or name == source.name):
                found.add(name)
                waiting += self.includes[name]
        return found

    def read(self, source, start, end):
        texts = self.texts(source, start, end)
        return texts if any(map(letters, texts)) else self.texts(source, start, end, deep=True)

    def with_arguments(self, text, function, source, opened, deep=False, depth=0):
        parts = source.parts(opened)

        def choices(part):
            if not isinstance(part, Parameter) or part.function is not function:
                return [(part,)]
            return self.texts(source, *parts[part.index], deep, depth) if part.index < len(parts) else [(HOLE,)]

        texts = combined([choices(part) for part in text])
        is_known = deep or any(map(letters, texts))
        return texts if is_known else self.with_arguments(text, function, source, opened, True, depth)

    def given(self, source):
        """(index, texts) of every text that a file gives itself."""
        for i in range(len(source.tokens)):
            sign = source.sign(i)
            if sign in ("(", "{") and i in source.partner and i not in source.heads:
                texts = self.given_in_bracket(source, i, source.sign(i - 1), source.parts(i))
                if texts:
                    yield i, texts
            elif sign in ("=", "+="):
                end = source.find((";", ")", "}", ","), i + 1, len(source.tokens))
                is_member = source.sign(i - 1) == "text" and source.sign(i - 2) == "."
                is_json = source.sign(i - 1) == "]" and source.tokens[i - 2] in [("text", name) for name in ERROR_MEMBERS]
                if is_member or is_json or ERROR_VARIABLE.fullmatch(source.sign(i - 1)):
                    yield i, [joined((HOLE,) * (sign == "+=") + text) for text in self.read(source, i + 1, end)]

    def given_in_bracket(self, source, opened, callee, parts):
        def read(part):
            return self.read(source, *part)

        if not parts:
            return []
        begin = opened - 1
        while source.is_name(begin) and source.sign(begin - 1) == "::":
            begin -= 2
        if len(parts) >= 2 and self.is_kind(source, callee, *parts[0]):
            return read(parts[1])
        if callee == "fail_errno":
            return [joined(text + (": ", HOLE)) for text in read(parts[0])]
        if callee in HANDED_ON or source.sign(begin - 1) == "throw" or callee == "static_assert" and len(parts) > 1:
            return read(parts[-1])
        if callee == "set_content" or callee in ("warning", "error", "fail") and source.sign(opened - 2) in (".", "->"):
            return read(parts[0])
        if callee == "fprintf" and source.sign(parts[0][0]) == "stderr":
            arguments = [read(part) for part in parts[2:]]
            return [text for pattern in read(parts[1]) for text in formatted(pattern, arguments)]
        if source.sign(opened) == "{" and len(parts) == 2 and source.tokens[opened + 1] in [("text", name) for name in ERROR_MEMBERS]:
            return read(parts[1])
        return []

    def is_kind(self, source, callee, start, end):
        names = [source.sign(i) for i in range(start, end)]
        return "ErrorKind" in names or names[-1:] == ["kind"] and (len(names) > 1 or callee in ("fail", "Error"))

    def all(self):
        """{text: (file, line)}, of which nothing is left that a function is called with."""
        found, seen = {}, set()
        waiting = [(text, source, i, 0) for source in self.sources for i, texts in self.given(source) for text in texts]
        while waiting:
            text, source, index, depth = waiting.pop(0)
            if (text, source, index) in seen:
                continue
            seen.add((text, source, index))
            functions = {part.function for part in text if isinstance(part, Parameter)}
            if not functions:
                found.setdefault(text, (source.name, source.lines[index]))
                continue
            function = max(functions, key=lambda f: (f.source.name, f.body[0]))
            plain = joined(HOLE if isinstance(part, Parameter) and part.function is function else part for part in text)
            calls = list(self.calls_of(function)) if depth < DEPTH_MAX else []
            for other, opened in calls:
                for one in self.with_arguments(text, function, other, opened):
                    waiting.append((one, source, index, depth + 1) if one == plain else (one, other, opened, depth + 1))
            if not calls:
                waiting.append((plain, source, index, depth))
        return found
