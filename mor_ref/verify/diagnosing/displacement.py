"""Displacement: the bits found are the expected bits of another place."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mor_ref.verify.diagnosing.alternative import LEAST_BITS, Alternative, surprise
from mor_ref.verify.diagnosing.entries import Entries, Integers
from mor_ref.verify.diagnosing.exchanged_axes import exchanged_axes
from mor_ref.verify.diagnosing.inverse_scales import inverse_scales
from mor_ref.verify.diagnosing.maps import AROUND, Map, exchange_of_lines, flat_shift, maps, shift
from mor_ref.verify.diagnosing.other_bits import frequent_value, only_value, other_bits
from mor_ref.verify.diagnosing.other_blocks import other_blocks
from mor_ref.verify.diagnosing.other_grids import other_grids
from mor_ref.verify.diagnosing.other_layouts import other_layouts
from mor_ref.verify.diagnosing.other_operands import other_operands
from mor_ref.verify.diagnosing.other_parameters import other_parameters
from mor_ref.verify.diagnosing.other_scales import other_scales
from mor_ref.verify.diagnosing.scales_of_other_numbers import scales_of_other_numbers

_SCREENED = 2048  # entries that each map is tried on first
_TRIED_ON_ALL = 6  # maps that explain the most of these
_CASES_OF_LINES = 8  # cases that are searched for exchanged rows and columns
_VOTED = 2
_LEAST_PART, _PARTS = 1 / 20, 3  # least share of one of two structures, and how many are tried
_PAIRED = "[i, j ^ 1]"  # the words of a map: the other code of the same byte
_COMPARED = 1 << 22  # entries of lines that are compared with each other


def displacement(entries: Entries, *, is_rest: bool = False) -> Alternative | None:
    """Return the bits that all or most entries have instead of the expected ones.

    A map is tried on some entries that differ; the maps that explain the most are tried on all. If
    `is_rest`, one value in place of another is not evidence, because any two values would fit.
    """
    of_bits = [one for one in other_bits(entries) if one.sure is None or not is_rest]
    found = [*_displaced(entries, 1 / 2), *of_bits]
    found += [*other_layouts(entries), *other_blocks(entries), *inverse_scales(entries)]
    found += other_grids(entries)
    claims = [one for one in found if _is_claimed(one)]
    if not any(one.explained == len(entries.differing) and not one.kept for one in claims):
        more = (
            *other_parameters(entries),
            *scales_of_other_numbers(entries),
            *other_scales(entries),
            *other_operands(entries),
        )
        claims += [one for one in more if _is_claimed(one)]
    best = min(claims, key=lambda one: (-one.explained, one.kept), default=None)
    return best if is_rest else _of_its_value(entries, best)


def _of_its_value(entries: Entries, best: Alternative | None) -> Alternative | None:
    """Return the value alone, if it is the same in all entries that differ.

    One value, such as a scale of 1, is what many mistakes lead to. So the mistake is only one that
    may be the cause.
    """
    value = only_value(entries)
    if best is None or value is None or best.is_of_value or best.explained < value.explained:
        return best
    return replace(value, also=(best.words, *best.also))


def two_displacements(entries: Entries) -> Iterator[tuple[Alternative, Alternative]]:
    """Yield the bits that some entries have instead, and the bits of all others that differ.

    The second structure is of the entries that the first one does not explain.
    """
    of = len(entries.differing)
    parts = [*_displaced(entries, _LEAST_PART), *frequent_value(entries)]
    likely = [
        one
        for one in parts
        if _LEAST_PART * of <= one.explained < of and surprise(one, one.explains) >= LEAST_BITS
    ]
    for one in sorted(likely, key=lambda one: -one.explained)[:_PARTS]:
        rest = replace(entries, differs=entries.differs & ~one.explains)
        other = displacement(rest, is_rest=True)
        if other is not None and other.explained == len(rest.differing):
            yield one, other


def _displaced(entries: Entries, least: float) -> list[Alternative]:
    """Return the maps that explain at least a share of some entries, the best first."""
    at = entries.some(_SCREENED)
    rated = [(one, _share(one, entries, at)) for one in (*maps(entries), *_found(entries, at))]
    best = sorted((pair for pair in rated if pair[1] >= least), key=lambda pair: -pair[1])
    return [_of_map(one, entries) for one, _ in best[:_TRIED_ON_ALL]]


def _is_claimed(one: Alternative) -> bool:
    """Return whether an alternative is more than chance, and explains more than it changes."""
    of = len(one.entries.differing)
    is_all = one.explained == of
    if one.explained < (2 if one.sure is None else 1) or not (
        is_all or (2 * one.explained >= of and not one.of_all)
    ):
        return False
    if not is_all and one.kept > one.explained:
        return False
    return surprise(one, one.explains) >= LEAST_BITS


def _share(one: Map, entries: Entries, at: Integers) -> float:
    """Return the share that a map explains of some entries that differ."""
    source = one.source(entries, at)
    is_right = (source >= 0) & (entries.expected[source] == entries.given[at])
    return float(np.count_nonzero(is_right)) / max(len(at), 1)


def _of_map(one: Map, entries: Entries) -> Alternative:
    own = np.arange(entries.size)
    source = one.source(entries, own)
    is_other, values = (source >= 0) & (source != own), entries.expected[source]
    if one.words == _PAIRED and _is_packed(entries):
        # The last byte of a row of odd length has padding, which is 0 and no entry (VEC-005).
        values, is_other = np.where(source < 0, 0, values), source != own
    return Alternative(_said(one, entries), values, is_other, entries)


def _said(one: Map, entries: Entries) -> str:
    place = "[i, j]" if entries.axes == 2 else "[i]"
    if one.words == _PAIRED and (entries.noun == "nibble" or _is_packed(entries)):
        return "the two nibbles of each byte are swapped"
    if one.words.startswith("["):
        subject = f"nibble {place}" if entries.noun == "nibble" else place
        return f"{subject} has the expected value of {one.words}"
    if any(words in one.words for words in (" swapped", " other places", " another order")):
        return one.words
    return f"each {entries.noun} has the expected value of {one.words}"


def _is_packed(entries: Entries) -> bool:
    there = [one for one in entries.samples if one.pairs[entries.field].differs.any()]
    return all(one.layouts.get(entries.field) == "packed" for one in there)


# ---------------------------------------------------------------- maps that the values suggest


def _found(entries: Entries, at: Integers) -> Iterator[Map]:
    """Yield maps that the given values suggest.

    They are shifts of any length, exchanged axes, and exchanged rows or columns.
    """
    yield from _voted(entries, at)
    yield from exchanged_axes(entries)
    if entries.axes == 2:
        yield from _lines(entries)


def _voted(entries: Entries, at: Integers) -> Iterator[Map]:
    """Yield the most frequent shifts, from entries whose value occurs once in the expected case."""
    e = entries
    values, rank = np.unique(e.expected, return_inverse=True)
    keys, first, counts = np.unique(
        e.case * len(values) + rank, return_index=True, return_counts=True
    )
    k = np.minimum(np.searchsorted(values, e.given[at]), len(values) - 1)
    own = e.case[at] * len(values) + k
    position = np.minimum(np.searchsorted(keys, own), len(keys) - 1)
    is_once = (values[k] == e.given[at]) & (keys[position] == own) & (counts[position] == 1)
    here, there = at[is_once], first[position[is_once]]
    if not len(here):
        return
    for down, right in _most_frequent(e.row[there] - e.row[here], e.column[there] - e.column[here]):
        yield shift(down, right, e)
        yield shift(down, right, e, AROUND)
    for by, _ in _most_frequent(there - here, 0 * here):
        yield flat_shift(by)


def _most_frequent(*steps: Integers) -> list[tuple[int, int]]:
    found, counts = np.unique(np.stack(steps, axis=1), axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:_VOTED]
    return [(int(a), int(b)) for a, b in found[order].tolist()]


def _lines(entries: Entries) -> Iterator[Map]:
    """Yield the exchanges of whole rows, and of whole columns, that a few cases suggest."""
    at = entries.differing[np.minimum(entries.rows, entries.columns)[entries.differing] > 1]
    cases = np.unique(entries.case[at])[:_CASES_OF_LINES].tolist()
    for name in ("row", "column"):
        seen: list[dict[int, int]] = []
        for case in cases:
            pairs = _exchanged(entries, case, name)
            if pairs not in seen and len(set(pairs.values())) == len(pairs) > 1:
                seen.append(pairs)
                yield from _rolled(entries, case, pairs, name)
                yield exchange_of_lines(pairs, name, _of_lines(pairs, name))


def _rolled(entries: Entries, case: int, pairs: dict[int, int], name: str) -> Iterator[Map]:
    """Yield the shift around the end that explains whole rows or columns, if there is one."""
    sides = entries.rows if name == "row" else entries.columns
    side = int(sides[np.flatnonzero(entries.case == case)[0]])
    steps = {(other - k) % side for k, other in pairs.items()}
    if len(steps) == 1:
        step = steps.pop()
        step = step if 2 * step <= side else step - side
        yield shift(*((step, 0) if name == "row" else (0, step)), entries, AROUND)


def _of_lines(pairs: dict[int, int], name: str) -> str:
    (a, b), *_ = pairs.items()
    if len(pairs) == 2 and pairs.get(b) == a:
        return f"{name}s {a} and {b} are swapped"
    few = [f"{k} has {name} {other}" for k, other in pairs.items()][:3]
    rest = f", and {len(pairs) - 3} more" if len(pairs) > 3 else ""
    return f"whole {name}s are in other places: {', '.join(few)}{rest}"


def _exchanged(entries: Entries, case: int, name: str) -> dict[int, int]:
    """Return, for each row or column of a case that differs, the one whose bits it has.

    If no line has all the bits of another line, lines that have most of them count. An entry that
    is left out fits any bits.
    """
    (places,) = np.nonzero(entries.case == case)
    shape = int(entries.rows[places[0]]), int(entries.columns[places[0]])
    right, given, left_out = (
        array[places].reshape(shape) if name == "row" else array[places].reshape(shape).T
        for array in (entries.expected, entries.given, entries.left_out)
    )
    wrong = np.flatnonzero((right != given).any(axis=1)).tolist()
    known = {line.tobytes(): k for k, line in enumerate(right)}
    known |= {right[k].tobytes(): k for k in wrong}
    found = {k: known[given[k].tobytes()] for k in wrong if given[k].tobytes() in known}
    if (found and not left_out.any()) or len(wrong) * right.size > _COMPARED:
        return found
    alike = [np.count_nonzero((right == given[k]) | left_out[k], axis=1) for k in wrong]
    nearest = {k: int(counts.argmax()) for k, counts in zip(wrong, alike, strict=True)}
    return {
        k: nearest[k]
        for k, counts in zip(wrong, alike, strict=True)
        if 2 * counts[nearest[k]] >= right.shape[1] and counts[nearest[k]] > counts[k]
    }
