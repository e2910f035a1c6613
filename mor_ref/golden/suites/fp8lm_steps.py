"""FP8-LM: the states of Adam after each of some steps, each step from the state before it."""

from collections.abc import Iterator

from mor_ref.definitions.fp8lm import Adam
from mor_ref.golden.inputs.fp8lm_steps import sequences
from mor_ref.golden.model.suite import Case, Size, Suite, expected, given
from mor_ref.operations.fp8lm_steps import KINDS, STEPS

_RATES = ("the learning rate", "beta1", "beta2", "eps", "the weight decay")
_WORDS = {"first": "first moment", "second": "second moment", "master": "weights"}


def _cases(size: Size) -> Iterator[Case]:
    for name, arrays in sequences(size):
        yield Case(name, {}, arrays)


STATES = Suite(
    "fp8lm_steps",
    "States of Adam after each of its first steps",
    "fp8lm_steps",
    ("FLM-014",),
    (
        given("weight", "f32", "the parameters before the first step"),
        *(given(f"gradient_{k}", "f32", f"the gradient of step {k}") for k in range(1, STEPS + 1)),
        *(given(name, "f32", words) for name, words in zip(Adam._fields, _RATES, strict=True)),
        expected("master_scale_0", "f32", "the first scale of the weights", "FLM-014"),
        expected("master_0", "f16", "the first codes of the weights", "FLM-014"),
        *(
            field
            for k in range(1, STEPS + 1)
            for name, fmt in KINDS.items()
            for field in (
                expected(
                    f"{name}_scale_{k}",
                    "f32",
                    f"the scale of the {_WORDS[name]} after step {k}",
                    "FLM-014",
                ),
                expected(
                    f"{name}_{k}",
                    fmt,
                    f"the codes of the {_WORDS[name]} after step {k}",
                    "FLM-012",
                    "FLM-013",
                ),
            )
        ),
    ),
    _cases,
)
