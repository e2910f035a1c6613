"""FP4 of libraries: each profile is that of its page, unlike every other, and like the software."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from extras import imported, needs
from test_trace import ROOT, table_after

import mor_ref
from mor_ref.definitions.block_formulas import mx_formulas, nvfp4_formulas
from mor_ref.definitions.blocks import word_of
from mor_ref.definitions.formats import formats
from mor_ref.definitions.mx import SCALE_RULES
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.exact.block_formats import quantize
from mor_ref.recipes import as_tensor_recipe, short_text
from mor_ref.schemes.fp4.definition import FP4_PROFILES, fp4_formulas

F = np.float32
TIES = F([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5])
# Profiles whose neighbours are no FP4 of libraries.
ROW = (1, 16)
NEIGHBOURS = {
    **{f"mxfp4:{rule}": mx_formulas(formats["e2m1"], rule, 16) for rule in SCALE_RULES},
    **{name: nvfp4_formulas(PROFILES[name], ROW) for name in PROFILES if name != "te_row"},
}


def adversarial(rows=512, columns=256, seed=5, exponents=(-40, 30)):
    """Return numbers of many magnitudes, rows of zeros, and ties of e2m1 under powers of two."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, columns)).astype(F)
    powers = np.ldexp(F(1), rng.integers(*exponents, (rows, 1))).astype(F)
    x *= powers
    x[3], x[4, :4] = 0, [0.0, -0.0, 2.0**-149, -1e-38]
    ties = rng.choice([*TIES, *-TIES], (rows - 8, 24)).astype(F)
    x[8:, 8:32] = ties * powers[8:]
    near = rng.choice(F([-np.inf, np.inf]), (rows - 8, 12))
    x[8:, 20:32] = np.nextafter(x[8:, 20:32], near)
    x[8::2, 0:256:32] = F(6) * powers[8::2]  # a scale that is the power of two
    return x


def blocks_at_turns():
    """Return blocks whose amax is next to a turn, a floor or an end, with ties of either sign."""
    turns = [
        number * 2.0**k
        for number in (1, 1.25, 2**0.5, 1.5, 1.75, 248 * 6 / 1024, 7.5 * 6 / 32)
        for k in (-127, -126, -20, 0, 1, 9)
    ]
    turns += [1e-4, 6 * 2.0**-126, 6 * 2.0**-127, 6 * 2.0**-10, 6 * 2.0**-6, 248 * 6, 2.0**127]
    near = F(turns)[:, None].view(np.uint32) + np.uint32([0, 1, 2]) - np.uint32(1)
    amaxes = np.concatenate(
        [near.ravel().view(F), F([0, 2.0**-149, 3 * 2.0**-149, 3e38, np.inf, np.nan])]
    )
    x = np.zeros((len(amaxes), 16), F)
    with np.errstate(all="ignore"):
        powers = np.exp2(np.floor(np.log2(amaxes)) - 2, dtype=F)
        signs = F([1, -1] * 4)[:7]
        x[:, 1:8] = np.minimum(TIES * powers[:, None], amaxes[:, None]) * signs
        x[:, 8:15] = np.minimum(TIES * powers[:, None] / 2, amaxes[:, None]) * -signs
    x[:, 0], x[:, 15] = amaxes, -0.0
    return x


def fields_of(block_format, tensors):
    """Return the scale, the codes and y of tensors, with the exact model."""
    found = []
    for x in tensors:
        blocks = quantize(x.ravel().tolist(), x.shape, block_format)
        s = blocks.scales[block_format.scales[-1].name].numbers[block_format.scales[-1].name]
        found += [F(s).tobytes(), list(blocks.codes), F(blocks.y).tobytes()]
    return found


def test_the_printed_profiles_are_those_of_the_catalogue():
    """FPF-001, FPF-002."""
    printed = [tuple(row) for row in table_after(":id: FPF-001", ROOT / "spec/fp4.md")]
    assert printed == [row_of(name) for name in FP4_PROFILES]
    sources = table_after("## Whose they are", ROOT / "spec/fp4.md")
    assert [tuple(row) for row in sources] == [
        (p.name, p.source, ", ".join(p.also)) for p in FP4_PROFILES.values()
    ]


def row_of(name):
    own = FP4_PROFILES[name].block_format
    last = own.scales[-1]
    stored = last.fmt.name if last.rounding in ("rtp", "rne") else f"{last.fmt.name}, rna"
    zeros = own.rounding if own.has_negative_zero else f"{own.rounding}, no -0"
    return (
        name, word_of(last.over), stored, own.counted, f"`{last.number}`",
        f"`{own.encode}`" if own.encode else "x / s", "table" if own.fmt.name != "e2m1" else zeros,
    )  # fmt: skip


def test_each_profile_differs_from_every_other():
    """FPF-001: by the stored scale, by a code or by y, and from MX and NVFP4 of their chapters."""
    x = blocks_at_turns()
    finite = np.where(np.isfinite(x), x, 0)
    tensors = [x, finite, RANDOM_TILES]
    every = {
        **{name: fp4_formulas(profile, ROW) for name, profile in FP4_PROFILES.items()},
        **NEIGHBOURS,
    }
    expected = {name: fields_of(own, tensors) for name, own in every.items()}
    same = [
        (one, other)
        for one, other in itertools.combinations(every, 2)
        if expected[one] == expected[other]
    ]
    assert not [pair for pair in same if set(pair) & set(FP4_PROFILES)]


RANDOM_TILES = adversarial(64, 64, seed=8, exponents=(-6, 6))


def test_a_profile_is_a_word_at_every_door():
    """FPF-002: with its own tile, or with another one."""
    x = adversarial(64, 160)
    assert mor_ref.quantize(x, "deepgemm_fp4").scales["s"].shape == (64, 2)
    assert mor_ref.quantize(x, "deepgemm_fp4:1x32").scales["s"].shape == (64, 5)
    assert short_text(as_tensor_recipe("te_fast_math")) == "te_fast_math:1x16"
    own = as_tensor_recipe('{ representation = "fp4", of = "llama_cpp_mxfp4", tile = "row" }')
    assert own.tile == "row"
    report = mor_ref.verify("numba", inputs={"x": x}, recipe="fbgemm_mx4_even")
    assert report.verdict == "match"
    for word, meant in (
        ("gguf_nvfp4", "llama_cpp_nvfp4"), ("te_ocp", "mxfp8"), ("flashinfer_strict", "te"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"did you mean '{meant}'"):
            mor_ref.quantize(x, word)


@pytest.mark.parametrize("name", FP4_PROFILES)
def test_the_engine_has_the_bits_of_the_exact_model(name):
    """FPF-001, BLF-014."""
    for x in (blocks_at_turns(), adversarial(24, 64, seed=3, exponents=(-140, 120))):
        record = mor_ref.quantize(x, f"{name}:1x16")
        blocks = quantize(x.ravel().tolist(), x.shape, record.block_format)
        assert record.codes.ravel().tolist() == list(blocks.codes)
        assert np.array_equal(record.dequantize().ravel(), F(blocks.y), equal_nan=True)


# ---------------------------------------------------------------------- the software

SIZES = [
    pytest.param(256, id="some"),
    pytest.param(4096, id="a million", marks=[pytest.mark.tier("full")]),
]


def e2m1_unpacked(packed, *, halves=None):
    """Return the codes of bytes: two neighbours, or number i and number i + half of a block."""
    low, high = packed & 15, packed >> 4
    if halves is None:
        return np.stack([low, high], -1).reshape(len(packed), -1)
    both = [half.reshape(len(packed), -1, halves) for half in (low, high)]
    return np.concatenate(both, -1).reshape(len(packed), -1)


@needs("torch", "modelopt")
@pytest.mark.parametrize("rows", SIZES)
def test_modelopt(rows):
    """FPF-001: MXFP4QTensor, zeros and ties; its logarithm misses amaxes next to 6 * 2^k."""
    torch = imported("torch")
    module = imported("modelopt.torch.quantization.qtensor.mxfp4_tensor")
    x = adversarial(rows)
    own, scales = module.MXFP4QTensor.quantize(torch.from_numpy(x), 32)
    codes = e2m1_unpacked(own._quantized_data.numpy().reshape(rows, -1))
    record = mor_ref.quantize(x, "modelopt_mxfp4")
    assert np.array_equal(record.scales["s"].ravel(), scales.numpy().ravel())
    assert np.array_equal(record.codes, codes)


@needs("gguf")
@pytest.mark.parametrize("rows", SIZES)
def test_gguf_mxfp4(rows):
    """FPF-001: blocks of its own quantizer."""
    quants = imported("gguf.quants")
    x = adversarial(rows)
    found = quants.MXFP4.quantize_blocks(x.reshape(-1, 32))
    codes = e2m1_unpacked(found[:, 1:], halves=16).reshape(x.shape)
    record = mor_ref.quantize(x, "llama_cpp_mxfp4")
    assert np.array_equal(record.scales["s"].ravel(), found[:, 0])
    assert np.array_equal(record.codes, codes)


@needs("gguf")
@pytest.mark.parametrize("rows", SIZES)
def test_gguf_nvfp4(rows):
    """FPF-001: its encoder of scales, and the nearest of its values, the first of equals."""
    quants = imported("gguf.quants")
    x = np.concatenate([adversarial(rows, exponents=(-12, 14)), np.tile(blocks_at_turns(), 16)])
    x = np.where(np.abs(x) < 2**20, x, 0)
    amax = np.abs(x.reshape(-1, 16)).max(axis=1, keepdims=True)
    stored = quants.NVFP4.fp32_to_ue4m3((amax / F(6)).astype(F))
    halves = F(quants.NVFP4.kvalues) * quants.NVFP4.ue4m3_to_fp32(stored).astype(F)
    distance = np.abs(halves[:, None].astype(np.float64) - x.reshape(-1, 16, 1))
    record = mor_ref.quantize(x, "llama_cpp_nvfp4")
    assert np.array_equal(record.scales["s"].ravel(), stored.ravel())
    assert np.array_equal(record.codes.ravel(), distance.argmin(-1).ravel())


FAST = {name: row for name, row in FP4_PROFILES.items() if row.fast}
ROUNDED = F(1) / (1 + np.arange(1 << 23, dtype=F) / F(1 << 23))


def near_rounded(seed):
    """Return reciprocals that are at most an ulp off, as a GPU may have them."""
    off = np.random.default_rng(seed).integers(-1, 2, ROUNDED.size).astype(np.int32)
    off[0] = 0
    return (ROUNDED.view(np.int32) + off).view(F)


def test_the_printed_fast_formulas_are_those_of_the_catalogue():
    """FPF-003: with a correctly rounded RCP(a), they are those of FPF-001."""
    printed = table_after(":id: FPF-003", ROOT / "spec/fp4.md")
    fast = {
        name: (row.fast.number, row.fast.encode or row.block_format.encode)
        for name, row in FAST.items()
    }
    assert [tuple(row) for row in printed] == [
        (name, *(f"`{text.format('RCP')}`" for text in texts)) for name, texts in fast.items()
    ]
    for name, (number, encode) in fast.items():
        own = FP4_PROFILES[name].block_format
        assert number.replace("{0}(6)", "(1 / 6)") == own.scales[-1].number
        inner = encode.replace("{0}(S)", "(1 / S)").replace("{0}(s * (1 / S))", "1 / (s * (1 / S))")
        assert inner == own.encode


def test_reciprocals_are_those_of_the_table():
    """FPF-003: with fractions, at the ends of binary32 and for numbers of any exponent."""
    table = near_rounded(1)
    own = mor_ref.fp4_with_reciprocals("flashinfer_nvfp4", table)
    (name,) = own.functions
    function = mor_ref.formula_functions[name]
    bits = np.random.default_rng(2).integers(0x00800000, 0x7F800000, 2000, np.uint32)
    ends = np.uint32([0x00800000, 0x7F7FFFFF, 0x7E800000, 0x7E800001, 0x7E7FFFFF, 0x3F800000])
    for x in np.concatenate([bits, bits | np.uint32(1 << 31), ends]).view(F):
        size = Fraction(float(abs(x)))
        e = (size.numerator.bit_length() - 1) - (size.denominator.bit_length() - 1)
        k = (size / Fraction(2) ** e - 1) * 2**23
        wanted = Fraction(float(table[int(k)])) / Fraction(2) ** e
        wanted = wanted if wanted >= Fraction(2) ** -126 else 0
        found = function.number(x)
        assert abs(Fraction(found)) == wanted
        assert np.signbit(found) == np.signbit(x)
    specials = F([0, -0.0, 2.0**-149, -(2.0**-127), np.inf, -np.inf])
    found = F([function.number(x) for x in specials])
    assert found.tolist() == [np.inf, -np.inf, np.inf, -np.inf, 0, 0]
    assert np.signbit(found).tolist() == [False, True] * 3
    assert np.isnan(function.number(F(np.nan)))


@pytest.mark.parametrize("name", FAST)
def test_a_table_takes_the_place_of_rounded_reciprocals(name):
    """FPF-003: of rounded ones, nothing changes; of others, the exact model has the same bits."""
    x = np.random.default_rng(6).integers(-24, 25, (64, 256)).astype(F) / 4
    x[:, ::16], x[0, 0] = 6, 28  # so that S is 96, and numbers are ties but for a reciprocal
    plain = mor_ref.quantize(x, name)
    same = mor_ref.quantize(x, mor_ref.fp4_with_reciprocals(name, ROUNDED))
    assert np.array_equal(plain.codes, same.codes)
    assert np.array_equal(plain.scales["s"], same.scales["s"])
    above = (ROUNDED.view(np.int32) + 1).view(F)
    above[0] = 1
    own = mor_ref.fp4_with_reciprocals(name, above, tile=(1, 16))
    found = mor_ref.quantize(x, own)
    assert found.scales["s"].shape == (64, 16)
    right = quantize(x.ravel().tolist(), x.shape, own)
    assert [*right.codes] == found.codes.ravel().tolist()
    assert not np.array_equal(found.codes, mor_ref.quantize(x, f"{name}:1x16").codes)


def test_a_function_is_taken_for_a_table():
    """FPF-003."""

    def half(x):
        return 0.5 / x  # far off, so that it shows

    x = F([[6, 3, 1.5, 0.75]])
    own = mor_ref.fp4_with_reciprocals("flashinfer_mxfp4", mor_ref.FormulaFunction(half))
    assert mor_ref.quantize(x, own).codes.tolist() == [[7, 7, 5, 3]]
    assert mor_ref.quantize(x, "flashinfer_mxfp4").codes.tolist() == [[7, 5, 3, 2]]
    del mor_ref.formula_functions["half"]


def test_tables_that_are_none_are_refused():
    """FPF-003."""
    wrong = ROUNDED.copy()
    wrong[5] = np.nextafter(np.nextafter(wrong[5], F(2)), F(2))
    for table, message in (
        (
            ROUNDED[1:],
            r"reciprocals has shape \(8388607,\) and dtype float32; give the float32 results",
        ),
        (ROUNDED.astype(np.float16), "and dtype float16"),
        (
            wrong,
            r"reciprocals\[5\] is 0.99.*, which is not within an ulp of the reciprocal of 1 \+ 5",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            mor_ref.fp4_with_reciprocals("flashinfer_nvfp4", table)
    with pytest.raises(ValueError, match="profile is 'te'"):
        mor_ref.fp4_with_reciprocals("te", ROUNDED)
