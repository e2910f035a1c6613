"""Golden vectors of dot products: each number of each profile, and each flush, shows in them."""

import functools
import math
import operator
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from wrong_sums import changed_sum, lost, to_nearest

from mor_ref import FormatError, formats, golden
from mor_ref.definitions.dot import DOT_PROFILES, GROUP, PERIOD, ROUNDED_ONCE
from mor_ref.exact import dot, dot_amd, dot_nvidia, matmul
from mor_ref.exact.dot_binary32 import product, total
from mor_ref.exact.dot_terms import Chunk
from mor_ref.exact.step import replaced
from mor_ref.golden.suites import SUITES
from mor_ref.operations import OPERATIONS

NAMES = ("dot_chunks", "dot", "dot_scaled")
TENSOR_CORES = ("t_fdpa", "st_fdpa", "gst_fdpa")
F32 = formats["f32"]


@cache
def cases_of_profiles():
    """Return the cases of each profile, with their operation."""
    found = {profile.name: [] for profile in DOT_PROFILES.values()}
    for name in NAMES:
        for case in golden.load(name):
            found[case.parameters["dot_profile"]].append((OPERATIONS[SUITES[name].operation], case))
    return found


def is_seen(profile, changed):
    """Return whether a case of a profile has other results under the changed row."""
    for operation, case in cases_of_profiles()[profile.name]:
        found = operation.engine(case.parameters | {"dot_profile": changed}, case.arrays)
        if any(not np.array_equal(found[f], case.arrays[f]) for f in found if f in case.arrays):
            return True
    return False


def changes(profile):
    """Yield each number of a row with other values."""
    powers = {1 << k for k in range(8)}
    yield "chunk", powers | {profile.chunk - 1, profile.chunk + 1, profile.chunk + GROUP}
    around = (("fraction_bits", profile.is_cut or profile.family == "promoted"),
              ("zero_exponent", profile.is_cut and profile.family in ROUNDED_ONCE),
              ("kept_bits", profile.family in ROUNDED_ONCE and profile.result == "f32"),
              ("ignored_bits", profile.ignored_bits))  # fmt: skip
    for field, is_there in around:
        value = getattr(profile, field)
        if is_there:
            yield field, {value - 1, value + 1} - {F32.mantissa_bits + 1}
    if profile.flushed_every:
        in_f16 = profile.formats == ("f16",)  # a later c is no -0: only the first flush shows
        yield "flushed_every", {0} if in_f16 else {0, *range(2, 2 * profile.flushed_every + 5, 2)}
    if profile.first_c:
        yield "first_c", {""}


def changed_rows(profile):
    """Yield the rows that differ from that of a profile in one number, as far as rows have it."""
    for field, values in changes(profile):
        for value in values - {getattr(profile, field)}:
            with suppress(FormatError):
                yield field, value, replace(profile, **{field: value})


@pytest.mark.tier("full")
def test_every_number_of_every_profile_shows():
    """DOT-002, DOT-003: also whether the sums of two pairs are added before c (DOT-016)."""
    unseen = []
    for profile in (row for row in DOT_PROFILES.values() if row.chunk):
        assert not is_seen(profile, profile), profile.name
        rows = changed_rows(profile)
        unseen += [(profile.name, *names) for *names, row in rows if not is_seen(profile, row)]
    assert unseen == []


def flushed(x):
    """Return a number of binary32, or a zero of its sign if it is subnormal."""
    return math.copysign(0.0, x) if abs(x) < 2.0**-126 else x


def without_sign(x):
    """Return a number of binary32, or +0 if it is subnormal."""
    return flushed(x) or 0.0


def positive_zero(_):
    """Return +0."""
    return 0.0


@dataclass(frozen=True)
class Cdna2:
    """The steps of CDNA 2; as they are, all are right (DOT-016)."""

    subnormal: Callable = positive_zero
    zero: Callable = positive_zero
    of_products: Callable = flushed
    of_sums: Callable = flushed
    of_c: Callable = flushed
    subnormal_c: Callable = positive_zero
    zero_c: Callable = positive_zero
    fills: bool = True

    def operand(self, x):
        """Return an operand as it is multiplied."""
        if x.value == 0:
            return self.zero(x.value)
        return self.subnormal(x.value) if abs(x.value) < 2.0**x.exponent else x.value

    def chunk(self, _reference, part, c, _profile):
        """Return c after a chunk."""
        pairs = [(self.operand(one.a), self.operand(one.b)) for one in part]
        row = [self.of_products(product(*pair)) for pair in pairs]
        while len(row) > 1:
            pairs = [row[k : k + 2] for k in range(0, len(row), 2)]
            row = [self.of_sums(functools.reduce(total, pair)) for pair in pairs]
        return Chunk(None, None, self.of_c(total(c, row[0])))

    def c_of_chunk(self, _reference, c, start, profile):
        """Return the c of a chunk; the first one of an instruction flushes it."""
        if start % profile.flushed_every:
            return c
        return self.zero_c(c) if c == 0 else self.subnormal_c(c) if flushed(c) == 0 else c

    def in_chunks(self, reference, products, profile):
        """Return the products in chunks, the last one filled with zeros or not."""
        found = reference(products, profile)
        rest = len(products) % profile.chunk
        return found if self.fills or not rest else [*found[:-1], found[-1][:rest]]

    def shows(self, name):
        """Return whether a case of a profile has other results under these steps."""
        steps = ((dot_amd.ftz_mul_add, self.chunk), (dot_amd.c_of_chunk, self.c_of_chunk),
                 (dot.in_chunks, self.in_chunks))  # fmt: skip
        with replaced(steps):
            return any(
                not np.array_equal(operation.exact(case.parameters, case.arrays)["result"], wanted)
                for operation, case in cases_of_profiles()[name]
                for wanted in (case.arrays["result"],)
            )


def as_it_is(x):
    """Return a number itself."""
    return x


def signed_zero(x):
    """Return a zero with the sign of a number."""
    return math.copysign(0.0, x)


# In f16, products are 0 or at least 2^-28: no sum is subnormal, and c is -0 at most at the start.
OF_BF16 = ("cdna2_bf16", "cdna2_bf16_1k")
OF_CDNA2 = (*OF_BF16, "cdna2_fp16")
CHANGED_STEPS = [
    (OF_CDNA2, {"subnormal": as_it_is}),
    (OF_BF16, {"subnormal": signed_zero}),
    (OF_BF16, {"zero": as_it_is}),
    (OF_BF16, {"of_products": as_it_is}),
    (OF_BF16, {"of_products": without_sign}),
    (OF_BF16, {"of_sums": as_it_is}),
    (OF_BF16, {"of_sums": without_sign}),
    (OF_BF16, {"of_c": as_it_is}),
    (OF_BF16, {"of_c": without_sign}),
    (OF_CDNA2, {"subnormal_c": as_it_is}),
    (OF_CDNA2, {"subnormal_c": signed_zero}),
    (OF_CDNA2, {"zero_c": as_it_is}),
    (OF_BF16, {"fills": False}),
]


@pytest.mark.tier("full")
def test_every_flush_of_cdna2_shows():
    """DOT-003, DOT-016: flushes of operands, products, sums and c, and the signs of zeros."""
    assert [name for name in OF_CDNA2 if Cdna2().shows(name)] == []
    found = [
        (tuple(name for name in OF_CDNA2 if Cdna2(**steps).shows(name)), steps)
        for _, steps in CHANGED_STEPS
    ]
    assert found == CHANGED_STEPS


@pytest.mark.tier("full", but=["[64]"])
@pytest.mark.parametrize("period", [PERIOD // 2, 2 * PERIOD])
def test_the_period_of_promotion_shows(period):
    """DOT-011."""
    with replaced([(dot.chunk_length, lambda *_: period)]):
        operation, case = cases_of_profiles()["hopper_fp8_promoted"][0]
        found = operation.exact(case.parameters, case.arrays)["result"]
    assert (found != case.arrays["result"]).any()


def test_a_promoted_sum_can_be_a_negative_zero():
    """DOT-011: of zeros, and of a product that is too small; never of whole sums of -0.

    A negative factor makes a sum of +0 a -0, which a c of +0 takes away.
    """
    cases = [case for _, case in cases_of_profiles()["hopper_fp8_promoted"]]
    scaled = [case.arrays["result"] for case in cases if "scale_a" in case.arrays]
    *rows, of_zeros, of_scales = scaled[:4]
    assert all(np.count_nonzero(bits == 1 << 31) >= 2 for bits in rows)
    assert not of_zeros.any()
    assert (of_scales == [1 << 31, 0, 1 << 31]).all()


def without(is_special, side):
    """Return steps in which special scales of one operand count as 1."""

    def ordinary(block):
        names = [name for name in ("scale", "overall") if is_special(getattr(block, name))]
        return replace(block, **dict.fromkeys(names, 1.0))

    def pieces(reference, a, b):
        rows = [list(row) for row in zip(*reference(a, b), strict=True)]
        rows[side] = [ordinary(block) for block in rows[side]]
        return list(zip(*rows, strict=True))

    def with_scales(reference, a, b, profile):
        rows = [a, b]
        rows[side] = [ordinary(block) for block in rows[side]]
        return reference(*rows, profile)

    return ((matmul.pieces, pieces), (matmul.entry_with_scales, with_scales))


@pytest.mark.tier("full", but=["[isinf-a]"])
@pytest.mark.parametrize("side", ["a", "b"])
@pytest.mark.parametrize("is_special", [math.isnan, math.isinf, operator.not_])
def test_a_special_scale_of_one_operand_shows(is_special, side):
    """GEM-003: in every way in which scales enter, and of rows in NVFP4."""
    unseen = []
    for case in golden.load("matmul"):
        names = (f"scale_{side}", f"overall_{side}")
        scales = np.concatenate([case.arrays[name].view(np.float32).ravel() for name in names])
        if case.name.endswith(".scales") and any(map(is_special, scales.tolist())):
            with replaced(without(is_special, "ab".index(side))):
                found = OPERATIONS["matmul"].exact(case.parameters, case.arrays)["result"]
            unseen += [] if (found != case.arrays["result"]).any() else [case.name]
    assert unseen == []


WRONG_SUMS = {
    "terms to nearest": changed_sum(lambda terms, _: sum(lost(x, round) for x in terms)),
    "terms rounded down": changed_sum(lambda terms, _: sum(lost(x, math.floor) for x in terms)),
    "c is not cut": changed_sum(lambda _, c: c - math.trunc(c)),
    "c rounded down": changed_sum(lambda _, c: lost(c, math.floor)),
    "-0": changed_sum(lambda *_: 0, -0.0),
}


def can_show(mistake, case):
    """Return whether the formats of a case have numbers that show a mistake."""
    profile = DOT_PROFILES[case.parameters["dot_profile"]]
    of, to = [formats[case.parameters[f"format_{name}"]] for name in "ab"], formats[profile.result]
    if mistake == "-0":
        return math.prod(fmt.smallest_subnormal for fmt in of) < to.smallest_subnormal
    is_narrow = all(fmt.bits < 8 for fmt in of)  # next to c in f16, no product is cut
    return not (mistake.startswith("terms") and is_narrow and profile.result == "f16")


@pytest.mark.tier("full")
@pytest.mark.parametrize("mistake", [*WRONG_SUMS, "results"])
def test_every_rounding_of_every_tensor_core_shows(mistake):
    """DOT-007, DOT-009 and DOT-010: in each pair of formats. Scales make -0 in other cases."""
    step = (dot_nvidia.result, to_nearest)
    if mistake in WRONG_SUMS:
        step = (dot_nvidia.cut_chunk, WRONG_SUMS[mistake])
    wrong = []
    for name in NAMES[:-1] if mistake == "-0" else NAMES:
        for case in golden.load(name):
            family = DOT_PROFILES[case.parameters["dot_profile"]].family
            if family not in TENSOR_CORES or not case.name.endswith(".specials"):
                continue
            with replaced([step]):
                declared = OPERATIONS[SUITES[name].operation]
                found = declared.exact(case.parameters, case.arrays)["result"]
            if (found != case.arrays["result"]).any() != can_show(mistake, case):
                wrong.append((name, case.name))
    assert wrong == []
