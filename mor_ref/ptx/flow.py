"""The sums that each product may reach without a rounding on the way, in any order.

A register has every value that is written to it anywhere. So loops, branches, registers that are
written twice, and functions need no order.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from mor_ref.ptx.constants import number_of
from mor_ref.ptx.contraction import (
    SCALES,
    Flow,
    Key,
    can_be_one,
    is_product,
    is_scaling,
    is_sum,
    lanes_of,
    product_of,
)
from mor_ref.ptx.names import Names, names_of
from mor_ref.ptx.program import Function, Instruction, Scope, Variable

# A result of these is not the bits of an operand: it is rounded, a predicate, or from elsewhere.
_NEW = re.compile(
    r"(?:add|sub|mul|fma|mad|div|rcp|sqrt|rsqrt|ex2|lg2|sin|cos|tanh)\.(?:\w+\.)*b?f\d+(?:x2)?(?:\.\w+)?"
    r"|(?:setp|set|testp|isspacep|popc|clz|bfind|atom|red|mma|wgmma|ldmatrix|vote|match|cvta)\..*"
    r"|cvt\.(?:\w+\.)*(?:b?f\d+|tf32|ue8m0|e\dm\d)(?:x\d)?\.\w+|cvt\.(?:\w+\.)*\w+\.(?:b?f\d+|e\dm\d)(?:x\d)?"
    r"|(?:ld|ldu|st)\.(?:\w+(?:::\w+)?\.)*(?:global|shared|const)(?:::\w+)?\..*"
)
_SAME = re.compile(r"cvt\.(?:(?!r[nzmp]i\b)\w+\.)*(b?f\d+)\.\1")
# 1 and -1, as integers and as numbers of each type; one is multiplied by them without a rounding.
_ONES = {1, (1 << 64) - 1, 0x3F800000, 0xBF800000, 0x3FF << 52, 0xBFF << 52}
_ONES |= {each * pair for each in (0x3C00, 0xBC00, 0x3F80, 0xBF80) for pair in (1, 0x10001)}
_KEEPS_ONE = re.compile(r"(?:mov|cvt|selp|slct|st)\..*")
_WORD = re.compile(r"[\w$%]+")
_LOCAL = "local memory"


def flow_of(functions: Sequence[Function]) -> Flow:
    """Return the products and the sums in a kernel and in the functions that it calls."""
    statements = [each for one in functions for each in one.statements]
    opcodes = {each.opcode for each in statements if isinstance(each, Instruction)}
    found = Flow()
    if not any(map(is_product, opcodes)) or not any(
        is_sum(each) or is_scaling(each) for each in opcodes
    ):
        return found
    graph = _Graph({function.name: function for function in functions})
    for function in functions:
        graph.add(function)
    graph.join_ones()
    graph.add_scalings()
    for key, targets in graph.products.items():
        nodes = _reached(targets, [graph.edges])
        for total, operands in graph.sums.items():
            sides = [k for k, those in enumerate(operands) if not nodes.isdisjoint(those)]
            if not sides or not can_be_one(total[1], product_of(key[1], 0)):
                continue
            if key not in found.products:
                found.products[key] = product_of(key[1], found.count)
                found.count += lanes_of(found.products[key].type)
            for k in sides:
                found.sums.setdefault(total, ([], []))[k].append(found.products[key])
    return found


class _Graph:
    """Where values go: from registers, parameters and local memory to others."""

    def __init__(self, functions: dict[str, Function]) -> None:
        self.functions = functions
        self.edges: dict[str, set[str]] = defaultdict(set)
        self.products: dict[Key, set[str]] = {}
        self.sums: dict[Key, list[set[str]]] = {}  # of each operand
        self.ones: set[str] = set()  # registers that 1 is written to
        self.scales: set[str] = set()  # and those of other powers of two
        self.scaled: dict[Key, list[set[str]]] = {}  # operands of scalings
        self.conversions: dict[str, set[str]] = defaultdict(set)  # which keep 1
        self.scalings: list[tuple[set[str], set[str]]] = []  # results and operands of `mul`

    def join_ones(self) -> None:
        """Let a product by a register that may be 1 have the bits of its other operand."""
        waiting = self.scalings
        while waiting:
            ones = _reached(self.ones, [self.edges, self.conversions])
            now = [each for each in waiting if not ones.isdisjoint(each[1])]
            for targets, operands in now:
                for source in operands:
                    self.edges[source] |= targets
            waiting = [each for each in waiting if each not in now] if now else []

    def add_scalings(self) -> None:
        """Take a product by a constant power of two as a sum that its operand may come to."""
        scales = _reached(self.scales, [self.edges, self.conversions])
        for key, operands in self.scaled.items():
            texts = zip(operands, key[1].operands[1:], strict=True)
            is_scale = [
                _number(text) in SCALES or not scales.isdisjoint(each) for each, text in texts
            ]
            if any(is_scale):
                self.sums[key] = [
                    each if is_scale[1 - k] else set() for k, each in enumerate(operands)
                ]

    def add(self, function: Function) -> None:
        """Add the statements of a function."""
        names = names_of(function, {}, "")
        memory = {each.name: f"{function.name}: {each.name}" for each in _formal(function)}
        for statement in function.statements:
            if isinstance(statement, Scope):
                names.enter(statement)
            elif isinstance(statement, Variable) and statement.space == "reg":
                names.declare(statement)
            elif isinstance(statement, Variable) and statement.space == "param":
                memory[statement.name] = f"{function.name}: {statement.name}"
            elif isinstance(statement, Instruction):
                self._take((function.name, statement), names, memory)

    def _take(self, key: Key, names: Names, memory: dict[str, str]) -> None:
        of = key[1]

        def nodes(operands: Sequence[str]) -> set[str]:
            return set(_nodes(key[0], operands, names, memory))

        head = of.opcode.split(".")[0]
        if head == "call":
            self._call(key, names, memory)
            return
        targets, sources = nodes(of.operands[:1]), nodes(of.operands[1:])
        if is_product(of.opcode):
            self.products[key] = targets
        if is_sum(of.opcode):
            self.sums[key] = [nodes([each]) for each in of.operands[1:]]
        elif is_scaling(of.opcode) and len(of.operands) == 3:
            self.scaled[key] = [nodes([each]) for each in of.operands[1:]]
        if (
            head in ("ld", "ldu", "st")
            and not _NEW.fullmatch(of.opcode)
            and ".param" not in of.opcode
        ):
            sources, targets = (sources, {_LOCAL}) if head == "st" else ({_LOCAL}, targets)
        self._take_one(of, targets, sources)
        if _is_new(of):
            return
        for source in sources:
            self.edges[source] |= targets

    def _take_one(self, of: Instruction, targets: set[str], sources: set[str]) -> None:
        """Note the places of 1, and the products that it may be in."""
        if of.opcode.startswith("mul."):
            self.scalings.append((targets, sources))
        if _KEEPS_ONE.fullmatch(of.opcode):
            self.ones |= targets if any(map(_is_one, of.operands[1:])) else set()
            if any(_number(each) in SCALES for each in of.operands[1:]):
                self.scales |= targets
            for source in sources:
                self.conversions[source] |= targets

    def _call(self, key: Key, names: Names, memory: dict[str, str]) -> None:
        """Join the operands of a call with the parameters and results of its function."""
        operands = key[1].operands
        groups = [word[1:-1].split(",") for word in operands if word.startswith("(")]
        name = next((word for word in operands if not word.startswith("(")), "")
        function = self.functions.get(name)
        given = [word for group in groups for word in group if word.strip()]
        for word, formal in zip(given, _formal(function) if function else (), strict=False):
            other = f"{name}: {formal.name}"
            for own in _nodes(key[0], [word], names, memory):
                self.edges[own].add(other)
                self.edges[other].add(own)


def _reached(nodes: set[str], edges: Sequence[dict[str, set[str]]]) -> set[str]:
    """Return all that a value in these may come to."""
    found, waiting = set(nodes), list(nodes)
    while waiting:
        node = waiting.pop()
        fresh = set().union(*(those.get(node, set()) for those in edges)) - found
        found |= fresh
        waiting += fresh
    return found


def _is_new(of: Instruction) -> bool:
    """Return whether a result is other bits than those of an operand."""
    if not _NEW.fullmatch(of.opcode) or _SAME.fullmatch(of.opcode):
        return False
    return not (of.opcode.startswith("mul.") and any(map(_is_one, of.operands[1:])))


def _is_one(operand: str) -> bool:
    return number_of(operand, "b64") in _ONES


def _number(operand: str) -> int | None:
    """Return a constant as bits of binary32."""
    return number_of(operand, "b32")


def _formal(function: Function) -> tuple[Variable, ...]:
    return (*function.results, *function.parameters)


def _nodes(
    function: str, operands: Sequence[str], names: Names, memory: dict[str, str]
) -> Iterator[str]:
    """Yield the registers and the parameters that operands name."""
    for operand in operands:
        for word in _WORD.findall(operand):
            register = names.register(word)
            if register is not None:
                yield f"{function}: {register.name}"
            elif word in memory:
                yield memory[word]
