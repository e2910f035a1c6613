"""Golden vectors of dot products against kernels that are wrong in a lane, a block or a chunk."""

import functools
import itertools
import math
from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest
from wrong_sums import are_finite, rounded_by

from mor_ref import formats, golden
from mor_ref.definitions.dot import DOT_PROFILES, GROUP
from mor_ref.exact import dot, dot_amd, dot_nvidia
from mor_ref.exact.dot_binary32 import total
from mor_ref.exact.dot_terms import ONE, ZERO, cut
from mor_ref.exact.step import replaced
from mor_ref.golden.inputs.found_dots import first_with_numbers_of
from mor_ref.golden.suites import SUITES
from mor_ref.operations import OPERATIONS

OF_NVIDIA = ("t_fdpa", "st_fdpa", "gst_fdpa", "promoted")
OF_AMD = ("e_fdpa", "ftz_mul_add", "tr_fdpa", "gtr_fdpa")
CUT_BY_AMD = ("tr_fdpa", "gtr_fdpa")
LANES = {
    "the last lane": lambda k, count: k == count - 1,
    "the second half": lambda k, count: k >= count // 2,
    "odd lanes": lambda k, _: k % 2 == 1,
    "the second of four lanes": lambda k, _: k % 4 == 1,
}
NOTHING = (0, -1000)  # the sum and the exponent of no product


@cache
def cases_of(suite, profile):
    """Return the cases of a profile in a suite, those of special rows first."""
    found = [case for case in golden.load(suite) if case.parameters["dot_profile"] == profile]
    return sorted(found, key=lambda case: not case.name.endswith(("specials", "reversed")))


def shows(suite, profile, steps):
    """Return whether a case has other results with replaced steps."""
    exact = OPERATIONS[SUITES[suite].operation].exact
    for case in cases_of(suite, profile):
        with replaced(steps):
            found = exact(case.parameters, case.arrays)["result"]
        if (found != case.arrays["result"]).any():
            return True
    return False


def unseen(suites, families, steps):
    """Return the profiles of some families that have the same results in a suite.

    Of profiles that differ in their names alone, there is the first one.
    """
    return [
        (suite, name)
        for suite in suites
        for name, profile in DOT_PROFILES.items()
        if name == first_with_numbers_of(profile)
        if profile.family in families and cases_of(suite, name)
        if not shows(suite, name, steps)
    ]


def ordinary(one):
    """Return a product with special numbers as zeros, and special scales as 1."""
    a, b = (x if math.isfinite(x.value) else ZERO for x in (one.a, one.b))
    scales = (x if math.isfinite(x.value) else ONE for x in (one.scale_a, one.scale_b))
    return type(one)(a, b, *scales)


def without_special_numbers(chosen):
    """Return steps that see no infinity and no NaN in some lanes."""

    def chunk(reference, part, c, profile):
        unit = GROUP if profile.family == "gst_fdpa" else 1  # whose scales are one
        count = len(part) // unit
        read = [ordinary(one) if chosen(k // unit, count) else one for k, one in enumerate(part)]
        return reference(read, c, profile)

    of_amd = (dot_amd.e_fdpa, dot_amd.ftz_mul_add, dot_amd.tr_fdpa, dot_amd.gtr_fdpa)
    return [(step, chunk) for step in (dot_nvidia.t_fdpa, dot_nvidia.gst_fdpa, *of_amd)]


def without_exponents(chosen, of_c=True):
    """Return steps that leave some terms, or c, out of the largest exponent."""

    def cut_chunk(reference, terms, c, profile):
        found = reference(terms, c, profile)
        if not are_finite(terms, c):
            return found
        last = dot_nvidia.term_of_c(c, profile)
        kept = [term for k, term in enumerate(terms) if not chosen(k, len(terms))]
        exponents = [term.exponent for term in (*kept, *([last] if of_c else []))]
        unit = max(exponents) - profile.fraction_bits
        value = sum(cut(term.value, unit) for term in (*terms, last)) * Fraction(2) ** unit
        return replace(found, c=dot_nvidia.result(value, profile))

    def cut_products(reference, part, profile):
        kept = [one for k, one in enumerate(part) if not chosen(k, len(part))]
        exponent = reference(kept, profile)[1]
        unit = (NOTHING[1] if exponent is None else exponent) - profile.fraction_bits
        value = sum(cut(one.element_product, unit) for one in part) * Fraction(2) ** unit
        return value, exponent if value == 0 else unit + profile.fraction_bits

    return [(dot_nvidia.cut_chunk, cut_chunk), (dot_amd.cut_products, cut_products)]


@pytest.mark.tier("full")
@pytest.mark.parametrize("lanes", LANES)
def test_special_numbers_of_every_lane_show(lanes):
    """DOT-008, DOT-009: in each suite, and also the scales of the groups of a chunk."""
    suites, steps = ("dot_chunks", "dot", "dot_scaled"), without_special_numbers(LANES[lanes])
    assert unseen(suites, OF_NVIDIA + OF_AMD, steps) == []


@pytest.mark.tier("full")
@pytest.mark.parametrize("lanes", LANES)
def test_exponents_of_every_lane_show(lanes):
    """DOT-007, DOT-009, DOT-017, DOT-018: in each suite."""
    suites, steps = ("dot_chunks", "dot", "dot_scaled"), without_exponents(LANES[lanes])
    assert unseen(suites, OF_NVIDIA + CUT_BY_AMD, steps) == []


@pytest.mark.tier("full")
def test_the_exponent_of_c_shows():
    """DOT-007."""
    steps = without_exponents(lambda *_: False, of_c=False)
    assert unseen(("dot_chunks", "dot", "dot_scaled"), OF_NVIDIA, steps) == []


def in_each_chunk(change):
    """Return a step that is given the chunks of a row, each with its scales."""

    def dot_chunks(reference, a, b, c, profile, fmts, scales=None):
        length, parts = dot.chunk_length(profile), []
        for k in range(0, len(a), length):
            part, of_part = slice(k, k + length), scales
            if scales is not None:
                blocks = slice(k // scales.block, -(-(k + length) // scales.block))
                of_part = replace(scales, a=scales.a[blocks], b=scales.b[blocks])
            one = functools.partial(reference, a[part], b[part], profile=profile, fmts=fmts)
            parts.append(functools.partial(one, scales=of_part))
        return change(parts, c, profile)

    return [(dot.dot_chunks, dot_chunks)]


def passing(c_after):
    """Return steps that change c after each chunk but the last one."""

    def change(parts, c, _):
        found = []
        for part in parts:
            found += part(c=c)
            c = c_after(found[-1].c)
        return found

    return in_each_chunk(change)


def always_infinite(parts, c, _):
    """Keep an infinite c, whatever the chunks behind the first one have."""
    found = [*parts[0](c=c)]
    for part in parts[1:]:
        c = found[-1].c
        after = part(c=c)
        found += [replace(after[0], c=c)] if math.isinf(c) else after
    return found


def added(x, y, profile):
    """Return the sum of two numbers in the format of the result."""
    if profile.result == "f32" or not math.isfinite(x + y):
        return total(x, y)
    return rounded_by("rne", Fraction(x) + Fraction(y), profile)


def summed_apart(parts, c, profile):
    """Sum each chunk from 0 on, the first one from c on, and then the sums."""
    found = [*parts[0](c=c), *(chunk for part in parts[1:] for chunk in part(c=0.0))]
    add = functools.partial(added, profile=profile)
    sums = itertools.accumulate((chunk.c for chunk in found), add)
    return [replace(chunk, c=c) for chunk, c in zip(found, sums, strict=True)]


def last_to_nearest(parts, c, _):
    """Cut the sums of all chunks but the last one, which is rounded to nearest."""
    found = []
    for part in parts[:-1]:
        found += part(c=found[-1].c if found else c)
    with replaced([(dot_nvidia.result, lambda _, *sum_of: rounded_by("rne", *sum_of))]):
        return [*found, *parts[-1](c=found[-1].c if found else c)]


def without_infinite_sign(c):
    """Return c, or +infinity if it is infinite."""
    return math.inf if math.isinf(c) else c


def never_special(c):
    """Return c, or 0 if it is infinite or NaN."""
    return c if math.isfinite(c) else 0.0


def finite(c):
    """Return c, or the largest number of its sign if it is infinite."""
    return math.copysign(formats["f32"].largest, c) if math.isinf(c) else c


CHUNKED = tuple(family for family in OF_NVIDIA + OF_AMD if family != "ftz_mul_add")
ACROSS = {
    # In CDNA 2, the sum of a chunk is a number of binary32 before c is added (DOT-016).
    "summed apart": (in_each_chunk(summed_apart), (*OF_NVIDIA[:-1], *CUT_BY_AMD, "e_fdpa")),
    "the last one to nearest": (in_each_chunk(last_to_nearest), ("st_fdpa", "gst_fdpa")),
    "infinities without a sign": (passing(without_infinite_sign), CHUNKED),
    "no special numbers": (passing(never_special), CHUNKED),
    "always infinite": (in_each_chunk(always_infinite), CHUNKED),
    "not infinite": (passing(finite), CHUNKED),
}


@pytest.mark.tier("full")
@pytest.mark.parametrize("mistake", ACROSS)
def test_the_way_of_c_from_chunk_to_chunk_shows(mistake):
    """DOT-003, DOT-008, DOT-010, DOT-011: in the suites that have several chunks."""
    steps, families = ACROSS[mistake]
    assert unseen(("dot", "dot_scaled"), families, steps) == []


@pytest.mark.tier("full")
def test_a_last_sum_to_nearest_shows():
    """DOT-010: in binary32, of each profile that cuts its sums."""
    found = unseen(("dot",), ("t_fdpa",), in_each_chunk(last_to_nearest))
    assert {DOT_PROFILES[name].result for _, name in found} == {"f16"}  # is to nearest


def of_halves(reference, part, c, profile):
    """Let the first half of a chunk decide if it has a special number, else the second one."""
    half = len(part) // 2
    for some in (part[:half], part[half:]):
        if not math.isfinite(reference(some, 0.0, profile).c):
            return reference(some, c, profile)
    return reference(part, c, profile)


@pytest.mark.tier("full")
def test_infinities_of_two_halves_meet():
    """DOT-008."""
    steps = [(step, of_halves) for step in (dot_nvidia.t_fdpa, dot_amd.e_fdpa, dot_amd.tr_fdpa)]
    families = ("t_fdpa", "st_fdpa", "promoted", "e_fdpa", "tr_fdpa")
    assert unseen(("dot_chunks", "dot", "dot_scaled"), families, steps) == []
