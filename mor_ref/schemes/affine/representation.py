"""Integers with zero points as a representation."""

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mor_ref.argument_checks import check_name
from mor_ref.definitions.blocks import Cut, Partition, in_parameters
from mor_ref.definitions.catalogue import INTEGERS
from mor_ref.definitions.formats import formats
from mor_ref.definitions.integer_grids import IntegerGrid, integer_grid
from mor_ref.definitions.scales import Scaling, ScalingBlocks
from mor_ref.representations.optional_members import Asked, StoredBits, Words, with_scales
from mor_ref.schemes.affine.definition import (
    AffineProfile,
    affine_cut,
    affine_profile,
    as_affine_cut,
    check_grid,
    groups_in,
)

if TYPE_CHECKING:
    from mor_ref.api.dequantization import OutcomeOfValues
    from mor_ref.arrays import Bits, Numbers
    from mor_ref.cuda import launching, measuring
    from mor_ref.exact.blocks import Rows
    from mor_ref.exact.quantization import Element

_USUAL_PROFILE = "torch_fake_tensor"


@dataclass(frozen=True)
class AffineBlocks:
    """Integers of a grid, with a scale for each block of the tensor (AFF-011).

    `block` can be permuted groups of columns, such as "4_permuted_groups".

    >>> AffineBlocks("int8").name, AffineBlocks("uint4", "onnx", (1, 32), symmetric=False).name
    ('int8', 'uint4_onnx_1x32_asymmetric')
    """

    grid: str
    profile: str = _USUAL_PROFILE
    block: Cut | str | None = None
    symmetric: bool = True
    name: str = ""

    def __post_init__(self) -> None:
        profile = affine_profile(self.profile)
        check_grid(self.integers, profile, symmetric=self.symmetric)
        block = as_affine_cut(profile.cut if self.block is None else self.block)
        object.__setattr__(self, "block", block)
        words = [self.grid]
        words += [self.profile] if self.profile != _USUAL_PROFILE else []
        if block != profile.cut:
            words.append(block if isinstance(block, str) else f"{block[0]}x{block[1]}")
        words += [] if self.symmetric else ["asymmetric"]
        object.__setattr__(self, "name", self.name or "_".join(words))
        check_name(self.name)

    @property
    def integers(self) -> IntegerGrid:
        """The grid."""
        return integer_grid(self.grid)

    @property
    def rules(self) -> AffineProfile:
        """The choices of the profile."""
        return affine_profile(self.profile)

    @property
    def bits(self) -> int:
        """The bits of a code."""
        return self.integers.bits

    @property
    def cut(self) -> Cut | None:
        """The block: that of the profile, if none is given; None if there are permuted groups."""
        return None if self.groups else self.block or self.rules.cut  # type: ignore[return-value]

    @property
    def groups(self) -> int | None:
        """How many permuted groups of columns there are; None if there are blocks."""
        return groups_in(self.block)

    @property
    def permute(self) -> str | None:
        """The order of the columns."""
        return "range" if self.groups else None

    def parts(self, shape: tuple[int, ...]) -> Partition:
        """Return the blocks, or the groups, of a tensor of that shape."""
        return affine_cut(shape, self.rules, self.cut, self.groups, self.permute)

    def stored_bits(self, scaling: Scaling, parts: Partition) -> StoredBits:
        """Return the bits of all codes and of all scales (ERR-009), with those of an order."""
        del scaling
        zero_point = 0 if self.symmetric else self.bits
        blocks = math.prod(self.parts((parts.rows, parts.columns)).grid)
        scales = (formats["f32"].bits + zero_point) * blocks
        order = parts.columns * (parts.columns - 1).bit_length() if self.groups else 0
        return with_scales(self.bits, parts, scales + order)

    def rows_together(self, shape: tuple[int, ...]) -> int | None:
        """Return how many rows share scales; None if all do, or share the sign of a grid."""
        has_one_grid = self.symmetric and self.rules.sign_by_numbers
        return None if has_one_grid else self.parts(shape).block[0]

    def asked(self, scaling: Scaling, block: Cut, group: Cut) -> Asked:
        """Return the operation `affine`, or `affine_groups`."""
        del scaling, block, group
        given = {"grid": self.grid, "profile": self.profile, "symmetric": self.symmetric}
        if self.cut is None:
            return Asked("affine_groups", {**given, "groups": self.groups})
        return Asked("affine", {**given, "block": in_parameters(self.cut)})

    @property
    def words(self) -> Words:
        """The kind of recipe `integers`, and its fields."""
        zeros = "symmetric" if self.symmetric else "asymmetric"
        others = {"profile": self.profile, "block": self.block, "zeros": zeros}
        return Words("integers", {"grid": self.grid}, others)

    def exact(self, x: "Rows", scaling: Scaling, parts: Partition) -> "list[list[Element]]":
        """Quantize with the exact model."""
        from mor_ref.schemes.affine.exact import Choices, affine
        from mor_ref.schemes.affine.exact_groups import affine_groups

        del scaling
        how = Choices(self.rules, self.integers, self.symmetric, "f32")
        cut = self.parts((parts.rows, parts.columns))
        if self.groups:
            return affine_groups(x, how, self.groups).elements
        return affine(x, how, cut).elements

    def engine(
        self, numbers: "Numbers", blocks: ScalingBlocks, out: "Bits | None", threads: int | None
    ) -> "OutcomeOfValues":
        """Quantize with the engine."""
        from mor_ref.api.dequantization import values
        from mor_ref.schemes.affine.functions import values_of

        how = (self.parts(numbers.shape), self.rules, self.integers)
        order, symmetric = self.permute, self.symmetric
        y = values_of(numbers, *how, symmetric=symmetric, permute=order, threads=threads)
        return values(numbers, y, blocks, out, threads)

    def cuda(
        self, device: "launching.Device", x: "launching.Bits", blocks: ScalingBlocks
    ) -> "measuring.ErrorRule":
        """Return the rule of kernels, with y, as units may cut the blocks."""
        from mor_ref.cuda.measuring import by_value
        from mor_ref.schemes.affine.cuda import Choices, quantize_affine, quantize_groups

        del blocks
        how = Choices(self.rules, self.integers, self.symmetric, "f32")
        cut = self.parts(x.array.shape)
        if self.groups:
            return by_value(device, quantize_groups(device, x, how, self.groups)[1].y)
        return by_value(device, quantize_affine(device, x, how, cut).y)


NAMES = ()  # any width has one: they are not listed
# Recipes to compare with others.
USUAL = (
    "int8",
    "int8:bnb_int8_row",
    "int8:switchback_row",
    "uint8:onnx:asymmetric",
    "uint8:peg:asymmetric:column",
    "uint8:peg:asymmetric:8_permuted_groups",
    "int4:1x32",
    "uint4:1x32:asymmetric",
)


def named(name: str) -> AffineBlocks | None:
    """Return the representation of a name, if it is a grid of integers."""
    return AffineBlocks(name) if re.fullmatch(INTEGERS, name) else None
