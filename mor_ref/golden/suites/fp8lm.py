"""FP8-LM: scales, casts, sums of ranks, and steps of Adam, each of single numbers."""

import itertools
from collections.abc import Iterator

from mor_ref.definitions.fp8lm import FP8LM_FORMATS, SCALE_PROFILES, SUMS, format_of
from mor_ref.golden.inputs.fp8lm import (
    casts,
    products,
    recasts,
    scales,
    steps_of_adam,
    subnormal,
    sums,
    sums_of_zeros,
)
from mor_ref.golden.model.suite import Case, Size, Suite, expected, given

_MARGINS = (0, 1, 20)
_RANDOM_SCALES, _RANDOM_CASTS, _RANDOM_SUMS, _RANDOM_STEPS = 400, 800, 250, 2000
_RANKS = (2, 3, 8, 33)


def _scale_cases(size: Size) -> Iterator[Case]:
    for fmt, profile, margin in itertools.product(FP8LM_FORMATS, SCALE_PROFILES, _MARGINS):
        parameters = {"format": fmt, "profile": profile, "margin": margin}
        arrays = scales(format_of(fmt), parameters, size, _RANDOM_SCALES)
        yield Case(f"{fmt}.{profile}.{margin}", parameters, arrays)


def _cast_cases(size: Size) -> Iterator[Case]:
    for fmt in FP8LM_FORMATS:
        parameters = {"format": fmt}
        yield Case(fmt, parameters, casts(format_of(fmt), parameters, size, _RANDOM_CASTS))
    for fmt in FP8LM_FORMATS:
        yield Case(f"{fmt}.products", {"format": fmt}, products(format_of(fmt)))
        yield Case(f"{fmt}.subnormal", {"format": fmt}, subnormal("scale"))


def _recast_cases(size: Size) -> Iterator[Case]:
    for fmt in FP8LM_FORMATS:
        parameters = {"format": fmt}
        yield Case(fmt, parameters, recasts(format_of(fmt), parameters, size, _RANDOM_CASTS))
        yield Case(f"{fmt}.subnormal", parameters, subnormal("scale", "shared"))


def _sum_cases(size: Size) -> Iterator[Case]:
    for fmt, how, ranks in itertools.product(FP8LM_FORMATS, SUMS, _RANKS):
        parameters = {"format": fmt, "sums": how}
        dtype = "u1" if format_of(fmt).bits <= 8 else "u2"
        codes = sums(parameters, size, _RANDOM_SUMS, ranks, dtype)
        yield Case(f"{fmt}.{how}.{ranks}", parameters, {"code": codes})
    for fmt, how in itertools.product(FP8LM_FORMATS, SUMS):
        parameters = {"format": fmt, "sums": how}
        yield Case(f"{fmt}.{how}.zeros", parameters, {"code": sums_of_zeros(format_of(fmt))})


def _adam_cases(size: Size) -> Iterator[Case]:
    yield Case("adam", {}, steps_of_adam(size, _RANDOM_STEPS))


SCALES = Suite(
    "fp8lm_scales",
    "Scales of FP8-LM from amaxes",
    "fp8lm_scale",
    ("FLM-001",),
    (
        given("amax", "f32", "the amax of a tensor"),
        given("previous", "f32", "the scale before"),
        expected("ratio", "f32", "the largest number by amax", "FLM-002", "FLM-004"),
        expected("exponent", "f32", "the exponent, a whole number", "FLM-002", "FLM-004"),
        expected("scale", "f32", "the scale", "FLM-003", "FLM-004"),
        expected("scale_inv", "f32", "its rounded inverse", "FLM-003"),
    ),
    _scale_cases,
)
CASTS = Suite(
    "fp8lm_casts",
    "Numbers cast as FP8-LM does, with a scale for each",
    "fp8lm_cast",
    ("FLM-005",),
    (
        given("x", "f32", "the numbers"),
        given("scale", "f32", "a scale for each"),
        expected("scale_inv", "f32", "its rounded inverse", "FLM-003"),
        expected("code", "format", "the codes", "FLM-005"),
        expected("y", "f32", "what they stand for", "FLM-005"),
    ),
    _cast_cases,
)
RECASTS = Suite(
    "fp8lm_recasts",
    "Numbers that are cast with a scale of their rank, and then with the shared one",
    "fp8lm_recast",
    ("FLM-005",),
    (
        given("x", "f32", "the numbers"),
        given("scale", "f32", "the scale of the rank"),
        given("shared", "f32", "the shared scale"),
        expected("code", "format", "the codes with the scale of the rank", "FLM-005"),
        expected("recast", "format", "the codes with the shared scale", "FLM-007"),
        expected("y", "f32", "what they stand for", "FLM-007"),
    ),
    _recast_cases,
)
SUMMED = Suite(
    "fp8lm_sums",
    "Sums of the codes of all ranks",
    "fp8lm_sum",
    ("FLM-009",),
    (
        given("code", "format", "a code of each rank"),
        expected("sum", "format", "the code of the sum", "FLM-009"),
    ),
    _sum_cases,
)
ADAM = Suite(
    "fp8lm_adam",
    "Steps of Adam on parameters of their own",
    "fp8lm_adam",
    ("FLM-012",),
    (
        given("first", "e4m3", "the code of the first moment"),
        given("second", "f16", "the code of the second moment"),
        given("master", "f16", "the code of the weight"),
        given("gradient", "f32", "the gradient"),
        given("first_inverse", "f32", "the inverse of the scale of the first moment"),
        given("second_inverse", "f32", "that of the second moment"),
        given("master_inverse", "f32", "that of the weight"),
        given("lr", "f32", "the learning rate, for the decay alone"),
        given("beta1", "f32", "beta1"),
        given("beta2", "f32", "beta2"),
        given("eps", "f32", "eps"),
        given("weight_decay", "f32", "the weight decay"),
        given("rate", "f32", "the rate of the step"),
        given("root", "f32", "the root of the second correction"),
        expected("new_first", "f32", "the first moment, before its cast", "FLM-012"),
        expected("new_second", "f32", "the second moment, before its cast", "FLM-012"),
        expected("new_master", "f32", "the weight, before its cast", "FLM-013"),
    ),
    _adam_cases,
)
