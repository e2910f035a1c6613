"""Policies: each unit takes the first rung of the ladder that accepts it; and the output."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.formats import formats
from mor_ref.definitions.scales import Scaling
from mor_ref.exact.blocks import Rows, cells
from mor_ref.exact.errors import ErrorSum, error_sum
from mor_ref.exact.quantization import Element, to_bf16
from mor_ref.exact.scales import amax
from mor_ref.exact.step import step
from mor_ref.exact.unit_sums import NumbersOfUnit
from mor_ref.policies import Policy

Unit = tuple[int, int]
Bf16Of = Callable[[int, int], int]


@dataclass(frozen=True)
class Decision:
    """One unit: its error sums by representation, its extremes, and the rung that it takes."""

    errors: dict[str, ErrorSum]
    amax: float
    amin: float
    choice: int


@dataclass(frozen=True)
class MorTensor:
    """A tensor with a policy. `output` holds bfloat16 codes, row by row."""

    tried: dict[str, list[list[Element]]]
    decisions: dict[Unit, Decision]
    output: list[list[int]]


def mix(
    x: Rows, policy: Policy, scaling: Scaling, parts: Partition, fallback: Bf16Of | None = None
) -> MorTensor:
    """Mix representations by a policy, in the scaling blocks of `parts` (MOR-007).

    `fallback` returns the bfloat16 code of an element that is not quantized, by its row and column;
    a bfloat16 tensor has its own codes, NaN payloads included. Without it, numbers are encoded.
    """
    policy = policy.for_tensor()
    tried = {
        representation.name: representation.exact(x, scaling, parts)
        for representation in policy.tried
    }
    sides = parts.block if policy.unit == "block" else (parts.rows, parts.columns)
    output = [[0] * parts.columns for _ in range(parts.rows)]
    decisions = {}
    for unit, places in cells(parts.rows, parts.columns, sides).items():
        numbers = [x[i][j] for i, j in places]
        errors = {
            name: error_sum((x[i][j], elements[i][j].y) for i, j in places)
            for name, elements in tried.items()
        }
        seen = {name: NumbersOfUnit(places, x, elements) for name, elements in tried.items()}
        decision = decide(policy, errors, amax(numbers), amin(numbers), seen, unit)
        decisions[unit] = decision
        chosen = None  # the fallback, whose name a yardstick may have
        if decision.choice < len(policy.ladder):
            chosen = tried[policy.names[decision.choice]]
        for i, j in places:
            bf16_code = fallback(i, j) if fallback else None
            output[i][j] = kept(x[i][j], bf16_code) if chosen is None else to_bf16(chosen[i][j].y)
    return MorTensor(tried, decisions, output)


@step
def kept(x: float, bf16_code: int | None) -> int:
    """Return the bfloat16 code of a number that is not quantized: its own, if known (MOR-006)."""
    return to_bf16(x) if bf16_code is None else bf16_code


@step
def amin(numbers: Iterable[float]) -> float:
    """Return the smallest non-zero finite magnitude, 0 if there is none (MOR-004)."""
    return min(filter(None, map(abs, filter(math.isfinite, numbers))), default=0.0)


def decide(
    policy: Policy,
    errors: dict[str, ErrorSum],
    amax: float,
    amin: float,
    numbers: Mapping[str, NumbersOfUnit] | None = None,
    unit: Unit = (0, 0),
) -> Decision:
    """Return the decision for the first rung that accepts (MOR-001).

    `numbers` has x and y with each representation, for metrics that read them.
    """
    for choice, rung in enumerate(policy.ladder):
        error = errors[rung.name]
        if loses_nothing(error) and rung.accepts(error, errors, amax, amin, numbers, unit):
            return Decision(errors, amax, amin, choice)
    return Decision(errors, amax, amin, len(policy.ladder))


@step
def loses_nothing(error: ErrorSum) -> bool:
    """Return whether a unit can be accepted at all (MOR-001)."""
    return error.nonfinite == 0


def restored(x: Rows, tensor: MorTensor, policy: Policy, parts: Partition) -> list[list[float]]:
    """Return y of each element, in the representation that its unit took (ERR-008)."""
    sides = parts.block if policy.unit == "block" else (parts.rows, parts.columns)
    y = [[0.0] * parts.columns for _ in range(parts.rows)]
    for unit, places in cells(parts.rows, parts.columns, sides).items():
        choice = tensor.decisions[unit].choice
        for i, j in places:
            if choice < len(policy.ladder):
                y[i][j] = tensor.tried[policy.names[choice]][i][j].y
            else:
                y[i][j] = formats["bf16"].value(to_bf16(x[i][j]))
    return y
