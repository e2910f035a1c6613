"""Representations as rows, and the names that rungs and yardsticks have for them."""

import functools
from collections.abc import Callable

from mor_ref.argument_checks import OtherNames, check_name, known_name, lacking
from mor_ref.definitions.block_formats import BlockFormat
from mor_ref.definitions.catalogue import NAMES_OF_REPRESENTATIONS, Catalogue
from mor_ref.definitions.format import Format
from mor_ref.definitions.format_names import OTHER_NAMES
from mor_ref.definitions.formats import formats
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.definitions.scales import is_scaled, scaled_format
from mor_ref.representations.block_formats import FormulaBlocks
from mor_ref.representations.function import FunctionRepresentation
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
from mor_ref.representations.training import GivenScale, RandomNvfp4
from mor_ref.schemes import in_schemes

__all__ = [
    "REPRESENTATIONS",
    "Asked",
    "FormulaBlocks",
    "FunctionRepresentation",
    "GivenScale",
    "MxBlocks",
    "Nvfp4Tiles",
    "RandomNvfp4",
    "Representation",
    "ScaledFormat",
    "Words",
    "as_representation",
    "asked_of",
    "formulas_of",
    "is_turnable",
    "known_names",
    "names_taken",
    "other_names",
    "rows_together",
    "stored_bits",
    "uses_blocks",
    "words_of",
]

MEMBERS = ("name", "bits", "exact", "engine", "cuda")


# The names that no format, no profile and no kind has (MOR-007).
class Representations(Catalogue[Representation]):
    """The representations by name; a block format and a function become one first."""

    def __setitem__(self, name: str, row: Representation) -> None:
        given: object = row
        if isinstance(given, BlockFormat) or is_function(given):
            what = "block format" if isinstance(given, BlockFormat) else "function"
            raise TypeError(
                f"representation {name!r} is given a {what}, which is no row of this catalogue; "
                f"give mor_ref.representations.as_representation(...) of the {what}"
            )
        super().__setitem__(name, row)


REPRESENTATIONS = Representations(
    "representation",
    Representation,
    (
        Nvfp4Tiles("te", name="nvfp4"),
        MxBlocks("e4m3", name="mxfp8"),
        *(MxBlocks(element) for element in STANDARD_NAMES),
    ),
    namespace=NAMES_OF_REPRESENTATIONS,
    members=MEMBERS,
)


@functools.cache
def other_names() -> OtherNames:
    """Return names in other software, with the names here: of formats, and of representations."""
    names = {"mxfp6": ("mxfp6_e2m3", "mxfp6_e3m2"), **OTHER_NAMES}
    for module in in_schemes("representation"):
        names = {**getattr(module, "OTHER_NAMES", {}), **names}
    return names


RepresentationLike = str | Format | BlockFormat | Representation | Callable[..., object]


def as_representation(given: RepresentationLike) -> Representation:
    """Return the representation that is given: by itself, its name, or its function (MOR-007).

    >>> as_representation("te_4over6_mse").bits, as_representation("mxfp8").bits
    (4, 8)
    """
    if isinstance(given, Format):
        return ScaledFormat(given)
    if isinstance(given, BlockFormat):
        return FormulaBlocks(given)
    if isinstance(given, str):
        return _named(given)
    if isinstance(given, Representation) and not isinstance(given, type):
        check_name(given.name)
        return given
    if is_function(given):
        return as_representation(FunctionRepresentation(given))
    raise TypeError(
        f"representation is {given!r}{lacking(given, MEMBERS)}; give a name, a Format, a "
        "BlockFormat, a function of x that returns y, or a record such as MxBlocks('e4m3')"
    )


def is_function(given: object) -> bool:
    """Return whether something is called as it is, and has no member of a representation."""
    is_alone = not any(hasattr(given, name) for name in MEMBERS)
    return callable(given) and is_alone and not isinstance(given, type)


def known_names() -> tuple[str, ...]:
    """Return the names of rows, those of a user with them; integers have more (MOR-007)."""
    of_schemes = (name for module in in_schemes("representation") for name in module.NAMES)
    return (*REPRESENTATIONS, *PROFILES, *of_schemes, *formats)


def names_taken() -> tuple[str, ...]:
    """Return the known names but those of formats that numbers are not scaled into."""
    return tuple(name for name in known_names() if name not in formats or is_scaled(formats[name]))


def _named(name: str) -> Representation:
    if name in REPRESENTATIONS:
        return REPRESENTATIONS[name]
    if name in PROFILES:
        return Nvfp4Tiles(name)
    for module in in_schemes("representation"):
        of_scheme: Representation | None = module.named(name)
        if of_scheme is not None:
            return of_scheme
    if name not in formats:
        known_name("representation", name, names_taken(), other_names())
    return ScaledFormat(scaled_format(name))
