"""Metrics of squares, rows and functions: sums at their limits, and decisions where they turn."""

import math
from decimal import Decimal
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kernels import needed
from kernels.suites import Schedule
from kernels.tensors import bits
from records import SOURCES, adversarial, differing, engine_mor, exact_mor

import mor_ref
from mor_ref import Cosine, LargestByRow, Policy, RelativeFrobenius, Rung, Sqnr
from mor_ref.cuda import policies
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.unit_sums import UnitSums
from mor_ref.engine import unit_sums as engine
from mor_ref.exact import unit_sums as exact
from mor_ref.metrics import FunctionMetric, MeanRelativeError, Unit
from mor_ref.metrics.metric import accepts
from mor_ref.policies import POLICIES
from mor_ref.recipes import as_tensor_recipe

LARGEST, SMALLEST = np.finfo(np.float32).max, np.float32(2.0**-149)
UNIT = Fraction(2) ** 298


def seen(x, y):
    """Return the numbers of a unit as the engine has them, given y."""
    x, y = (np.atleast_2d(np.float32(numbers)) for numbers in (x, y))

    class Given(engine.NumbersOfUnit):
        rows, columns = (
            [engine.unit_sums(*pair) for pair in zip(*turned, strict=True)]
            for turned in (
                (x.view(np.uint32), y.view(np.uint32)),
                (x.T.view(np.uint32), y.T.view(np.uint32)),
            )
        )
        sums = engine.unit_sums(x.view(np.uint32), y.view(np.uint32))

    Given.x, Given.y = x, y
    Given._bits = x.view(np.uint32), y.view(np.uint32)
    return Given(None, (0, 0))


def by_fractions(x, y):
    """Return the sums of x and y, by fractions and NumPy."""
    x, y = np.float32(x).ravel(), np.float32(y).ravel()
    with np.errstate(over="ignore"):
        d = np.abs(x - y)
    finite = d[np.isfinite(d)]

    def dot(a, b):
        return int(
            UNIT * sum(Fraction(float(p)) * Fraction(float(q)) for p, q in zip(a, b, strict=True))
        )

    nonzero = x != 0
    own = np.abs(x[nonzero])
    with np.errstate(over="ignore"):
        r = np.minimum(np.float32(1), d[nonzero] / own)
    u = (np.float32(1) + r).view(np.uint32).astype(int) - 0x3F800000  # ERR-001, as NumPy rounds
    return UnitSums(
        x.size, finite.size, dot(x, x), dot(finite, finite), dot(y, y), dot(x, y),
        float(finite.max(initial=0)), float(np.abs(x).max(initial=0)),
        float(own.min()) if own.size else 0.0, int(u.sum()), own.size,
    )  # fmt: skip


def decided(metric, x, y):
    numbers = seen(x, y)
    unit = Unit(0, numbers.sums.elements, 0, 1.0, 1.0, "e4m3", numbers=numbers)
    return accepts(metric, unit, {"e4m3": unit}, 1.0, 1.0)


FINITE = (
    st.integers(0, 0xFFFFFFFF)
    .map(lambda bits: np.uint32(bits).view(np.float32))
    .filter(np.isfinite)
)


@given(st.lists(st.tuples(FINITE, FINITE), max_size=40))
@example([(LARGEST, -LARGEST)] * 3)
@example([(SMALLEST, -SMALLEST), (SMALLEST, LARGEST)])
@example([])
def test_the_sums_of_any_numbers(pairs):
    """MOR-009: the exact sums, of the engine and of the exact model."""
    x, y = np.array(pairs, np.float32).reshape(-1, 2).T
    expected = by_fractions(x, y)
    assert engine.unit_sums(x.view(np.uint32), y.view(np.uint32)) == expected
    assert exact.all_sums(zip(x.tolist(), y.tolist(), strict=True)) == expected


@pytest.mark.parametrize("number", [LARGEST, SMALLEST, np.float32(1 - 2.0**-24)])
def test_the_sums_of_many_numbers(number):
    """MOR-009: words are carried before they overflow."""
    count = (1 << 21) + 5
    x = np.full(count, number, np.float32)
    found = engine.unit_sums(x.view(np.uint32), (-x).view(np.uint32))
    square = count * int(UNIT * Fraction(float(number)) ** 2)
    assert (found.signal, found.energy, found.product) == (square, square, -square)


POLICIES_OF_SQUARES = [
    Policy(f"of_{name}", tuple(Rung(fmt, metric) for fmt in rungs), unit=unit, block=(4, 16))
    for name, rungs, metric, unit in (
        ("frobenius", ("nvfp4", "e4m3"), RelativeFrobenius("0.09"), "block"),
        ("tensor", ("nvfp4", "e4m3"), RelativeFrobenius("0.1"), "tensor"),
        ("sqnr", ("e2m1", "mxfp8"), Sqnr("20.5"), "block"),
        ("cosine", ("e2m1", "e5m2"), Cosine("0.995"), "block"),
        ("largest", ("nvfp4", "e5m2"), LargestByRow("0.05"), "block"),
        (
            "function",
            ("nvfp4", "mxfp8"),
            FunctionMetric(lambda unit: unit.rows[0].sqnr > 20),
            "block",
        ),
        (
            "columns",
            ("nvfp4", "mxfp8"),
            FunctionMetric(lambda u: max(c.noise for c in u.columns) * 99 < u.sums.signal),
            "block",
        ),
        (
            "numbers",
            ("nvfp4", "mxfp8"),
            FunctionMetric(lambda u: np.abs(u.x - u.y).max() < u.amax / 20),
            "block",
        ),
    )
]


@pytest.mark.parametrize("policy", POLICIES_OF_SQUARES, ids=lambda policy: policy.name)
def test_decisions_of_the_engine_are_those_of_the_exact_model(policy):
    """MOR-009, MOR-014: also with blocks that the tensor's edges cut."""
    choices = set()
    for seed, shape in enumerate([(5, 37), (1, 50), (33, 1), (2, 3, 17), (0, 4)]):
        for x in (
            adversarial(shape, seed, SOURCES[seed % 4]),
            np.random.default_rng(seed).standard_normal(shape).astype(ml_dtypes.bfloat16),
        ):
            found = engine_mor(x, policy)
            assert differing(found, exact_mor(x, policy)) == {}
            choices |= {*np.ravel(found["choice"]).tolist()}
    assert len(choices) > 1


@pytest.mark.parametrize(
    ("metric", "x", "y", "accepted"),
    [
        (RelativeFrobenius("0.25"), [4, 0], [3, 0], False),
        (RelativeFrobenius("0.25000000000000000000000001"), [4, 0], [3, 0], True),
        (RelativeFrobenius(Fraction(1, 4)), [4, 2.0**-70], [3, 2.0**-70], True),
        (RelativeFrobenius("1e-40"), [4, 0], [4, 0], True),
        (RelativeFrobenius(1), [0, 0], [0, 0], True),
        (RelativeFrobenius(1), [0, 0], [0, SMALLEST], False),
        (RelativeFrobenius(1), [LARGEST, LARGEST], [LARGEST, -LARGEST], False),
        (Sqnr(20), [10, 0], [9, 0], True),
        (Sqnr(20), [10, 0], [9, 2.0**-100], False),
        (Sqnr("20.0000001"), [10, 0], [9, 0], False),
        (Sqnr(200), [0, 0], [0, 0], True),
        (Sqnr("0.1"), [0, 0], [0, SMALLEST], False),
        (Sqnr("0.1"), [LARGEST, LARGEST], [LARGEST, -LARGEST], False),
        (Cosine("0.96"), [3, 4], [4, 3], True),
        (Cosine("0.9600000000000000000000001"), [3, 4], [4, 3], False),
        (Cosine(1), [3, -4], [6, -8], True),
        (Cosine("0.5"), [3, 4], [-3, -4], False),
        (Cosine("0.5"), [3, 4], [0, 0], False),
        (Cosine("0.5"), [0, 0], [0, 0], True),
        (Cosine("0.5"), [0, 0], [0, SMALLEST], False),
        (LargestByRow("0.125"), [[8, 1], [64, 0]], [[7, 1], [60, 0]], False),
        (LargestByRow("0.12500000000000000000001"), [[8, 1], [64, 0]], [[7, 1], [60, 0]], True),
        (LargestByRow("0.1"), [[8, 1], [64, 0]], [[8, 1], [60, 0]], True),
        (LargestByRow("0.1"), [[0, 0], [64, 0]], [[0, 0], [60, 0]], True),
        (LargestByRow("0.1"), [[0, 0], [64, 0]], [[0, SMALLEST], [60, 0]], False),
        (LargestByRow(1), [[LARGEST, -LARGEST]], [[LARGEST, LARGEST]], False),
    ],
    ids=str,
)
def test_decisions_where_they_turn(metric, x, y, accepted):
    """MOR-010, MOR-011, MOR-012, MOR-013: equality, one step off, zeros, infinite errors."""
    assert decided(metric, x, y) is accepted


@given(
    st.lists(st.tuples(FINITE, FINITE), min_size=2, max_size=12).filter(lambda p: len(p) % 2 == 0),
    st.fractions(Fraction(1, 1 << 20), 1),
    st.booleans(),
)
def test_the_largest_errors_by_row_are_compared_exactly(pairs, limit, is_equal):
    """MOR-013: also with a threshold that is the ratio of a row, where binary64 is in doubt."""
    x, y = (np.float32(part).reshape(2, -1) for part in zip(*pairs, strict=True))
    with np.errstate(over="ignore"):
        d, amax = np.abs(x - y).max(axis=1), np.abs(x).max(axis=1)
    if is_equal and np.isfinite(d[0]) and 0 < d[0] <= amax[0]:
        limit = Fraction(float(d[0])) / Fraction(float(amax[0]))
    expected = all(
        np.isfinite(a) and (a == 0 or Fraction(float(a)) < limit * Fraction(float(b)))
        for a, b in zip(d, amax, strict=True)
    )
    assert seen(x, y).has_small_errors(limit) is expected


def test_the_ratio_of_decibels_is_the_nearest_integer():
    """MOR-011: (2R - 1)^n < 2^n 10^(n t / 10) 2^(23 n) < (2R + 1)^n, in integers."""
    for tenths in [*range(1, 700), *range(1901, 2001)]:
        ratio = Sqnr(Decimal(tenths) / 10).limit_of_ratio
        power = 10**tenths << (24 * 100)
        assert (2 * ratio - 1) ** 100 < power < (2 * ratio + 1) ** 100, tenths


@pytest.mark.parametrize("metric", [RelativeFrobenius, Sqnr, Cosine, LargestByRow])
@pytest.mark.parametrize(
    "threshold", [0, -1, 201, "nan", "inf", None, "x", {}, {"weight": 0}, {"": 0.1}]
)
def test_thresholds_that_are_refused(metric, threshold):
    """MOR-010, MOR-011, MOR-012, MOR-013."""
    with pytest.raises((ValueError, TypeError), match="threshold (is|has)"):
        metric(threshold)


def test_a_function_is_a_metric():
    """MOR-014: it sees the sums, the rows, the numbers and the place of a unit."""
    units = []

    def is_taken(unit):
        units.append(unit)
        return unit.index == (0, 1)

    x = np.arange(1, 65, dtype=np.float32).reshape(4, 16) / 7
    policy = Policy("own", (Rung("e4m3", is_taken), Rung("e5m2", lambda _: True)), "block", (4, 8))
    result = mor_ref.mor(x, policy)
    assert result.choice.tolist() == [[1, 0]]
    first, second = units
    assert first.representation == "e4m3"
    assert second.index == (0, 1)
    assert second.x.tolist() == x[:, 8:].tolist()
    y = np.asarray(result.quantized["e4m3"])[:, 8:]
    assert second.y.tolist() == y.tolist()
    assert second.sums == by_fractions(x[:, 8:], y)
    assert list(second.rows) == [by_fractions(*row) for row in zip(x[:, 8:], y, strict=True)]
    assert list(second.columns) == [by_fractions(*c) for c in zip(x[:, 8:].T, y.T, strict=True)]
    assert second.amax == float(x[:, 8:].max())
    assert second.sum == int(result.error["e4m3"].sum[0, 1])
    assert (second.layer, second.kind, second.step) == ("", None, 0)
    norms = np.linalg.norm((x[:, 8:] - y).astype(float)), np.linalg.norm(x[:, 8:].astype(float))
    assert math.isclose(second.relative_frobenius, norms[0] / norms[1], rel_tol=1e-6)
    assert math.isclose(second.sqnr, 20 * math.log10(norms[1] / norms[0]), rel_tol=1e-6)


def test_rungs_are_asked_in_order_and_only_about_what_is_left():
    """MOR-001 and MOR-014: not about units that are taken, or that lose something."""
    asked = []

    def ask(name, answer):
        def metric(unit):
            asked.append((name, unit.index))
            return answer(unit)

        return metric

    x = np.ones((2, 12), np.float32)
    x[0, 9] = np.inf
    rungs = (
        Rung("e4m3", ask("first", lambda unit: unit.index == (0, 0))),
        Rung("e5m2", ask("second", lambda _: np.False_)),
    )
    policy = Policy("own", rungs, "block", (2, 4))
    expected = [("first", (0, 0)), ("first", (0, 1)), ("second", (0, 1))]
    assert mor_ref.mor(x, policy).choice.tolist() == [[0, 2, 2]]
    assert asked == expected
    asked.clear()
    assert exact_mor(x, policy)["choice"] == [[0, 2, 2]]
    assert sorted(asked) == sorted(expected)


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda: True, TypeError, r"metric is a function of \(\); give a function of \(unit\)"),
        (
            lambda _a, _b, _c: True,
            TypeError,
            r"function of \(_a, _b, _c\); give a function of \(unit\)",
        ),
        (lambda _a, *, _b: True, TypeError, r"function of \(_a, _b\); give a function of \(unit\)"),
        (MeanRelativeError, TypeError, "metric is <class .*; give MeanRelativeError, "),
        (3, TypeError, "metric is 3; give MeanRelativeError, RelativeFrobenius, Sqnr, Cosine, L"),
        (lambda _: 1, TypeError, r"accepts of metric '<lambda>' returned 1; return a bool"),
    ],
)
def test_functions_that_are_refused(function, error, message):
    """MOR-014."""
    with pytest.raises(error, match=message):
        mor_ref.mor(np.ones((2, 2), np.float32), Policy("own", (Rung("e4m3", function),)))


def test_what_has_accepts_but_is_no_metric_is_refused():
    class Alike:
        def accepts(self, *_):
            return True

    with pytest.raises(TypeError, match="which has accepts but is of no subclass of Metric"):
        Rung("e4m3", Alike())


def test_where_there_are_no_numbers_a_metric_says_so():
    metric = RelativeFrobenius(0.1)
    with pytest.raises(ValueError, match="only its error sums are known here"):
        accepts(metric, Unit(0, 1, 0), {}, 1.0, 1.0)


def test_a_state_is_of_a_unit_and_a_representation():
    """MOR-016: outside of training, each tensor begins without a state."""
    states = []

    def metric(_, state):
        states.append(dict(state))
        state["asked"] = state.get("asked", 0) + 1
        return False

    policy = Policy("own", (Rung("e4m3", metric), Rung("e5m2", metric)), "block", (2, 2))
    for _ in range(2):
        mor_ref.mor(np.ones((2, 4), np.float32), policy)
    assert states == [{}] * 8


BY_ROLE = {"*": 0.5, "weight": 0.25, "layers.0": "0.125", "mlp.*:gradient": Fraction(1, 16)}


@pytest.mark.parametrize(
    ("layer", "kind", "threshold"),
    [
        ("", None, 0.5),
        ("head", "weight", 0.25),
        ("model.layers.0", "weight", "0.125"),
        ("model.layers.0.up", None, "0.125"),
        ("model.layers.01", "gradient", 0.5),
        ("model.mlp.up", "gradient", Fraction(1, 16)),
        ("model.layers.0.mlp.up", "gradient", Fraction(1, 16)),
        ("model.mlp.up", "activation", 0.5),
    ],
)
@pytest.mark.parametrize("metric", [RelativeFrobenius, MeanRelativeError, Sqnr])
def test_the_last_threshold_that_fits_is_taken(metric, layer, kind, threshold):
    """MOR-015."""
    role = mor_ref.Role(layer, kind)
    policy = Policy("own", (Rung("e4m3", metric(BY_ROLE)), Rung("e5m2", Sqnr(20))))
    (first, second) = policy.for_tensor(role).ladder
    assert first.metric == metric(threshold)
    assert second.metric == Sqnr(20)


def test_a_tensor_without_a_threshold_is_refused():
    """MOR-015."""
    policy = Policy("own", (Rung("e4m3", RelativeFrobenius({"weight": 0.1})),))
    message = "threshold is given for weight, but not for a gradient of layer '0'; give one for it"
    with pytest.raises(ValueError, match=message):
        policy.for_tensor(mor_ref.Role("0", "gradient"))
    with pytest.raises(ValueError, match="not for a tensor whose kind is not known; give one"):
        mor_ref.mor(np.ones((2, 2), np.float32), policy)


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("weights", "did you mean 'weight'[?] "),
        ("Gradient", "did you mean 'gradient'[?] "),
        ("grad", "did you mean 'gradient'[?] "),
        ("wieght", "did you mean 'weight'[?] "),
        ("layers.*:activations", "did you mean 'activation'[?] "),
        ("", ""),
        (3, ""),
    ],
)
def test_a_kind_with_a_slip_is_no_pattern_of_layers(key, meant):
    """MOR-015: its threshold would be for no tensor."""
    with pytest.raises((TypeError, ValueError), match=f"has the key {key!r}; {meant}give a kind"):
        Sqnr({"*": 20, key: 30})
    assert Sqnr({"*": 20, "[w]eights": 30, "lm_head": 40, "a:fire:w": 10}).threshold["*"] == 20


def test_an_empty_table_of_thresholds_names_no_rung():
    """MOR-005: also in a text, where no threshold is the usual."""
    for read in (
        POLICIES["nvfp4"].with_threshold,
        lambda t: mor_ref.mor([[1]], "nvfp4", threshold=t),
    ):
        with pytest.raises(ValueError, match="threshold is {}, which names no rung"):
            read({})
    with pytest.raises(ValueError, match="threshold is {}, which names no rung"):
        as_tensor_recipe('representation = "mor"\npolicy = "nvfp4"\nthreshold = {}')


def test_thresholds_by_rung_and_role():
    """MOR-005 and MOR-015: thresholds of a policy are tables by rung, and by role."""
    policy = POLICIES["nvfp4"].with_threshold({"nvfp4": BY_ROLE, "e4m3": 0.1})
    first, second = policy.for_tensor(mor_ref.Role("0", "weight")).ladder
    assert (first.metric.threshold, second.metric.threshold) == (0.25, 0.1)
    assert policy == POLICIES["nvfp4"].with_threshold({"nvfp4": dict(BY_ROLE), "e4m3": 0.1})


@pytest.mark.parametrize("unit", ["block", "tensor"])
@pytest.mark.parametrize("block", [(3, 7), (8, 40), (24, 60)], ids=str)
def test_kernels_decide_as_the_engine(block, unit):
    """MOR-009 to MOR-013: in units of every size of teams, of every source, and of 16-bit tiles."""
    needed.compiler()
    device, choices = Schedule(order=3, blocks=2), set()
    for source in SOURCES:
        x = adversarial((29, 83), 5, source)
        for metric in (
            RelativeFrobenius("0.1"),
            Sqnr("20.5"),
            Cosine("0.995"),
            LargestByRow("1/9"),
        ):
            rungs = tuple(Rung(name, metric) for name in ("nvfp4", "e4m3", "mxfp8"))
            policy = Policy("of_sums", rungs, unit=unit, block=block)
            expected = mor_ref.mor(x, policy)
            parts = partition(x.shape, block)
            found = policies.mor(device, bits(np.asarray(x)), policy, "gam", parts)
            assert np.array_equal(found.choice, expected.choice), (source, metric)
            choices |= {*np.ravel(expected.choice).tolist()}
    assert len(choices) > 1
