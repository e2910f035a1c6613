"""Deviations of chunks and of scales change every instruction that has them."""

from dataclasses import replace

import numpy as np
import pytest

from mor_ref import decode, formats, golden
from mor_ref.definitions.dot import DOT_PROFILES
from mor_ref.deviations import DEVIATIONS, applied
from mor_ref.exact.matmul import Block, entry
from mor_ref.golden.suites import SUITES
from mor_ref.operations import OPERATIONS


def cases(suite, profile):
    """Return the operation of a suite, and the cases of a profile."""
    known = [case for case in golden.load(suite) if case.parameters["dot_profile"] == profile]
    return OPERATIONS[SUITES[suite].operation], known


def results(operation, parameters, arrays, name):
    """Return the results of the exact model with a deviation."""
    with applied(DEVIATIONS[name]):
        return operation.exact(parameters, arrays)["result"].tolist()


@pytest.mark.tier("full", but=["half_as_long-hopper", "twice_as_long-cdna1"])
@pytest.mark.parametrize(
    ("name", "profile", "chunk"),
    [
        ("dot_chunks_are_half_as_long", "hopper_fp8_promoted", 16),
        ("dot_chunks_are_twice_as_long", "hopper_fp8_promoted", 64),
        ("dot_chunks_are_half_as_long", "cdna1_fp16", 2),
        ("dot_chunks_are_twice_as_long", "cdna1_fp16", 8),
    ],
)
def test_sums_have_chunks_of_another_length(name, profile, chunk):
    """DOT-011, DOT-015: the engine has the same sums by another row."""
    row = DOT_PROFILES[profile]
    operation, known = cases("dot", row.name)
    differing = 0
    for case in known[:3]:
        other = case.parameters | {"dot_profile": replace(row, chunk=chunk)}
        wanted = operation.engine(other, case.arrays)["result"].tolist()
        assert results(operation, case.parameters, case.arrays, name) == wanted
        differing += wanted != case.arrays["result"].tolist()
    assert differing


def first(scales):
    return np.repeat(scales[:, :1], scales.shape[1], axis=1)


@pytest.mark.parametrize("profile", ["blackwell_mxfp8", "blackwell_nvfp4"])
@pytest.mark.parametrize(
    ("name", "of_a", "of_b"),
    [
        ("matmul_first_scale_for_all", first, first),
        ("matmul_scales_of_the_other_operand", np.array, np.fliplr),
    ],
)
def test_instructions_with_scales_have_those_of_another_block(profile, name, of_a, of_b):
    """GEM-003: the engine has the same entries from other scales."""
    operation, (case, *_) = cases("matmul", profile)
    arrays = case.arrays
    scales = {"scale_a": of_a(arrays["scale_a"]), "scale_b": of_b(arrays["scale_b"])}
    wanted = operation.engine(case.parameters, {**arrays, **scales})["result"].tolist()
    assert results(operation, case.parameters, arrays, name) == wanted
    assert wanted != arrays["result"].tolist()


def test_the_first_scale_is_that_of_the_first_block_with_a_scale():
    """GEM-004: a block in bfloat16 has no scale, and takes none."""
    e4m3, bf16 = formats["e4m3"], formats["bf16"]
    wide, *scaled = Block([0x3F80], bf16), Block([0x38], e4m3, 0.5), Block([0x38], e4m3, 0.25)
    ones = [Block([0x3F80], bf16)] * 3
    with applied(DEVIATIONS["matmul_first_scale_for_all"]):
        found = entry([wide, *scaled], ones, DOT_PROFILES["exact"])
    assert found == 1 + 0.5 + 0.5


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("dot_added_in_binary32", np.float32), ("dot_added_in_binary64", np.float64)],
)
def test_sums_in_binary32_and_binary64_are_those_of_a_loop_on_a_cpu(name, dtype):
    """DOT-007: products of e4m3 and sums are rounded by NumPy, one after the other."""
    operation, known = cases("dot", "hopper_fp8")
    differing = compared = 0
    for case in known:
        if case.parameters["format_a"] == case.parameters["format_b"] == "e4m3":
            a, b = (decode(case.arrays[side], "e4m3").astype(dtype) for side in "ab")
            with np.errstate(all="ignore"):
                c = case.arrays["c"].view(np.float32).astype(dtype)
                for k in range(a.shape[1]):
                    c = c + a[:, k] * b[:, k]
                c = c.astype(np.float32)
            codes = results(operation, case.parameters, case.arrays, name)
            np.testing.assert_array_equal(np.array(codes, np.uint32).view(np.float32), c)
            compared += c.size
            differing += np.count_nonzero(c != case.arrays["result"].view(np.float32))
    assert differing > compared / 10 > 10
