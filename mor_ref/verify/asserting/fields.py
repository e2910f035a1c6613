"""Fields against the expected ones of a case: which differ, where, by how much, and why."""

from collections.abc import Iterator, Mapping
from typing import Any

from mor_ref.arrays import codes_in
from mor_ref.counts_in_words import counted, differing_in_case, listed
from mor_ref.golden.model.suite import question
from mor_ref.golden.model.views import SEPARATOR
from mor_ref.operations.fields import format_meant
from mor_ref.verify.asserting.suite_case import SuiteCase
from mor_ref.verify.candidates.candidate import NoArray
from mor_ref.verify.comparing.allowed import Allowed
from mor_ref.verify.comparing.difference import Difference
from mor_ref.verify.comparing.evidence import Evidence
from mor_ref.verify.diagnosing.diagnosis import diagnose
from mor_ref.verify.diagnosing.tensor_parts import parts_of
from mor_ref.verify.reporting.text import diagnosis_lines

_ENTRIES = 3  # of a field
_LARGEST = 1 << 20  # elements of a tensor that is diagnosed whole


def unlike_fields(actual: Mapping[str, Any], case: SuiteCase, allowed: Allowed) -> list[str]:
    """Return lines that say how fields differ from those of a case; none if they do not.

    Only the fields that `actual` has are compared.
    """
    given = dict(_given(actual, case))
    evidence = Evidence(
        case.suite,
        case.operation,
        case.fields,
        [case.case],
        {case.name: given},
        witnesses=case.witnesses,
        allowed=allowed,
    )
    known = [field.name for field in case.fields if field.name in case.expected]
    if evidence.unknown:
        strange = ", ".join(evidence.unknown)
        return [f"actual has {strange}, not of {case}; its fields are {', '.join(known)}"]
    if not evidence.given:
        return [f"actual has no field of {case}; give some of {', '.join(known)}"]
    inputs = [field.name for field in case.fields if field.role == "input"]
    has_inputs = all(name in case.case.arrays for name in inputs)
    asked = question(case.fields, case.case) if has_inputs else None
    differences = [
        one.difference(case.operation, asked)
        for one in evidence.comparisons[case.name]
        if one.count or one.problem is not None
    ]
    if not differences:
        return []
    lines = [line for one in differences for line in _lines(one)]
    causes = list(_causes(evidence, differences)) if has_inputs else []
    return [_heading(differences, len(evidence.given), case), *lines, *causes]


def _given(actual: Mapping[str, Any], case: SuiteCase) -> Iterator[tuple[str, Any]]:
    """Yield the names and the bit patterns of fields."""
    formats = {
        field.name: format_meant(field.format, case.parameters)
        for field in case.fields
        if field.role == "expected"
    }
    for name, array in actual.items():
        base = name.split(SEPARATOR)[0]
        codes, fmt = codes_in(array), formats.get(base)
        if codes.format is None or fmt is None:
            yield name, codes.bits
        elif codes.packed and fmt == codes.format and SEPARATOR not in name:
            yield f"{name}{SEPARATOR}packed", codes.bits
        elif codes.format == fmt or (codes.packed and fmt == "u8"):
            yield name, codes.bits
        else:
            instead = f"{fmt} is expected; give codes of {fmt}"
            yield name, NoArray(f"has codes of {codes.format}, and {instead}")


def _heading(differences: list[Difference], fields: int, case: SuiteCase) -> str:
    entries = sum(one.count for one in differences)
    problems = sum(one.problem is not None for one in differences)
    of = f"in {len(differences)} of {counted(fields, 'field')}"
    return f"{case}: {differing_in_case(entries, problems)}, {of}"


def _lines(one: Difference) -> Iterator[str]:
    """Say how a field differs, with its first entries."""
    if one.problem is not None:
        yield f"  {one.field} {one.problem}"
        return
    only = "; equal but for the bits of NaN" if one.nans == one.count else ""
    yield f"  {one.field}: {one.count:,} of {one.of:,} differ{one.of_padding}{only}"
    for entry in one.entries[:_ENTRIES]:
        yield f"    {one.shown(entry)}"
    if one.count > _ENTRIES:
        yield f"    and {one.count - _ENTRIES:,} more"


def _causes(evidence: Evidence, differences: list[Difference]) -> Iterator[str]:
    """Yield the named cause of differences, or that none is known."""
    is_comparable = all(one.problem is None for one in differences)
    if max(array.size for case in evidence.cases for array in case.arrays.values()) > _LARGEST:
        parts = parts_of(evidence)
        if parts is None:
            yield "  no cause is looked for: the tensor is large, and no part has all of a scale"
            return
        evidence = parts
        names = listed([case.name for case in parts.cases])
        yield f"  the tensor is too large for a diagnosis; that of parts, {names}:"
    for diagnosis in diagnose([evidence]).suites:
        yield from (f"  {line}" for line in diagnosis_lines(diagnosis, comparable=is_comparable))
