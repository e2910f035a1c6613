"""Sentences on whether anything explains the mismatches of a suite, and how much of them."""

from collections.abc import Iterator

from mor_ref.counts_in_words import counted, listed
from mor_ref.verify.diagnosing.diagnosis_records import Explanation, SuiteDiagnosis
from mor_ref.verify.diagnosing.tried_alone import ALONE_END


def explaining(diagnosis: SuiteDiagnosis, *, comparable: bool) -> str:
    """Return a sentence on the cause of mismatches, with {by} and {share} to be filled in."""
    said = _explaining(diagnosis, comparable=comparable)
    if diagnosis.of_parts and not diagnosis.is_large:
        return f"in parts of the tensors, with {diagnosis.of_parts:,} numbers, {said}"
    return said


def of_reference(diagnosis: SuiteDiagnosis) -> str:
    """Say how many mismatches are none, as the candidate has the bits of the reference there."""
    count = diagnosis.of_reference
    noun, verb = ("mismatch", "has") if count == 1 else ("mismatches", "have")
    return (
        f"{count:,} {noun} {verb} the bits of the reference, so the expected values are wrong: "
        "check them with `mor-ref golden check`"
    )


def _explaining(diagnosis: SuiteDiagnosis, *, comparable: bool) -> str:
    if not diagnosis.mismatches:
        return of_reference(diagnosis)
    of = _mismatches(diagnosis.mismatches, comparable=comparable)
    if diagnosis.lacks:
        return (
            f"no cause of the {of} was searched for: formulas call a function {diagnosis.lacks} of "
            "their author, which is not here, so no mistake was tried"
        )
    is_tried = not diagnosis.is_large or diagnosis.of_parts
    known = "known mistake" if is_tried else "mistake that explains another suite"
    if diagnosis.is_displaced:
        return f"no {known} explains the {of}, but their structure does"
    if not diagnosis.explanations and diagnosis.has_structure:
        fields = listed(diagnosis.structures[0].fields)
        return f"no {known} explains the {of}; those of {fields} have a structure"
    if not is_tried and not diagnosis.explanations:
        return (
            f"no {known} explains the {of}; on tensors as large as these no other is tried"
            f"{'' if diagnosis.structures else ', and no structure is found'}"
        )
    if not diagnosis.explanations:
        return f"no known mistake explains the {of}, or enough of them for a guess"
    best = diagnosis.explanations[0]
    if best.is_whole:
        return f"{all_explained(diagnosis.mismatches, comparable=comparable)} {{by}}"
    if best.is_of_sample or best.explained < best.of:
        none = f"no {known} explains the {of}"
    else:
        none = f"no {known} explains the {of} and makes no others"
    guess = "" if best.fields else "a guess: "
    return f"{none}; {guess}{{by}} explains {{share}}{in_fields(best)}{why_a_guess(best)}"


def why_a_guess(best: Explanation) -> str:
    """Say why an explanation is a guess; nothing if it leaves mismatches, as its share says so.

    One that has the bits of all, and changes no other entry in any case, is the explanation.
    """
    is_all = best.explained == best.of
    if is_all and best.is_of_sample and not (best.more or best.spared):
        return ", and the rest was not tried"
    return ", but would make others as well" if is_all or best.more or best.spared else ""


def in_fields(best: Explanation) -> str:
    """Name the fields whose mismatches it explains, all of them; nothing if there are none."""
    if not best.fields:
        return ""
    more = best.explained - best.of_fields
    others = f", and {more:,} of others" if more else ""
    return f": all {best.of_fields:,} of {listed(best.fields)}{others}"


def all_explained(count: int, *, comparable: bool) -> str:
    """Say that there is an explanation of so many mismatches."""
    of = _mismatches(count, comparable=comparable)
    return f"the {of} is explained by" if count == 1 else f"all {of} are explained by"


def _mismatches(count: int, *, comparable: bool) -> str:
    """Say how many mismatches; with a reservation if some answers could not be compared."""
    noun = "mismatch" if count == 1 else "mismatches"
    return f"{count:,} {noun}{'' if comparable else ' that can be compared'}"


def wrong_expected(diagnosis: SuiteDiagnosis) -> Iterator[str]:
    """Say how many of further mismatches have wrong expected values, if any."""
    if diagnosis.of_reference and diagnosis.mismatches:
        yield of_reference(diagnosis)


def not_tried(diagnosis: SuiteDiagnosis) -> Iterator[str]:
    """Say how many deviations were not tried, if none of those that were explains all."""
    if diagnosis.untried_alone and not diagnosis.is_explained:
        yield (
            f"{counted(diagnosis.untried_alone, 'mistake')} not tried: the search for a single "
            f"one ends after {ALONE_END:,} elements"
        )
