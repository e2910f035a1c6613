"""The FP8 and FP4 of libraries, each: usual confusions, rows of reports, and headers for C."""

import subprocess
from functools import partial

import numpy as np
import pytest
from extras import skip_without

import mor_ref
from mor_ref.analysis.analyze_tensor import analyze, settings_for
from mor_ref.analysis.compare_tensor import compare
from mor_ref.golden.model.suite import Size
from mor_ref.golden.suites.block_formats import OPERATION, suite_of
from mor_ref.mistakes import mistakes_of, shown_by
from mor_ref.operations import OPERATIONS
from mor_ref.schemes.fp4.definition import FP4_PROFILES, fp4_formulas
from mor_ref.schemes.fp8.definition import FP8_PROFILES, fp8_formulas
from mor_ref.sources import write_sources
from mor_ref.sources.block_formats import identifier

PROFILES = {**FP8_PROFILES, **FP4_PROFILES}
ORDERS = {"s/by-reciprocal", "s/divided", "s/other-order", "s/other-order-of-right"}
TIES = {"elements/rne", "elements/rna", "elements/rnz"}
X = np.random.default_rng(14).standard_normal((32, 256), dtype=np.float32)


def in_blocks(name, tile=(1, 16)):
    formulas = fp8_formulas if name in FP8_PROFILES else fp4_formulas
    return formulas(PROFILES[name], tile)


def usual_confusions(own):
    """Yield what people confuse, each as the mistakes of which a suite has to show one."""
    last = own.scales[-1]
    # The largest numbers of formats have quotients that round up to one e8m0 in either order.
    if last.fmt.name != "e8m0":
        yield ORDERS
    if isinstance(own.fmt, mor_ref.Format):  # a table has ties of its own
        yield TIES
    if last.fmt.name != "f32" and "pow2" not in str(last.number):  # else it is a power of two
        yield {"s/stored-rtz"}
        if not own.tries:  # else a scale is chosen by its codes
            yield {"s/rounded-late"}
    yield {"amax/counts-finite"}
    yield {"s/amax-without-last"}


@pytest.mark.tier("full", but_one_in=4)
@pytest.mark.parametrize("name", PROFILES)
def test_the_suite_of_a_profile_shows_its_usual_confusions(name):
    """FPL-001, FPF-001: another order, other ties, a scale that is rounded late or otherwise."""
    own = in_blocks(name)
    mistakes = {mistake.name: mistake for mistake in mistakes_of(own)}
    cases = {
        case.name: partial(OPERATIONS[OPERATION].exact, case.parameters, case.arrays)
        for case in suite_of(own).questions(Size())
    }
    for confused in usual_confusions(own):
        known = [mistakes[each] for each in confused if each in mistakes]
        assert any(row.case for row in shown_by(known, cases)), confused


def test_every_profile_is_a_row_of_compare():
    """FPL-002, FPF-002."""
    rows = compare(X, list(PROFILES))
    assert len(rows) == len(PROFILES)
    for row in rows.values():
        assert 10 < row.measures.sqnr < 50


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_is_a_rung_of_analyze(name):
    """FPL-002, FPF-002: all blocks take it, with the error of the record."""
    policy = mor_ref.Policy("own", (mor_ref.Rung(name, mor_ref.MeanRelativeError(1)),))
    report = analyze(X, settings_for(policy)).report
    assert report.decision == name
    assert report.error == mor_ref.quantize(X, name).error.overall


def test_every_profile_is_a_header_of_c(tmp_path):
    """FPL-001, FPF-001: all of them in a file of C99, without a warning; and the text of CUDA."""
    skip_without("gcc")
    write_sources(tmp_path, PROFILES)
    headers = {name: f"{identifier(in_blocks(name, PROFILES[name].tile))}.h" for name in PROFILES}
    assert len(set(headers.values())) == len(PROFILES)
    for header in headers.values():  # MOR_FUNCTION is `__host__ __device__` in CUDA
        assert "MOR_FUNCTION" in (tmp_path / header).read_text()
    whole = "".join(f'#include "{header}"\n' for header in headers.values())
    (tmp_path / "all.c").write_text(whole)
    strict = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"]
    subprocess.run(["gcc", *strict, "all.c"], cwd=tmp_path, check=True)
