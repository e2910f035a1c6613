"""Encoding and decoding."""

import functools
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import mor_ref
from benchmarks import c_library, inputs, peers
from benchmarks.rows import COPY, OURS, WITH_OUT, Contender, Difference, Ratio, Row
from mor_ref import formats
from mor_ref.arrays import code_dtype
from mor_ref.definitions.encoding import DETERMINISTIC_ROUNDINGS, POWER_OF_TWO_ROUNDINGS
from mor_ref.engine.parallel import available_threads

LARGE, USUAL, SMALL, FEW = 26, 24, 20, 18
TWICE = Difference("rounds a float64 twice, through float32", 10)
NANS = Difference("makes NaN of a number that is too large", 31_500_000, 31_000_000)
NO_MINUS_ZERO = "makes +0 of a negative number that is too small"
SUM_IN_FLOAT32 = Difference("adds in float32 before it drops digits", 4)
ALWAYS_ODD = Difference("makes numbers odd that need no rounding, too", 4)
BASE = "e4m3 rne"
ONE_COPY = "copy of as many bytes, one thread"
TWO_COPIES = "copy of as many bytes, 2 threads"
BOUND_OF_OTHERS = (
    "only rne, to a small format, is one addition; all others compare the dropped bits"
)
BOUND_OF_RANDOM = "it reads a random word for each number and adds it to the dropped bits"


def encoding(fmt, rounding=None, threads=1, random_bits=None, **special):
    """Return our contender, which writes to memory that exists already."""
    found = formats[fmt]

    def prepare(x):
        out = np.empty(x.shape, code_dtype(found))
        words = {}
        if random_bits is not None:
            words = {
                "random_bits": inputs.random_words(x.size, random_bits).reshape(x.shape),
                "n_random_bits": random_bits,
            }
        return functools.partial(
            mor_ref.encode,
            x,
            found,
            rounding=rounding,
            out=out,
            threads=threads,
            **words,
            **special,
        )

    return Contender(prepare, lambda codes: (codes.copy(),))


def argument(contender):
    """Return a contender of ours with other arguments; its codes are not compared."""
    return Contender(contender.prepare, needs=contender.needs)


def to_e4m3():
    """Yield the most important conversion next to all libraries."""
    everyone = {
        OURS: encoding("e4m3"),
        "ml_dtypes": peers.ml_dtypes_encoding("e4m3"),
        "torch": peers.torch_encoding("e4m3"),
        "JAX": peers.jax_conversion(peers.ML_DTYPES["e4m3"]),
    }
    limits = (
        Ratio((COPY,), at_least=0.9),
        Ratio(("ml_dtypes",), at_least=20),
        Ratio(("torch",), at_least=2.5),
    )
    yield Row("encode f32 to e4m3", inputs.normal(LARGE), everyone, limits)
    saturating = everyone | {
        "ml_dtypes": peers.ml_dtypes_encoding("e4m3", NANS),
        "JAX": peers.jax_conversion(peers.ML_DTYPES["e4m3"], differs=NANS),
    }
    some = functools.partial(inputs.patterns, LARGE)
    yield Row("encode f32 of random bits to e4m3", some, saturating, limits)
    slow = {
        OURS: encoding("e4m3"),
        "gfloat": peers.gfloat_encoding("e4m3"),
        "qtorch": peers.qtorch_rounding("e4m3", Difference(NO_MINUS_ZERO, 450, 300)),
        "pychop": peers.pychop_rounding("e4m3"),
        "APyTypes": peers.apytypes_encoding("e4m3"),
        c_library.NAME: c_library.encoding(),
    }
    yield Row("encode f32 to e4m3, few", inputs.normal(SMALL), slow)
    for rounding in ("rna", "rtz", "rtp", "rtn", "rto"):
        yield few_under(rounding)
    if available_threads() > 1:
        two = {
            OURS: encoding("e4m3", threads=2),
            "one thread": encoding("e4m3"),
            TWO_COPIES: copying_as_many_bytes(threads=2),
            ONE_COPY: copying_as_many_bytes(threads=1),
        }
        limit = Ratio((TWO_COPIES,), at_least=0.9)
        yield Row("encode f32 to e4m3, 2 threads", inputs.normal(LARGE), two, (limit,))


def copying_as_many_bytes(threads):
    """Return a contender that copies as many bytes as encoding f32 to e4m3 reads and writes."""

    def prepare(x):
        parts = np.array_split(x.ravel()[: x.size * 5 // 8], threads)
        room = [np.empty_like(part) for part in parts]
        pool = ThreadPoolExecutor(threads)
        return lambda: list(pool.map(np.copyto, room, parts))

    return Contender(prepare)


def few_under(rounding):
    """Yield rows of the other roundings next to the libraries that have them."""
    contenders = {OURS: encoding("e4m3", rounding)}
    if rounding in peers.GFLOAT_ROUNDINGS:
        contenders["gfloat"] = peers.gfloat_encoding("e4m3", rounding)
    if rounding == "rna":
        contenders["qtorch"] = peers.qtorch_rounding("e4m3", Difference(NO_MINUS_ZERO, 150, 100))
    odd = ALWAYS_ODD if rounding == "rto" else None
    of_pychop = SUM_IN_FLOAT32 if rounding == "rna" else odd
    contenders["pychop"] = peers.pychop_rounding("e4m3", rounding, of_pychop)
    contenders["APyTypes"] = peers.apytypes_encoding("e4m3", rounding, odd)
    return Row(f"encode f32 to e4m3, {rounding}, few", inputs.normal(FEW), contenders)


def from_other_sources():
    """Yield rows of the other types of numbers."""
    for name, dtype in (("bf16", inputs.BF16), ("f16", np.float16), ("f64", np.float64)):
        contenders = {
            OURS: encoding("e4m3"),
            "ml_dtypes": peers.ml_dtypes_encoding("e4m3", TWICE if name == "f64" else None),
        }
        if name != "f64":  # which torch rounds twice, too
            contenders["torch"] = peers.torch_encoding("e4m3")
            contenders["JAX"] = peers.jax_conversion(peers.ML_DTYPES["e4m3"])
        limits = (Ratio(("ml_dtypes",), at_least=1),)
        yield Row(f"encode {name} to e4m3", inputs.normal(USUAL, dtype), contenders, limits)


def roundings_of(fmt):
    """Return all roundings except the format's default."""
    found = formats[fmt]
    if found.is_power_of_two:
        return [r for r in POWER_OF_TWO_ROUNDINGS if r != "rtp"]
    return [r for r in DETERMINISTIC_ROUNDINGS if r != "rne"]


def to_every_format():
    """Yield a row of each format under each rounding; e4m3 under rne limits its time."""
    for fmt, found in formats.items():
        contenders = {OURS: encoding(fmt), BASE: argument(encoding("e4m3", "rne"))}
        if fmt in peers.ML_DTYPES and fmt != "e8m0":
            contenders["ml_dtypes"] = peers.ml_dtypes_encoding(fmt)
        if fmt in peers.TORCH and fmt not in ("e8m0", "e2m1"):
            contenders["torch"] = peers.torch_encoding(fmt)
        others = {r: argument(encoding(fmt, r)) for r in roundings_of(fmt)}
        bound = "" if found.is_power_of_two else BOUND_OF_OTHERS
        limits = [Ratio((OURS, *others), over=BASE, at_most=1.5, bound=bound)]
        if fmt == "e4m3":
            others["sr"] = argument(encoding(fmt, "sr", random_bits=16))
            limits.append(Ratio(("sr",), over=BASE, at_most=1.5, bound=BOUND_OF_RANDOM))
        operation = f"encode f32 to {fmt}, every rounding"
        yield Row(operation, inputs.normal(USUAL), contenders | others, tuple(limits), turns=2)


def decoding(fmt):
    """Return our contender."""
    found = formats[fmt]
    return Contender(lambda codes: lambda: mor_ref.decode(codes, found), peers.with_one_nan)


def decoding_with_out(codes):
    """Return a call that writes to room that exists already."""
    room = np.empty(codes.shape, np.float32)
    return lambda: mor_ref.decode(codes, "e4m3", out=room, threads=1)


def to_numbers():
    """Yield rows of decoding by a table and by arithmetic."""
    contenders = {
        OURS: decoding("e4m3"),
        WITH_OUT: Contender(decoding_with_out),
        "ml_dtypes": peers.ml_dtypes_decoding("e4m3"),
        "torch": peers.torch_decoding("e4m3"),
        "JAX": peers.jax_conversion(np.float32, peers.ML_DTYPES["e4m3"], peers.with_one_nan),
    }
    limits = (Ratio(("ml_dtypes",), at_least=5),)
    yield Row(
        "decode e4m3",
        functools.partial(inputs.codes, LARGE),
        contenders,
        limits,
        compared="numbers",
    )
    slow = {
        OURS: decoding("e4m3"),
        "gfloat": peers.gfloat_decoding("e4m3"),
        c_library.NAME: c_library.decoding(),
    }
    yield Row("decode e4m3, few", functools.partial(inputs.codes, SMALL), slow, compared="numbers")
    for fmt in ("bf16", "f16"):
        everyone = {
            OURS: decoding(fmt),
            "ml_dtypes": peers.ml_dtypes_decoding(fmt),
            "torch": peers.torch_decoding(fmt),
        }
        yield Row(
            f"decode {fmt}",
            functools.partial(inputs.codes, USUAL, 1 << 16),
            everyone,
            compared="numbers",
        )


ROWS = [*to_e4m3(), *from_other_sources(), *to_every_format(), *to_numbers()]
