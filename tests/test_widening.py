"""Binary16 numbers as binary32: by the processor's instruction, and where it has none."""

import contextlib
import os
import subprocess
import sys

import llvmlite.binding
import numba
import numpy as np
import pytest
from extras import imported, needs
from inputs import ALL_F16

import mor_ref
from mor_ref.engine import widening

FEATURES = llvmlite.binding.get_host_cpu_features()
HAS_INSTRUCTION = FEATURES.get("f16c", False) and FEATURES.get("avx", False)
BITS = ALL_F16.view(np.uint16)
# What all inputs become in a process, and whether its kernels have the instruction.
PRINTED = """
import hashlib, numpy as np, mor_ref
from mor_ref.engine import encoding
x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
codes = [mor_ref.encode(x, "e4m3"), mor_ref.encode(x, "bf16", nan="signed")]
print(hashlib.sha256(b"".join(c.tobytes() for c in codes)).hexdigest())
for kernel in (encoding.encode_array, encoding.encode_array_to_nearest):
    print("instruction", any("vcvtph2ps" in text for text in kernel.inspect_asm().values()))
"""
by_integers = numba.njit(widening.binary32_by_integers)


@numba.njit
def widen_by_integers(numbers, out):
    for i in range(numbers.size):
        out[i] = by_integers(np.uint16(numbers[i]))


WAYS = pytest.mark.parametrize(
    "way", [widening.widen_array, widen_by_integers], ids=["", "by integers"]
)


@contextlib.contextmanager
def flushing():
    torch = imported("torch")
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot flush subnormals")
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def widened(way):
    out = np.empty(BITS.size, np.uint32)
    way(widening.as_binary16(BITS), out)
    return out


def is_right(found):
    """Check numbers against NumPy's conversion; of NaNs only their signs."""
    is_nan = np.isnan(ALL_F16)
    assert np.array_equal(found[~is_nan], ALL_F16[~is_nan].astype(np.float32).view(np.uint32))
    assert np.array_equal(np.isnan(found.view(np.float32)), is_nan)
    assert np.array_equal(found >> 31, BITS >> 15)
    return True


@WAYS
def test_every_binary16(way):
    """ENC-001."""
    assert is_right(widened(way))


@needs("torch")
@WAYS
def test_flush_to_zero_in_the_processor_changes_no_binary16(way):
    """ENC-001: subnormal numbers of binary16 are there whatever another library has set."""
    right = mor_ref.encode(ALL_F16, "f32"), mor_ref.encode(ALL_F16, "e5m2")
    with flushing():
        found = widened(way)
        codes = [mor_ref.encode(ALL_F16, fmt, threads=1) for fmt in ("f32", "e5m2")]
    assert is_right(found)
    assert all(map(np.array_equal, codes, right))


def printed(**environment):
    done = subprocess.run(
        [sys.executable, "-c", PRINTED],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


@pytest.mark.tier("full")
def test_a_processor_without_the_instruction_gives_the_same_bits(tmp_path):
    """ENC-001: LLVM would call a function for it, which is not there."""
    ours = printed(NUMBA_CACHE_DIR=str(tmp_path))
    without = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    others = printed(NUMBA_CACHE_DIR=str(tmp_path), **without)
    assert ours[1:] == [f"instruction {HAS_INSTRUCTION}"] * 2
    assert others == [ours[0], *["instruction False"] * 2]


@pytest.mark.parametrize("policy", ["tensor", "two_way", "three_way", "nvfp4"])
def test_policies_take_a_binary16_for_the_binary32_that_it_is(policy):
    """ENC-001, QNT-004: all numbers, and those of some blocks that have no NaN."""
    finite = np.where(np.isfinite(ALL_F16), ALL_F16, np.float16(1)).reshape(256, 256)
    for x in (ALL_F16.reshape(256, 256), finite):
        found, right = (mor_ref.mor(a, policy) for a in (x, x.astype(np.float32)))
        assert np.array_equal(found.choice, right.choice)
        assert np.array_equal(found.output, right.output)
        for name, error in right.error.items():
            assert np.array_equal(found.error[name].sum, error.sum)
            assert np.array_equal(found.error[name].nonfinite, error.nonfinite)
