"""The processor's modes: conversions are right in all, and everything else refuses to compute.

Other libraries set them, for the thread that calls and for those that it starts.
"""

import functools
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest
from inputs import exact_codes
from kernels import needed
from kernels.tensors import bits
from modes import MODES, has_modes, modes, set_modes
from worker_pools import two_threads

import mor_ref
from mor_ref import Format, exact, formats
from mor_ref.cuda import encoding
from mor_ref.cuda.host import Host
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.dot import DOT_PROFILES
from mor_ref.engine import parallel, steps
from mor_ref.engine import policies as acceptance
from mor_ref.engine.nearest import grid_of
from mor_ref.engine.scales import Extremes
from mor_ref.exact.dot import dot as exact_dot
from mor_ref.exact.policies import mix
from mor_ref.explanations.encoding import explain
from mor_ref.policies import POLICIES
from mor_ref.processor_modes import follows_ieee_754

__all__ = ["two_threads"]  # a fixture

pytestmark = has_modes
IN_EACH_MODE = pytest.mark.parametrize("mode", MODES)
REFUSAL = "this thread flushes subnormal numbers or rounds in another direction"

# Its subnormal numbers are subnormal in binary32.
LOWEST = Format("lowest", exponent_bits=4, mantissa_bits=3, bias=127, specials="fn")
ALL_16_BITS = np.arange(1 << 16, dtype=np.uint16)


@IN_EACH_MODE
def test_every_mode_is_noticed(mode):
    with modes(MODES[mode]):
        found = follows_ieee_754()
    assert not found
    assert follows_ieee_754()


# ---------------------------------------------------------------------- conversions

TARGETS = {
    "e4m3": ("e4m3", "rne", np.uint16),
    "e5m2": ("e5m2", "rne", np.int16),
    "e2m1": ("e2m1", "rne", np.uint16),
    "int8": ("int8_mx", "rne", np.int16),
    "lowest": (LOWEST, "rne", np.uint16),
    "lowest up": (LOWEST, "rtp", np.uint16),
    "e4m3 odd": ("e4m3", "rto", np.int16),
    "f16": ("f16", "rne", np.uint16),
    "bf16": ("bf16", "rtn", np.int16),
    "e8m0": ("e8m0", "rtp", np.uint16),
}


def sixteen_bits(kind):
    """Return all numbers of 16 bits: binary16 for signed integers, else bfloat16."""
    return ALL_16_BITS.view(ml_dtypes.bfloat16 if kind == np.uint16 else np.float16)


def numbers_of(x):
    """Return Python's floats; a signalling NaN does not cause a warning."""
    with np.errstate(invalid="ignore"):
        return x.astype(np.float64).tolist()


@functools.cache
def exact_codes_of_16_bits(target):
    """Return the exact model's codes of all numbers of 16 bits."""
    fmt, rounding, kind = TARGETS[target]
    found = formats[fmt] if isinstance(fmt, str) else fmt
    return exact_codes(sixteen_bits(kind), found, rounding)


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize("target", TARGETS)
@IN_EACH_MODE
def test_encode_is_right_in_every_mode(target, mode):
    """ENC-001 to ENC-015."""
    expected = exact_codes_of_16_bits(target)
    fmt, rounding, kind = TARGETS[target]
    x = sixteen_bits(kind)
    with modes(MODES[mode]):
        found = mor_ref.encode(x, fmt, rounding=rounding)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "fmt", ["e4m3", LOWEST, "bf16", "f32"], ids=lambda fmt: getattr(fmt, "name", fmt)
)
@IN_EACH_MODE
def test_encode_of_wide_numbers(dtype, fmt, mode):
    """Subnormal numbers among them, and numbers next to ties."""
    word = np.dtype(f"uint{8 * np.dtype(dtype).itemsize}")
    words = np.random.default_rng(3).integers(0, np.iinfo(word).max, 2000, word)
    small = np.arange(100, dtype=word)
    turns = np.float64([1.0625, 17.0, 2.0**-10, 2.0**-150, 3 * 2.0**-133]).astype(dtype).view(word)
    near = (turns[:, None] + np.arange(-2, 3).astype(word)).ravel()
    x = np.concatenate([words, small, near]).view(dtype)
    found = formats[fmt] if isinstance(fmt, str) else fmt
    expected = [exact.encode(number, found) for number in numbers_of(x)]
    with modes(MODES[mode]):
        codes = mor_ref.encode(x, fmt)
    np.testing.assert_array_equal(codes, expected)


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize("count", [1, 13, 32])
@IN_EACH_MODE
def test_encode_at_random(count, mode):
    """ENC-005."""
    words = np.random.default_rng(4).integers(0, 1 << count, ALL_16_BITS.size, np.uint32)
    x = sixteen_bits(np.uint16)
    random = {"rounding": "sr", "random_bits": words, "n_random_bits": count}
    with modes(MODES[mode]):
        found = mor_ref.encode(x, LOWEST, **random)
    some = slice(None, None, 11)
    expected = [
        exact.encode(number, LOWEST, "sr", random_word=word, n_random_bits=count)
        for number, word in zip(numbers_of(x[some]), words[some].tolist(), strict=True)
    ]
    np.testing.assert_array_equal(found[some], expected)


@functools.cache
def exact_numbers(fmt):
    return [exact.decode(code, fmt) for code in range(fmt.code_count)]


@pytest.mark.parametrize(
    "fmt",
    [formats["bf16"], formats["f16"], formats["e8m0"], formats["int8_mx"], LOWEST],
    ids=lambda fmt: getattr(fmt, "name", fmt),
)
@IN_EACH_MODE
def test_decode_is_right_in_every_mode(fmt, mode):
    """DEC-001 to DEC-003."""
    expected = exact_numbers(fmt)
    codes = np.arange(fmt.code_count, dtype=np.uint32).astype(f"uint{8 if fmt.bits <= 8 else 16}")
    with modes(MODES[mode]):
        found = mor_ref.decode(codes, fmt).view(np.uint32)
    np.testing.assert_array_equal(found, expected)


# ---------------------------------------------------------------------- all else

X = np.linspace(-3, 3, 64, dtype=np.float32).reshape(4, 16)
BITS = X.view(np.uint32).ravel()
ROWS = X.tolist()
CODES = np.arange(64, dtype=np.uint16).reshape(4, 16)
SCALED = mor_ref.quantize(X, "e4m3")
SUMS = np.ones((1, 1, 3), np.uint64)
EXTREMES = Extremes(*(np.full((1, 1), word, np.uint32) for word in (0x3F800000, 1)))


def scaled_step():
    steps.quantize_elements(BITS, BITS, grid_of(formats["e4m3"]), BITS + 0, BITS.astype(np.uint8))


REFUSING = {
    "quantize": lambda: mor_ref.quantize(X, "e4m3"),
    "quantize, dequantize": mor_ref.quantize(X, "e4m3").dequantize,
    "mx": lambda: mor_ref.quantize_mx(X, "e2m1"),
    "mx rceil": lambda: mor_ref.quantize_mx(X, "e2m1", scale_rule="rceil"),
    "mx, dequantize": mor_ref.quantize_mx(X, "e2m1").dequantize,
    "nvfp4": lambda: mor_ref.quantize_nvfp4(X),
    "nvfp4, 4 over 6": lambda: mor_ref.quantize_nvfp4(X, profile="te_4over6_mse"),
    "nvfp4, dequantize": mor_ref.quantize_nvfp4(X).dequantize,
    "mor": lambda: mor_ref.mor(X),
    "mor three_way": lambda: mor_ref.mor(X, "three_way", block=(2, 8)),
    "mor in two threads": lambda: mor_ref.mor(X, "nvfp4", threads=2),
    "a step of quantization": scaled_step,
    "a step of errors": lambda: steps.errors_of_elements(BITS, BITS, *(BITS + k for k in range(3))),
    "a given global scale": lambda: mor_ref.quantize_nvfp4(X, global_scale=3.0),
    "the range": lambda: acceptance.fits_range(SUMS, EXTREMES, formats["f32"]),
    "dot": lambda: mor_ref.dot(CODES, CODES, profile="f32_fma", formats=("bf16", "bf16")),
    "dot, exact": lambda: mor_ref.dot(CODES.astype(np.uint8), CODES.astype(np.uint8)),
    "dot_chunks in two threads": lambda: mor_ref.dot_chunks(
        CODES, CODES, profile="cdna2_bf16", formats=("bf16", "bf16"), threads=2
    ),
    "matmul": lambda: mor_ref.matmul(SCALED, mor_ref.transposed(SCALED), profile="hopper_fp8"),
    "exact dot": lambda: exact_dot([1], [1], 0.0, DOT_PROFILES["exact"], (formats["bf16"],) * 2),
    "exact encode": lambda: exact.encode(0.3, formats["e4m3"]),
    "exact decode": lambda: exact.decode(1, formats["bf16"]),
    "exact mor": lambda: mix(ROWS, POLICIES["tensor"], "gam", partition(X.shape, "tensor")),
    "explain": lambda: explain(0.3, formats["e4m3"]),
}


@pytest.mark.tier("full", but_one_in=4)
@pytest.mark.parametrize("name", REFUSING)
@IN_EACH_MODE
@pytest.mark.usefixtures("two_threads")
def test_what_computes_with_floats_refuses(name, mode):
    """ART-002."""
    call = REFUSING[name]
    with modes(MODES[mode]), pytest.raises(RuntimeError, match=REFUSAL):
        call()
    call()


@IN_EACH_MODE
def test_the_kernels_on_the_cpu_refuse(mode):
    needed.compiler()
    with modes(MODES[mode]), pytest.raises(RuntimeError, match=REFUSAL):
        encoding.encode(
            Host(), bits(X), formats["e4m3"], "rne", mor_ref.definitions.encoding.SpecialCases()
        )


# ---------------------------------------------------------------------- threads


def worker_first(set_up):
    """Return a pool whose workers call `set_up`, and take all items before the caller does."""

    class Pool(ThreadPoolExecutor):
        def __init__(self, max_workers):
            super().__init__(max_workers, initializer=set_up)

        def submit(self, *arguments):
            done = super().submit(*arguments)
            done.exception()
            return done

    return Pool


LONG = np.tile(X, (1, 1 << 14))  # of as many parts as there are threads, or more


@IN_EACH_MODE
@pytest.mark.usefixtures("two_threads")
def test_a_worker_of_other_modes_refuses(monkeypatch, mode):
    """Each call of a kernel looks at the thread that it runs in."""
    expected = mor_ref.encode(LONG, "e4m3", threads=1)
    monkeypatch.setattr(
        parallel, "ThreadPoolExecutor", worker_first(lambda: set_modes(MODES[mode]))
    )
    for call in (
        lambda: mor_ref.quantize(LONG, "e4m3", threads=2),
        lambda: mor_ref.quantize_nvfp4(LONG, profile="te_4over6_mae", threads=2),
        lambda: mor_ref.mor(LONG, threads=2),
    ):
        with pytest.raises(RuntimeError, match=REFUSAL):
            call()
    assert np.array_equal(mor_ref.encode(LONG, "e4m3", threads=2), expected)


@IN_EACH_MODE
@pytest.mark.usefixtures("two_threads")
def test_a_caller_of_other_modes_refuses_or_its_workers_do(mode):
    """On Linux a thread begins with the modes of the one that started it."""
    expected = mor_ref.encode(LONG, "e4m3", threads=1)
    with modes(MODES[mode]):
        found = mor_ref.encode(LONG, "e4m3", threads=2)
        with pytest.raises(RuntimeError, match=REFUSAL):
            mor_ref.quantize(LONG, "e4m3", threads=2)
    assert np.array_equal(found, expected)


@pytest.mark.tier("full")
def test_constants_are_right_whatever_the_modes_of_the_import():
    """BLF-002: a tenth, to the nearest number."""
    program = (
        "import numpy; from fractions import Fraction; from modes import MODES, modes\n"
        "with modes(MODES['down']):\n"
        "    from mor_ref.engine.formulas import nearest_binary32\n"
        "    tenth = nearest_binary32(Fraction('0.1'))\n"
        "print(hex(tenth.view(numpy.uint32)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd="tests", capture_output=True, text=True, check=False
    )
    assert done.stdout == "0x3dcccccd\n", done.stderr
