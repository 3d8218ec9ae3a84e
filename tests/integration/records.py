"""What a node's core was told, in order: reads decisions-NODE.bin of a run directory (scheduler/record/record_file.h), and
compares what those that are left were told of a node that was lost.

`paceline replay --decisions --json` prints the same, without saying which records have their end.
"""
import dataclasses
import os

GIVEN = 0  # The group of `exchanged` under which a contribution comes.
MAGIC = b"paceline decisions 1\n"

# What stands behind the byte of the kind, in order (scheduler/record/decision_codec.cc). Versions and times are differences.
FIELDS = {
    1: ("joined", "rank"), 2: ("arrived", "rank version at took"), 3: ("activated", "node version at"), 4: ("counted", "version at"),
    5: ("partial", "node version group at"), 6: ("sealed", "version group at took stops contributions"), 7: ("executed", "version group at"),
    8: ("merged", "rank at"), 9: ("gone", "rank at"), 10: ("looked", "at"), 11: ("ends", "version"), 12: ("gone_elsewhere", "rank at"),
    13: ("exchanged", "node rank group"), 14: ("averaged", "rank"), 15: ("stepped", "rank"), 16: ("batched", "rank version contributions"),
    17: ("passed_over", "rank version"), 18: ("frozen", ""), 19: ("alive", "rank at"), 20: ("ends_apart", "version contributions"),
    21: ("node_gone", "node at"), 22: ("remade", "version contributions"),
}


@dataclasses.dataclass(frozen=True)
class Decision:
    """`at` in ns of the machine's steady clock, as time.monotonic_ns() has it; contributions: (rank, iteration or None, batches)."""
    kind: str
    node: int = -1
    rank: int = -1
    version: int = -1
    group: int = 0
    at: int = 0
    took: int = 0
    stops: int = 0
    contributions: tuple = ()


class Numbers:
    """Zigzag LEB128."""

    def __init__(self, text):
        self.text, self.place = text, 0

    def byte(self):
        self.place += 1
        return self.text[self.place - 1]

    def number(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)

    def contributions(self, version):
        found, rank = [], -1
        for _ in range(self.number()):
            rank += 1 + self.number()
            state = self.number()  # 0: nothing, 1: of this version, 2: of another.
            late = self.number() if state == 2 else 0
            found.append((rank, version - late, self.number()) if state else (rank, None, 0))
        return tuple(found)


def checksum(text):
    value = 2166136261
    for byte in text:
        value = ((value ^ byte) * 16777619) & 0xffffffff
    return value


def blocks(text):
    """What was written whole."""
    place = len(MAGIC)
    while len(text) - place >= 8:
        size = int.from_bytes(text[place:place + 4], "little")
        block = text[place + 8:place + 8 + size]
        if len(block) < size:
            return
        if checksum(block) != int.from_bytes(text[place + 4:place + 8], "little"):
            raise ValueError("the record is damaged")
        yield block
        place += 8 + size


def read(directory, node):
    """(decisions, whether the record has its end): of a node that was killed there is what it had written by then."""
    with open(os.path.join(directory, f"decisions-{node}.bin"), "rb") as file:
        text = file.read()
    if not text.startswith(MAGIC):
        raise ValueError(f"decisions-{node}.bin is no record")
    decisions, ended = [], False
    context = {"version": -1, "at": 0}  # What the next differences are from.
    for block in blocks(text):
        ended = block[:1] == b"e"
        if ended and int.from_bytes(block[1:], "little") != len(decisions):
            raise ValueError(f"decisions-{node}.bin: {len(decisions)} decisions are read, another number was written")
        if block[:1] != b"d":
            continue
        numbers = Numbers(block[1:])
        while numbers.place < len(numbers.text):
            kind, fields = FIELDS[numbers.byte()]
            values = {}
            for field in fields.split():
                if field == "contributions":
                    values[field] = numbers.contributions(values["version"])
                elif field in context:
                    values[field] = context[field] = context[field] + numbers.number()
                else:
                    values[field] = numbers.number()
            decisions.append(Decision(kind, **values))
    return decisions, ended


def counted(decisions):
    """(version, group) of each averaging that was executed -> the nodes whose sums are in it, but its own's."""
    told, found = {}, {}
    for decision in decisions:
        where = decision.version, decision.group
        if decision.kind == "partial":
            told.setdefault(where, set()).add(decision.node)
        if decision.kind == "executed":
            found[where] = frozenset(told.pop(where, ()))
    return found


def position_of_loss(decisions, lost):
    return next((i for i, d in enumerate(decisions) if d.kind == "node_gone" and d.node == lost), len(decisions))


def of_lost(decisions, lost, kind):
    return [d for d in decisions[:position_of_loss(decisions, lost)] if d.kind == kind and d.node == lost]


def disagreements(told, lost, alike=False):
    """What is wrong with the records (node -> decisions) of those that are left, in words."""
    wrong = []
    for node, decisions in told.items():
        where = position_of_loss(decisions, lost)
        if where == len(decisions):
            wrong.append(f"node {node} was not told that node {lost} is lost")
        wrong += [f"node {node} takes something of node {lost} that it goes on without: {d}"
                  for d in decisions[where:] if d.node == lost and d.kind in ("partial", "exchanged")]
    in_averagings = {node: counted(decisions) for node, decisions in told.items()}
    for where in sorted(set().union(*in_averagings.values())):
        used = {node: found[where] | {node} for node, found in in_averagings.items() if where in found}
        if len(set(used.values())) > 1:
            wrong.append(f"version {where[0]}, group {where[1]}: not of the same nodes: "
                         + ", ".join(f"node {node} has those of {sorted(nodes)}" for node, nodes in used.items()))
        wrong += [f"version {where[0]}, group {where[1]}: node {node} has not executed what it gave to"
                  for node in sorted(frozenset().union(*used.values()) & told.keys() - used.keys())]
    if not any(in_averagings.values()):  # Of strategies without rounds.
        batches = {node: [d.version for d in of_lost(decisions, lost, "partial")] for node, decisions in told.items()}
        if len({frozenset(versions) for versions in batches.values()}) > 1:
            wrong.append(f"not the same batches of node {lost} are known to be over: {batches}")
    given = {node: sum(d.group == GIVEN for d in of_lost(decisions, lost, "exchanged")) for node, decisions in told.items()}
    if alike and len(set(given.values())) > 1:
        wrong.append(f"not as many contributions of node {lost} are known: {given}")
    return wrong
