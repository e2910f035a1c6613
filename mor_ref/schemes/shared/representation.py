"""Blocks with a shared exponent as representations."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mor_ref.argument_checks import check_name
from mor_ref.definitions.blocks import Cut, Partition, partition
from mor_ref.definitions.formats import formats
from mor_ref.definitions.scales import Scaling, ScalingBlocks
from mor_ref.former_names import FormerAttribute, with_former_field
from mor_ref.representations.optional_members import Asked, StoredBits, Words, with_scales
from mor_ref.schemes.shared.definition import (
    BLOCK,
    PAIR,
    SHARED_KINDS,
    SharedKind,
    shared_kind,
    shared_profile,
)

if TYPE_CHECKING:
    from mor_ref.api.dequantization import OutcomeOfValues
    from mor_ref.arrays import Bits, Numbers
    from mor_ref.cuda import launching, measuring
    from mor_ref.exact.blocks import Rows
    from mor_ref.exact.quantization import Element

_USUAL_PROFILE = "quark_torch"


@with_former_field("kind", "of")
@dataclass(frozen=True)
class SharedBlocks:
    """Blocks that share an exponent, along the rows of the tensor (MOR-007).

    >>> SharedBlocks("mx9").name, SharedBlocks("bfp16", "quark_onnx").name
    ('mx9', 'bfp16_quark_onnx')
    """

    of: str
    profile: str = _USUAL_PROFILE
    name: str = ""

    kind = FormerAttribute("of")

    def __post_init__(self) -> None:
        shared_profile(self.profile)
        usual = self.rules.name if self.profile == _USUAL_PROFILE else f"{self.of}_{self.profile}"
        object.__setattr__(self, "name", self.name or usual)
        check_name(self.name)

    @property
    def rules(self) -> SharedKind:
        """The rules of these blocks."""
        return shared_kind(self.of)

    @property
    def bits(self) -> int:
        """The bits of a code."""
        return self.rules.code_bits

    def stored_bits(self, scaling: Scaling, parts: Partition) -> StoredBits:
        """Return the bits of all codes and of all scales (ERR-009)."""
        del scaling
        shape = parts.rows, parts.columns
        shifts = math.prod(partition(shape, (1, PAIR)).grid) if self.rules.shifts else 0
        blocks = math.prod(partition(shape, (1, BLOCK)).grid)
        return with_scales(self.bits, parts, formats["e8m0"].bits * blocks + shifts)

    def rows_together(self, shape: tuple[int, ...]) -> int:
        """Return how many rows share scales."""
        del shape
        return 1

    def asked(self, scaling: Scaling, block: Cut, group: Cut) -> Asked:
        """Return the operation `shared`."""
        del scaling, block, group
        return Asked("shared", {"kind": self.of, "profile": self.profile, "block": BLOCK})

    @property
    def words(self) -> Words:
        """The kind of recipe `shared`, and its fields."""
        return Words("shared", {"of": self.of}, {"profile": self.profile})

    def exact(self, x: "Rows", scaling: Scaling, parts: Partition) -> "list[list[Element]]":
        """Quantize with the exact model."""
        from mor_ref.exact.quantization import Element
        from mor_ref.schemes.shared.exact import shared

        del scaling, parts
        quantized = shared(x, self.rules, shared_profile(self.profile))
        return [
            [Element(number, e.code, e.y) for number, e in zip(row, elements, strict=True)]
            for row, elements in zip(x, quantized.elements, strict=True)
        ]

    def engine(
        self, numbers: "Numbers", blocks: ScalingBlocks, out: "Bits | None", threads: int | None
    ) -> "OutcomeOfValues":
        """Quantize with the engine."""
        from mor_ref.api.dequantization import values
        from mor_ref.schemes.shared.functions import shared

        quantized = shared(numbers, self.rules, shared_profile(self.profile), threads)
        return values(numbers, quantized.y, blocks, out, threads)

    def cuda(
        self, device: "launching.Device", x: "launching.Bits", blocks: ScalingBlocks
    ) -> "measuring.ErrorRule":
        """Return the rule of kernels, with y, as units may cut the blocks."""
        from mor_ref.cuda.measuring import by_value
        from mor_ref.schemes.shared.cuda import quantize_shared

        del blocks
        quantized = quantize_shared(device, x, self.rules, shared_profile(self.profile))
        return by_value(device, quantized.y)


NAMES = SHARED_KINDS
USUAL = tuple(
    name for name in SHARED_KINDS.specified if not SHARED_KINDS[name].carries
)  # recipes to compare with others


def named(name: str) -> SharedBlocks | None:
    """Return the representation of a name, if it is one of them."""
    return SharedBlocks(name) if name in NAMES else None
