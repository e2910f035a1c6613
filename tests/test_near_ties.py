"""Codes on the other side of a tie that a number is next to, which `--ties` allows."""

import functools
import itertools
import json
import math
from fractions import Fraction
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from verifying import MANIFEST, run, undiagnosed

import mor_ref
from mor_ref import formats, golden
from mor_ref.cli.statuses import VERDICT_STATUSES
from mor_ref.definitions.table_format import TableFormat
from mor_ref.exact.arithmetic import quotient
from mor_ref.exact.encoding import encode
from mor_ref.golden import bundled_files
from mor_ref.golden.model.suite import Case
from mor_ref.golden.model.views import packed
from mor_ref.operations import OPERATIONS
from mor_ref.operations.nearest import Operand
from mor_ref.recipes import own_recipe
from mor_ref.verify import assert_bit_exact
from mor_ref.verify.asserting.suite_case import suite_case
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.comparing.allowed import Allowed
from mor_ref.verify.comparing.near_ties import NearTies, as_ties, other_codes
from mor_ref.verify.reporting.junit import as_junit
from mor_ref.verify.reporting.page import as_html
from mor_ref.verify.reporting.report_files import as_json
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in

__all__ = ["undiagnosed"]
pytestmark = pytest.mark.usefixtures("undiagnosed")
E4M3, E2M1 = formats["e4m3"], formats["e2m1"]
TIES = Fraction(1, 64)


@functools.cache
def values_of(fmt):
    """Return the finite values that encoding can lead to, in ascending order, each once."""
    every = (fmt.value(code) for code in range(fmt.code_count))
    return sorted({one for one in every if abs(one) <= fmt.largest})


def allowed_code(number, code, fmt, fraction):
    """Return the code that is allowed next to the expected one, in fractions; None if none is."""
    steps, value = values_of(fmt), fmt.value(code)
    if not math.isfinite(number) or value not in steps:
        return None
    place = steps.index(value)
    for other in (*steps[place - 1 : place], *steps[place + 1 : place + 2]):
        distance = abs(Fraction(number) - (Fraction(value) + Fraction(other)) / 2)
        if 0 < distance <= fraction * abs(Fraction(other) - Fraction(value)):
            return encode(other or math.copysign(0.0, number), fmt, "rne")
    return None


# ------------------------------------------------------------------------------ which codes


@pytest.mark.parametrize(
    "name", ["e4m3", "e5m2", "e2m1", "e4m3fnuz", "e4m3b11fnuz", "int8_mx", "e3m2"]
)
def test_the_other_code_is_on_the_other_side_of_a_tie(name):
    """Next to midpoints, at them, beyond the largest number, and at special numbers."""
    fmt, fraction = formats[name], Fraction(1, 16)
    steps = values_of(fmt)
    middles = [(low + high) / 2 for low, high in itertools.pairwise(steps)]
    near = [
        middle + sign * (high - low) * float(part)
        for middle, (low, high) in zip(middles, itertools.pairwise(steps), strict=True)
        for sign in (-1, 1)
        for part in (2.0**-30, Fraction(1, 16), Fraction(1, 15), Fraction(1, 2))
    ]
    over = fmt.largest + (steps[-1] - steps[-2]) * (0.5 + 2.0**-20)  # next to a tie of no code
    beyond = [math.inf, -math.inf, math.nan, over, -over, 1e-40, -1e-40]
    numbers = np.array([*middles, *near, *beyond, 0.0, -0.0])
    codes = np.array([encode(number, fmt, "rne") for number in numbers.tolist()], np.uint8)
    found = other_codes(Operand(numbers, fmt), codes, fraction).tolist()
    wanted = [
        allowed_code(number, code, fmt, fraction)
        for number, code in zip(numbers.tolist(), codes.tolist(), strict=True)
    ]
    assert found == [
        code if other is None else other for code, other in zip(codes.tolist(), wanted, strict=True)
    ]
    assert sum(other is not None for other in wanted) > len(middles)
    assert found[: len(middles)] == codes[: len(middles)].tolist()  # exactly at the midpoints


def test_a_negative_number_has_the_zero_of_its_block_format():
    """Its code is 0x8, unless the block format has no -0."""
    number, code = np.array([-0.2500001]), np.array([0x9], np.uint8)  # e2m1: -0.5
    assert other_codes(Operand(number, E2M1), code, TIES).tolist() == [0x8]
    assert other_codes(Operand(number, E2M1, has_negative_zero=False), code, TIES).tolist() == [0x0]


def test_the_nearest_powers_of_two_have_midpoints_as_well():
    """ENC-013: e8m0 has no zero and no sign."""
    e8m0 = formats["e8m0"]
    numbers = np.array([1.5, 1.4999, 1.5001, 2.0**-127, 0.0])
    codes = np.array([0x80, 0x7F, 0x80, 0, 0], np.uint8)
    assert other_codes(Operand(numbers, e8m0), codes, TIES).tolist() == [0x80, 0x80, 0x7F, 0, 0]


def test_codes_of_a_table_are_in_the_order_of_its_values():
    table = TableFormat("mine", (1.0, -1.0, 0.0))
    numbers, codes = np.array([0.501, -0.499, 0.5]), np.array([0, 2, 2], np.uint8)
    assert other_codes(Operand(numbers, table), codes, TIES).tolist() == [2, 1, 2]


@pytest.mark.parametrize(
    "suite",
    [
        *("quantize", "quantize_blocks", "quantize_steps", "mx", "mx_blocks", "nvfp4_blocks"),
        *("nvfp4_te", "nvfp4_te_4over6_mae_448", "nvfp4_torchao", "nvfp4_modelopt"),
    ],
)
def test_the_operand_is_xs_and_y_follows_from_codes(suite):
    """QNT-001, QNT-002, MXS-007, MXS-008, NVF-010. Expected values are of the golden vectors."""
    operation = OPERATIONS[MANIFEST[suite]["operation"]]
    cases = [case for case in golden.load(suite) if "xs" in case.arrays]
    for case in cases[:: -(-len(cases) // 12)]:
        without = {name: array for name, array in case.arrays.items() if name != "xs"}
        is_tensor = operation.first_axes == "rc"  # cases of steps have xs
        operand = operation.operand(case.parameters, without if is_tensor else case.arrays)
        xs = case.arrays["xs"].view(np.float32)
        assert np.array_equal(operand.numbers, xs, equal_nan=True)
        assert np.array_equal(np.signbit(operand.numbers), np.signbit(xs)) or np.isnan(xs).any()
        y = operation.nearest.restore(case.parameters, case.arrays)
        assert np.array_equal(y, case.arrays["y"])


@pytest.mark.parametrize(
    ("recipe", "given"),
    [
        ("nvfp4", {"amax": 7.5}),
        ("nvfp4", {"global_scale": 0.3}),
        ("e4m3:gam:1x16", {"amax": 7.5}),
        ("e4m3:fp32:1x16", {"amax": 7.5}),
        ("e4m3:fp32:1x16", {"scale": 3.5}),
    ],
)
def test_a_given_amax_or_scale_counts_for_the_operand(recipe, given):
    """SCL-006, SCL-007, NVF-013, NVF-014."""
    x = np.linspace(-3, 3, 64, dtype=np.float32).reshape(2, 32).view(np.uint32)
    asked = own_recipe(recipe).asked
    parameters = {**asked.parameters, "source": "f32"}
    operation = OPERATIONS[asked.operation]
    without = operation.exact(parameters, {"x": x})["xs"]
    xs = operation.exact({**parameters, **given}, {"x": x})["xs"]
    assert not np.array_equal(xs, without)
    operand = operation.operand({**parameters, **given}, {"x": x})
    assert np.array_equal(operand.numbers.view(np.uint32), xs)


# ------------------------------------------------------------------------- a fused kernel


def blocks_next_to_ties():
    """Return a tensor whose numbers are next to a tie of e4m3 or at it, under their scales.

    The profile lightllm divides by max / 448, rounded.
    """
    random = np.random.default_rng(7)
    largest = random.uniform(1, 2, (2, 4)).astype(np.float32)
    scale = largest / np.float32(448)
    middles = [(low + high) / 2 for low, high in itertools.pairwise(values_of(E4M3))]
    chosen = random.choice(middles, (2, 4, 128))
    x = (chosen * scale[..., np.newaxis].astype(np.float64)).astype(np.float32)
    x[..., 0] = largest
    return x.reshape(2, 512)


X = blocks_next_to_ties()


def scales_of(x):
    blocks = x.reshape(len(x), -1, 128)
    return np.abs(blocks).max(axis=-1) / np.float32(448), blocks


def answer_of(x, scale, xs, rounding="rne"):
    code = mor_ref.encode(xs, "e4m3", rounding=rounding)
    y = mor_ref.decode(code, "e4m3") * scale[..., np.newaxis]
    bits = {"scale": scale.view(np.uint32), "y": y.view(np.uint32).reshape(x.shape)}
    return {**bits, "code": code.reshape(x.shape).astype(np.uint32)}


def by_reciprocal(_, __, inputs):
    """Multiply by RN(1 / s), where the profile divides by s."""
    x = inputs["x"].view(np.float32)
    scale, blocks = scales_of(x)
    return answer_of(x, scale, blocks * (np.float32(1) / scale)[..., np.newaxis])


def ties_away(_, __, inputs):
    x = inputs["x"].view(np.float32)
    scale, blocks = scales_of(x)
    return answer_of(x, scale, blocks / scale[..., np.newaxis], "rna")


def codes_of(x, scaled):
    """Return the exact operand, its code, and the code of another way to scale, of each number."""
    scale, blocks = scales_of(x)
    for place, number in np.ndenumerate(blocks):
        s = float(scale[place[:2]])
        xs = quotient(float(number), s)
        yield xs, encode(xs, E4M3, "rne"), encode(scaled(float(number), s), E4M3, "rne")


def multiplied(x, s):
    return float(np.float32(x) * np.float32(quotient(1.0, s)))


def counts(x):
    """Return how many codes of `by_reciprocal` are allowed, and how many are not."""
    differing = [(xs, right, got) for xs, right, got in codes_of(x, multiplied) if got != right]
    allowed = sum(allowed_code(xs, right, E4M3, TIES) == got for xs, right, got in differing)
    return allowed, len(differing) - allowed


def without_ties(x):
    """Return the tensor with 0 where the exact operand is at a midpoint."""
    middles = {(low + high) / 2 for low, high in itertools.pairwise(values_of(E4M3))}
    is_at = [xs in middles for xs, *_ in codes_of(x, multiplied)]
    return np.where(np.reshape(is_at, x.shape), np.float32(0), x)


def verified(candidate, x=X, ties=TIES):
    return mor_ref.verify(candidate, inputs={"x": x}, recipe="lightllm", ties=ties)


def test_a_kernel_that_multiplies_by_the_reciprocal_is_excused_next_to_ties():
    x = without_ties(X)
    allowed, others = counts(x)
    assert allowed > 20
    assert not others
    strict = verified(by_reciprocal, x, 0)
    assert strict.verdict == "mismatch"
    assert strict.results[0].differing == 2 * allowed  # code and y
    found = verified(by_reciprocal, x)
    assert found.verdict == found.results[0].verdict == "match but for ties"
    assert not found
    assert found.results[0].ties == 2 * allowed
    assert not found.results[0].differing
    assert VERDICT_STATUSES[found.verdict] == 4


def test_a_number_at_the_tie_is_never_excused():
    """Even if the candidate's number is next to it."""
    allowed, others = counts(X)
    assert others > 20
    found = verified(by_reciprocal)
    assert found.verdict == "mismatch"
    assert (found.results[0].ties, found.results[0].differing) == (2 * allowed, 2 * others)


@pytest.mark.parametrize("ties", [0, "1e-6", TIES, "0.4999"])
def test_ties_away_are_never_excused(ties):
    """A wrong rule for ties differs only at ties."""
    codes = list(codes_of(X, quotient))
    away = sum(encode(xs, E4M3, "rna") != right for xs, right, _ in codes)
    found = verified(ties_away, X, ties)
    assert away > 20
    assert found.verdict == "mismatch"
    assert (found.results[0].ties, found.results[0].differing) == (0, 2 * away)


def test_only_what_follows_from_the_other_code_is_excused():
    """Not a code that is two away, nor a y of neither code."""
    x = without_ties(X)

    def next_but_one(*call):
        found, right = by_reciprocal(*call), by_division(*call)
        differs = found["code"] != right["code"]
        return {**found, "code": np.where(differs, right["code"] ^ 2, right["code"])}

    def by_division(_, __, inputs):
        x = inputs["x"].view(np.float32)
        scale, blocks = scales_of(x)
        return answer_of(x, scale, blocks / scale[..., np.newaxis])

    def another_y(*call):
        found, right = by_reciprocal(*call), by_division(*call)
        return {**found, "y": np.where(found["y"] != right["y"], found["y"] + 1, found["y"])}

    allowed, _ = counts(x)
    for candidate, field in ((next_but_one, "code"), (another_y, "y")):
        result = verified(candidate, x).results[0]
        assert [(one.suite_field, one.count) for one in result.differences] == [(field, allowed)]
        assert result.ties == allowed  # of the other field


def test_the_report_counts_them_apart_and_says_so_in_words():
    found = verified(by_reciprocal, without_ties(X))
    (result,) = found.results
    said = f"{result.ties:,} entries next to a tie are allowed"
    assert str(found.conformance).startswith(f"not bit-exact: {said}; all else is equal in ")
    text = str(found).splitlines()
    entries = f"{result.compared:,} entries in 1 case, not normative"
    assert text[:2] == [f"own: match but for ties, {entries}", f"  {said}"]
    counts = "0 match, 0 mismatch, 0 not run, 1 match but for ties"
    assert text[-1] == f"by_reciprocal: match but for ties ({counts})"
    record = json.loads(as_json(found))
    assert record["verdict"] == record["results"][0]["verdict"] == "match but for ties"
    assert record["results"][0]["ties"] == result.ties
    root = ET.fromstring(as_junit(found))  # noqa: S314, its own
    (failure,) = root.iter("failure")
    assert failure.get("message") == said
    page = as_html(found)
    assert '<span class="badge match-but-for-ties">≈ match but for ties</span>' in page
    assert f"<dt>next to a tie, allowed</dt> <dd>{result.ties:,}</dd>" in page


MODULE = """
import numpy as np
import mor_ref

def run(operation, parameters, inputs):
    x = inputs["x"].view(np.float32)
    scale = np.abs(x).max(axis=1, keepdims=True) / np.float32(448)
    code = mor_ref.encode(x * (np.float32(1) / scale), "e4m3")
    return {"scale": scale.view(np.uint32), "code": code.astype(np.uint32)}
"""


def test_the_command_ends_with_4(tmp_path):
    (tmp_path / "kernel.py").write_text(MODULE)
    np.save(tmp_path / "x.npy", without_ties(X).reshape(-1, 128))
    call = ("kernel:run", "--inputs", "x.npy", "--recipe", "lightllm")
    done = run(tmp_path, *call, "--ties", "1/64")
    assert done.returncode == 4
    assert done.stdout.splitlines()[-1].startswith("kernel:run: match but for ties (")
    assert run(tmp_path, *call, "--ties", "1e-9").returncode == 1


# ----------------------------------------------------------------------- views and suites


def shifted(case, view=None):
    """Return the other codes of a case in a view as an answer, with the scales expected."""
    other = NearTies("mx", case, Fraction(1, 4)).other_case.arrays
    code = other["code"] if view is None else packed(other["code"], {})
    name = "code" if view is None else f"code@{view}"
    return {"scale": case.arrays["scale"], name: code, "y": other["y"]}, other


@pytest.mark.parametrize("view", [None, "packed"])
def test_each_half_of_a_byte_may_be_next_to_a_tie(view):
    """VEC-005. A byte counts once."""
    x = np.float32([[6, 0.26, 0.24, 1.1, 1.24, 5.1, -0.26, 3.0, *[0] * 24]])
    record = mor_ref.quantize_mx(x, "e2m1")
    parameters = {"format": "e2m1", "scale_rule": "floor", "block": 32, "source": "f32"}
    arrays = OPERATIONS["mx"].exact(parameters, {"x": x.view(np.uint32)})
    case = Case("x", parameters, {"x": x.view(np.uint32), **arrays})
    answer, other = shifted(case, view)
    # 0.25, 1.25 and 5 are midpoints; 1.1 is too far from one.
    assert other["code"][0, :8].tolist() == [7, 0, 1, 2, 3, 6, 8, 5]
    if view is not None:  # of 1.24 and 5.1, the first has the expected code
        answer[f"code@{view}"][0, 2] = 0x62
        answer["y"][0, 4] = arrays["y"][0, 4]
    assert_bit_exact(answer, record, x=x, ties=Fraction(1, 4))
    with pytest.raises(AssertionError):
        assert_bit_exact(answer, record, x=x)
    name = next(key for key in answer if key.startswith("code"))
    wrong = answer[name].copy()
    wrong[0, 0] ^= 1  # 6, and 4 is expected of no number near it
    with pytest.raises(AssertionError, match="1 of 3 fields"):
        assert_bit_exact({**answer, name: wrong}, record, x=x, ties=Fraction(1, 4))


def test_a_case_of_the_plugin_takes_ties():
    case = suite_case(bundled_files(), "mx_blocks", next(iter(MANIFEST["mx_blocks"]["cases"])))
    other = NearTies("mx_block", case.case, TIES).other_case.arrays
    changed = other["code"] != case.expected["code"]
    assert changed.any()
    assert not np.array_equal(other["y"], case.expected["y"])
    assert_bit_exact({name: other[name] for name in ("scale", "code", "y")}, case, ties=TIES)
    with pytest.raises(AssertionError):
        assert_bit_exact({name: other[name] for name in ("scale", "code", "y")}, case)


def test_codes_that_are_not_rounded_to_nearest_have_no_ties():
    """ENC-003: of `encode`, only the cases under rne and rna have any."""

    def nearest(operation, parameters, inputs):
        asked = {**parameters, "rounding": "rne"}
        is_asked = parameters["format"] == "e5m2" and parameters["source"] == "f32"
        return OPERATIONS[operation].engine(asked, inputs) if is_asked else None

    suites = suites_in(bundled_files(), ["encode"])
    found = [
        verify(PythonFunction("mine", nearest), suites, allowed=Allowed(ties=ties)).results[0]
        for ties in (Fraction(0), Fraction(49, 100))
    ]
    roundings = {one.case: case.parameters["rounding"] for case in golden.load("encode") for one in
                 found[1].differences if one.case == case.name}  # fmt: skip
    assert {"rtz", "rto", "rna"} <= {*roundings.values()}
    assert found[0].differing == found[1].differing
    assert not found[1].ties


# ------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("given", "fraction"),
    [("1/64", TIES), ("0.01", Fraction(1, 100)), (0.01, Fraction(1, 100)), (0, Fraction(0))],
)
def test_a_fraction_is_the_number_that_is_written(given, fraction):
    assert as_ties(given) == fraction


@pytest.mark.parametrize("given", ["1/2", -0.01, "1/0", "nan", "near", 3, None, "1e999999999"])
def test_other_fractions_are_refused(given):
    with pytest.raises(ValueError, match=r"^ties is .*; give a fraction of an ulp from 0 to less"):
        as_ties(given)


def test_ties_are_refused_where_no_number_is_encoded():
    engine = PythonFunction("engine", lambda operation, *rest: OPERATIONS[operation].engine(*rest))
    with pytest.raises(ValueError, match="ties is 1/64, but the operation decode of the suite dec"):
        verify(engine, suites_in(bundled_files(), ["decode"]), allowed=Allowed(ties=TIES))
    x = np.ones((1, 16), np.float32)
    record = mor_ref.quantize_mx(x, "e4m3")
    with pytest.raises(TypeError, match="ties is 1/64, but x is not given; give the record's x"):
        assert_bit_exact(record, record, ties=TIES)
    with pytest.raises(TypeError, match="expected is an array of codes, which does not say"):
        assert_bit_exact([1], [1], "e4m3", ties=TIES)
    shared = mor_ref.quantize_shared(x, "mx9")
    with pytest.raises(ValueError, match="but the operation shared has no codes that are the near"):
        assert_bit_exact(shared, shared, x=x, ties=TIES)
