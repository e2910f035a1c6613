"""Mixtures of formats as representations: each unit takes the candidate of the least error."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mor_ref.argument_checks import check_name
from mor_ref.definitions.blocks import Cut, Partition, as_cut, in_parameters, partition
from mor_ref.definitions.format import Format
from mor_ref.definitions.scales import Scaling, ScalingBlocks
from mor_ref.representations import as_representation
from mor_ref.representations.optional_members import (
    Asked,
    StoredBits,
    Words,
    stored_bits,
    with_scales,
)
from mor_ref.representations.representation import Representation
from mor_ref.representations.scaled import ScaledFormat
from mor_ref.schemes.mixed.definition import (
    FEWEST_BITS,
    MIXTURES,
    MOST_BITS,
    MOST_CANDIDATES,
    integer_format,
)

if TYPE_CHECKING:
    from mor_ref.api.dequantization import OutcomeOfValues
    from mor_ref.arrays import Bits, Numbers
    from mor_ref.cuda import launching, measuring
    from mor_ref.exact.blocks import Rows
    from mor_ref.exact.quantization import Element

Candidates = tuple[Representation, ...]


def candidates_from(
    given: Sequence[str | Format | Representation],
) -> Candidates:
    """Return the candidates; integers such as int8 are formats (MFQ-001)."""
    if isinstance(given, str) or not 1 <= len(given) <= MOST_CANDIDATES:
        raise ValueError(
            f"candidates is {given!r}; give a tuple of 1 to {MOST_CANDIDATES} of them, such as "
            "('int8', 'e4m3')"
        )
    candidates = tuple(_integers(candidate) or as_representation(candidate) for candidate in given)
    names = [candidate.name for candidate in candidates]
    if len(set(names)) < len(names):
        raise ValueError(f"candidates names {', '.join(names)}; give each only once")
    return candidates


def _integers(name: object) -> ScaledFormat | None:
    digits = re.fullmatch("int([0-9]+)", name) if isinstance(name, str) else None
    if digits is None:
        return None
    if not FEWEST_BITS <= int(digits[1]) <= MOST_BITS:
        raise ValueError(
            f"candidate is {name!r}; give int{FEWEST_BITS} to int{MOST_BITS}, or a record such as "
            "AffineBlocks('int16')"
        )
    return ScaledFormat(integer_format(int(digits[1])))


@dataclass(frozen=True)
class MixedFormats:
    """Candidates; each block takes the one of the least squared error (MFQ-006).

    `of` is the row of MIXTURES that has these candidates, if there is one.

    >>> from mor_ref.representations import as_representation
    >>> as_representation("int8_or_e4m3").bits
    8
    """

    candidates: Candidates
    block: Cut = "tensor"
    name: str = ""
    of: str = ""

    def __post_init__(self) -> None:
        block = as_cut("block", self.block)
        object.__setattr__(self, "block", block)
        words = ["_or_".join(candidate.name for candidate in self.candidates)]
        if block != "tensor":
            words.append(block if isinstance(block, str) else f"{block[0]}x{block[1]}")
        object.__setattr__(self, "name", self.name or "_".join(words))
        check_name(self.name)

    @property
    def bits(self) -> int:
        """The most bits that a code has."""
        return max(candidate.bits for candidate in self.candidates)

    def parts(self, shape: tuple[int, ...]) -> Partition:
        """Return the units of a tensor of that shape."""
        return partition(shape, self.block)

    def stored_bits(self, scaling: Scaling, parts: Partition) -> StoredBits | None:
        """Return the bits of all codes and of all scales (ERR-009); None if they are not known."""
        del scaling
        whole = partition((parts.rows, parts.columns), self.block)
        known = [stored_bits(candidate, "fp32", whole) for candidate in self.candidates]
        of_each = [bits.scales for bits in known if bits is not None]
        if len(of_each) < len(known):
            return None
        choice = (len(self.candidates) - 1).bit_length()
        return with_scales(self.bits, parts, max(of_each) + math.prod(whole.grid) * choice)

    def asked(self, scaling: Scaling, block: Cut, group: Cut) -> Asked | None:
        """Return the operation `mix`; None without a row of MIXTURES."""
        del scaling, block, group
        if not self.of:
            return None
        return Asked("mix", {"mixture": self.of, "block": in_parameters(self.block)})

    @property
    def words(self) -> Words | None:
        """The kind of recipe `mixture`, and its fields; None without a row of MIXTURES."""
        return Words("mixture", {"of": self.of}, {"block": self.block}) if self.of else None

    def exact(self, x: "Rows", scaling: Scaling, parts: Partition) -> "list[list[Element]]":
        """Quantize with the exact model."""
        from mor_ref.schemes.mixed.exact import mixed

        del scaling
        return mixed(x, self.candidates, self.parts((parts.rows, parts.columns))).elements

    def engine(
        self, numbers: "Numbers", blocks: ScalingBlocks, out: "Bits | None", threads: int | None
    ) -> "OutcomeOfValues":
        """Quantize with the engine."""
        from mor_ref.api.dequantization import values
        from mor_ref.schemes.mixed.functions_units import mixed

        quantized = mixed(numbers, self.candidates, self.parts(numbers.shape), threads)
        return values(numbers, quantized.dequantize(), blocks, out, threads)

    def cuda(
        self, device: "launching.Device", x: "launching.Bits", blocks: ScalingBlocks
    ) -> "measuring.ErrorRule":
        """Return the rule of kernels, with y."""
        from mor_ref.cuda.measuring import by_value
        from mor_ref.schemes.mixed.cuda import mix

        del blocks
        quantized = mix(device, x, self.candidates, self.parts(x.array.shape))
        return by_value(device, quantized.y)


NAMES = MIXTURES
USUAL = ("int8_or_e4m3", "int8_or_e4m3:1x32", "e2m1_or_int4:1x16")  # recipes to compare with others


def mixture(name: str, block: Cut = "tensor") -> MixedFormats:
    """Return a mixture of this name, which blocks of the tensor take (MFQ-001).

    >>> mixture("int8_or_e4m3", (1, 16)).name
    'int8_or_e4m3_1x16'
    """
    candidates = candidates_from(MIXTURES[name].candidates)
    return MixedFormats(candidates, block, name if block == "tensor" else "", of=name)


def named(name: str) -> MixedFormats | None:
    """Return the representation of a name, if it is a mixture."""
    return mixture(name) if name in NAMES else None
