"""Deviations: every suite of its domain exposes each of them, and they compose."""

import ast
import functools
import inspect
import re
import textwrap

import numpy as np
import pytest
from mor_docs.trace import ROOT, rules_of

from mor_ref import exact, formats, golden
from mor_ref.deviations import DEVIATIONS, applied
from mor_ref.exact import scales
from mor_ref.exact.step import replaced
from mor_ref.golden import bundled_files
from mor_ref.golden.generation.expected import with_deviation, with_expected
from mor_ref.golden.generation.witnesses import first_witness
from mor_ref.golden.model.suite import Case, Size, question
from mor_ref.golden.store import suite_files
from mor_ref.golden.suites import SUITES
from mor_ref.mistakes.catalogue import CAUSES, FORMER_IDS, id_of
from mor_ref.operations import OPERATIONS

MANIFEST = suite_files.read_manifest(bundled_files())["suites"]
LARGE = [name for name in SUITES if name.endswith("_large")]
# A case of blocks takes long to search for witnesses.
QUICK = [name for name in SUITES if name not in LARGE and not name.endswith("_blocks")]
# Of a case by rows: how many elements, and in how many rows at least.
ELEMENTS = {16: 2, 64: 6}
SMALL, EVERY = 400, 17  # of a tensor; which tensors


@functools.cache
def loaded(name):
    """Return the cases of a suite, which several tests read."""
    return golden.load(name)


def rows_of(case, chosen):
    return Case(case.name, case.parameters, {n: a[chosen] for n, a in case.arrays.items()})


def some_of(name, elements):
    """Yield a few questions of a suite: rows of each case, small tensors, or a corner."""
    suite = SUITES[name]
    questions = [question(suite.fields, case) for case in loaded(name)]
    if OPERATIONS[suite.operation].is_by_row:
        for case in questions:
            x = next(iter(case.arrays.values()))
            rows = max(elements * len(x) // x.size, ELEMENTS[elements])
            yield rows_of(case, np.unique(np.linspace(0, len(x) - 1, rows).astype(int)))
    elif name in LARGE:
        for case in questions:
            yield Case(case.name, case.parameters, {"x": case.arrays["x"][:20, :36]})
    else:
        yield from [case for case in questions if case.arrays["x"].size <= SMALL][::EVERY]


def elements_of(name):
    """Return how many elements of a case to take; of tensors one number is enough."""
    return [*ELEMENTS] if OPERATIONS[SUITES[name].operation].is_by_row else [*ELEMENTS][:1]


def reached(name, questions):
    """Return the deviations with a step that these questions of a suite reach."""
    waiting = {}
    for deviation in DEVIATIONS.values():
        for change in deviation.changes:
            waiting.setdefault(change.step, []).append((deviation.name, change))
    found = set()

    def watching(step):
        def run(reference, *arguments, **known):
            for pair in list(waiting[step]):
                if pair[1].where(*arguments, **known):
                    found.add(pair[0])
                    waiting[step].remove(pair)
            return reference(*arguments, **known)

        return run

    with replaced([(step, watching(step)) for step in waiting]):
        for case in questions:
            OPERATIONS[SUITES[name].operation].exact(case.parameters, case.arrays)
    return found


def test_there_are_enough_and_each_says_what_it_is():
    assert len(DEVIATIONS) >= 60
    rules = {rule.id for rule in rules_of(ROOT / "spec")}
    for name, deviation in DEVIATIONS.items():
        assert deviation.name == name
        assert re.fullmatch(r"[a-z0-9_]+", name)
        assert deviation.summary.endswith(".")
        assert "\n" not in deviation.summary
        assert set(deviation.rules) <= rules, name
        assert set(deviation.domain) <= set(SUITES), name
        assert deviation.suites, name
        assert set(deviation.exemptions) <= set(deviation.domain), name


def test_the_manifest_has_a_witness_for_every_pair():
    """If one is missing, a suite lacks an input, or exemptions.py the reason why none can exist."""
    wanted = {name: {d.name for d in DEVIATIONS.values() if name in d.suites} for name in SUITES}
    listed = {name: set(MANIFEST[name]["kills"]) for name in SUITES}
    assert {name: kills - FORMER_IDS.keys() for name, kills in listed.items()} == wanted


# The others are of block formats, whose mistakes follow from their records.
OF_DEVIATIONS = [name for name in SUITES if OPERATIONS[SUITES[name].operation].formulas is None]


def test_no_deviation_is_of_a_suite_of_block_formats():
    """Reports try the mistakes of the records there."""
    domains = {name for deviation in DEVIATIONS.values() for name in deviation.domain}
    assert domains <= {*OF_DEVIATIONS}


# Of a large suite another one has the operation, on tensors of fewer numbers.
@pytest.mark.tier("full", but_one_in=96)
@pytest.mark.parametrize(
    ("name", "elements"), [(name, n) for name in OF_DEVIATIONS for n in elements_of(name)]
)
def test_suites_that_reach_a_step_are_in_its_domain(name, elements):
    domain = {deviation.name for deviation in DEVIATIONS.values() if name in deviation.domain}
    assert reached(name, some_of(name, elements)) - domain == set()


@pytest.mark.tier("exhaustive")
@pytest.mark.parametrize("name", OF_DEVIATIONS)
def test_domains_are_the_suites_that_reach_a_step(name):
    domain = {deviation.name for deviation in DEVIATIONS.values() if name in deviation.domain}
    questions = [question(SUITES[name].fields, case) for case in loaded(name)]
    assert reached(name, questions) == domain


EXEMPT = {name: [d for d in DEVIATIONS.values() if name in d.exemptions] for name in SUITES}


# Not of large suites: other suites have their operations, and the exhaustive tier has their inputs.
@pytest.mark.tier("full", but_one_in=14)
@pytest.mark.parametrize(
    ("name", "elements"),
    [(name, n) for name in SUITES if EXEMPT[name] and name not in LARGE for n in elements_of(name)],
)
def test_some_inputs_of_a_suite_expose_no_exempt_deviation(name, elements):
    cases = [with_expected(SUITES[name], asked) for asked in some_of(name, elements)]
    for deviation in EXEMPT[name]:
        assert deviation.exemptions[name].endswith("."), deviation.name
        assert first_witness(deviation, SUITES[name], cases) is None, deviation.name


@pytest.mark.tier("exhaustive")
@pytest.mark.parametrize("name", [name for name in SUITES if EXEMPT[name]])
def test_no_input_of_a_suite_exposes_an_exempt_deviation(name):
    cases = loaded(name)
    for deviation in EXEMPT[name]:
        assert first_witness(deviation, SUITES[name], cases) is None, deviation.name


def check_witnesses(name):
    """Check that each deviation differs at the entry that its witness names."""
    suite, cases = SUITES[name], {case.name: case for case in loaded(name)}
    is_by_row = OPERATIONS[suite.operation].is_by_row
    for deviation, seen_at in MANIFEST[name]["kills"].items():
        case = cases[seen_at["case"]]
        place = tuple(seen_at["index"])
        if is_by_row:  # no other row has a say
            case, place = rows_of(case, [place[0]]), (0, *place[1:])
        other = with_deviation(CAUSES[id_of(deviation)], suite, case)
        field = seen_at["field"]
        assert other.arrays[field][place] != case.arrays[field][place], deviation


@pytest.mark.tier("full", but_one_in=12)
@pytest.mark.parametrize("name", [name for name in SUITES if name not in LARGE])
def test_every_suite_exposes_the_deviations_of_its_domain(name):
    check_witnesses(name)


@pytest.mark.tier("exhaustive")
@pytest.mark.parametrize("name", LARGE)
def test_large_suites_expose_the_deviations_of_their_domains(name):
    check_witnesses(name)


def test_without_deviations_the_model_returns_the_expected_values():
    suite = SUITES["decisions"]
    for case in loaded("decisions"):
        again = with_expected(suite, question(suite.fields, case))
        assert all(np.array_equal(again.arrays[name], case.arrays[name]) for name in case.arrays)


def test_a_deviation_of_another_domain_has_no_witness():
    cases = list(SUITES["decisions"].questions(Size()))
    whole = [with_expected(SUITES["decisions"], case) for case in cases]
    assert first_witness(CAUSES["NVF-011/swapped"], SUITES["decisions"], whole) is None


def test_they_end_with_their_block():
    fmt = formats["e4m3"]
    with applied(CAUSES["ENC-003/truncated"]):
        assert exact.encode(0.3, fmt) == 0x29
        with pytest.raises(ZeroDivisionError), applied(CAUSES["ENC-003/ties-away"]):
            raise ZeroDivisionError
        assert exact.encode(0.3, fmt) == 0x29
    assert exact.encode(0.3, fmt) == 0x2A


def test_two_of_different_steps_act_together():
    truncated = CAUSES["SCL-002/significand-truncated"]
    with applied(truncated, CAUSES["GAM-001/mantissa-of-7-bits"]):
        assert scales.ideal_scale(448.0, 3.0).mantissa == 0x155555
        assert scales.group_mantissa(448.0, 3.0) == 0x150000


def test_two_of_one_step_apply_in_turn():
    zeros, flushed = CAUSES["ENC-011/negative-zero-lost"], CAUSES["ENC-002/subnormals-flushed"]
    with applied(zeros, flushed):
        assert exact.encode(-(2.0**-9), formats["e4m3"]) == 0x00
    with applied(flushed, zeros):
        assert exact.encode(-(2.0**-9), formats["e4m3"]) == 0x80  # flushed after zero lost its sign


def test_two_at_other_places_of_one_step_act_together():
    below, inputs = CAUSES["ENC-002/below-smallest-zero"], CAUSES["ENC-001/inputs-through-bf16"]
    for both, code in (((below,), 0), ((inputs,), 1), ((below, inputs), 0), ((inputs, below), 0)):
        with applied(*both):
            assert exact.encode(2.0**-9 * (1 - 2.0**-20), formats["e4m3"]) == code
            assert exact.encode(1.0625 + 2.0**-20, formats["e4m3"]) == 0x38 + (inputs not in both)


def steps_called():
    """Return the steps that deviations of each step call by their names."""
    found = {}
    for change in (change for one in DEVIATIONS.values() for change in one.changes):
        if inspect.isfunction(change.function) and change.function.__name__ != "<lambda>":
            tree = ast.parse(textwrap.dedent(inspect.getsource(change.function)))
            calls = [ast.unparse(c.func) for c in ast.walk(tree) if isinstance(c, ast.Call)]
            found.setdefault(change.step.__name__, set()).update(
                call.split(".")[1] for call in calls if call.count(".") == 1
            )
    return {step: calls & set(found) for step, calls in found.items()}


def test_no_two_call_each_other_without_end():
    """One that calls a step by its name calls a deviation of it, which may call the first step."""
    called = steps_called()
    for first in called:
        reached, new = set(), {first}
        while new := {step for one in new for step in called[one]} - reached:
            reached |= new
        assert first not in reached, first


def test_only_steps_can_be_replaced():
    with (
        pytest.raises(ValueError, match="floor_log2 is not a step of the model; decorate it"),
        replaced([(exact.floor_log2, lambda *_: 0)]),
    ):
        pass
