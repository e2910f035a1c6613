"""mor: decisions at their edges, the policies, and the output of each unit."""

import re
import tracemalloc
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from records import SOURCES, adversarial, differing, engine_mor, exact_mor, shapes
from test_trace import ROOT, table_after

import mor_ref
from mor_ref import FitsRange, Format, MeanRelativeError, NotWorseThan, Policy, Rung, formats
from mor_ref.definitions.scales import SCALINGS
from mor_ref.engine import policies as acceptance
from mor_ref.engine.scales import Extremes
from mor_ref.exact.errors import ErrorSum
from mor_ref.metrics import METRICS
from mor_ref.policies import POLICIES

NAMES = list(POLICIES)
E4M3_OF_4_BITS = Format("e4m3", exponent_bits=2, mantissa_bits=1, bias=1, specials="none")
BY_ROWS = Policy(
    "by_rows", (Rung("e4m3", MeanRelativeError("0.03")),), unit="block", block=(1, 8), group="row"
)
OWN = Policy(
    "own",
    (
        Rung("nvfp4", NotWorseThan("e3m2")),
        Rung("e2m3", MeanRelativeError("0.03")),
        Rung("e4m3fnuz", FitsRange("f16")),
    ),
    unit="block",
    block=(2, 8),
)


INT8 = Format(
    "int8", exponent_bits=0, mantissa_bits=7, bias=-6, specials="none", sign="twos-complement"
)
# Formats without a negative zero on the first rung, whose output is written on another way.
WITHOUT_NEGATIVE_ZERO = [
    Policy(fmt.name, (Rung(fmt, MeanRelativeError(1)),), block=(2, 8))
    for fmt in (INT8, formats["e4m3fnuz"], formats["e5m2fnuz"])
]


@pytest.mark.tier("full", but=["[shape0-own", "[shape0-three_way", "[shape4-"])
@pytest.mark.parametrize(
    "policy", [*NAMES, OWN, BY_ROWS, *WITHOUT_NEGATIVE_ZERO], ids=lambda p: getattr(p, "name", p)
)
@pytest.mark.parametrize(
    "shape", [(5, 37), (1, 50), (33, 1), (1, 1), (), (0, 4), (3, 0), (2, 3, 17)]
)
def test_every_record_is_that_of_the_exact_model(policy, shape):
    own_group = getattr(policy, "group", "tensor") != "tensor"
    for seed, block in enumerate([None] if own_group else [None, (2, 16), (4, 8), "row", "column"]):
        x = adversarial(shape, seed, SOURCES[seed % 4])
        scaling = SCALINGS[seed % 3]
        found = engine_mor(x, policy, block=block, scaling=scaling)
        assert differing(found, exact_mor(x, policy, block, scaling)) == {}, block


@pytest.mark.tier("full")
@given(
    shapes,
    st.integers(0, 1 << 30),
    st.sampled_from(SOURCES),
    st.sampled_from([*NAMES, OWN, *WITHOUT_NEGATIVE_ZERO]),
    st.tuples(st.integers(1, 5), st.integers(1, 33)),
)
def test_any_tensor(shape, seed, dtype, policy, block):
    x = adversarial(shape, seed, dtype)
    assert differing(engine_mor(x, policy, block=block), exact_mor(x, policy, block)) == {}


def one_unit(total, nonzero, nonfinite=0):
    """Return the sums of one unit, for the engine."""
    return np.array([[[total, nonzero, nonfinite]]], np.uint64)


@pytest.mark.parametrize("nonzero", [1, 3, 1 << 20, 1 << 40])
@pytest.mark.parametrize("threshold", [0.045, "0.05", 1, Decimal("0.2"), Fraction(1, 1 << 23)])
def test_the_mean_at_the_threshold_and_one_step_off(threshold, nonzero):
    """MOR-002: sum equal to T * nonzero does not accept; one less does; 64 bits are enough."""
    metric = MeanRelativeError(threshold)
    at = metric.limit * nonzero
    for total, accepted in ((at - 1, True), (at, False), (at + 1, False)):
        assert acceptance.is_below(one_unit(total, nonzero), metric.limit).tolist() == [[accepted]]
        errors = {"e4m3": ErrorSum(total, nonzero, 0)}
        assert metric.accepts(errors["e4m3"], errors, 1.0, 1.0) is accepted
    assert acceptance.is_below(one_unit(0, 0), metric.limit).tolist() == [[True]]


def test_tensors_whose_mean_is_the_threshold_and_one_step_off():
    """MOR-002 end to end: sixteen equal errors, then one of them a step less and a step more."""
    x = np.full((1, 16), 1.1, np.float32)

    def total(tensor):
        return int(mor_ref.mor(tensor, scaling="e8m0").error["e4m3"].sum[0, 0])

    u, rest = divmod(total(x), 16)
    assert rest == 0
    step = Fraction(1, 1 << 23)
    tensors = {0: x}
    for k in range(-40, 40):
        other = x.copy()
        other[0, 3] += np.float32(k * 2.0**-23)
        tensors.setdefault(total(other) - 16 * u, other)
    for off, accepted in ((-1, True), (0, False), (1, False)):
        for threshold, expected in (
            (u * step, accepted),
            ((u + 1) * step, True),
            ((u - 1) * step, False),
        ):
            found = mor_ref.mor(tensors[off], scaling="e8m0", threshold=threshold)
            assert (found.choice[0, 0] == 0) == expected, (off, threshold)
            same = exact_mor(tensors[off], "tensor", scaling="e8m0", threshold=threshold)
            assert found.choice.tolist() == same["choice"]


@pytest.mark.parametrize(
    ("threshold", "limit"),
    [(0.045, 377487), ("0.20", 1677722), (0.05, 419430), (1, 1 << 23), (Decimal("0.045"), 377487)],
)
def test_the_threshold_is_the_decimal_that_was_written(threshold, limit):
    """MOR-002."""
    assert MeanRelativeError(threshold).limit == limit
    half = Fraction(2 * 377487 + 1, 1 << 24)
    assert MeanRelativeError(half).limit == 377488, "a tie goes to the even one"


@pytest.mark.parametrize(
    "threshold",
    [0, -0.1, 1.01, "x", None, True, float("nan"), float("inf"), [1], "1e999999999", "-1e-31"],
)
def test_thresholds_that_are_refused(threshold):
    with pytest.raises(ValueError, match="give a number above 0 and up to 1, such as 0.045"):
        MeanRelativeError(threshold)


@pytest.mark.parametrize("threshold", [1e-40, "1e-99999999", Fraction(1, 10**40), "1/99999999999"])
def test_a_tiny_threshold_accepts_zeros_alone(threshold):
    """MOR-002: T is 0."""
    assert MeanRelativeError(threshold).limit == 0
    assert mor_ref.mor([0.0], threshold=threshold).choice.tolist() == [[0]]
    assert mor_ref.mor([1.0], threshold=threshold).choice.tolist() == [[1]]


def test_a_tie_takes_the_first_rung():
    """MOR-003: zeros, and numbers that both formats represent exactly."""
    x = np.zeros((4, 8), np.float32)
    x[2:] = 1.0
    found = mor_ref.mor(x, "two_way", block=(2, 8))
    assert found.choice.tolist() == [[0], [0]]
    for total, accepted in ((4, True), (5, True), (6, False)):
        yardstick = one_unit(5, 1)
        assert acceptance.is_not_worse(one_unit(total, 1), yardstick).tolist() == [[accepted]]
        errors = {"e4m3": ErrorSum(total, 1, 0), "e5m2": ErrorSum(5, 1, 0)}
        metric = NotWorseThan("e5m2")
        assert metric.accepts(errors["e4m3"], errors, 1.0, 1.0) is accepted


@pytest.mark.parametrize("fmt", ["e5m2", "e4m3", "f16"])
@pytest.mark.parametrize("amin", [1.0, 2.0**-149, 3 * 2.0**-140, 1.1])
def test_the_range_at_the_ratio(fmt, amin):
    """MOR-004: exactly the ratio fits, the next number above does not."""
    low = np.float32(amin)
    ratio = Fraction(formats[fmt].largest) / Fraction(formats[fmt].smallest_normal)
    at = np.float32(float(Fraction(float(low)) * ratio))
    at = (
        at
        if Fraction(float(at)) <= Fraction(float(low)) * ratio
        else np.nextafter(at, np.float32(0))
    )
    for amax, accepted in ((at, True), (np.nextafter(at, np.float32(np.inf)), False)):
        x = np.array([[low, amax]], np.float32)
        extremes = Extremes(*(np.array([[v]], np.float32).view(np.uint32) for v in (amax, low)))
        found = acceptance.fits_range(one_unit(1, 2), extremes, formats[fmt])
        assert found.tolist() == [[accepted]]
        errors = {"e5m2": ErrorSum(1, 2, 0)}
        fits = FitsRange(fmt).accepts(errors["e5m2"], errors, float(amax), float(low))
        assert fits is accepted
        ladder = Policy("range", (Rung("e5m2", FitsRange(fmt)),))
        assert mor_ref.mor(x, ladder).choice.tolist() == [[0 if accepted else 1]]


def test_zeros_have_no_say_in_the_range():
    """MOR-004: amin is of the elements that are not zero."""
    ladder = Policy("range", (Rung("e5m2", FitsRange("e5m2")),))
    found = mor_ref.mor(np.array([[0.0, 1.0, -0.0, 2.0]], np.float32), ladder)
    assert found.choice.tolist() == [[0]]
    assert (found.amin.tolist(), found.amax.tolist()) == ([[1.0]], [[2.0]])
    assert mor_ref.mor(np.zeros((1, 3), np.float32), ladder).choice.tolist() == [[0]]


@pytest.mark.parametrize("policy", NAMES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 3.4e38])
def test_a_unit_with_something_that_is_lost_falls_back(policy, bad):
    """MOR-001: a tie or a small mean does not save it."""
    x = np.ones((4, 64), np.float32)
    x[1, 3] = bad
    found = mor_ref.mor(x, policy, block=(2, 32))  # no unit cuts a block of MX
    worst = len(found.ladder) - 1
    row = POLICIES[policy]
    expected = [[worst]] if row.unit == "tensor" else [[worst, 0], [0, 0]]
    if bad == 3.4e38 and isinstance(row.ladder[0].metric, MeanRelativeError):
        assert found.choice.max() <= worst
        return
    assert found.choice.tolist() == expected


def test_the_first_rung_that_accepts_is_taken():
    """MOR-001."""
    x = np.random.default_rng(1).standard_normal((4, 32)).astype(np.float32)
    both = (Rung("e4m3", MeanRelativeError(1)), Rung("e5m2", MeanRelativeError(1)))
    found = mor_ref.mor(x, Policy("both", both))
    assert found.choice.tolist() == [[0]]
    strict = (Rung("e4m3", MeanRelativeError("1e-6")), Rung("e5m2", MeanRelativeError(1)))
    found = mor_ref.mor(x, Policy("second", strict))
    assert found.choice.tolist() == [[1]]
    y = found.quantized["e5m2"].dequantize(ml_dtypes.bfloat16)
    assert np.array_equal(found.output, y.view(np.uint16))


def test_the_printed_policies_are_those_of_the_catalogue():
    """MOR-005."""
    printed = {}
    for name, unit, ladder in table_after(":id: MOR-005", Path(ROOT) / "spec/policies.md"):
        rungs = []
        for step in ladder.split("; "):
            representation, metric = step.split(": ")
            kind, argument = metric.rstrip(")").split("(")
            made = type(METRICS[kind])(argument)
            rungs.append((representation, plain(made)))
        printed[name] = (unit, rungs)
    assert printed == {
        policy.name: (policy.unit, [(r.name, plain(r.metric)) for r in policy.ladder])
        for policy in POLICIES.values()
    }
    assert all(policy.block == (128, 128) for policy in POLICIES.values())


def plain(metric):
    return metric.limit if isinstance(metric, MeanRelativeError) else metric


def test_a_threshold_sets_the_rung_of_e4m3():
    """MOR-005."""
    x = np.random.default_rng(2).standard_normal((8, 32)).astype(np.float32)
    assert mor_ref.mor(x).choice.tolist() == [[0]]
    assert mor_ref.mor(x, threshold=0.001).choice.tolist() == [[1]]
    nvfp4 = POLICIES["nvfp4"].with_threshold(0.01)
    assert [rung.metric.limit for rung in nvfp4.ladder] == [1677722, 83886]
    with pytest.raises(ValueError, match="policy 'two_way' has no threshold of 'e4m3'"):
        mor_ref.mor(x, "two_way", threshold=0.05)


@pytest.mark.tier("full", but=["[block]"])
@pytest.mark.parametrize("unit", ["tensor", "block"])
def test_thresholds_are_of_the_rungs_that_are_named(unit):
    """MOR-005: against the exact model, whose ladder is written out."""
    x = np.random.default_rng(3).standard_normal((8, 64)).astype(np.float32)
    x *= 2.0 ** np.random.default_rng(4).integers(-6, 6, (8, 64))
    own = {"nvfp4": "0.2", "e4m3": "0.025", "e5m2": "0.04"}

    def policy(thresholds):
        ladder = (Rung(name, MeanRelativeError(t)) for name, t in thresholds.items())
        return Policy("ours", tuple(ladder), unit=unit, block=(2, 16))

    for changed in (
        {},
        {"nvfp4": "0.15"},
        {"e5m2": Fraction(1, 20), "e4m3": 0.024},
        {"nvfp4": 0.24, "e4m3": "0.022", "e5m2": 1},
    ):
        found = engine_mor(x, policy(own), threshold=changed or None)
        assert differing(found, exact_mor(x, policy(own | changed))) == {}
    assert policy(own).with_threshold(0.1) == policy(own | {"e4m3": 0.1})


def test_thresholds_of_rungs_that_there_are_not():
    means = {
        name: [rung.name for rung in POLICIES[name].ladder if hasattr(rung.metric, "threshold")]
        for name in POLICIES.specified
    }
    assert (means["tensor"], means["two_way"], means["three_way"]) == (["e4m3"], [], [])
    others = f"omit it, or give the policy {' or '.join(name for name in means if means[name])}"
    for policy, threshold, message in (
        ("nvfp4", {"e5m2": 0.1}, "no threshold of 'e5m2'; give one for nvfp4 or e4m3"),
        ("tensor", {"e4m3": 0.1, "nvfp4": 0.1}, "of 'nvfp4'; give one for e4m3"),
        ("three_way", {"e5m2": 0.1}, f"of 'e5m2'; {others}"),
        ("nvfp4", {"": 0.1}, "no threshold of ''; give one for nvfp4 or e4m3"),
        ("nvfp4", {}, "threshold is {}, which names no rung; give one for nvfp4 or e4m3"),
        ("three_way", {}, f"threshold is {{}}, which names no rung; {others}"),
        ("nvfp4", {"nvfp4": 0}, "threshold is 0; give a number above 0 and up to 1"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            mor_ref.mor([1.0], policy, threshold=threshold)


@pytest.mark.parametrize("policy", WITHOUT_NEGATIVE_ZERO, ids=lambda policy: policy.name)
def test_what_becomes_zero_has_the_sign_of_its_code(policy):
    """MOR-006: -0, and a negative number that rounds to zero."""
    x = np.array([[1.0, -1e-30, -0.0, 0.0]], np.float32)
    found = mor_ref.mor(x, policy)
    assert found.choice.tolist() == [[0]]
    assert found.output[0, 1:].tolist() == [0, 0, 0]


def test_a_bfloat16_input_keeps_its_bits():
    """MOR-006: NaN payloads and signs too."""
    bits = np.array([[0x7FC1, 0xFF81, 0x3F80, 0x8000, 0x0001, 0xFF80]], np.uint16)
    found = mor_ref.mor(bits.view(ml_dtypes.bfloat16))
    assert found.choice.tolist() == [[1]]
    assert found.output.tolist() == bits.tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_another_input_that_falls_back_is_encoded(dtype):
    """MOR-006, against the conversion of ml_dtypes."""
    with np.errstate(all="ignore"):
        x = adversarial((6, 20), 7).astype(dtype)
        x[0, 0], x[1, 1], x[2, 2] = np.nan, np.inf, -0.0
        found = mor_ref.mor(x, threshold="1e-9")
        expected = x.astype(np.float32).astype(ml_dtypes.bfloat16).view(np.uint16)
    is_nan = np.isnan(x)
    assert np.array_equal(found.output[~is_nan], expected[~is_nan])
    assert set(found.output[is_nan].tolist()) == {0x7FFF}


@pytest.mark.parametrize("policy", NAMES)
def test_threads_and_layouts_change_nothing(policy):
    x = adversarial((700, 1500), 13, ml_dtypes.bfloat16)
    one = mor_ref.mor(x, policy, threads=1, block=(64, 96))
    for tensor in (x, np.asfortranarray(x)):
        other = mor_ref.mor(tensor, policy, block=(64, 96))
        assert np.array_equal(one.choice, other.choice)
        assert np.array_equal(one.output, other.output)
        for name, error in one.error.items():
            assert np.array_equal(error.sum, other.error[name].sum)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: mor_ref.mor([1.0], "tensors"),
            ValueError,
            "policy is 'tensors', which",
        ),
        (lambda: mor_ref.mor([1.0], scaling="x"), ValueError, "scaling is 'x'"),
        (
            lambda: mor_ref.mor([1.0], threshold=2),
            ValueError,
            "threshold is 2; give a number",
        ),
        (lambda: Policy("a b", OWN.ladder), ValueError, "name is 'a b'; give a letter"),
        (lambda: Policy("p", ()), TypeError, "ladder is (); give a tuple of at least one Rung"),
        (lambda: Policy("p", (OWN.ladder[0],) * 2), ValueError, "ladder names nvfp4, nvfp4, bf16"),
        (lambda: Policy("p", OWN.ladder, unit="row"), ValueError, "unit is 'row', which is not kn"),
        (
            lambda: Policy("p", (Rung(E4M3_OF_4_BITS, NotWorseThan("e4m3")),)),
            ValueError,
            "ladder has two representations named 'e4m3'; give one another name",
        ),
        (lambda: Policy("p", OWN.ladder, block=(0, 1)), ValueError, "a side of block is 0"),
        (lambda: Policy("p", OWN.ladder, group="rows"), ValueError, "group is 'rows'"),
        (
            lambda: mor_ref.mor(np.ones((4, 4), np.float32), BY_ROWS, scaling="fp32"),
            ValueError,
            "group is 'row', but scaling is 'fp32', which shares nothing; omit group",
        ),
        (lambda: Rung("bf16", MeanRelativeError(1)), ValueError, "give a signed format"),
        (
            lambda: Rung("e4m3", 0.045),
            TypeError,
            "metric is 0.045; give MeanRelativeError, RelativeF",
        ),
        (lambda: Rung("e4m3", NotWorseThan("f16")), ValueError, "give a signed format"),
        (lambda: Rung("e4m3", FitsRange("int8_mx")), ValueError, "which has no normal numbers"),
    ],
)
def test_wrong_arguments(make, error, message):
    with pytest.raises(error) as refused:
        make()
    assert message in str(refused.value)


def test_memory_beyond_input_and_output():
    """No binary32 copy of the tensor, and no more than a strip's scales for each thread."""
    x = np.ones((2048, 8192), ml_dtypes.bfloat16)
    mor_ref.mor(x, "three_way", threads=1)
    tracemalloc.start()
    found = mor_ref.mor(x, "three_way", threads=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    kept = found.output.nbytes + sum(q.codes.nbytes for q in found.quantized.values())
    assert peak - kept < 1 << 20


def test_what_a_result_says():
    x = np.ones((4, 32), np.float32)
    found = mor_ref.mor(x, "three_way", block=(2, 16))
    assert repr(found) == (
        "<4x32 float32 by three_way: 4 x 2x16: e4m3 100 %, e5m2 0 %, bf16 0 %; error in e4m3 0 %>"
    )
    assert found.shares == {"e4m3": 1.0, "e5m2": 0.0, "bf16": 0.0}
    assert repr(mor_ref.mor(np.zeros((0, 3)))).startswith("<0x3 float64 by tensor: 0 x ")


def test_a_cut_may_be_a_list():
    """A policy can be hashed, whatever its cuts were given as."""
    rungs = POLICIES["tensor"].ladder
    listed, paired = (
        Policy("mine", rungs, block=of(8), group=of(16))
        for of in (lambda n: [n, n], lambda n: (n, n))
    )
    assert hash(listed) == hash(paired)
    assert (listed.block, listed.group) == ((8, 8), (16, 16))
