"""Sentences on the structure of mismatches: what entries have instead, and where they lie."""

from collections.abc import Iterator, Sequence

from mor_ref.verify.diagnosing.records import Condition, Structure

_SHOWN = 4


def structure_lines(structures: Sequence[Structure]) -> Iterator[str]:
    """Yield sentences on the structures of mismatches, the first few."""
    for one in structures[:_SHOWN]:
        if one.words:
            beyond = f", after {_names(one)}" if one.beyond else ""
            yield f"{_fields(one)}{beyond}: {one.words}, in {_share(one)}"
        if one.condition is not None:
            yield f"{one.fields[0]}: {_where(one.condition, one)}"
    if len(structures) > _SHOWN:
        yield f"and {len(structures) - _SHOWN} more structures"


def _names(one: Structure) -> str:
    return " and ".join(f"`{name}`" for name in one.beyond)


def _fields(one: Structure) -> str:
    *others, last = one.fields
    return f"{', '.join(others)} and {last}" if others else last


def _nouns(one: Structure) -> str:
    return "nibbles" if one.noun == "nibble" else "entries"


def _share(one: Structure) -> str:
    """Say of how many entries that differ it is so, and how many match that it would change."""
    of = f"all {one.of:,}" if one.explained == one.of else f"{one.explained:,} of the {one.of:,}"
    kept = f"; {one.kept:,} others match that it would change" if one.kept else ""
    return f"{of} {_nouns(one)} that differ{_of_sample(one)}{kept}"


def _of_sample(one: Structure) -> str:
    return " in the cases that were looked at" if one.is_of_sample else ""


def _where(where: Condition, one: Structure) -> str:
    """Say where entries differ, with the counts of both sides."""
    of, who = "", "an entry" if one.noun == "entry" else "a nibble"
    if where.is_of_changed:
        changing = "it" if one.words else _names(one)
        of, who = f"of the {_nouns(one)} that {changing} would change, ", "one"
    all_there = where.differing == where.there
    there = f"all {where.there:,}" if all_there else f"{where.differing:,} of {where.there:,}"
    sample = "" if one.words else _of_sample(one)
    return (
        f"{of}{who} differs only if {where.words}: {there} there differ, and none of the "
        f"{where.elsewhere:,} others{sample}"
    )
