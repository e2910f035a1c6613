"""Records of the differences in a field of a case: in how many entries, which, and how."""

from dataclasses import dataclass, replace

from mor_ref.operations.fields import bits_of, signed_word
from mor_ref.verify.comparing.cells import added
from mor_ref.verify.comparing.distance import distance, shown
from mor_ref.verify.comparing.inputs_of_entry import Index, Input
from mor_ref.verify.comparing.nibbles import byte_shown, distance_of_nibbles

MOST_ENTRIES = 8  # of a field


@dataclass(frozen=True)
class Entry:
    """One entry of a field that differs: where, the bits, and the inputs that it is of."""

    index: Index
    expected: int
    actual: int
    inputs: tuple[Input, ...]


@dataclass(frozen=True)
class KindOfEntries:
    """A way in which entries of a field differ, how many do, and one of them."""

    words: str
    count: int
    entry: Entry


@dataclass(frozen=True)
class Difference:
    """A field of a case that differs: in how many of its entries, and the first of them.

    `field` is its name in the answer, and `suite_field` its name in the suite.

    `problem` says why nothing could be compared, and is None where it could; if it does, `count`
    is 0. `picture` counts the entries that differ in each of the cells that the field is divided
    into. `nans` is how many of those that differ are a NaN where a NaN is expected: other bits, and
    the same meaning. `kinds` say how they differ, the most frequent first. `nibbles` is the format
    of the two codes in each entry, if it is a byte that has two. `padding` counts the entries of
    the padding of a view that differ as well; all else is of the plain array. Integers that
    `are_signed` are in two's complement.
    """

    case: str
    field: str
    suite_field: str
    format: str
    count: int
    of: int
    shape: tuple[int, ...]
    entries: tuple[Entry, ...] = ()
    picture: tuple[tuple[int, ...], ...] = ()
    problem: str | None = None
    nans: int = 0
    kinds: tuple[KindOfEntries, ...] = ()
    nibbles: str | None = None
    padding: int = 0
    are_signed: bool = False

    def __add__(self, more: "Difference") -> "Difference":
        """Return the difference of two strips of a field."""
        if self.problem is not None:
            return self
        kinds = {kind.words: kind for kind in self.kinds}
        for kind in more.kinds:
            one = kinds.get(kind.words, replace(kind, count=0))
            kinds[kind.words] = replace(one, count=one.count + kind.count)
        return replace(
            self,
            count=self.count + more.count,
            entries=(self.entries + more.entries)[:MOST_ENTRIES],
            picture=added(self.picture, more.picture),
            nans=self.nans + more.nans,
            kinds=tuple(sorted(kinds.values(), key=lambda kind: -kind.count)),
        )

    def __str__(self) -> str:
        where = f"case {self.case}, field {self.field}"
        if self.problem:
            return f"{where}: {self.problem}"
        first = self.entries[0]
        counts = f"{self.count} of {self.of} differ{self.of_padding}"
        return f"{where}: {counts}, the first at {self.shown(first)}"

    @property
    def of_padding(self) -> str:
        """How many entries of padding differ as well, in words; nothing if none does."""
        return f" (and {self.padding:,} of its padding)" if self.padding else ""

    def shown(self, entry: Entry) -> str:
        """Describe an entry: its place, the bits, their distance, and the inputs."""
        place = ", ".join(map(str, entry.index))
        apart = self.apart(entry)
        inputs = "".join(f"; {what} is {shown(bits, fmt)}" for what, bits, fmt in entry.inputs)
        return (
            f"[{place}]: {self.number(entry.actual)} where {self.number(entry.expected)} is "
            f"expected{f', {apart}' if apart else ''}{inputs}"
        )

    def number(self, bits: int) -> str:
        """Return the bits of an entry in hexadecimal, and the number or the codes that it has."""
        if self.nibbles is None:
            return shown(self._integer(bits), self.format)
        return byte_shown(bits, self.nibbles)

    def apart(self, entry: Entry) -> str:
        """Return the distance of the bits from the expected ones; '' if one is a NaN."""
        if self.nibbles is None:
            found, right = self._integer(entry.actual), self._integer(entry.expected)
            return distance(found, right, self.format)
        return distance_of_nibbles(entry.actual, entry.expected, self.nibbles)

    def _integer(self, bits: int) -> int:
        return signed_word(bits, bits_of(self.format)) if self.are_signed else bits
