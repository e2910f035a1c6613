"""Scales of blocks, as single steps."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.scales import SCALINGS
from mor_ref.golden.inputs.amaxes_at_thresholds import (
    BINADES,
    LOGARITHMS,
    around,
    edge_pairs_of_gam,
    found_pairs_of_gam,
    hard_amaxes,
    pairs_of_gam,
)
from mor_ref.golden.inputs.edges import Bits, amaxes
from mor_ref.golden.inputs.every_code import every_amax
from mor_ref.golden.model.suite import Case, Size, suite

SCALED = ("e4m3", "e5m2", "e2m1", "e2m3", "e3m2")


def _step_cases(_: Size) -> Iterator[Case]:
    for name in SCALED:
        for scaling in SCALINGS:
            pairs = _pairs_of_gam if scaling == "gam" else _equal_amaxes
            groups, blocks = pairs(formats[name])
            if scaling == "e8m0":
                groups, blocks = (np.append(amaxes, every_amax()) for amaxes in (groups, blocks))
            yield Case(
                f"{name}.{scaling}",
                {"format": name, "scaling": scaling},
                {"group_amax": groups, "block_amax": blocks},
            )


def _pairs_of_gam(fmt: Format) -> tuple[Bits, Bits]:
    """Return amaxes of groups and of blocks in them."""
    turns = _turns(fmt)
    each = every_amax()
    pairs = (
        edge_pairs_of_gam(),
        pairs_of_gam(fmt),
        found_pairs_of_gam(),
        (turns, turns),
        (np.maximum(each, each[each.size // 2]), each),
    )
    groups, blocks = (np.concatenate(side) for side in zip(*pairs, strict=True))
    return groups, blocks


def _equal_amaxes(fmt: Format) -> tuple[Bits, Bits]:
    """Return amaxes of blocks that are a group of their own."""
    blocks = np.concatenate([amaxes(), _turns(fmt)])
    return blocks, blocks


def _turns(fmt: Format) -> Bits:
    """Return amaxes next to which scales turn or are hard to round."""
    exponents = around(Fraction(fmt.largest), (*BINADES, *LOGARITHMS))
    return np.array([*exponents, *hard_amaxes(fmt)], np.uint32)


STEPS = suite(
    "scale_steps",
    "The scale of a block from its amax and its group's",
    "scale",
    tuple(f"THM-{k:03}" for k in range(1, 6)),
    _step_cases,
)
