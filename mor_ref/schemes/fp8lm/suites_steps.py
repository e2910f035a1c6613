"""FP8-LM: the states of Adam after each of some steps, each step from the state before it."""

from collections.abc import Iterator

from mor_ref.golden.model.suite import Case, Size, suite
from mor_ref.schemes.fp8lm.inputs_steps import sequences


def _cases(size: Size) -> Iterator[Case]:
    for name, arrays in sequences(size):
        yield Case(name, {}, arrays)


STATES = suite(
    "fp8lm_steps",
    "States of Adam after each of its first steps",
    "fp8lm_steps",
    ("FLM-014",),
    _cases,
)
