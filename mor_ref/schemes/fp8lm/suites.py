"""FP8-LM: scales, casts, sums of ranks, and steps of Adam, each of single numbers."""

import itertools
from collections.abc import Iterator

from mor_ref.golden.model.suite import Case, Size, suite
from mor_ref.schemes.fp8lm.definition import FP8LM_FORMATS, SCALE_PROFILES, SUMS, format_of
from mor_ref.schemes.fp8lm.inputs import (
    casts,
    products,
    recasts,
    scales,
    steps_of_adam,
    subnormal,
    sums,
    sums_of_zeros,
)

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


SCALES = suite(
    "fp8lm_scales", "Scales of FP8-LM from amaxes", "fp8lm_scale", ("FLM-001",), _scale_cases
)
CASTS = suite(
    "fp8lm_casts",
    "Numbers cast as FP8-LM does, with a scale for each",
    "fp8lm_cast",
    ("FLM-005",),
    _cast_cases,
)
RECASTS = suite(
    "fp8lm_recasts",
    "Numbers that are cast with a scale of their rank, and then with the shared one",
    "fp8lm_recast",
    ("FLM-005",),
    _recast_cases,
)
SUMMED = suite(
    "fp8lm_sums", "Sums of the codes of all ranks", "fp8lm_sum", ("FLM-009",), _sum_cases
)
ADAM = suite(
    "fp8lm_adam",
    "Steps of Adam on parameters of their own",
    "fp8lm_adam",
    ("FLM-012",),
    _adam_cases,
)
