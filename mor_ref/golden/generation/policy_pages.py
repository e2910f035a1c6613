"""The page of a policy: its rungs, what its metrics compare, a worked example, and its vectors."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from mor_ref.definitions.block_formats import BlockFormat
from mor_ref.definitions.formats import formats
from mor_ref.exact.errors import SUMS
from mor_ref.golden.generation.format_pages import (
    formats_of,
    rules_of_block_format,
    section_of_formats,
)
from mor_ref.golden.generation.pages import (
    Code,
    Head,
    Piece,
    Table,
    shown_bits,
    shown_number,
    vectors_section,
)
from mor_ref.golden.model.suite import Case, Suite
from mor_ref.golden.suites.block_formats import part_in_words
from mor_ref.golden.suites.own_policies import for_each_kind, policy_of
from mor_ref.metrics import (
    Cosine,
    FitsRange,
    LargestByRow,
    MeanRelativeError,
    NotWorseThan,
    RelativeFrobenius,
    Sqnr,
)
from mor_ref.metrics.thresholds import as_fraction
from mor_ref.operations.bits import numbers_of
from mor_ref.policies import Policy, Rung
from mor_ref.recipes import Mor, policy_text
from mor_ref.representations import formulas_of

_MEASURED = "and the d of each number of the unit is finite"
_ERRORS = (
    "For a finite x that is not zero and its y under a representation, d = |x - y| rounded to "
    "binary32, r = min(d / |x|, 1) rounded to binary32, or 1 if y is not finite, and u = r * 2^23 "
    "rounded to an integer, ties to even (ERR-001). The sum of a unit is the sum of u over these "
    "numbers, and nonzero is their count (ERR-002). A number is lost if x is not finite, if y is "
    "NaN, or if |y| is at least 0x7F7F8000 as bits; nonfinite is the count of lost numbers "
    "(ERR-003). amax and amin are the largest magnitude of the finite numbers, and the smallest "
    "one but zero; 0 if there is none. All sums are exact integers."
)
_OUTPUT = (
    "The output MUST be bfloat16. In a unit that takes a rung, it MUST be y of the rung's "
    "representation, rounded to nearest, ties to even. In any other unit it MUST be x: the codes "
    "of a bfloat16 tensor as they are, and other numbers rounded in the same way, with NaN as "
    "0x7FFF (MOR-006)."
)
_SQUARES = (
    "signal is the sum of x^2, energy that of y^2, product that of x * y and noise that of d^2, "
    "where d of an x that is zero is |x - y| as well. They are exact (MOR-009)."
)


def page_of_policy(recipe: Mor, suite: Suite, cases: Sequence[Case]) -> Iterator[Piece]:
    """Yield the page of a policy, with the rules of each block format that it tries."""
    policy, name = policy_of(recipe), suite.name
    yield Head(name, 1)
    yield (
        f"{name} is a policy of an author, and not of the specification of mor_ref: its vectors "
        "are not normative. Expected bits come from the exact model of mor_ref."
    )
    yield Head("Rules")
    for number, (title, pieces) in enumerate(_rules(recipe, policy), 1):
        yield Head(f"{name}-{number}  {title}", 3)
        yield from pieces
    formulas = {
        one.name: formulas_of(one, recipe.scales, recipe.block, policy.group)
        for one in policy.tried
    }
    for tried, own in formulas.items():
        yield Head(f"Representation {tried}")
        yield from _of_representation(tried, own)
    yield Head("Formats")
    named = (fmt for own in formulas.values() if own is not None for fmt in formats_of(own))
    yield from section_of_formats((*named, formats["bf16"]))
    yield Head("Worked example")
    yield from _example(policy, cases)
    yield Head("Vectors")
    yield from _decisions(policy, cases)
    yield from vectors_section(suite, cases, ("choice", "output"))
    yield Head("Record")
    yield Code(policy_text(policy))


def _rules(recipe: Mor, policy: Policy) -> Iterator[tuple[str, list[Piece]]]:
    yield "Ladder", list(_of_ladder(recipe, policy))
    yield "Errors", [_ERRORS, *([_SQUARES] if _compares_squares(policy) else [])]
    for rung in policy.ladder:
        yield f"Rung {rung.name}", list(_of_rung(recipe, rung))
    yield "Output", [_OUTPUT]


def _of_ladder(recipe: Mor, policy: Policy) -> Iterator[Piece]:
    unit = "the whole tensor"
    if policy.unit == "block":
        unit = f"{part_in_words(recipe.block)}, or less where the tensor ends"
    yield (
        f"A unit is {unit}. It MUST take the first of these rungs that accepts it, and else stay "
        "bfloat16. A rung MUST NOT accept a unit of which it loses a number (MOR-001). Each "
        "representation quantizes the whole tensor, and not unit by unit (MOR-007)."
    )
    rows = [(f"{place}", name) for place, name in enumerate(policy.names)]
    yield Table([("choice", "representation"), *rows])


def _compares_squares(policy: Policy) -> bool:
    squares = (RelativeFrobenius, Sqnr, Cosine, LargestByRow)
    return any(isinstance(rung.metric, squares) for rung in policy.ladder)


def _of_rung(recipe: Mor, rung: Rung) -> Iterator[Piece]:
    yield "The rung MUST accept a unit that loses nothing if and only if"
    conditions = {
        words: _condition(next(one for one in policy.ladder if one.name == rung.name))
        for words, policy in for_each_kind(recipe).items()
    }
    if len(set(conditions.values())) == 1:
        yield Code(next(iter(conditions.values())))
    else:
        rows = [(words.replace("_", ", "), text) for words, text in conditions.items()]
        yield Table([("tensor", "condition"), *rows])
        yield "The parameter policy of a case has the threshold of its tensor."
    yield f"Both sides MUST be exact ({rung.metric.rule})."


def _condition(rung: Rung) -> str:
    """Return what a metric compares, with its threshold as integers."""
    return next(
        words(rung.metric) for kind, words in _CONDITIONS.items() if isinstance(rung.metric, kind)
    )


def _of_mean(metric: MeanRelativeError) -> str:
    return f"nonzero = 0, or sum < {metric.limit} * nonzero"


def _of_yardstick(metric: NotWorseThan) -> str:
    (yardstick,) = metric.yardsticks
    return f"sum <= sum of {yardstick.name}"


def _of_range(metric: FitsRange) -> str:
    ratio = Fraction(metric.bound.largest) / Fraction(metric.bound.smallest_normal or 1)
    return f"nonzero = 0, or amax <= {ratio} * amin"


def _of_frobenius(metric: RelativeFrobenius) -> str:
    limit = metric.limit_of_squares
    compared = f"{limit.denominator} * noise < {limit.numerator} * signal"
    return f"noise = 0, or {compared}, {_MEASURED}"


def _of_sqnr(metric: Sqnr) -> str:
    return f"{metric.limit_of_ratio} * noise <= 2^23 * signal, {_MEASURED}"


def _of_cosine(metric: Cosine) -> str:
    limit = as_fraction(metric.written) ** 2
    return (
        "signal = energy = 0, or signal > 0 and product > 0 and "
        f"{limit.denominator} * product^2 >= {limit.numerator} * signal * energy"
    )


def _of_largest(metric: LargestByRow) -> str:
    limit = as_fraction(metric.written)
    return (
        "each row of the unit has the largest d = 0, or "
        f"{limit.denominator} * (largest d) < {limit.numerator} * (amax of the row), {_MEASURED}"
    )


_CONDITIONS: Mapping[type, Callable[[Any], str]] = {
    MeanRelativeError: _of_mean,
    NotWorseThan: _of_yardstick,
    FitsRange: _of_range,
    RelativeFrobenius: _of_frobenius,
    Sqnr: _of_sqnr,
    Cosine: _of_cosine,
    LargestByRow: _of_largest,
}


def _of_representation(name: str, formulas: BlockFormat | None) -> Iterator[Piece]:
    if formulas is None:
        yield f"Its rules are those of mor_ref for {name} (MOR-007)."
        return
    yield "Its y are those of these formulas."
    yield from rules_of_block_format(replace(formulas, name=name), name)


# ---------------------------------------------------------------------- the example, and counts


def _example(policy: Policy, cases: Sequence[Case]) -> Iterator[Piece]:
    """Yield two tensors that differ by a step, and their sums and decisions."""
    words = ("_taken_", "_left_")
    pair = [next((case for case in cases if word in case.name), cases[0]) for word in words]
    numbers = [numbers_of(case.arrays["x"], case.parameters["source"]) for case in pair]
    yield (
        f"Case {pair[0].name} and case {pair[1].name} are tensors of one unit. These numbers "
        "differ between them:"
    )
    places = [n for n, (one, other) in enumerate(zip(*numbers, strict=True)) if one != other]
    columns = pair[0].arrays["x"].shape[1]
    rows = [
        (f"[{n // columns}, {n % columns}]", *(_both(one[n]) for one in numbers)) for n in places
    ]
    yield Table([("place", "first", "second"), *rows])
    sums = [f"{one.name}.{field}" for one in policy.tried for field in SUMS]
    table = [
        (name, *(_entry(name, case.arrays[name].flat[0]) for case in pair))
        for name in ("amax", "amin", *sums)
    ]
    chosen = ("choice", *(policy.names[int(case.arrays["choice"].flat[0])] for case in pair))
    yield Table([("", "first", "second"), *table, chosen])


def _entry(name: str, word: Any) -> str:
    if name in ("amax", "amin"):
        (number,) = numbers_of(word.reshape(1), "f32")
        return _both(number)
    return f"{word}"


def _both(number: float) -> str:
    return f"{shown_bits(number)} ({shown_number(number)})"


def _decisions(policy: Policy, cases: Sequence[Case]) -> Iterator[Piece]:
    """Yield how many units of the vectors take each rung."""
    counts = [0] * len(policy.names)
    for case in cases:
        for choice in case.arrays["choice"].ravel().tolist():
            counts[choice] += 1
    rows = [(name, f"{count}") for name, count in zip(policy.names, counts, strict=True)]
    yield Table([("representation", "units that take it"), *rows])
