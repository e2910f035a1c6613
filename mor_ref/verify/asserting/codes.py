"""Arrays of codes against each other, plain or in a layout."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Codes, code_dtype, codes_in, unsigned_from
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import as_format
from mor_ref.golden.model.views import is_padding_free, seen, sources
from mor_ref.layouts import layout_words, parts_of
from mor_ref.operations.bits import Unsigned
from mor_ref.verify.comparing.allowed import Allowed
from mor_ref.verify.comparing.distance import code_distance, code_shown
from mor_ref.verify.comparing.integers import of_width

_SHOWN = 8  # entries


def unlike_codes(
    actual: Any, expected: Any, fmt: str | Format | None, layout: str | None, allowed: Allowed
) -> list[str]:
    """Return lines that say how codes differ; none if they do not.

    With a layout, `expected` is plain, and the places in the lines are those of the plain array.
    """
    given, right = codes_in(actual), codes_in(expected)
    meant = _format_of(given, right, fmt)
    if given.format not in (None, meant.name):
        return [f"actual has codes of {given.format}, and {meant.name} is expected"]
    if right.format not in (None, meant.name) or right.packed:
        held = f"packed {right.format}" if right.packed else right.format
        raise TypeError(f"expected has codes of {held}; give plain codes of {meant.name}")
    layout = "packed" if given.packed and layout is None else layout
    chain = [] if layout is None else layout_words(layout)
    bits = 8 if "packed" in chain else meant.bits
    words = of_width(given.bits, code_dtype(meant).itemsize)
    found = unsigned_from(words, bits, code_dtype(meant), "actual")
    plain = unsigned_from(right.bits, meant.bits, code_dtype(meant), "expected")
    wanted = seen(plain, chain, {})
    if found.shape != wanted.shape:
        whose = "expected has" if layout is None else f"expected has, as {layout},"
        return [f"actual has shape {found.shape}, {whose} {wanted.shape}; give arrays of one shape"]
    found, wanted = np.atleast_1d(found), np.atleast_1d(wanted)
    return _lines(found, wanted, plain.shape, chain, meant, allowed)


def _format_of(given: Codes, right: Codes, fmt: str | Format | None) -> Format:
    named = fmt or right.format or given.format
    if named is None:
        raise TypeError(
            "fmt is not given, and neither array has a dtype that is a format; give it, such as "
            "'e4m3'"
        )
    return as_format(named)


def _lines(
    found: Unsigned,
    wanted: Unsigned,
    shape: tuple[int, ...],
    chain: list[str],
    fmt: Format,
    allowed: Allowed,
) -> list[str]:
    if np.array_equal(found, wanted):
        return []
    sites = sources(shape, chain, {}) if chain else [None]
    parts = zip(parts_of(found, chain), parts_of(wanted, chain), sites, strict=True)
    is_free = is_padding_free(chain)
    pairs = [
        (
            one,
            other,
            site,
            np.argwhere(_unlike(one, other, site if is_free else None, fmt, allowed)),
        )
        for one, other, site in parts
    ]
    count = sum(len(wrong) for *_, wrong in pairs)
    if not count:
        return []
    shown = [
        (tuple(map(int, index)), one, other, site)
        for one, other, site, wrong in pairs
        for index in wrong[:_SHOWN]
    ]
    shown = sorted(shown, key=lambda each: each[0])[:_SHOWN]
    lines = [
        f"  {_place(index, site, shape, chain)}: {_pair(int(one[index]), int(other[index]), fmt)}"
        for index, one, other, site in shown
    ]
    if count > _SHOWN:
        lines.append(f"  and {count - _SHOWN:,} more")
    whole = found.size * len(pairs)
    return [f"{count:,} of {whole:,} codes of {fmt.name} differ:", *lines]


def _unlike(
    found: Unsigned, wanted: Unsigned, sites: Unsigned | None, fmt: Format, allowed: Allowed
) -> NDArray[np.bool_]:
    """Return where codes differ; with the places that they come from, not in the padding."""
    unlike: NDArray[np.bool_] = (found != wanted) & ~allowed.either(found, wanted, fmt)
    return unlike if sites is None else unlike & (sites > 0)


def _place(
    index: tuple[int, ...], site: Unsigned | None, shape: tuple[int, ...], chain: list[str]
) -> str:
    """Return the place of an entry of the plain array, and where a layout has it."""
    at = f"[{', '.join(map(str, index))}]"
    if site is None:
        return at
    number = int(site[index])
    plain = ", ".join(map(str, np.unravel_index(number - 1, shape))) if number else ""
    return f"{f'[{plain}]' if number else 'padding'}, at {at} of {'@'.join(chain)}"


def _pair(found: int, right: int, fmt: Format) -> str:
    apart = code_distance(found, right, fmt)
    end = f", {apart}" if apart else ""
    return f"{code_shown(found, fmt)} where {code_shown(right, fmt)} is expected{end}"
