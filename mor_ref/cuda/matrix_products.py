"""Entries of products of matrices on a device: rows of A and columns of B in blocks with scales."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mor_ref.cuda import structures as rows
from mor_ref.cuda.dot_products import (
    CODES,
    RULE,
    chunks_of,
    codes_of,
    kernel_of,
    rule_of,
)
from mor_ref.cuda.launching import Array, Device, launch
from mor_ref.definitions.dot import DOT_PROFILES, DotProfile
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats

_SIDE = rows.structure("u8 codes,upcast,choice,scale,overall")
_CHOICES = 4
_MATMUL = np.dtype(
    [
        ("of", CODES, (_CHOICES,)), ("scales", CODES), ("columns", "u8"), ("block", "u8"),
        ("blocks", "u8"), ("length", "u8"), ("wide_length", "u8"), ("taken", "u4"),
        ("inverts", "u4"), ("has_overall", "u4"), ("own", RULE), ("wide", RULE),
    ],
    align=True,
)  # fmt: skip
_ALL = 0xFFFF_FFFF


class Side(NamedTuple):
    """Rows of A, or columns of B: uint32 codes, y in bfloat16, and choices and scales of blocks.

    `overall` has the scale that all blocks of a row share.
    """

    codes: Array
    upcast: Array
    choice: Array
    scale: Array
    overall: Array


class Blocks(NamedTuple):
    """The formats that choices mean, the last one bfloat16, and the length of a block.

    `inverts` says that d is the reciprocal of a scale, and `has_overall` that rows have a scale of
    their own, as in NVFP4. The format of the scales is that of an instruction that takes them.
    """

    choices: Sequence[Format]
    block: int
    inverts: bool
    has_overall: bool
    scale_format: Format | None = None


def entries(device: Device, a: Side, b: Side, profile: DotProfile, blocks: Blocks) -> Array:
    """Return the entry of each row of A with the column of B in the same place (GEM-001)."""
    height, width = a.codes.shape
    wide = DOT_PROFILES[profile.wide or profile.name]
    rule = rows.row(
        _MATMUL,
        of=[codes_of(device, a.codes, fmt, _ALL)[0] for fmt in blocks.choices],
        scales=codes_of(device, a.scale, formats["f32"], _ALL, blocks.scale_format)[0],
        columns=width,
        block=blocks.block,
        blocks=a.choice.shape[1],
        length=chunks_of(profile, width)[1],
        wide_length=chunks_of(wide, width)[1],
        taken=sum(1 << n for n, fmt in enumerate(blocks.choices) if fmt.name in profile.formats),
        inverts=blocks.inverts,
        has_overall=blocks.has_overall,
        own=rule_of(profile)[0],
        wide=rule_of(wide)[0],
    )
    sides = (
        rows.row(_SIDE, **{name: device.address(x) for name, x in side._asdict().items()})
        for side in (a, b)
    )
    results = device.empty((height,), np.uint32)
    name = f"matmul_{'with_' if profile.needs_scales else ''}{kernel_of(profile)}"
    launch(device, "matmul", name, height, np.uint64(height), *sides, rule, results)
    return results
