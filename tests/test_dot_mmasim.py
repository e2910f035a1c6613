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

    In cdna3_fp8 a row is one chunk, and c is finite: MMA-Sim 2.1.1 loses any other c.
    """
    of = formats[parameters["format_a"]], formats[parameters["format_b"]]
    scale_format, block = (parameters.get(name) for name in ("scale_format", "scale_block"))
    _, length = operation(profile, of, scale_format, block)
    is_lossy = profile.family == "gtr_fdpa"
    width = profile.chunk if is_lossy else max(length, 2 * profile.chunk) // length * length
    name = "dot_scaled" if profile.scales else "dot"
    rows = drawn(name, parameters, (count, width), Size(1, seed))
    if is_lossy:
        taken = np.isfinite(rows["c"].view(np.float32))
        rows = {key: array[taken] for key, array in rows.items()}
    scales = (rows["scale_a"], rows["scale_b"]) if profile.scales else None
    fmt = formats[scale_format] if scale_format else None
    wanted = dot_of_mmasim(
        rows["a"], rows["b"], rows["c"].view(np.float32), profile, of, scales, fmt, block
    )
    return OPERATIONS[name], rows, wanted


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
