"""Integers with zero points: the grids, and the profiles of the libraries that quantize to them."""

import re
from dataclasses import dataclass, replace
from typing import Literal

from mor_ref.argument_checks import known_name
from mor_ref.definitions.blocks import (
    Cut,
    CutLike,
    Partition,
    as_cut,
    check_groups,
    cut_in,
    partition,
)
from mor_ref.definitions.catalogue import Catalogue
from mor_ref.definitions.integer_grids import NARROWEST, WIDEST, IntegerGrid

Application = Literal["multiply", "divide", "fuse"]
Conversion = Literal["saturate", "int64", "int32", "cast"]
NanCode = Literal["lowest", "highest", "zero"]
Divisor = Literal["half", "highest", "none"]
ZeroScale = Literal["limit", "range of one", "one"]

_ORDERS = ("range",)
_GROUPS = r"([1-9][0-9]{0,5})_permuted_groups"
SMALLEST_NORMAL = {"f32": 2.0**-126, "bf16": 2.0**-126, "f16": 2.0**-14}  # (AFF-004)


@dataclass(frozen=True)
class AffineProfile:
    """The choices of a library (AFF-002).

    `application` takes a number to xs: the inverse scale is `inverse_factor` times the reciprocal
    of the scale, and xs is `factor` times the result. If it `adds_first`, the zero point is added
    to xs in a rounding of its own. `conversion` takes xs to a code, and
    `nan_code` is that of a NaN. A scale is at least `smallest`, and `zero_scale` says which one a
    block of zeros has. If it is `in_own_dtype`, each operation is rounded to the dtype of x.
    `low_middle` are the widths whose unsigned symmetric grid has its zero point below the middle.
    `smallest_high`, `early_zero` and `sign_by_numbers` are of PEG (AFF-003, AFF-005). `float_zeros`
    says that zero points are numbers of binary32 (AFF-012), and `takes_float_zeros` that they can
    be. `cut` is the usual block.
    """

    name: str
    application: Application = "multiply"
    conversion: Conversion = "saturate"
    nan_code: NanCode = "lowest"
    divisor: Divisor = "half"
    inverse_factor: int = 1
    factor: int = 1
    zero_scale: ZeroScale = "limit"
    smallest: float | None = 2.0**-23
    in_own_dtype: bool = False
    low_middle: tuple[int, ...] = ()
    smallest_high: float = 0.0
    early_zero: bool = False
    sign_by_numbers: bool = False
    adds_first: bool = False
    float_zeros: bool = False
    takes_float_zeros: bool = False
    cut: Cut = "tensor"

    @property
    def stores_amax(self) -> bool:
        """Whether the scale is the amax of a block, which has the code 127."""
        return self.divisor == "none"

    @property
    def zero_in_xs(self) -> bool:
        """Whether the zero point is added before numbers are rounded to integers."""
        return self.application == "fuse" or self.adds_first


_NO_DTYPE = tuple(bits for bits in range(NARROWEST, WIDEST) if bits != 8)  # in torch
_INT8_BY_AMAX = AffineProfile("", "multiply", "cast", "zero", "none", smallest=0.0)
AFFINE_PROFILES: Catalogue[AffineProfile] = Catalogue(
    "profile",
    AffineProfile,
    (
        AffineProfile("torch_fake_tensor", low_middle=_NO_DTYPE),
        AffineProfile(
            "torch_fake_channel_2_13",
            conversion="int64",
            low_middle=_NO_DTYPE,
            takes_float_zeros=True,
        ),
        AffineProfile("torch_quantize", "fuse", nan_code="highest", low_middle=_NO_DTYPE),
        AffineProfile("torchao_0_18", nan_code="zero", smallest=None, in_own_dtype=True),
        AffineProfile("onnx", "divide", "int32", zero_scale="range of one", smallest=0.0),
        AffineProfile("onnxruntime", "divide", zero_scale="one", smallest=0.0),
        replace(_INT8_BY_AMAX, name="bnb_int8_row", inverse_factor=127, cut="row"),
        replace(_INT8_BY_AMAX, name="switchback_row", application="divide", factor=127, cut="row"),
        replace(_INT8_BY_AMAX, name="switchback_tensor", factor=127),
        AffineProfile(
            "peg",
            "divide",
            nan_code="zero",
            divisor="highest",
            smallest=1e-8,
            smallest_high=1e-8,
            early_zero=True,
            sign_by_numbers=True,
        ),
        AffineProfile(
            "torch_quantize_channel",
            nan_code="zero",
            low_middle=_NO_DTYPE,
            adds_first=True,
            cut="row",
        ),
    ),
)


def affine_profile(profile: str) -> AffineProfile:
    """Return the profile of that name."""
    return AFFINE_PROFILES[known_name("profile", profile, AFFINE_PROFILES)]


def check_grid(
    grid: IntegerGrid, profile: AffineProfile, *, symmetric: bool, has_zero_point: bool = False
) -> None:
    """Refuse a grid, a symmetry or a zero point that a profile lacks (AFF-002, AFF-006)."""
    if profile.stores_amax and grid.name != "int8":
        raise ValueError(
            f"grid is {grid.name!r}, but profile {profile.name!r} has int8 alone; give int8"
        )
    if profile.stores_amax and not symmetric:
        raise ValueError(
            f"symmetric is False, but profile {profile.name!r} has no zero points; omit it"
        )
    if has_zero_point and symmetric and (profile.stores_amax or profile.sign_by_numbers):
        raise ValueError(
            f"zero_point is given, but profile {profile.name!r} has none with symmetric=True; "
            "omit it"
        )


def check_zero_points(lowest: int, highest: int, grid: IntegerGrid) -> None:
    """Refuse given zero points, from lowest to highest, beyond the grid (AFF-006)."""
    if not grid.lowest <= lowest <= highest <= grid.highest:
        raise ValueError(
            f"zero_point has numbers that {grid.name} lacks; give integers from {grid.lowest} to "
            f"{grid.highest}"
        )


def with_float_zeros(profile: AffineProfile) -> AffineProfile:
    """Return the choices of a profile with zero points of binary32 (AFF-012)."""
    if not profile.takes_float_zeros:
        raise TypeError(
            f"zero_point has floats, but profile {profile.name!r} has integers alone; give "
            "integers, or the profile torch_fake_channel_2_13"
        )
    return replace(profile, application="fuse", float_zeros=True)


def groups_in(word: object) -> int | None:
    """Return the number of permuted groups that a word names (AFF-010); None if it names none.

    >>> groups_in("4_permuted_groups"), groups_in("tensor")
    (4, None)
    """
    parts = re.fullmatch(_GROUPS, word) if isinstance(word, str) else None
    return int(parts[1]) if parts else None


def affine_cut_in(word: str) -> Cut | str | None:
    """Return the block or the permuted groups that a word names; None if it names neither."""
    return word if groups_in(word) else cut_in(word)


def as_affine_cut(cut: Cut | str) -> Cut | str:
    """Return a block, as a name or a tuple, or permuted groups; refuse anything else."""
    if isinstance(cut, str) and affine_cut_in(cut) != cut:
        raise ValueError(
            f"block is {cut!r}, which is not known; give tensor, row, column, a pair of rows and "
            "columns, or permuted groups such as 4_permuted_groups"
        )
    return cut if groups_in(cut) else as_cut("block", cut)  # type: ignore[arg-type]  # a cut


def affine_cut(
    shape: tuple[int, ...],
    profile: AffineProfile,
    block: CutLike | None,
    groups: int | None,
    permute: str | None,
) -> Partition:
    """Return the given blocks of a tensor, or its groups of dimensions (AFF-010)."""
    if permute is not None:
        known_name("permute", permute, _ORDERS)
    if groups is None:
        if permute is not None:
            raise ValueError(f"permute is {permute!r}, but there are no groups; give groups")
        return partition(shape, profile.cut if block is None else block)
    if block is not None and not (isinstance(block, str) and block == "tensor"):
        raise ValueError(f"groups is {groups} and block is {block!r}; give one of them")
    whole = partition(shape, "tensor")
    count = check_groups(groups, whole.columns)
    return partition(shape, (max(whole.rows, 1), max(whole.columns // count, 1)))
