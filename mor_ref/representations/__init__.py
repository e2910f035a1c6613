"""Representations as rows, and the names that rungs and yardsticks have for them."""

import re

from mor_ref.argument_checks import check_name, known_name
from mor_ref.definitions.blocks import Cut
from mor_ref.definitions.catalogue import INTEGERS, NAMES_OF_REPRESENTATIONS, Catalogue
from mor_ref.definitions.format import Format
from mor_ref.definitions.format_names import OTHER_NAMES
from mor_ref.definitions.formats import formats
from mor_ref.definitions.levels import LEVEL_KINDS
from mor_ref.definitions.mixed import MIXTURES
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.definitions.scales import scaled_format
from mor_ref.definitions.selection import KNOWN_SELECTIONS
from mor_ref.definitions.shared import SHARED_KINDS
from mor_ref.representations.affine import AffineBlocks
from mor_ref.representations.levels import LevelRows
from mor_ref.representations.mixed import MixedFormats, candidates_from
from mor_ref.representations.mx import STANDARD_NAMES, MxBlocks
from mor_ref.representations.nvfp4 import Nvfp4Tiles
from mor_ref.representations.optional_members import (
    Asked,
    Words,
    asked_of,
    formulas_of,
    is_turnable,
    rows_together,
    stored_bits,
    uses_blocks,
    words_of,
)
from mor_ref.representations.representation import Representation
from mor_ref.representations.scaled import ScaledFormat
from mor_ref.representations.selection import SelectedNumbers
from mor_ref.representations.shared import SharedBlocks
from mor_ref.representations.training import GivenScale, RandomNvfp4

__all__ = [
    "OTHER_REPRESENTATIONS",
    "REPRESENTATIONS",
    "AffineBlocks",
    "Asked",
    "GivenScale",
    "LevelRows",
    "MixedFormats",
    "MxBlocks",
    "Nvfp4Tiles",
    "RandomNvfp4",
    "Representation",
    "ScaledFormat",
    "SelectedNumbers",
    "SharedBlocks",
    "Words",
    "as_representation",
    "asked_of",
    "formulas_of",
    "is_turnable",
    "known_names",
    "mixture",
    "rows_together",
    "stored_bits",
    "uses_blocks",
    "words_of",
]

# The names that no format, no profile and no kind has (MOR-007).
REPRESENTATIONS: Catalogue[Representation] = Catalogue(
    "representation",
    Representation,
    (
        Nvfp4Tiles("te", name="nvfp4"),
        MxBlocks("e4m3", name="mxfp8"),
        *(MxBlocks(element) for element in STANDARD_NAMES),
        *(SelectedNumbers(name) for name in KNOWN_SELECTIONS),
    ),
    namespace=NAMES_OF_REPRESENTATIONS,
)


# Names in other software: of formats, and of several formats at once.
OTHER_REPRESENTATIONS = {**OTHER_NAMES, "mxfp6": ("mxfp6_e2m3", "mxfp6_e3m2")}


def as_representation(given: str | Format | Representation) -> Representation:
    """Return the representation that is given, by itself or by its name (MOR-007).

    >>> as_representation("te_4over6_mse").bits, as_representation("mxfp8").bits
    (4, 8)
    """
    if isinstance(given, Format):
        return ScaledFormat(given)
    if isinstance(given, str):
        return _named(given)
    if isinstance(given, Representation):
        check_name(given.name)
        return given
    raise TypeError(
        f"representation is {given!r}; give a name, a Format, or a record such as MxBlocks('e4m3')"
    )


def known_names() -> tuple[str, ...]:
    """Return the names of rows, those of a user with them; integers have more (MOR-007)."""
    kinds = (*SHARED_KINDS, *LEVEL_KINDS, *MIXTURES)
    return (*REPRESENTATIONS, *PROFILES, *kinds, *formats)


def mixture(name: str, block: Cut = "tensor") -> MixedFormats:
    """Return a mixture of this name, which blocks of the tensor take (MFQ-001).

    >>> mixture("int8_or_e4m3", (1, 16)).name
    'int8_or_e4m3_1x16'
    """
    candidates = candidates_from(MIXTURES[name].candidates, as_representation)
    return MixedFormats(candidates, block, name if block == "tensor" else "", of=name)


def _named(name: str) -> Representation:
    if name in REPRESENTATIONS:
        return REPRESENTATIONS[name]
    if name in PROFILES:
        return Nvfp4Tiles(name)
    if name in SHARED_KINDS:
        return SharedBlocks(name)
    if name in LEVEL_KINDS:
        return LevelRows(name)
    if name in MIXTURES:
        return mixture(name)
    if re.fullmatch(INTEGERS, name):
        return AffineBlocks(name)
    found = known_name("representation", name, known_names(), OTHER_REPRESENTATIONS)
    return ScaledFormat(scaled_format(found))
