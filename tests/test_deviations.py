"""Deviations: each is told from the reference by every suite of its domain, and they compose."""

import re

import numpy as np
import pytest
from test_trace import TRACE

from mor_ref import exact, formats, golden
from mor_ref.deviations import DEVIATIONS, applied
from mor_ref.exact import scales as scaling
from mor_ref.exact.step import replaced
from mor_ref.golden import kept_files
from mor_ref.golden.expected import OPERATIONS
from mor_ref.golden.making.witnesses import completed, deviated, witness
from mor_ref.golden.model.suite import Case, Size, question
from mor_ref.golden.store import container
from mor_ref.golden.suites import SUITES

MANIFEST = container.read_manifest(kept_files())["suites"]
LARGE = [name for name in SUITES if name.endswith("_large")]
# A case of blocks takes long to search for witnesses.
QUICK = [name for name in SUITES if name not in LARGE and not name.endswith("_blocks")]
ELEMENTS, SMALL, EVERY = 64, 400, 17  # of a case by rows, and of a tensor; which tensors


def rows_of(case, chosen):
    return Case(case.name, case.parameters, {n: a[chosen] for n, a in case.arrays.items()})


def some_of(name):
    """A few questions of a suite: some rows of each case, some small tensors, or a corner."""
    suite = SUITES[name]
    questions = [question(suite.fields, case) for case in golden.load(name)]
    if OPERATIONS[suite.operation].by_row:
        for case in questions:
            x = next(iter(case.arrays.values()))
            rows = max(ELEMENTS * len(x) // x.size, 6)
            yield rows_of(case, np.unique(np.linspace(0, len(x) - 1, rows).astype(int)))
    elif name in LARGE:
        for case in questions:
            yield Case(case.name, case.parameters, {"x": case.arrays["x"][:20, :36]})
    else:
        yield from [case for case in questions if case.arrays["x"].size <= SMALL][::EVERY]


def reached(name, questions):
    """The deviations that have a say somewhere in these questions of a suite."""
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
            OPERATIONS[SUITES[name].operation].function(case.parameters, case.arrays)
    return found


def test_there_are_enough_and_each_says_what_it_is():
    assert len(DEVIATIONS) >= 60
    for name, deviation in DEVIATIONS.items():
        assert deviation.name == name
        assert re.fullmatch(r"[a-z0-9_]+", name)
        assert deviation.summary.endswith(".")
        assert "\n" not in deviation.summary
        assert set(deviation.rules) <= set(TRACE.rules), name
        assert set(deviation.domain) <= set(SUITES), name
        assert deviation.suites, name
        assert set(deviation.unseen) <= set(deviation.domain), name


def test_the_manifest_has_a_witness_for_every_pair():
    """Where one is missing, a suite lacks an input; or unseen.py lacks the reason why none can."""
    wanted = {name: {d.name for d in DEVIATIONS.values() if name in d.suites} for name in SUITES}
    assert {name: set(MANIFEST[name]["kills"]) for name in SUITES} == wanted


@pytest.mark.parametrize("name", SUITES)
def test_what_reaches_a_step_is_in_its_domain(name):
    domain = {deviation.name for deviation in DEVIATIONS.values() if name in deviation.domain}
    assert reached(name, some_of(name)) - domain == set()


@pytest.mark.tier("exhaustive")
@pytest.mark.parametrize("name", SUITES)
def test_domains_are_what_is_reached(name):
    domain = {deviation.name for deviation in DEVIATIONS.values() if name in deviation.domain}
    questions = [question(SUITES[name].fields, case) for case in golden.load(name)]
    assert reached(name, questions) == domain


UNSEEN = {name: [d for d in DEVIATIONS.values() if name in d.unseen] for name in SUITES}


@pytest.mark.tier("full", but=[f"[{name}]" for name in QUICK])
@pytest.mark.parametrize("name", [name for name in SUITES if UNSEEN[name]])
def test_what_no_input_can_tell_is_not_told(name):
    cases = [completed(SUITES[name], asked) for asked in some_of(name)]
    for deviation in UNSEEN[name]:
        assert deviation.unseen[name].endswith("."), deviation.name
        assert witness(deviation, SUITES[name], cases) is None, deviation.name


@pytest.mark.tier("exhaustive")
@pytest.mark.parametrize("name", [name for name in SUITES if UNSEEN[name]])
def test_what_no_input_can_tell_is_told_nowhere(name):
    cases = golden.load(name)
    for deviation in UNSEEN[name]:
        assert witness(deviation, SUITES[name], cases) is None, deviation.name


def parted(name):
    """Holds each witness that the manifest has to the entry that it names."""
    suite, cases = SUITES[name], {case.name: case for case in golden.load(name)}
    for deviation, seen_at in MANIFEST[name]["kills"].items():
        case = cases[seen_at["case"]]
        other = deviated(DEVIATIONS[deviation], suite, case)
        place = tuple(seen_at["index"])
        field = seen_at["field"]
        assert other.arrays[field][place] != case.arrays[field][place], deviation


@pytest.mark.tier("full", but=[f"[{name}]" for name in QUICK])
@pytest.mark.parametrize("name", [name for name in SUITES if name not in LARGE])
def test_every_suite_tells_the_deviations_of_its_domain(name):
    parted(name)


@pytest.mark.tier("exhaustive")
@pytest.mark.parametrize("name", LARGE)
def test_large_suites_tell_the_deviations_of_their_domains(name):
    parted(name)


def test_without_deviations_the_model_gives_what_suites_expect():
    suite = SUITES["decisions"]
    for case in golden.load("decisions"):
        again = completed(suite, question(suite.fields, case))
        assert all(np.array_equal(again.arrays[name], case.arrays[name]) for name in case.arrays)


def test_what_no_suite_tells_has_no_witness():
    """A deviation outside of its reach: the search ends without a find."""
    cases = list(SUITES["decisions"].questions(Size()))
    whole = [completed(SUITES["decisions"], case) for case in cases]
    assert witness(DEVIATIONS["nibbles_swapped"], SUITES["decisions"], whole) is None


def test_they_end_with_their_block():
    fmt = formats["e4m3"]
    with applied(DEVIATIONS["truncation"]):
        assert exact.encode(0.3, fmt) == 0x29
        with pytest.raises(ZeroDivisionError), applied(DEVIATIONS["ties_away"]):
            raise ZeroDivisionError
        assert exact.encode(0.3, fmt) == 0x29
    assert exact.encode(0.3, fmt) == 0x2A


def test_two_of_different_steps_act_together():
    with applied(DEVIATIONS["scale_truncated"], DEVIATIONS["gam_mantissa_of_7_bits"]):
        assert scaling.ideal_scale(448.0, 3.0).mantissa == 0x155555
        assert scaling.group_mantissa(448.0, 3.0) == 0x150000


def test_two_of_one_step_apply_in_turn():
    first, second = DEVIATIONS["negative_zero_lost"], DEVIATIONS["subnormal_codes_flushed"]
    with applied(first, second):
        assert exact.encode(-(2.0**-9), formats["e4m3"]) == 0x80  # flushed after zero lost its sign
    with applied(second, first):
        assert exact.encode(-(2.0**-9), formats["e4m3"]) == 0x00


def test_only_steps_can_be_replaced():
    with (
        pytest.raises(ValueError, match="floor_log2 is no step of the model; decorate it"),
        replaced([(exact.floor_log2, lambda *_: 0)]),
    ):
        pass
