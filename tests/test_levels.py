"""Levels of ParetoQ: the engine is the exact model, both are torch's, and the rules by hand."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from extras import needs
from hypothesis import given
from hypothesis import strategies as st
from records import SOURCES, adversarial, bits32, rows_of, shapes

import mor_ref
from mor_ref.analysis import compare
from mor_ref.operations import OPERATIONS
from mor_ref.recipes import as_tensor_recipe, short_text
from mor_ref.schemes.levels.definition import ARITHMETICS, LEVEL_KINDS, level_kind
from mor_ref.schemes.levels.engine_alphas import first_alphas
from mor_ref.schemes.levels.exact import alpha_sum, first_alpha, level_row, packed_row
from mor_ref.schemes.levels.recipe import Levels
from mor_ref.verify import assert_bit_exact

NAN = 0x7FFFFFFF
NUMBERS = ("ratio", "clipped", "level", "y", "alpha_term")
SHAPES = [(5, 37), (1, 70), (33, 1), (1, 1), (), (0, 4), (3, 0), (2, 3, 17)]


def exact(w, kind, alpha, arithmetic):
    """Return every field of the exact model, as lists."""
    of = level_kind(kind)
    alphas = [None] * math.prod(w.shape[:-1]) if alpha is None else alpha
    rows = [level_row(row, of, a, arithmetic) for row, a in zip(rows_of(w), alphas, strict=True)]
    elements = [e for row in rows for e in row.elements]
    return {
        "alpha": [bits32(row.alpha) for row in rows],
        **{name: [bits32(getattr(e, name)) for e in elements] for name in NUMBERS},
        "inside": [e.inside for e in elements],
        "codes": [e.code for e in elements],
        "packed": [list(packed_row([e.code for e in row.elements], of)) for row in rows],
    }


def bits(x):
    return np.where(np.isnan(x), NAN, np.ascontiguousarray(x, np.float32).view(np.uint32))


def listed(found):
    """Return every field of a record, as lists."""
    numbers = {name: bits(getattr(found, name)).ravel().tolist() for name in ("alpha", *NUMBERS)}
    codes = {name: getattr(found, name).ravel().tolist() for name in ("inside", "codes")}
    return {**numbers, **codes, "packed": found.packed.tolist()}


def weights_at_edges(kind, arithmetic, seed=0, rows=40, columns=24):
    """Return weights at the ties and limits of a kind and some steps away, and their alphas."""
    random = np.random.default_rng(seed)
    points = {
        "lsq4": np.arange(-19, 18) / 2, "lsq3": np.arange(-11, 10) / 2,
        "seq2": np.array([-0.99, -0.5, 0, 0.5, 0.99, 0.75, -0.75]),
        "seq1.58": np.array([-0.99, -1 / 3, 1 / 3, 0.99, 0, 2 / 3, -2 / 3]),
        "elastic1": np.array([-1, 0, 1, -0.5, 0.5]),
    }[kind]  # fmt: skip
    alpha = np.exp2(random.uniform(-12, 3, rows)).astype(np.float32)
    w = (random.choice(points, (rows, columns)) * alpha[:, None]).astype(np.float32)
    step = 1 << 16 if arithmetic == "bf16" else 1
    moved = w.view(np.int32) + random.integers(-3, 4, w.shape, np.int32) * step
    w = np.where(w == 0, w, moved.view(np.float32))
    w[:, 0] = random.choice([0.0, -0.0, 1e-40, -1e-40, 3e38, 1e-30, -1e-30], rows)
    return w, alpha


@pytest.mark.tier("full", but_one_in=2)
@pytest.mark.parametrize("arithmetic", ARITHMETICS)
@pytest.mark.parametrize("kind", LEVEL_KINDS)
def test_the_engine_is_the_exact_model(kind, arithmetic):
    """LVL-001 to LVL-008: with alphas and without, on every shape and source."""
    w, alpha = weights_at_edges(kind, arithmetic, rows=12)
    alpha[:3] = 1e-6, np.nan, 1e-5
    found = mor_ref.quantize_levels(w, kind, alpha=alpha, arithmetic=arithmetic)
    assert listed(found) == exact(w, kind, alpha.tolist(), arithmetic)
    for seed, shape in enumerate(SHAPES):
        x = adversarial(shape, seed, SOURCES[seed % 4])
        found = mor_ref.quantize_levels(x, kind, arithmetic=arithmetic)
        assert listed(found) == exact(x, kind, None, arithmetic), shape


@given(
    shapes, st.integers(0, 1 << 30), st.sampled_from(SOURCES),
    st.sampled_from(list(LEVEL_KINDS)), st.sampled_from(ARITHMETICS),
)  # fmt: skip
def test_any_tensor(shape, seed, dtype, kind, arithmetic):
    w = adversarial(shape, seed, dtype)
    found = mor_ref.quantize_levels(w, kind, arithmetic=arithmetic)
    assert listed(found) == exact(w, kind, None, arithmetic)


# ---------------------------------------------------------------------- other software


def by_torch(w, alpha, kind, arithmetic):
    """Return y, and the factors of both gradients, by operations of torch in its own dtype."""
    import torch

    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[arithmetic]
    x, a = (torch.from_numpy(v.copy()).to(dtype) for v in (w, alpha[:, None]))
    a = torch.where(a > torch.tensor(1e-5), a, torch.tensor(1e-5)).to(dtype)
    r = x / a
    if kind == "elastic1":
        level, low, high, limit = x.sign(), -1, 1, 1
    elif kind.startswith("lsq"):
        low, high = (-8, 7) if kind == "lsq4" else (-4, 3)
        level = r.round().clamp(low, high)
    else:
        n, s, high = (2, 0.5, 0.75) if kind == "seq2" else (1.5, 0, 1)
        low, limit = -high, 0.99
        level = (torch.round(r.clamp(-limit, limit) * n - s) + s) / n
    if kind.startswith("lsq"):
        below, above, rest = r < low, r > high, r.round() - r
    else:
        below, above, rest = r < -limit, r > limit, level - r
    inside = 1.0 - below.float() - above.float()
    term = below.float() * low + above.float() * high + inside * rest
    term = level if kind == "elastic1" else term
    return [t.float().numpy() for t in (a.reshape(-1), r, level, level * a, term, inside)]


@needs("torch")
@pytest.mark.parametrize("arithmetic", ARITHMETICS)
@pytest.mark.parametrize("kind", LEVEL_KINDS)
def test_the_operations_of_torch(kind, arithmetic):
    """LVL-001, LVL-003 to LVL-007: each operation of the authors' code, in the dtype."""
    for seed in range(3):
        w, alpha = weights_at_edges(kind, arithmetic, seed, rows=200)
        alpha[:2] = 1e-6, 1e-5
        w[4, :4] = np.nan, np.inf, -np.inf, 0
        found = mor_ref.quantize_levels(w, kind, alpha=alpha, arithmetic=arithmetic)
        expected = by_torch(w, alpha, kind, arithmetic)
        names = ("alpha", "ratio", "level", "y", "alpha_term", "inside")
        for name, theirs in zip(names, expected, strict=True):
            np.testing.assert_array_equal(
                bits(getattr(found, name).astype(np.float32)), bits(theirs), err_msg=name
            )


# ---------------------------------------------------------------------- by hand


def quantized(w, kind, **how):
    return mor_ref.quantize_levels(np.array(w, np.float32), kind, **how)


def test_names_and_shapes():
    """LVL-001."""
    assert repr(quantized(np.ones((2, 3)), "lsq3")) == "<2x3 as lsq3 in f32: 2 rows>"
    with pytest.raises(ValueError, match="representation is 'lsq2', which is not known"):
        quantized([1.0], "lsq2")
    with pytest.raises(ValueError, match="arithmetic is 'f16', which is not known"):
        quantized([1.0], "lsq3", arithmetic="f16")
    with pytest.raises(ValueError, match="alpha has 1 numbers; give one for each of the 2 rows"):
        quantized(np.ones((2, 3)), "lsq3", alpha=[1.0])
    narrow = quantized([1.00390625, 3.0], "seq2", arithmetic="bf16")  # a tie of bfloat16
    assert narrow.ratio.tolist() == [bf16(1 / 3), 1.0]


def bf16(x):
    return float(np.float32(x).astype(ml_dtypes.bfloat16))


def test_the_first_alpha():
    """LVL-002: maxima, and the exact mean of magnitudes, which is rounded once."""
    w = [[-3.0, 1.0, 2.0]]
    alphas = {kind: quantized(w, kind).alpha.tolist() for kind in LEVEL_KINDS}
    assert alphas == {
        "lsq4": [float(np.float32(3 / 7))], "lsq3": [1.0], "seq2": [3.0], "seq1.58": [3.0],
        "elastic1": [2.0],
    }  # fmt: skip
    terms = [2.0**24, *[1.0] * 7]
    exactly = (2**24 + 7) / 8
    assert quantized([terms], "elastic1").alpha.tolist() == [float(np.float32(exactly))]
    assert quantized([[1e-45, 1e-45, 0.0]], "elastic1").ratio[0, 2] == 0
    assert np.isinf(quantized([[np.inf, 1.0]], "elastic1").alpha[0])
    assert quantized([[np.nan, 1.0]], "seq2").alpha.tolist() == [float(np.float32(1e-5))]


def test_means_next_to_ties():
    """LVL-002: means that are ties, or next to them, for sums with and without room in 64 bits."""
    random = np.random.default_rng(3)
    for count in (1, 2, 3, 6, 20):
        exponents = random.integers(-22, 1, (40, count)) - random.choice([0, 119], (40, 1))
        w = np.ldexp(random.integers((1 << 24) - 3, 1 << 24, (40, count)), exponents - 1)
        w[::4, 1:] = w[::4, :1]
        want = [first_alpha(row, level_kind("elastic1"), "f32") for row in w.tolist()]
        found = first_alphas(
            w.astype(np.float32).view(np.uint32).reshape(-1), w.shape, level_kind("elastic1"), "f32"
        )
        assert found.view(np.float32).tolist() == want


def test_the_smallest_alpha():
    """LVL-003: not above 1e-5, and NaN, become 1e-5, which bfloat16 rounds."""
    alpha = np.array([1e-5, 9e-6, np.nan, -1.0, 2e-5], np.float32)
    found = quantized(np.ones((5, 1)), "lsq4", alpha=alpha)
    assert found.alpha.tolist() == [*[float(np.float32(1e-5))] * 4, float(np.float32(2e-5))]
    narrow = quantized(np.ones((5, 1)), "lsq4", alpha=alpha, arithmetic="bf16")
    assert narrow.alpha[0] == bf16(1e-5)


def test_a_row_that_is_longer_than_a_slice_of_rows():
    w = np.zeros((2, (1 << 18) + 1), np.float32)
    w[:, -1] = 1.5, -2.5
    found = quantized(w, "lsq3", alpha=[1.0, 1.0])
    assert found.level[:, -1].tolist() == [2, -2]
    assert not found.level[:, :-1].any()


def test_integers():
    """LVL-004: ties to even, and one more level below zero."""
    found = quantized([0.5, 1.5, -2.5, 100, -100, -0.2], "lsq3", alpha=[1.0])
    assert found.level.tolist() == [0, 2, -2, 3, -4, 0]
    assert np.signbit(found.y[5])
    assert found.codes.tolist() == [0, 2, 6, 3, 4, 0]


def test_stretched_levels():
    """LVL-005: two bits have no zero; three levels have a zero without a sign."""
    found = quantized([0.0, 0.4, 0.6, -0.4, -2.0], "seq2", alpha=[1.0])
    assert found.level.tolist() == [0.25, 0.25, 0.75, -0.25, -0.75]
    assert found.clipped[4] == np.float32(-0.99)
    ternary = quantized([-0.1, 0.4, -5.0], "seq1.58", alpha=[3.0])
    assert ternary.y.tolist() == [0, 0, -2]
    assert not np.signbit(ternary.y[:2]).any()


def test_signs():
    """LVL-006: a zero is a third level, and NaN is one, too."""
    found = quantized([0.3, -0.0, -7.0, np.nan], "elastic1", alpha=[0.5])
    assert found.y.tolist() == [0.5, 0, -0.5, 0]
    assert not np.signbit(found.y[1])


def test_gradients():
    """LVL-007: the factors by hand, the exact sum, and the limit 1 of three levels."""
    w = [0.25, 9.0, -9.0, np.inf]
    found = quantized(w, "lsq3", alpha=[1.0])
    assert found.alpha_term[:3].tolist() == [-0.25, 3, -4]
    assert np.isnan(found.alpha_term[3])
    assert found.inside.tolist() == [1, 0, 0, 0]
    assert quantized([2.0], "seq1.58", alpha=[1.0]).alpha_term.tolist() == [1.0]
    assert quantized([2.0], "seq2", alpha=[1.0]).alpha_term.tolist() == [0.75]
    two = quantized([[0.1, 0.2], [0.3, 9.0]], "lsq4", alpha=[1.0, 1.0])
    assert two.gradient_scale == 1 / math.sqrt(4 * 7)
    empty = quantized(np.zeros((0, 3)), "lsq4", alpha=[])
    with pytest.raises(
        ValueError, match=r"only if there are weights, and shape is \(0, 3\); leave"
    ):
        _ = empty.gradient_scale
    sums = two.alpha_sums([[1.0, 2.0], [3.0, 2.0**-60]])
    low, high = (Fraction(float(np.float32(v))) for v in (0.1, 0.2))
    assert sums[0] == -low - 2 * high
    assert sums[1] == -3 * Fraction(float(np.float32(0.3))) + 7 * Fraction(1, 2**60)
    row = level_row(
        [float(v) for v in np.array([0.1, 0.2], np.float32)], level_kind("lsq4"), 1.0, "f32"
    )
    assert alpha_sum(row.elements, [1.0, 2.0]) == sums[0]
    with pytest.raises(ValueError, match=r"dy has the shape \(2,\); give the shape of the weights"):
        two.alpha_sums([1.0, 2.0])
    with pytest.raises(ValueError, match="holds NaN or an infinity, which no exact sum has"):
        found.alpha_sums([1.0] * 4)


@pytest.mark.parametrize(
    ("kind", "w", "row"),
    [
        ("lsq4", [1, -1, 7], [0xF1, 0x07]),
        ("lsq3", [1, -1, 3, -4], [0b11111001, 0b1000]),
        ("seq2", [0.9, 0.1, -0.1, -0.9, 0.9], [0b00011011, 0b11]),
        ("seq1.58", [1, 0, -1, 1, 1, 1], [2 + 3 + 2 * 27 + 2 * 81, 2]),
        ("elastic1", [1, -1, 0], [2 + 9]),
    ],
)
def test_packed(kind, w, row):
    """LVL-008: from the lowest bit, or digit to the base 3, on."""
    assert quantized([w], kind, alpha=[1.0]).packed.tolist() == [row]


# ---------------------------------------------------------------------- recipes


@pytest.mark.tier("full", but=["[lsq3]"])
@pytest.mark.parametrize("recipe", [*LEVEL_KINDS.specified, "seq1.58:bf16", "lsq3:bf16"])
def test_recipes_of_own_tensors(recipe):
    """MOR-007: short texts, the bits of a number, and the way back of finite numbers."""
    one = as_tensor_recipe(recipe)
    kind, _, arithmetic = recipe.partition(":")
    assert one == Levels(kind, arithmetic or "f32") == as_tensor_recipe(one.text)
    assert as_tensor_recipe(short_text(one)) == one
    w, _ = weights_at_edges(kind, one.arithmetic, seed=3, columns=25)
    assert mor_ref.verify("numba", inputs={"w": w}, recipe=recipe).verdict == "match"
    parameters = {**one.asked.parameters, "source": "f32"}
    fields = OPERATIONS["levels"].exact(parameters, {"x": w.view(np.uint32)})
    y = OPERATIONS["levels"].way_back.restore(parameters, fields)
    np.testing.assert_array_equal(y, np.where(fields["y"] == 0x80000000, 0, fields["y"]))
    scale = {"f32": 32, "bf16": 16}[one.arithmetic] / 25
    codes = {"lsq4": 4, "lsq3": 3, "seq2": 2}.get(kind, 1.6)
    assert compare(w, [recipe])[recipe].bits_per_number == pytest.approx(codes + scale)


@pytest.mark.tier("full")
def test_a_record_is_compared_with_its_fields():
    w, _ = weights_at_edges("seq2", "f32")
    expected = mor_ref.quantize_levels(w, "seq2")
    assert_bit_exact(mor_ref.quantize_levels(w, "seq2"), expected)
    with pytest.raises(AssertionError, match="each entry is 3 minus the expected one"):
        assert_bit_exact({"code": 3 - expected.codes}, expected, x=w)
