"""Sentences on the structure of mismatches: the bits and the places of the entries that differ."""

from collections.abc import Collection, Iterator, Sequence

from mor_ref.counts_in_words import counted
from mor_ref.definitions.formats import encoding_profiles
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.verify.diagnosing.diagnosis_records import Condition, Explanation, Structure

_SHOWN = 4
_OF = "the amax of "
_ROWS: tuple[tuple[str, str, Collection[str]], ...] = (
    ("encode_as_", "profile", encoding_profiles),
    ("nvfp4_as_", "NVFP4 profile", PROFILES),
)


def structure_lines(structures: Sequence[Structure]) -> Iterator[str]:
    """Yield sentences on the structures of mismatches, the first few."""
    shown = [k for one in structures for k in (one, one.other) if k is not None]
    for one in shown[:_SHOWN]:
        where = one.condition
        is_named = where is not None and where.is_of_changed and not one.words
        beyond = f", after {_names(one)}" if one.beyond and not is_named else ""
        if one.words:
            is_rest = any(one is first.other for first in structures)
            words = f"{one.words}{_also(one)}"
            perhaps = "" if one.is_certain else "perhaps "
            share = _share(one, is_rest=is_rest)
            yield f"{_fields(one)}{beyond}: {perhaps}{words}, in {share}"
        if where is not None:
            yield f"{one.fields[0]}{beyond}: {_where(where, one)}"
    if len(shown) > _SHOWN:
        yield f"and {counted(len(shown) - _SHOWN, 'more structure')}"


def identity(explanation: Explanation) -> Iterator[str]:
    """Say that all answers are those of another row of a catalogue, if so."""
    is_alone = len(explanation.deviations) == 1 and not explanation.is_displaced
    if explanation.is_whole and is_alone:
        for start, kind, known in _ROWS:
            name = explanation.deviations[0].removeprefix(start)
            if name != explanation.deviations[0] and name in known:
                yield f"so each answer is exactly that of the {kind} {name}"


def _names(one: Structure) -> str:
    return " and ".join(f"`{name}`" for name in one.beyond)


def _fields(one: Structure) -> str:
    *others, last = one.fields
    return f"{', '.join(others)} and {last}" if others else last


def _also(one: Structure) -> str:
    """Say which other cause has the same bits, and how many more have them."""
    if not one.also:
        return ""
    more = f", or {counted(len(one.also) - 1, 'other part')}" if len(one.also) > 1 else ""
    first = one.also[0]
    other = (
        f"of {first.partition(_OF)[2]}" if _OF in one.words else first.partition(" is ")[2] or first
    )
    return f" (or {other}{more})"


def _nouns(one: Structure) -> str:
    return "nibbles" if one.noun == "nibble" else "entries"


def _share(one: Structure, *, is_rest: bool) -> str:
    """Say how many of the entries that differ have this, and how many others it would change."""
    other = "the other " if is_rest else ""
    of = (
        f"all {other}{one.of:,}"
        if one.explained == one.of
        else f"{one.explained:,} of the {one.of:,}"
    )
    matching = f"{one.kept:,} entries that match" if one.kept > 1 else "1 entry that matches"
    kept = f"; it would also change {matching}" if one.kept else ""
    who = f"{of} {_nouns(one)} that differ" if one.of > 1 else f"the {one.noun} that differs"
    return f"{who}{_of_sample(one)}{kept}"


def _of_sample(one: Structure) -> str:
    return " in the cases that were looked at" if one.is_of_sample else ""


def _where(where: Condition, one: Structure) -> str:
    """Say where entries differ, with the counts of both sides."""
    who = "an entry" if one.noun == "entry" else "a nibble"
    if where.is_of_changed:
        who = f"{who} that {'it' if one.words else _names(one)} would change"
    all_there = where.differing == where.there
    there = f"all {where.there:,}" if all_there else f"{where.differing:,} of {where.there:,}"
    sample = "" if one.words else _of_sample(one)
    return (
        f"{who} differs only if {where.words}: {there} there differ, and none of the "
        f"{where.elsewhere:,} others{sample}"
    )


def not_diagnosed(count: int) -> Iterator[str]:
    """Say for how many mismatches no cause was sought, if for any."""
    if count:
        verb = "is in a tensor" if count == 1 else "are in tensors"
        yield f"{counted(count, 'mismatch')} {verb} too large for a diagnosis as a whole"
