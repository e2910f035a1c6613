"""A format, an NVFP4 profile, a scale rule, a metric and a quantizer, added from outside.

Nothing of the package is edited. Each is in a policy, in a suite that `golden make` makes, and in
the comparisons of `verify`. There the engine and the kernels match the exact model. An engine
that has the row wrong does not.
"""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import forking
import numpy as np
import pytest
from integers import OPERATION, Integers, engine_fields, quantize_rows, single, y_of
from kernels import needed
from mor_docs import explorer
from mor_docs.shown import tensors
from mor_docs.shown.units import unit
from records import adversarial, differing, engine_mor, exact_mor
from verifying import undiagnosed

import mor_ref
from mor_ref import Format, MeanRelativeError, Metric, MxBlocks, Policy, Rung, formats
from mor_ref.analysis.analyze_tensor import analyze
from mor_ref.analysis.compare_tensor import compare
from mor_ref.analysis.recipes import settings_under
from mor_ref.analysis.storage import stored_bits
from mor_ref.api.dequantization import values
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.mx import SCALE_RULES, ScaleRule
from mor_ref.definitions.nvfp4 import PROFILES, Nvfp4Profile
from mor_ref.golden.generation.vectors import make
from mor_ref.golden.model.suite import Case, Size, suite
from mor_ref.golden.suites import SUITES
from mor_ref.golden.suites.policies import drawn_case
from mor_ref.metrics import METRICS, Always, ComparedNumbers
from mor_ref.operations import OPERATIONS
from mor_ref.operations.policies import DECIDE
from mor_ref.policies import POLICIES
from mor_ref.recipes import own_recipe
from mor_ref.representations import REPRESENTATIONS, Asked, Nvfp4Tiles, as_representation
from mor_ref.schemes.mixed.representation import MixedFormats
from mor_ref.verify import assert_bit_exact
from mor_ref.verify.candidates.candidate import Candidate
from mor_ref.verify.candidates.kernels import kernels_named
from mor_ref.verify.candidates.numba_engine import Engine
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.checking.check import check
from mor_ref.verify.own_tensors import verify_on
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in
from mor_ref.workers.pools import Workers

__all__ = ["undiagnosed"]  # a fixture


def tensor(seed):
    """Return rows of usual numbers above rows of every magnitude."""
    usual = np.random.default_rng(seed).standard_normal((4, 50)).astype(np.float32)
    return np.concatenate([usual, adversarial((4, 50), seed)])


X = {seed: tensor(seed) for seed in (1, 2, 5)}


@dataclass(frozen=True)
class FewLargeErrors(Metric):
    """Accepts a unit whose mean error is at most a quarter, if its range is short."""

    binades: int
    name: str = "few_large_errors"

    def accepts(self, own, errors, amax, amin):
        del errors
        return 4 * own.sum <= own.nonzero << 23 and amax <= amin * 2.0**self.binades

    def turning_point(self, own, errors):
        del errors
        return own.nonzero << 21

    def compared(self, own, errors, amax, amin):
        del errors, amax, amin
        return ComparedNumbers("4 · sum", 4 * own.sum, ("≤", ">"), (own.nonzero, 1 << 23))


METRIC = FewLargeErrors(20)

FORMAT = Format("e3m3", exponent_bits=3, mantissa_bits=3, bias=4, specials="fn")
PROFILE = Nvfp4Profile("half_range", "te", 1344.0)
RULE = ScaleRule("from_three_quarters", lambda _: 3 << 21)
QUANTIZER = Integers()


def rows(fmt=FORMAT, profile=PROFILE, rule=RULE, quantizer=QUANTIZER, operation=OPERATION):
    """Yield each row with its catalogue, after the rows that it names."""
    yield formats, fmt
    yield PROFILES, profile
    yield SCALE_RULES, rule
    yield METRICS, METRIC
    yield OPERATIONS, operation
    by_rule = MxBlocks("e4m3", rule.name, name="mx_by_rule")
    for row in (quantizer, by_rule):
        yield REPRESENTATIONS, row
    for name in (fmt.name, profile.name, by_rule.name, quantizer.name):
        policy = Policy(
            f"of_{name}",
            (Rung(name, METRIC), Rung("e5m2", MeanRelativeError("0.05"))),
            unit="block",
            block=(4, 20),
        )
        yield POLICIES, policy


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    """Add a row of each kind, as a user does, and take it away at the end."""
    for catalogue, row in rows():
        monkeypatch.setitem(catalogue, row.name, row)


def suite_of(operation, parameters, names):
    """Return a user's suite: some tensors with the same parameters."""
    cases = [
        Case(f"seed{seed}", {**parameters, "source": "f32"}, {"x": x.view(np.uint32)})
        for seed, x in X.items()
    ]
    return suite("ours", "Ours", operation, (), lambda _: iter(cases), tuple(names.split()))


def suite_of_decisions(*cases):
    """Return a user's suite: decisions from the sums of units."""
    return suite("ours", "Ours", "decide", (), lambda _: iter(cases))


def of_policy(name):
    """Return a suite's arguments: a policy with a representation, and all its error sums."""
    sums = " ".join(f"{one}.{field}" for one in (name, "e5m2") for field in SUMS)
    parameters = {"policy": f"of_{name}", "scaling": "gam", "block": [4, 20]}
    return "mor", parameters, f"amax amin {sums} choice output"


SUMS = ("sum", "nonzero", "nonfinite")
GAM = {"scaling": "gam", "block": [3, 7], "group": "tensor"}
EXERCISES = {
    "format": ("quantize", {"format": "e3m3", **GAM}, "amax scale xs code y sum"),
    "format in a policy": of_policy("e3m3"),
    "profile": ("nvfp4", {"profile": "half_range", "tile": [16, 16]}, "block_scale code packed y"),
    "profile in a policy": of_policy("half_range"),
    "scale rule": (
        "mx",
        {"format": "e4m3", "scale_rule": "from_three_quarters", "block": 32},
        "scale code y",
    ),
    "scale rule in a policy": of_policy("mx_by_rule"),
    "quantizer": (OPERATION.name, {"block": "row"}, "scale zero code y"),
    "quantizer and metric in a policy": of_policy("uint4_rows"),
}


OF_EACH_KIND = ("[format]", "[profile]", "[scale rule]", "[quantizer and metric in a policy]")


class OfTheTensor(Integers):
    """Integers with one scale and zero point for all rows."""

    def engine(self, numbers, blocks, out, threads):
        x = single(numbers.bits.view(numbers.dtype))
        y = y_of(x.reshape(1, -1)).reshape(blocks.parts.rows, blocks.parts.columns)
        return values(numbers, y, blocks, out, threads)


def fields_of_the_tensor(call):
    """Return the fields of all numbers as one row, with its zero point for each row."""
    fields = engine_fields(replace(call, arrays={"x": call.arrays["x"].reshape(1, -1)}))
    height, width = call.shape
    repeated = {name: np.repeat(fields[name], height, axis=0) for name in ("scale", "zero")}
    return repeated | {name: fields[name].reshape(height, width) for name in ("code", "y")}


# A row that is wrong, and the first field in which it shows.
FORMAT_WITHOUT_NAN = {"fmt": replace(FORMAT, specials="none")}
PROFILE_OF_OTHER_RANGE = {"profile": replace(PROFILE, range=1536.0)}
RULE_FROM_HALF = {"rule": replace(RULE, up_from=lambda _: 1 << 22)}
QUANTIZER_OF_TENSORS = {"quantizer": OfTheTensor()}
MISTAKES = {
    "format": (FORMAT_WITHOUT_NAN, "scale"),
    "format in a policy": (FORMAT_WITHOUT_NAN, "e3m3.sum"),
    "profile": (PROFILE_OF_OTHER_RANGE, "block_scale"),
    "profile in a policy": (PROFILE_OF_OTHER_RANGE, "half_range.sum"),
    "scale rule": (RULE_FROM_HALF, "scale"),
    "scale rule in a policy": (RULE_FROM_HALF, "mx_by_rule.sum"),
    "quantizer": ({"operation": replace(OPERATION, function=fields_of_the_tensor)}, "scale"),
    "quantizer and metric in a policy": (QUANTIZER_OF_TENSORS, "uint4_rows.sum"),
}


def engine_with(**wrong):
    """Return the engine as a function that has a row wrong."""

    def answer(operation, parameters, inputs):
        with pytest.MonkeyPatch.context() as patch:
            for catalogue, row in rows(**wrong):
                patch.setitem(catalogue, row.name, row)
            return OPERATIONS[operation].engine(parameters, inputs)

    return answer


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Make a suite of one's own, and return it as verify reads it."""

    def make_suite(suite):
        monkeypatch.setitem(SUITES, "ours", suite)
        with ThreadPoolExecutor(1) as executor:  # the rows are of this process
            make(["ours"], tmp_path, Size(), workers=Workers.of(executor, 1))
        assert check(tmp_path, []).verdict == "match"
        return suites_in(tmp_path)

    return make_suite


@pytest.mark.tier("full", but=OF_EACH_KIND)
@pytest.mark.parametrize("exercise", EXERCISES)
def test_it_is_in_golden_make_and_in_verify(exercise, made):
    needed.compiler()
    suites = made(suite_of(*EXERCISES[exercise]))
    has_kernels = OPERATIONS[EXERCISES[exercise][0]].kernels is not None
    for candidate in (Engine(), *[kernels_named("cuda-host")] * has_kernels):
        (result,) = verify(candidate, suites).results
        assert result.verdict == "match", candidate
        assert result.answered == len(X)
        assert not {field.name for field in result.fields} & set(result.not_given)


@pytest.mark.tier("full", but_one_in=4)
@pytest.mark.usefixtures("undiagnosed")
@pytest.mark.parametrize("exercise", EXERCISES)
def test_a_mistake_in_it_is_a_mismatch(exercise, made):
    mistake, first = MISTAKES[exercise]
    candidate = PythonFunction("wrong", engine_with(**mistake))
    (wrong,) = verify(candidate, made(suite_of(*EXERCISES[exercise]))).results
    assert wrong.verdict == "mismatch"
    assert wrong.first_mismatching_field.name == first


TESTS = Path(__file__).parent
MINE = f"""
import sys
sys.path += {[str(TESTS), str(TESTS.parent / "docs")]!r}
import test_extending
test_extending.register(%r)
"""
STARTED = "import multiprocessing; multiprocessing.set_start_method(%r); "
CANDIDATE = """
import test_extending
mistake, _ = test_extending.MISTAKES[%r]
wrong = test_extending.engine_with(**mistake)
"""


def register(exercise):
    """Add the rows and the suite of an exercise, for a process that runs commands."""
    for catalogue, row in rows():
        catalogue[row.name] = row
    SUITES["ours"] = suite_of(*EXERCISES[exercise])


# Policies take long to diagnose. A process that is spawned has no rows of the process before it.
@pytest.mark.tier("full")
@pytest.mark.parametrize(("exercise", "start"), [("profile", "fork"), ("scale rule", "spawn")])
def test_the_commands_have_it(exercise, start, tmp_path):
    def run(*arguments, rows=("--rows", "mine")):
        return forking.python(STARTED % start + forking.MAIN, *rows, *arguments, cwd=tmp_path)

    (tmp_path / "mine.py").write_text(MINE % exercise)
    (tmp_path / "candidate.py").write_text(CANDIDATE % exercise)
    done = run("golden", "make", "ours", "--out", "made")
    assert done.returncode == 0, done.stderr
    assert run("golden", "check", "made").returncode == 0
    done = run("verify", "numba", "--vectors", "made")
    assert done.returncode == 0, done.stdout + done.stderr
    done = run("verify", "candidate:wrong", "--vectors", "made")
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"first mismatching field: {MISTAKES[exercise][1]}" in done.stdout
    done = run("golden", "check", "made", rows=())
    assert done.returncode == 2
    assert "or a row that mor-ref --rows MODULE adds; make it again" in done.stderr
    done = run("golden", "make", "ours", "--out", "made", rows=())
    assert done.returncode == 2
    assert "or --rows MODULE before golden for a suite of your own" in done.stderr
    done = run("formats", rows=("--rows", "nosuch"))
    assert done.returncode == 2
    assert "rows is 'nosuch', which cannot be imported (ModuleNotFoundError: No" in done.stderr
    with (tmp_path / "mine.py").open("a") as module:
        module.write("# another version\n")
    done = run("golden", "make", "ours", "--out", "made")
    assert done.returncode == 2
    assert "made by another version of mor-ref or of a module of --rows; remove" in done.stderr


def units(*sums):
    """Return units of 8 elements with these sums, and magnitudes of 1."""
    count, one = len(sums), np.float32(1).view(np.uint32)
    columns = {name: np.zeros(count, "u8") for name in ("nonfinite", "yardstick_sum")}
    columns |= {"sum": np.array(sums, "u8"), "nonzero": np.full(count, 8, "u8")}
    columns |= {"limit": np.zeros(count, "u4")}
    return columns | dict.fromkeys(("amax", "amin"), np.full(count, one, "u4"))


@dataclass(frozen=True)
class Turned(Candidate):
    """The engine, with one decision turned."""

    place: int
    name: str = "turned"

    def answer(self, suite, operation, case):
        accepted = Engine().answer(suite, operation, case)["accepted"].copy()
        accepted[self.place] ^= 1
        return {"accepted": accepted}


def test_a_metric_is_in_decide_and_in_conformance(made, monkeypatch):
    """A decision next to the turning point of the metric may differ, and no other."""
    needed.compiler()
    turn = 8 << 21
    by_hand = Case("by_hand", {"metric": METRIC.name}, units(turn, turn + 9, 1))
    suites = made(suite_of_decisions(by_hand, drawn_case(METRIC.name)))
    first, drawn = SUITES["ours"].questions(Size())
    assert DECIDE.exact(first.parameters, first.arrays)["accepted"].tolist() == [1, 0, 1]
    assert set(DECIDE.exact(drawn.parameters, drawn.arrays)["accepted"].tolist()) == {0, 1}
    for candidate in (Engine(), kernels_named("cuda-host")):
        assert verify(candidate, suites).conformance.level == "bit-exact", candidate
    monkeypatch.setattr(METRICS, "specified", (*METRICS.specified, METRIC.name))
    assert [case.name for case in SUITES["decisions"].questions(Size())][-1] == METRIC.name


@pytest.mark.tier("full", but=["[0-decisions]"])
@pytest.mark.parametrize(("place", "level"), [(0, "decisions"), (1, "decisions"), (2, "not")])
def test_conformance_has_the_turning_point_of_a_metric(place, level, made):
    turn = 8 << 21
    by_hand = Case("by_hand", {"metric": METRIC.name}, units(turn, turn + 9, 1))
    suites = made(suite_of_decisions(by_hand))
    found = verify(Turned(place), suites).conformance
    assert found.level == level
    assert found.margin == pytest.approx(9 / turn if place == 1 else 0)


def test_pages_show_a_metric_and_its_numbers():
    rung = explorer.catalogue()["policies"]["of_e3m3"]["ladder"][0]
    assert rung["metric"] == METRIC.name
    assert f"and {METRIC.name} ?" in tensors.ladder("of_e3m3")
    asked = unit("of_e3m3", "3", "1.1", "0.3")
    assert re.search(r"e3m3: 4 · sum = \d+ ≤ 3 · 8388608 = 25165824;", asked)


class Silent(Integers):
    """Integers that do not say the bits of their scales."""

    stored_bits = None


def alone(row):
    """Return the policy of a row that takes each tensor."""
    return Policy(row.name, (Rung(row, Always()),))


def test_the_bits_of_a_row_are_those_that_it_says():
    """ERR-009: without an answer they are not known, and never 0."""
    rows = len(X[1])
    size, whole = X[1].size, partition(X[1].shape, "tensor")
    bits = 4 * size + (32 + 4) * rows
    assert stored_bits(alone(QUANTIZER), {"uint4_rows": size}, 0, X[1].shape, "row", "gam") == bits
    assert MixedFormats((QUANTIZER,), "row").stored_bits("gam", whole) == (4 * size, 36 * rows)
    for silent in (Silent(), MixedFormats((Silent(),), "row")):
        taken = {silent.name: size}
        assert stored_bits(alone(silent), taken, 0, X[1].shape, "row", "gam") is None
        assert stored_bits(alone(silent), {silent.name: 0, "bf16": 9}, 1, (9,), "row", "gam") == 145


@dataclass(frozen=True)
class Wrong(Integers):
    """A row whose methods give wrong answers."""

    name: str = "wrong_row"
    bits_said: object = (1, 2)
    operation: object = None

    def stored_bits(self, scaling, parts):
        del scaling, parts
        return self.bits_said

    def asked(self, scaling, block, group):
        del scaling, block, group
        return self.operation


@pytest.mark.parametrize("said", [5, (1,), (1, 2.5), "12"])
def test_wrong_bits_of_a_row_are_named(said, monkeypatch):
    monkeypatch.setitem(REPRESENTATIONS, "wrong_row", Wrong(bits_said=said))
    sentence = f"stored_bits of representation 'wrong_row' returned {said!r}; return a pair of ints"
    with pytest.raises(TypeError, match=re.escape(sentence)):
        compare(X[1], ["wrong_row"])


UNKNOWN = "asked of 'wrong_row' returned the operation 'none_such', which is not in"


@pytest.mark.parametrize(
    ("operation", "sentence"),
    [
        (Asked("none_such"), UNKNOWN),
        ("affine", "asked of representation 'wrong_row' returned 'affine'; return an Asked"),
        (None, "recipe is wrong_row, but representation 'wrong_row' has no operation: its method"),
    ],
)
def test_a_wrong_operation_of_a_row_is_named(operation, sentence, monkeypatch):
    monkeypatch.setitem(REPRESENTATIONS, "wrong_row", Wrong(operation=operation))
    with pytest.raises((TypeError, ValueError), match=re.escape(sentence)):
        verify_on("numba", {"x": X[1]}, "wrong_row")


def test_a_wrong_operation_of_a_rung_is_named(monkeypatch):
    policy = replace(alone(Wrong(operation=Asked("none_such"))), name="of_wrong")
    monkeypatch.setitem(POLICIES, "of_wrong", policy)
    with pytest.raises(ValueError, match=UNKNOWN):
        verify_on("numba", {"x": X[1]}, "mor:of_wrong")


def test_a_row_is_a_recipe_of_compare_and_analyze(monkeypatch):
    """Its name alone is one, as that of a row of the specification, and results have it."""
    (found,) = compare(X[1], ["uint4_rows"]).values()
    assert found.taken["uint4_rows"] == X[1].size
    assert found.bits == 4 * X[1].size + (32 + 4) * len(X[1])
    for row in (Nvfp4Tiles("half_range", (16, 16), "own_tiles"), MxBlocks("e4m3", name="own_mx")):
        monkeypatch.setitem(REPRESENTATIONS, row.name, row)
    recipes = ["own_tiles", "own_mx", "half_range", "nvfp4:te:16x16", "nvfp4"]
    names = {one.recipe: next(iter(one.taken)) for one in compare(X[1], recipes).values()}
    assert names == {name: name.removesuffix(":te:16x16") for name in recipes}
    taken = own_recipe("own_tiles:amax=3.5:n_random_bits=8")
    assert taken.asked == Asked("nvfp4", {"profile": "half_range", "tile": [16, 16]})
    monkeypatch.setitem(
        POLICIES, "mine", Policy("mine", (Rung("uint4_rows", MeanRelativeError("0.3")),))
    )
    report = analyze(X[1][:4], settings_under("mor:mine:4x20")).report
    assert report.decision == "uint4_rows"
    assert report.error == mor_ref.mor(X[1][:4], "mine").error["uint4_rows"].overall


def rungs_too(change):
    """Return a candidate that answers with codes and scales of the rungs of a policy, changed."""

    def answer(operation, parameters, inputs):
        found = dict(OPERATIONS[operation].engine(parameters, inputs))
        own = dict(OPERATION.engine({**parameters, "block": "row"}, inputs))
        del own["y"]
        return found | {f"uint4_rows.{name}": array for name, array in change(own).items()}

    return answer


def of_the_negative(*_):
    """Return the fields of another tensor."""
    return OPERATION.engine({"block": "row", "source": "f32"}, {"x": (-X[1]).view(np.uint32)})


@pytest.mark.parametrize(
    ("recipe", "candidate", "first"),
    [
        ("uint4_rows", "numba", None),
        ("uint4_rows", of_the_negative, "zero"),
        ("mor:of_uint4_rows", rungs_too(lambda own: own), None),
        ("mor:of_uint4_rows", rungs_too(lambda own: own | {"zero": own["zero"] ^ 1}), "zero"),
    ],
)
def test_a_row_is_a_recipe_of_verify(recipe, candidate, first):
    """Also its codes and scales, if it is a rung."""
    *_, found = verify_on(candidate, {"x": X[1]}, recipe).results
    assert found.suite == ("own.uint4_rows" if recipe.startswith("mor") else "own")
    field = found.first_mismatching_field
    name = None if field is None else field.name
    assert (found.verdict, name) == ("mismatch" if first else "match", first)


def test_a_record_of_a_user_is_asserted():
    right, x = quantize_rows(X[1]), X[1]
    assert_bit_exact(quantize_rows(x), right, x=x)
    wrong = replace(right, zero=right.zero ^ 1)
    with pytest.raises(AssertionError, match="8 entries differ, in 1 of 4 fields"):
        assert_bit_exact(wrong, right, x=x)
    with pytest.raises(ValueError, match=r"x has \(4, 50\) rows and columns, but the record has"):
        assert_bit_exact(wrong, right, x=x[:4])
    assert_bit_exact(mor_ref.mor(x, "of_uint4_rows"), mor_ref.mor(x, "of_uint4_rows"), x=x)


def test_the_suites_make_something_of_the_rows():
    """Else they would show nothing: the rows give other results than those of the package."""
    x = X[1]
    assert (mor_ref.quantize(x, "e3m3").codes != mor_ref.quantize(x, "e4m3").codes).any()
    scales = {p: mor_ref.quantize_nvfp4(x, profile=p).block_scale for p in ("te", "half_range")}
    assert (scales["te"] != scales["half_range"]).any()
    rules = ("floor", "from_three_quarters", "ceil")
    codes = [mor_ref.quantize_mx(x, "e4m3", scale_rule=rule).scale for rule in rules]
    assert (codes[0] != codes[1]).any()
    assert (codes[1] != codes[2]).any()
    for policy in POLICIES:
        if policy not in POLICIES.specified:
            choices = {int(c) for x in X.values() for c in mor_ref.mor(x, policy).choice.flat}
            assert choices > {0}, policy


@pytest.mark.tier("full", but=["[2]"])
@pytest.mark.parametrize("seed", X)
def test_it_is_in_policies_by_name(seed):
    for policy in set(POLICIES) - set(POLICIES.specified):
        x = X[seed]
        assert differing(engine_mor(x, policy), exact_mor(x, policy)) == {}, policy


def test_the_rows_of_the_specification_stay():
    """A row of a user has a name of its own; the bundled suites are those of the specification."""
    assert "e3m3" not in formats.specified
    assert as_representation("uint4_rows") == Integers()
    rows = ((formats, "e4m3"), (PROFILES, "te"), (SCALE_RULES, "floor"), (METRICS, "fits_range"))
    for catalogue, name in rows:
        with pytest.raises(ValueError, match="is a row of the specification, which cannot change"):
            catalogue[name] = catalogue[name]
        with pytest.raises(ValueError, match="is a row of the specification, which cannot change"):
            del catalogue[name]
    with pytest.raises(ValueError, match="format 'e3m3' is given the name 'mine'"):
        formats["mine"] = FORMAT
    with pytest.raises(ValueError, match="scale_rule is not added: name is 'a b'; give a letter"):
        SCALE_RULES["a b"] = ScaleRule("a b")
    bundled = {case.parameters["policy"] for case in SUITES["policies"].questions(Size())}
    assert bundled == set(POLICIES.specified)
