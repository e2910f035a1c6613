"""Registers that a way through a function reads before anything is written to them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mor_ref.ptx.program import Instruction

_ENDS = ("bra", "brx", "ret", "exit", "trap")  # an instruction that no other follows


@dataclass
class Step:
    """A statement, with the registers that it reads and writes, and where the next ones are.

    Names are those in C++. A write under a guard counts as one: its reads are under the same guard.
    """

    of: Instruction | None = None
    label: str = ""
    reads: dict[str, str] = field(default_factory=dict)  # the names in PTX by those in C++
    writes: set[str] = field(default_factory=set)
    labels: list[str] = field(default_factory=list)  # that it may go to

    @property
    def goes_on(self) -> bool:
        """Whether the next statement may follow."""
        return self.of is None or bool(self.of.guard) or self.of.opcode.split(".")[0] not in _ENDS


def read_early(steps: Sequence[Step]) -> dict[str, tuple[str, Instruction]]:
    """Return the registers that some way reads before a write: the name in PTX, and where."""
    names = {name for step in steps for name in (*step.reads, *step.writes)}
    bits = {name: 1 << k for k, name in enumerate(sorted(names))}
    written = _written_before(steps, [sum(bits[name] for name in step.writes) for step in steps])
    found: dict[str, tuple[str, Instruction]] = {}
    for step, before in zip(steps, written, strict=True):
        for name, text in step.reads.items():
            if step.of is not None and before is not None and not before & bits[name]:
                found.setdefault(name, (text, step.of))
    return found


def _written_before(steps: Sequence[Step], writes: Sequence[int]) -> list[int | None]:
    """Return what every way to a step has written, as bits; None where no way leads."""
    places = {step.label: place for place, step in enumerate(steps) if step.label}
    found: list[int | None] = [None] * len(steps)
    waiting = [(0, 0)] if steps else []
    while waiting:
        place, written = waiting.pop()
        before = found[place]
        common = written if before is None else before & written
        if common != before:
            found[place] = common
            waiting += [(next_, common | writes[place]) for next_ in _after(steps, place, places)]
    return found


def _after(steps: Sequence[Step], place: int, places: dict[str, int]) -> Iterator[int]:
    """Yield the places that a way may go on to."""
    yield from (places[label] for label in steps[place].labels)
    if steps[place].goes_on and place + 1 < len(steps):
        yield place + 1
