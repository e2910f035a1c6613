"""The inputs that a candidate is compared on, if it does not promise bits for all of them."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from mor_ref.argument_checks import known_name
from mor_ref.counts_in_words import counted
from mor_ref.golden.model.suite import Case
from mor_ref.mapped_files import in_memory
from mor_ref.operations import OPERATIONS
from mor_ref.operations.fields import INTEGERS, format_meant
from mor_ref.verify.candidates.candidate import Answer
from mor_ref.verify.comparing.evidence import Evidence
from mor_ref.verify.comparing.outside_domain import is_of_one_tensor, left_out
from mor_ref.verify.comparing.values import Marks, is_subnormal, values_of

_AT_ONCE = 1 << 20  # numbers
Domain = Literal["all", "finite", "normal", "nonnegative"]


def as_domain(name: str) -> Domain:
    """Return a domain by its name; refuse other names."""
    return known_name("domain", name, get_args(Domain))  # type: ignore[return-value]  # a name


def within(evidence: Evidence, domain: Domain) -> Evidence:
    """Return the answers to inputs of a domain alone, with the number of those left out.

    If rows are independent, rows are left out; of a tensor, the numbers of blocks; else cases.
    """
    if domain == "all":
        return evidence
    cases, answers, entries, left = [], dict[str, Answer](), {}, 0
    by_row = OPERATIONS[evidence.operation].is_by_row
    for case in evidence.cases:
        answer = evidence.answers.get(case.name)
        if is_of_one_tensor(OPERATIONS[evidence.operation]):
            marks = left_out(evidence.operation, case, answer or {}, _outside(case, domain))
            cases.append(case)
            entries[case.name] = marks
            left += int(np.count_nonzero(marks["x"]))
            if answer is not None:
                answers[case.name] = answer
            continue
        inside = _inside(evidence.operation, case, domain)
        if inside.all():
            cases.append(case)
        elif by_row and inside.any():
            cases.append(replace(case, arrays=_rows(case.arrays, inside)))
        left += _left_out(inside, by_row=by_row)
        if answer is not None and (inside.all() or (by_row and inside.any())):
            answers[case.name] = _rows(answer, inside)
    there = {case.name for case in cases}
    return replace(
        evidence,
        cases=cases,
        answers=answers,
        failures=tuple(f for f in evidence.failures if f.case is None or f.case in there),
        witnesses={} if left else evidence.witnesses,
        domain=domain,
        left_out=left,
        entries_left_out=entries,
        fields_left_out=_fields_but_of(there, evidence.cases),
    )


def _fields_but_of(there: Collection[str], cases: Iterable[Case]) -> frozenset[str]:
    """Return the fields of the cases that are not among the names."""
    return frozenset(name for case in cases if case.name not in there for name in case.arrays)


def _outside(case: Case, domain: Domain) -> Marks:
    """Return which numbers of a tensor are outside a domain."""
    return ~_is_right(case.arrays["x"], case.parameters["source"], domain)


def has_outside(case: Case, domain: Domain) -> bool:
    """Return whether a number of a tensor is outside a domain; few rows are looked at at a time."""
    x = case.arrays["x"]
    step = max(1, _AT_ONCE // x.shape[1])
    rows = (in_memory(x[k : k + step]) for k in range(0, len(x) if domain != "all" else 0, step))
    return any(not _is_right(some, case.parameters["source"], domain).all() for some in rows)


class _Left(Protocol):
    """The count of the inputs of an operation that are outside a domain."""

    @property
    def operation(self) -> str: ...
    @property
    def domain(self) -> str: ...
    @property
    def left_out(self) -> int: ...


def said_of_left_out(found: Iterable[_Left]) -> str:
    """Say how many rows, cases and numbers were left out; nothing if none was."""
    rows = cases = numbers = 0
    domain = ""
    for one in found:
        declared = OPERATIONS[one.operation]
        if declared.is_by_row:
            rows += one.left_out
        elif is_of_one_tensor(declared):
            numbers += one.left_out
        else:
            cases += one.left_out
        domain = one.domain
    parts = [counted(n, noun) for n, noun in ((rows, "row"), (cases, "case")) if n]
    said = [f"{' and '.join(parts)} outside the domain {domain} left out"] if parts else []
    if numbers:
        said.append(
            f"{counted(numbers, 'number')} left out: outside the domain {domain}, or in a block, "
            "unit or tensor with one outside"
        )
    return "; ".join(said)


def _inside(operation: str, case: Case, domain: Domain) -> Marks:
    """Return which rows of the inputs are inside a domain."""
    found = np.ones(len(next(iter(case.arrays.values()))), np.bool_)
    for name, field in OPERATIONS[operation].inputs.items():
        array, meant = case.arrays[name], format_meant(field.format, case.parameters)
        found &= np.all(_is_right(array, meant, domain).reshape(len(array), -1), axis=1)
    return found


def _is_right(bits: NDArray[Any], fmt: str, domain: Domain) -> Marks:
    if fmt in INTEGERS:
        return np.ones(bits.shape, np.bool_)
    values = values_of(bits, fmt)
    match domain:
        case "nonnegative":
            found: Marks = ~np.signbit(values)
        case "normal":
            found = np.isfinite(values) & ~is_subnormal(values, fmt)
        case _:
            found = np.isfinite(values)
    return found


def _left_out(inside: Marks, *, by_row: bool) -> int:
    """Count the rows that are left out; a case whose rows depend on each other counts as one."""
    return int(np.count_nonzero(~inside)) if by_row else int(not inside.all())


def _rows(arrays: Answer, inside: Marks) -> dict[str, Any]:
    """Return some rows of arrays that have a row for each."""
    if inside.all():
        return dict(arrays)
    return {
        name: array[inside] if _is_of(inside, array) else array for name, array in arrays.items()
    }


def _is_of(inside: Marks, array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.ndim > 0 and len(array) == len(inside)
