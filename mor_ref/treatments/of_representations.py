"""The treatment that an operand has under one representation alone."""

from typing import Any, NamedTuple

from mor_ref.definitions.mixed import MIXTURES
from mor_ref.representations import (
    AffineBlocks,
    LevelRows,
    MixedFormats,
    MxBlocks,
    Nvfp4Tiles,
    Representation,
    ScaledFormat,
    SharedBlocks,
)
from mor_ref.treatments.rows import Mx, Nvfp4, Scaled
from mor_ref.treatments.schemes import Integers, Levels, Mixture, Shared
from mor_ref.treatments.treatment import Treatment


class Fields(NamedTuple):
    """A kind of treatment, the field that the name of a representation says, and the others."""

    kind: type[Treatment]
    named: dict[str, Any]
    others: dict[str, Any]


def fields_of(one: Representation) -> Fields | None:
    """Return the fields of the treatment of a representation; None if it has none.

    A format has its scales and blocks from elsewhere.

    >>> fields_of(MxBlocks("e2m1", "rceil")).others
    {'scale_rule': 'rceil', 'block': 32}
    """
    match one:
        case ScaledFormat():
            return Fields(Scaled, {"fmt": one.name}, {})
        case MxBlocks():
            others = {"scale_rule": one.scale_rule, "block": one.block}
            return Fields(Mx, {"fmt": one.element.name}, others)
        case Nvfp4Tiles():
            return Fields(Nvfp4, {"profile": one.profile}, {"tile": one.tile})
        case SharedBlocks():
            return Fields(Shared, {"of": one.kind}, {"profile": one.profile})
        case LevelRows():
            return Fields(Levels, {"of": one.kind}, {"arithmetic": one.arithmetic})
        case AffineBlocks():
            zeros = "symmetric" if one.symmetric else "asymmetric"
            others = {"profile": one.profile, "block": one.block, "zeros": zeros}
            return Fields(Integers, {"grid": one.grid}, others)
        case MixedFormats() if one.name in MIXTURES:
            return Fields(Mixture, {"of": one.name}, {"block": one.block})
    return None
