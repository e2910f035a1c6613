"""MX: every rule's records are those of the exact model, and the rules by hand."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from records import SOURCES, adversarial, differing, engine_mx, exact_mx, shapes

import mor_ref
from mor_ref import Format, formats
from mor_ref.definitions.mx import SCALE_RULES
from mor_ref.exact.mx import converted, mx, scale_code, shared_exponent
from mor_ref.operations import OPERATIONS

SHAPES = [(5, 37), (1, 70), (33, 1), (1, 1), (), (0, 4), (3, 0), (2, 3, 17)]
ELEMENTS = ["e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "int8_mx"]


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize("fmt", ELEMENTS)
@pytest.mark.parametrize("rule", SCALE_RULES)
def test_every_record_is_that_of_the_exact_model(fmt, rule):
    for seed, shape in enumerate(
        [(5, 37), (1, 70), (33, 1), (1, 1), (), (0, 4), (3, 0), (2, 3, 17)]
    ):
        x = adversarial(shape, seed, SOURCES[seed % 4])
        assert differing(engine_mx(x, fmt, scale_rule=rule), exact_mx(x, fmt, rule)) == {}


@given(
    shapes,
    st.integers(0, 1 << 30),
    st.sampled_from(SOURCES),
    st.sampled_from(ELEMENTS),
    st.sampled_from(list(SCALE_RULES)),
    st.sampled_from([1, 5, 32, 64]),
)
def test_any_tensor(shape, seed, dtype, fmt, rule, block):
    x = adversarial(shape, seed, dtype)
    found = engine_mx(x, fmt, scale_rule=rule, block=block)
    assert differing(found, exact_mx(x, fmt, rule, block)) == {}


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize("fmt", ELEMENTS)
def test_every_exponent_and_the_edges_of_every_binade(fmt):
    """MXS-002 to MXS-006: each power of two with its neighbours, subnormals included."""
    powers = np.exp2(np.arange(-149.0, 128.0)).astype(np.float32)
    points = [powers, np.nextafter(powers, np.float32(0)), np.nextafter(powers, np.float32(np.inf))]
    points += [
        (powers * np.float64(share)).astype(np.float32) for share in (1.75, 1.875, 1.9375, 1.5)
    ]
    x = np.unique(np.concatenate(points))[:, None]
    for rule in SCALE_RULES:
        found = engine_mx(x, fmt, scale_rule=rule, block=1)
        assert differing(found, exact_mx(x, fmt, rule, 1)) == {}, rule


def scale_of(amax, fmt="e4m3", rule="floor"):
    return int(
        mor_ref.quantize_mx(np.array([amax, 0], np.float32), fmt, scale_rule=rule).scale[0, 0]
    )


def test_blocks():
    """MXS-001."""
    x = np.ones((3, 70), np.float32)
    assert mor_ref.quantize_mx(x, "e4m3").scale.shape == (3, 3)
    assert mor_ref.quantize_mx(x, "e4m3", block=16).scale.shape == (3, 5)
    own = Format("e3m4x", exponent_bits=3, mantissa_bits=4, bias=3, specials="fn")
    assert differing(engine_mx(x, own), exact_mx(x, own)) == {}
    for fmt in ("bf16", "e8m0"):
        with pytest.raises(ValueError, match="elements of MX are signed and of at most 8 bits"):
            mor_ref.quantize_mx(x, fmt)
    with pytest.raises(ValueError, match="block is 0; give an int from 1"):
        mor_ref.quantize_mx(x, "e4m3", block=0)
    with pytest.raises(ValueError, match="scale_rule is 'round', which is not known"):
        mor_ref.quantize_mx(x, "e4m3", scale_rule="round")


@pytest.mark.parametrize("rule", SCALE_RULES)
def test_special_blocks(rule):
    """MXS-002: zeros, NaN with anything, and infinity."""
    assert scale_of(0.0, rule=rule) == 0
    assert scale_of(np.nan, rule=rule) == 0xFF
    found = mor_ref.quantize_mx(
        np.array([np.nan, 1.0, np.inf], np.float32), "e4m3", scale_rule=rule
    )
    assert found.scale.tolist() == [[0xFF]]
    assert found.codes.tolist() == [0x7F] * 3
    assert found.dequantize().view(np.uint32).tolist() == [0x7FFFFFFF] * 3
    infinite = 0xFE if rule == "rceil" else 128 - 8 + 127
    assert scale_of(np.inf, rule=rule) == infinite
    assert scale_of(2.0**-149, rule=rule) == 0
    assert (
        scale_of(3e38, "e2m1", rule) == {"floor": 252, "ceil": 253, "even": 253, "rceil": 253}[rule]
    )


@pytest.mark.parametrize(
    ("amax", "codes"),
    [
        (256.0, {"floor": 127, "ceil": 127, "even": 127, "rceil": 127}),
        (300.0, {"floor": 127, "ceil": 128, "even": 127, "rceil": 127}),
        (448.0, {"floor": 127, "ceil": 128, "even": 127, "rceil": 127}),
        (449.0, {"floor": 127, "ceil": 128, "even": 127, "rceil": 128}),
        (495.99997, {"floor": 127, "ceil": 128, "even": 127, "rceil": 128}),
        (496.0, {"floor": 127, "ceil": 128, "even": 128, "rceil": 128}),
        (511.0, {"floor": 127, "ceil": 128, "even": 128, "rceil": 128}),
    ],
)
def test_the_four_rules(amax, codes):
    """MXS-003, MXS-004, MXS-005, MXS-006 for e4m3, whose largest number is 448 = 1.75 * 2^8."""
    assert {rule: scale_of(amax, rule=rule) for rule in SCALE_RULES} == codes


@pytest.mark.parametrize("bits", [0x7F800001, 0x7FBFFFFF, 0x7FC00000, 0x7FFFFFFF])
@pytest.mark.parametrize("sign", [0, 0x80000000])
def test_every_nan_makes_the_scale_of_its_block_nan(bits, sign):
    """MXS-006. The first and the last NaN are at the ends of a comparison of magnitudes."""
    x = np.ones((1, 64), np.float32)
    x.view(np.uint32)[0, 40] = bits | sign
    assert mor_ref.quantize_mx(x, "e4m3").scale.tolist() == [[119, 0xFF]]
    wide = np.ones((1, 64), ml_dtypes.bfloat16)
    wide.view(np.uint16)[0, 40] = (bits | sign) >> 16 | (bits & 0xFFFF != 0)
    assert mor_ref.quantize_mx(wide, "e4m3").scale.tolist() == [[119, 0xFF]]


def test_even_has_six_bits_for_integers():
    """MXS-005: 127/64 stays in its binade, and the middle to 2 does not."""
    assert scale_of(127 / 64, "int8_mx", "even") == 127
    assert scale_of(255 / 128, "int8_mx", "even") == 128
    assert scale_of(np.nextafter(np.float32(255 / 128), np.float32(0)), "int8_mx", "even") == 127


def bits_of_amax(bits):
    return np.array([bits], np.uint32).view(np.float32)[0]


def added_to_the_bits(bits, fmt):
    """Compute as the note says for a normal amax, which is wrong for a subnormal one."""
    width = fmt.mantissa_bits - (fmt.sign == "twos-complement")
    return ((bits + (1 << (22 - width))) >> 23) - 127


@pytest.mark.parametrize("name", ELEMENTS)
def test_even_is_an_addition_to_the_bits_of_a_normal_amax(name):
    """MXS-005: as its note says, around every point where half a unit reaches the next binade."""
    fmt = formats[name]
    width = fmt.mantissa_bits - (fmt.sign == "twos-complement")
    turn = (1 << 23) - (1 << (22 - width))
    for field in (1, 2, 100, 127, 200, 254):
        for below in (0, 1, turn - 1, turn, turn + 1, (1 << 23) - 1):
            bits = field << 23 | below
            p = shared_exponent(float(bits_of_amax(bits)), fmt, "even")
            assert added_to_the_bits(bits, fmt) == p, hex(bits)


def test_even_normalises_a_subnormal_amax():
    """MXS-005: 127 * 2^-133 has seven bits, to which nothing is rounded."""
    int8 = formats["int8_mx"]
    for bits, p, code in ((0x007F0000, -127, 0), (0x007F7FFF, -127, 0), (0x007F8000, -126, 1)):
        amax = bits_of_amax(bits)
        assert shared_exponent(float(amax), int8, "even") == p
        assert scale_code([float(amax)], int8, "even") == code
        assert scale_of(amax, "int8_mx", "even") == code
        assert added_to_the_bits(bits, int8) == -126
    for name in ELEMENTS[:-1]:
        assert scale_of(bits_of_amax(0x007FFFFF), name, "even") == 0


def test_rceil_divides():
    """MXS-006: by a rounded reciprocal of 127/64, one step above it would round down to 1."""
    assert scale_of(127 / 64, "int8_mx", "rceil") == 127
    assert scale_of(np.nextafter(np.float32(127 / 64), np.float32(2)), "int8_mx", "rceil") == 128


def test_elements():
    """MXS-007: under floor an element can saturate; at code 254 the factor is subnormal."""
    x = np.array([511.0, 1.0, -448.0, 0.3], np.float32)
    found = mor_ref.quantize_mx(x, "e4m3")
    assert found.codes.tolist() == mor_ref.encode(x, "e4m3").tolist()
    assert found.codes[0] == 0x7E
    huge = mor_ref.quantize_mx(
        np.array([np.inf, 3e38, 1.0], np.float32), "e2m1", scale_rule="rceil"
    )
    assert huge.scale.tolist() == [[254]]
    assert huge.codes.tolist() == [7, 4, 0]


def test_dequantization():
    """MXS-008: code 0 is 2^-127, also when applied."""
    x = np.array([2.0**-127, 2.0**-126], np.float32)
    found = mor_ref.quantize_mx(x, "e4m3")
    assert found.scale.tolist() == [[0]]
    assert found.codes.tolist() == mor_ref.encode([1.0, 2.0], "e4m3").tolist()
    assert found.dequantize().tolist() == x.tolist()


def test_what_a_record_says():
    found = mor_ref.quantize_mx(np.ones((2, 32), np.float32), "int8_mx", scale_rule="even")
    assert repr(found) == (
        "<2x32 float32 as MX int8_mx, even: 2 blocks of 32, mean relative error 0 %, 0 non-finite>"
    )


def test_codes_that_no_quantizer_makes():
    """MXS-009: NaN, infinities and the lowest integer under finite scales, and huge products."""

    def restored(fmt, codes, scale):
        case = {"code": np.array([codes], np.uint8), "scale": np.array([scale], np.uint8)}
        operation, parameters = OPERATIONS["mx_decode"], {"format": fmt}
        y = operation.exact(parameters, case)["y"]
        assert np.array_equal(operation.engine(parameters, case)["y"], y)
        return y.view(np.float32)[0].tolist()

    assert restored("e5m2", [0x7C, 0xFC, 0x3C], 130) == [np.inf, -np.inf, 8.0]
    assert np.isnan(restored("e4m3", [0x7F, 0xFF], 0)).all()
    assert restored("int8_mx", [0x80, 0x81], 128) == [-4.0, -3.96875]
    assert restored("e4m3", [0x7E, 0xFE, 0x38], 254) == [np.inf, -np.inf, 2.0**127]
    assert np.isnan(restored("e5m2", [0x7C, 0x00], 0xFF)).all()


@pytest.mark.parametrize("turned", [False, True])
def test_conversion(turned):
    """MXS-010: y is quantized again, transposed for blocks along columns."""
    x = adversarial((40, 48), 5, "float32")
    found = mor_ref.quantize_mx(x, "e4m3", scale_rule="ceil")
    y = found.dequantize()
    again = mor_ref.quantize_mx(y.T if turned else y, "e2m3", scale_rule="even", block=16)
    rows = [[float(number) for number in row] for row in x]
    exact = converted(
        mx(rows, formats["e4m3"], "ceil", 32), formats["e2m3"], "even", 16, turned=turned
    )
    assert again.codes.tolist() == [[e.code for e in row] for row in exact.elements]
    assert again.scale.reshape(-1).tolist() == list(exact.scale.values())
