"""Selections as representations: two quantizers, and the numbers that each of them has."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mor_ref.argument_checks import check_name
from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.formats import formats
from mor_ref.definitions.scales import Scaling, ScalingBlocks
from mor_ref.former_names import FormerAttribute
from mor_ref.representations.optional_members import StoredBits
from mor_ref.schemes.selection.definition import KNOWN_SELECTIONS, Selection, known_selection

if TYPE_CHECKING:
    from mor_ref.api.dequantization import OutcomeOfValues
    from mor_ref.arrays import Bits, Numbers
    from mor_ref.cuda import launching, measuring
    from mor_ref.exact.blocks import Rows
    from mor_ref.exact.quantization import Element


@dataclass(frozen=True)
class SelectedNumbers:
    """A representation that keeps more bits for some numbers, with its usual limit (SEL-005).

    >>> SelectedNumbers("pb_llm").rules.by, SelectedNumbers("llm_int8").rules.limit
    ('rank', 6.0)
    """

    selection: str
    name: str = ""

    scheme = FormerAttribute("selection")

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or self.rules.name)
        check_name(self.name)

    @property
    def rules(self) -> Selection:
        """The selection and its limit."""
        return known_selection(self.selection)

    @property
    def bits(self) -> int:
        """The bits of a code that is not selected."""
        return self.rules.bits

    def stored_bits_of(self, numbers: "Numbers") -> StoredBits:
        """Return the bits of all codes and marks, and of all scales (SEL-005)."""
        from mor_ref.schemes.selection.functions import count_selected

        rules, own = self.rules, 8 * numbers.dtype.itemsize
        selected, rows, columns = count_selected(numbers, rules)
        high = rules.high_bits or min(own, formats["f32"].bits)
        count = rows * columns
        marks = count if rules.by == "rank" else columns
        codes = rules.bits * (count - selected) + high * selected
        return StoredBits(codes + marks, rules.row_bits * rows + rules.tensor_bits)

    def rows_together(self, shape: tuple[int, ...]) -> None:
        """Return None: all rows decide about the selection."""
        del shape

    def exact(self, x: "Rows", scaling: Scaling, parts: Partition) -> "list[list[Element]]":
        """Quantize with the exact model; a number has its y, and no code of its own."""
        from mor_ref.exact.quantization import Element
        from mor_ref.schemes.selection.exact import llm_int8, pb_llm

        del scaling
        if not (parts.rows and parts.columns):
            return [[] for _ in x]
        rules = self.rules
        by_rank = rules.by == "rank"
        selected = pb_llm(x, rules.limit, "uint8") if by_rank else llm_int8(x, rules.limit)
        pairs = (zip(*row, strict=True) for row in zip(x, selected, strict=True))
        return [[Element(number, 0, y) for number, y in row] for row in pairs]

    def engine(
        self, numbers: "Numbers", blocks: ScalingBlocks, out: "Bits | None", threads: int | None
    ) -> "OutcomeOfValues":
        """Quantize with the engine."""
        from mor_ref.api.dequantization import values
        from mor_ref.schemes.selection.functions import values_of

        return values(numbers, values_of(numbers, self.rules, threads), blocks, out, threads)

    def cuda(
        self, device: "launching.Device", x: "launching.Bits", blocks: ScalingBlocks
    ) -> "measuring.ErrorRule":
        """Return the rule of kernels, with y."""
        from mor_ref.cuda.measuring import by_value
        from mor_ref.schemes.selection.cuda import llm_int8, pb_llm

        del blocks
        quantize = pb_llm if self.rules.by == "rank" else llm_int8
        return by_value(device, quantize(device, x, self.rules.limit))


NAMES = KNOWN_SELECTIONS
USUAL = ("llm_int8", "pb_llm")  # recipes to compare with others


def named(name: str) -> SelectedNumbers | None:
    """Return the representation of a name, if it is a selection."""
    return SelectedNumbers(name) if name in NAMES else None
