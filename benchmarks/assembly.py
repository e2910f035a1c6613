"""Reading the machine code of a kernel: its innermost loops, and how wide their vectors are."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

_LABEL = re.compile(r"^([.\w$]+):")
_JUMP = re.compile(r"^j\w+\s+(\S+)$")
# What works on a single number: not broadcasts and packing, whose names end so, too.
_ON_ONE = re.compile(
    r"^v?(add|sub|mul|div|min|max|sqrt|mov|u?comi|cmp\w*|cvt\w+|round|rndscale|fn?m(add|sub)\d+)s[sd]$"
)
_REGISTER = re.compile(r"%([xyz])mm\d")
_BITS = {"x": 128, "y": 256, "z": 512}


class Loop(NamedTuple):
    """An innermost loop: its instructions by the width of their vectors, 0 for those without.

    A floating-point instruction on a single number counts as one of 32 bits.
    """

    widths: dict[int, int]
    divisions: int

    @property
    def instructions(self) -> int:
        """All of them."""
        return sum(self.widths.values())

    @property
    def widest(self) -> int:
        """The width of its widest vectors."""
        return max(self.widths)

    @property
    def share_of_widest(self) -> float:
        """The share of the instructions on vectors or numbers that are of the widest vectors."""
        on_numbers = sum(count for width, count in self.widths.items() if width)
        return self.widths[self.widest] / on_numbers if on_numbers else 0.0


def innermost_loops(assembly: str) -> Iterator[Loop]:
    """Yield the loops without an inner loop: from a label to a jump back to it."""
    labels: dict[str, int] = {}
    instructions: list[str] = []
    for line in assembly.splitlines():
        text = line.split("#")[0].strip()
        if found := _LABEL.match(text):
            labels[found[1]] = len(instructions)
        elif text and not text.startswith("."):
            instructions.append(text)
    spans = [
        (labels[jump[1]], at)
        for at, text in enumerate(instructions)
        if (jump := _JUMP.match(text)) and labels.get(jump[1], at + 1) <= at
    ]
    for first, last in spans:
        if not any(
            (first, last) != other and first <= other[0] and other[1] <= last for other in spans
        ):
            yield loop_of(instructions[first : last + 1])


def loop_of(instructions: list[str]) -> Loop:
    """Return the counts of the instructions of a loop."""
    widths = Counter(width_of(text) for text in instructions)
    divisions = sum("div" in text.split()[0] for text in instructions)
    return Loop(dict(widths), divisions)


def width_of(instruction: str) -> int:
    """Return the width of the vectors of an instruction; 32 for a single number, 0 for none."""
    registers = _REGISTER.findall(instruction)
    if not registers:
        return 0
    is_single = _ON_ONE.match(instruction.split(maxsplit=1)[0])
    return 32 if is_single else max(_BITS[register] for register in registers)


def loop_of_the_work(assembly: str) -> Loop | None:
    """Return the loop with the most work on its widest vectors, or with the most instructions."""
    return max(
        innermost_loops(assembly),
        key=lambda loop: (loop.widths[loop.widest] * loop.widest, loop.instructions),
        default=None,
    )
