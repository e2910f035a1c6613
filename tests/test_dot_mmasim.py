"""Dot products are those of MMA-Sim 2.1.1, bit for bit, for all profiles that it has."""

import itertools

import numpy as np
import pytest
from extras import needs

from mor_ref.definitions.dot import DOT_PROFILES
from mor_ref.definitions.formats import formats
from mor_ref.golden.inputs.dot_rows import drawn
from mor_ref.golden.model.suite import Size
from mor_ref.operations import OPERATIONS
from mor_ref.verify.candidates.peers.mmasim_dots import dot_of_mmasim, is_simulated, operation

SIMULATED = [name for name in DOT_PROFILES.specified if is_simulated(DOT_PROFILES[name])]


def cases_of(profile):
    """Yield the parameters of every pair of formats, with every format of scales."""
    for pair in itertools.product(profile.formats, repeat=2):
        usual = dict(
            zip(("dot_profile", "format_a", "format_b"), (profile.name, *pair), strict=True)
        )
        for fmt, block in profile.scales:
            yield {**usual, "scale_format": fmt, "scale_block": block}
        if not profile.scales:
            yield usual


def rows_of(profile, parameters, count, seed):
    """Return random rows, of two chunks at least and of whole instructions, and their results.

    In families that flush, they are two instructions, and every other row ends in products of -0.
    In cdna3_fp8 a row is one chunk, and c is finite: MMA-Sim 2.1.1 loses any other c.
    """
    of = formats[parameters["format_a"]], formats[parameters["format_b"]]
    scale_format, block = (parameters.get(name) for name in ("scale_format", "scale_block"))
    _, length = operation(profile, of, scale_format, block)
    is_lossy = profile.family == "gtr_fdpa"
    width = profile.chunk if is_lossy else max(length, 2 * profile.chunk) // length * length
    if profile.flushed_every:
        width = 2 * length
    name = "dot_scaled" if profile.scales else "dot"
    rows = drawn(name, parameters, (count, width), Size(1, seed))
    if is_lossy:
        taken = np.isfinite(rows["c"].view(np.float32))
        rows = {key: array[taken] for key, array in rows.items()}
    if profile.flushed_every:
        end_in_negative_zeros(rows, of[0], profile)
    scales = (rows["scale_a"], rows["scale_b"]) if profile.scales else None
    fmt = formats[scale_format] if scale_format else None
    wanted = dot_of_mmasim(
        rows["a"], rows["b"], rows["c"].view(np.float32), profile, of, scales, fmt, block
    )
    return OPERATIONS[name], rows, wanted


def end_in_negative_zeros(rows, fmt, profile):
    """Give every other row a c that becomes -0 in its first chunk, and then products of -0."""
    normal, sign = np.array([1 << fmt.mantissa_bits]), fmt.sign_bit
    rows["c"][::2] = 0x80C00000  # -1.5 * 2^-126
    rows["a"][::2], rows["b"][::2] = normal | sign, normal
    rows["a"][::2, : profile.chunk] = 0
    if fmt.exponent_bits == 8:  # 2^-63 * 2^-63
        rows["a"][::2, 0] = rows["b"][::2, 0] = fmt.bias - 63 << fmt.mantissa_bits


@needs("torch", "mmasim")
@pytest.mark.parametrize("name", SIMULATED)
def test_the_exact_model_is_mmasim(name):
    """DOT-002, DOT-007, DOT-009, DOT-010, DOT-015 to DOT-018: on few rows of every profile."""
    profile = DOT_PROFILES[name]
    for parameters in itertools.islice(cases_of(profile), 3):
        declared, rows, wanted = rows_of(profile, parameters, 12, seed=3)
        assert declared.exact(parameters, rows)["result"].tolist() == wanted.tolist(), parameters


@needs("torch", "mmasim")
@pytest.mark.parametrize("name", SIMULATED)
def test_the_engine_is_mmasim(name):
    """DOT-002, DOT-007, DOT-009, DOT-010, DOT-015 to DOT-018: on every pair of formats."""
    profile = DOT_PROFILES[name]
    for parameters in cases_of(profile):
        declared, rows, wanted = rows_of(profile, parameters, 200, seed=4)
        assert (declared.engine(parameters, rows)["result"] == wanted).all(), parameters
