"""The arguments of `dot`, `dot_chunks` and `matmul`: every refusal, and results for any threads."""

import re

import ml_dtypes
import numpy as np
import pytest
from worker_pools import two_threads

import mor_ref
from mor_ref.definitions.dot import DOT_PROFILES, DotProfile

__all__ = ["two_threads"]  # a fixture

ROWS = np.ones((2, 64), np.uint8)
SCALES = np.full((2, 2), 127, np.uint8)
BOTH = SCALES, SCALES
MINE = DotProfile("mine", "st_fdpa", ("e4m3",), 8, 13, -133, scales=(("f32", 32),))
WORDS = np.ones((2, 2), np.uint32)

OF_DOT = [
    (ROWS, {"profile": "hopper"}, "profile is 'hopper', which is not known; take one of hopper_"),
    (ROWS, {"formats": "e4m3"}, "formats is 'e4m3'; give a pair, for a and b"),
    (ROWS, {"formats": ("e4m3",)}, "formats is ('e4m3',); give a pair, for a and b"),
    (ROWS, {"formats": ("e4m3", "e4")}, "format is 'e4', which is not known; take one of e4m3,"),
    (
        ROWS,
        {"formats": ("e4m3", "e2m1"), "profile": "hopper_fp8"},
        "formats has 'e2m1', which hopper_fp8 does not take; give e4m3 or e5m2",
    ),
    (ROWS[:, :3], {}, "b has the shape (2, 64); give the shape of a, (2, 3)"),
    (ROWS.astype(np.float32), {}, "a has dtype float32"),
    (
        ROWS,
        {"profile": "hopper_fp8_promoted", "scales": (np.ones((2, 1)), np.ones((2, 1)))},
        "scales[0] has dtype float64; give the dtype of f32, or codes of f32 as unsigned integers",
    ),
    (
        ROWS.view(ml_dtypes.float8_e5m2),
        {},
        "a has dtype float8_e5m2, which is not the format e4m3; give one code of e4m3 in each",
    ),
    (ROWS, {"c": np.ones(3)}, "c has the shape (3,); give (2,), or a single number"),
    (
        ROWS,
        {"c": [1.0, 0.1], "profile": "hopper_fp8_f16"},
        "c has 0.1, which f16 does not have; give numbers of f16, because hopper_fp8_f16 adds",
    ),
    (
        ROWS,
        {"c": np.float64(2) ** 200},
        "which f32 does not have; give numbers of f32, because exact",
    ),
    (
        ROWS,
        {"c": 1.0, "profile": "int32", "formats": ("int8", "int8")},
        "int32 does not add to a given c; leave c out",
    ),
    (
        ROWS,
        {"profile": "blackwell_mxfp8"},
        "blackwell_mxfp8 needs scales; give a pair, for a and b",
    ),
    (ROWS, {"profile": "hopper_fp8", "scales": BOTH}, "hopper_fp8 has no scales; leave them out"),
    (ROWS, {"block": 32}, "block is given without scales; give both, or leave it out"),
    (ROWS, {"scale_format": "e8m0"}, "scale_format is given without scales; give both, or leave"),
    (ROWS, {"scales": 1}, "scales is of type int; give a pair, for a and b"),
    (ROWS, {"scales": BOTH}, "exact takes scales of several formats; give scale_format"),
    (
        ROWS,
        {"scales": BOTH, "scale_format": "e4m3", "profile": "blackwell_mxfp8"},
        "scale_format is 'e4m3', which blackwell_mxfp8 does not take; give e8m0",
    ),
    (
        ROWS,
        {"scales": (SCALES, SCALES[:1]), "scale_format": "e8m0"},
        "scales have the shapes (2, 2) and (1, 2); give codes for the blocks of each row, (2, bloc",
    ),
    (
        ROWS,
        {"scales": BOTH, "scale_format": "e8m0", "block": 0},
        "block is 0; give an int from 1 to",
    ),
    (
        ROWS,
        {"scales": BOTH, "profile": "blackwell_mxfp8", "block": 16},
        "block is 16; blackwell_mxfp8 takes 32",
    ),
    (
        ROWS,
        {"scales": BOTH, "scale_format": "e8m0", "block": 16},
        "scales have 2 blocks for 64 products; give scales of blocks of 16",
    ),
    (
        np.ones((2, 63), np.uint8),
        {"b": np.ones((2, 63), np.uint8), "scales": BOTH, "scale_format": "e8m0"},
        "scales have 2 blocks for 63 products; give scales of equal blocks, or block",
    ),
    (
        ROWS,
        {"scales": (WORDS, WORDS), "profile": MINE},
        "profile 'mine' is not computed: terms of e4m3 and e4m3 and f32 have 56 bits; take formats",
    ),
    (ROWS, {"threads": 0}, "threads is 0; give an int from 1 to"),
    (
        mor_ref.quantize(np.ones((2, 64), np.float32), "e4m3"),
        {},
        "a is of type Quantized; give its codes, or the record to matmul",
    ),
]


@pytest.mark.parametrize(("a", "given", "message"), OF_DOT, ids=[text for *_, text in OF_DOT])
def test_dot_and_dot_chunks_refuse(a, given, message):
    """DOT-001, DOT-002 and DOT-006."""
    given = dict(given)
    b = given.pop("b", ROWS)
    for function in (mor_ref.dot, mor_ref.dot_chunks):
        with pytest.raises((TypeError, ValueError), match=re.escape(message)):
            function(a, b, **given)


def test_whole_numbers_are_taken_as_c():
    """DOT-001: those that binary32 has, as the floats that they are."""
    for c in (0, -3, 2**24, 1 << 127):
        found = mor_ref.dot(ROWS[:1], ROWS[:1], c)
        assert (found == mor_ref.dot(ROWS[:1], ROWS[:1], float(c))).all()
    for c in (True, 2**24 + 1, 2**53 + 1, 1 << 128, 1 << 2000):
        with pytest.raises((TypeError, ValueError), match="c (has|holds) "):
            mor_ref.dot(ROWS[:1], ROWS[:1], c)


def test_of_many_profiles_those_like_the_given_one_are_named():
    with pytest.raises(ValueError, match="did you mean 'hopper_fp8'") as refused:
        mor_ref.dot(ROWS, ROWS, profile="hoper_fp8")
    named = str(refused.value).partition("take one of ")[2].split(", ")
    assert named.pop() == f"or of the {len(DOT_PROFILES) - len(named)} others"
    assert len(named) == 12
    assert set(named) > {"hopper_fp8", "hopper_fp8_f16", "hopper_fp8_promoted", "hopper_bf16"}
    with pytest.raises(ValueError, match=f"take one of {', '.join(DOT_PROFILES)}$"):
        mor_ref.dot(ROWS, ROWS, profile="h100")


def test_single_codes_are_refused():
    """DOT-001."""
    with pytest.raises(ValueError, match="a and b are single codes; give rows of codes"):
        mor_ref.dot(np.uint8(1), np.uint8(1))


X = np.linspace(-3, 3, 4 * 64, dtype=np.float32).reshape(4, 64)
FP8, MX, FOUR = (
    mor_ref.quantize(X, "e4m3"),
    mor_ref.quantize_mx(X, "e4m3"),
    mor_ref.quantize_nvfp4(X),
)
MIXED = mor_ref.mor(X * 1e30, "two_way", block=(2, 32))
T = mor_ref.transposed
OF_MATMUL = [
    (
        FP8,
        FP8,
        {},
        "A has 64 columns and B has 4 rows; give the same number, or transposed(...) of",
    ),
    (X[0], X.T, {}, "A has the shape (64,); give a matrix, rows and columns"),
    (X, X.T[None], {}, "B has the shape (1, 64, 4); give a matrix, rows and columns"),
    (np.ones((4, 64)), X.T, {}, "A is of type ndarray and dtype float64; give a record of mor"),
    (ROWS, X.T, {}, "whose dtype is a format; codes of e4m3 are .view(ml_dtypes.float8_e4m3fn)"),
    ([[1.0]], X.T, {}, "A is of type list and dtype None; give a record of mor, quantize"),
    (X, X.T, {"out": "e4m3"}, "out is 'e4m3', which is not known"),
    (X, X.T, {"profile": "hopper"}, "profile is 'hopper', which is not known"),
    (X, X.T, {"profile": "hopper_fp8"}, "an array is of f32, which hopper_fp8 does not take; give"),
    (
        X.astype(ml_dtypes.float8_e4m3fn),
        X.T.astype(ml_dtypes.float8_e4m3fn),
        {"profile": "blackwell_mxfp8"},
        "blackwell_mxfp8 needs scales, which arrays lack; give records of them",
    ),
    (FP8, T(FP8), {"profile": "switchback"}, "switchback has scales of its own, which no record"),
    (
        FP8,
        T(FP8),
        {"profile": "blackwell_mxfp8"},
        "blackwell_mxfp8 takes the scales of quantize_mx alone; give two records with such",
    ),
    (
        FOUR,
        T(FOUR),
        {"profile": "blackwell_mxfp8"},
        "blackwell_mxfp8 takes the scales of quantize_mx alone; give two records with such",
    ),
    (
        mor_ref.quantize_mx(X, "e2m1"),
        T(FOUR),
        {"profile": "blackwell_nvfp4"},
        "blackwell_nvfp4 takes the scales of quantize_nvfp4 alone; give two records with such",
    ),
    (
        mor_ref.quantize_mx(X, "e2m1", block=16),
        T(MX),
        {"profile": "blackwell_mxfp8"},
        "for 16 elements along K, but blackwell_mxfp8 takes them for 32; give block=32 to quantize",
    ),
    (
        MX,
        mor_ref.quantize_mx(X.T.copy(), "e4m3", block=4),
        {"profile": "blackwell_mxfp8"},
        "B has scales for 1 element along K, but blackwell_mxfp8 takes them for 32; quantize B.T,",
    ),
    (
        MX,
        T(MX),
        {"profile": "blackwell_mxfp4"},
        "an operand is of e4m3, which blackwell_mxfp4 does not take; give one of e2m1",
    ),
    (
        mor_ref.quantize_mx(X, "e2m1", block=16),
        T(mor_ref.quantize_mx(X, "e2m1")),
        {"profile": "blackwell_mxfp4"},
        "A has scales for 16 elements along K and B for 32; quantize both in the same blocks",
    ),
    (
        FOUR,
        T(FOUR),
        {"profile": "hopper_fp8"},
        "an operand is of e2m1, which hopper_fp8 does not take; give one of e4m3 or e5m2",
    ),
    (
        FP8,
        mor_ref.quantize(X.T.copy(), "e4m3", block=(1, 2)),
        {"profile": "hopper_fp8"},
        "a record has a scale for each place of K, which no instruction takes; quantize B.T, and",
    ),
    (
        MIXED,
        T(MIXED),
        {"profile": "turing_fp16"},
        "blocks are not all in f16, and the architecture of turing_fp16 does not multiply the",
    ),
    (
        FP8,
        mor_ref.quantize_nvfp4(X.T.copy(), profile="te_row"),
        {},
        "a record of quantize_nvfp4 has a scale for each place of K; quantize the transpose, and",
    ),
    (FP8, T(FP8), {"threads": 0}, "threads is 0; give an int from 1 to"),
    (mor_ref.quantize_affine(X), T(FP8), {}, "a record of type Affine has no codes and scales in"),
]


@pytest.mark.parametrize(
    ("a", "b", "given", "message"), OF_MATMUL, ids=[text for *_, text in OF_MATMUL]
)
def test_matmul_refuses(a, b, given, message):
    """GEM-001 to GEM-004."""
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        mor_ref.matmul(a, b, **given)


# ---------------------------------------------------------------------- threads

PROFILES = {
    "exact": "e4m3", "f32_fma": "f32", "f32_pairwise": "f32", "hopper_fp8": "e4m3",
    "hopper_fp8_promoted": "e4m3", "cdna1_fp16": "f16", "cdna2_bf16": "bf16", "cdna3_fp16": "f16",
    "cdna3_fp8": "e4m3fnuz",
}  # fmt: skip


@pytest.mark.tier("full", but_one_in=4)
@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("profile", PROFILES)
def test_threads_have_no_say(profile):
    """DOT-001: rows are in several slices, and the last one is short."""
    fmt = PROFILES[profile]
    x = np.random.default_rng(1).standard_normal((2, 1100, 1025)).astype(np.float32)
    a, b = (mor_ref.encode(part, fmt) for part in x)
    one, two = (mor_ref.dot(a, b, formats=(fmt, fmt), profile=profile, threads=n) for n in (1, 2))
    assert one.tobytes() == two.tobytes()
    alone = mor_ref.dot(a[1020:1026], b[1020:1026], formats=(fmt, fmt), profile=profile)
    assert one[1020:1026].tobytes() == alone.tobytes()


@pytest.mark.tier("full", but=["[exact]"])
@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("profile", ["exact", "hopper_fp8"])
def test_threads_have_no_say_in_a_product(profile):
    """GEM-001."""
    x = np.random.default_rng(2).standard_normal((2, 70, 1100)).astype(np.float32)
    a, b = (mor_ref.quantize(part, "e4m3", block=(1, 128)) for part in x)
    one, two = (mor_ref.matmul(a, T(b), profile=profile, threads=n) for n in (1, 2))
    assert one.tobytes() == two.tobytes()


def test_a_number_has_no_transpose():
    with pytest.raises(TypeError, match="x is of type int; give a record or an array"):
        T(3)
