"""Rules as terms, and proofs about them: against the exact model, golden vectors and the solver."""

import itertools
import json
import math
import tomllib
from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest
from extras import imported
from forking import mor_ref as run

from mor_ref import Format, golden
from mor_ref.definitions.block_formats import BlockFormat, BlockScale, block_format_of
from mor_ref.definitions.block_formulas import mx_formulas, nvfp4_formulas, scaled_formulas
from mor_ref.definitions.encoding import DETERMINISTIC_ROUNDINGS
from mor_ref.definitions.formats import formats
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.exact.encoding import encode, nearest_toward_zero
from mor_ref.golden.generation.mistakes_shown import mistakes_shown
from mor_ref.golden.model.suite import Size
from mor_ref.mistakes.arithmetic import OPERATIONS, ROUNDED, fused, one_newton_step
from mor_ref.mistakes.block_formats import sites_and_operators
from mor_ref.proofs.columns import values_of
from mor_ref.proofs.elements import outputs
from mor_ref.proofs.replay import differs_for
from mor_ref.proofs.rules import decoded, encoded, literal
from mor_ref.proofs.terms import (
    absolute,
    arithmetic,
    is_class,
    is_not,
    number,
    same,
    variable,
    word,
)
from mor_ref.proofs.wrong import WRONG
from mor_ref.recipes import as_block_format

F, U = np.float32, np.uint32
UE5M3 = Format("ue5m3", exponent_bits=5, mantissa_bits=3, bias=15, specials="fn", sign="none")
SIGNIFICANDS = (0, 1, 2, 0x80000, 0xC0000, 0x100000, 0x180000, 0x200000, 0x3FFFFF, 0x400000)
SIGNIFICANDS += (0x400001, 0x600000, 0x7FFFFE, 0x7FFFFF)
EXPONENTS = (0, 1, 2, 60, 100, 103, 104, 126, 127, 128, 130, 150, 151, 200, 253, 254, 255)


def numbers_of(exponents):
    """Return numbers of binary32 with these exponents, of both signs, next to ties of formats."""
    patterns = [
        sign << 31 | exponent << 23 | significand
        for exponent, significand, sign in itertools.product(exponents, SIGNIFICANDS, (0, 1))
    ]
    return np.array(patterns, U).view(F)


def patterns_of(numbers):
    """Return patterns in which all NaNs are alike."""
    numbers = np.array(numbers, F)
    return np.where(np.isnan(numbers), U(0x7FC00000), numbers.view(U))


def rounded_code(x, fmt, rounding):
    """Return the code of the exact model."""
    if rounding == "rnz" and math.isfinite(x):
        return nearest_toward_zero(x, fmt)
    return encode(x, fmt, "rne" if rounding == "rnz" else rounding)


def roundings_of(fmt):
    """Return the roundings that a format has."""
    if fmt.is_power_of_two:
        return ("rtp", "rtz", "rna")
    return (*DETERMINISTIC_ROUNDINGS, *(("rnz",) if fmt.sign != "none" else ()))


@pytest.mark.parametrize(
    "fmt", [*(f for f in formats.values() if f.name != "f32"), UE5M3], ids=lambda fmt: fmt.name
)
def test_codes_and_their_numbers_are_those_of_the_exact_model(fmt):
    x = numbers_of(range(256))
    wide = [float(one) for one in x]
    for rounding in roundings_of(fmt):
        codes = encoded(variable("x"), fmt, rounding)
        expected = [rounded_code(one, fmt, rounding) for one in wide]
        assert values_of(codes, {"x": x}).tolist() == expected
        numbers = values_of(decoded(codes, fmt), {"x": x})
        expected_numbers = [fmt.value(code) for code in expected]
        assert np.array_equal(patterns_of(numbers), patterns_of(expected_numbers))


def pairs():
    """Return pairs of numbers, and a third one."""
    rng = np.random.default_rng(64)
    landmarks = numbers_of(EXPONENTS)
    a, b = (one.ravel() for one in np.meshgrid(landmarks, landmarks))
    any_number = rng.integers(0, 1 << 32, (3, 4000), U).view(F)
    chosen = rng.permutation(a.size)[:8000]
    c = rng.permutation(np.resize(landmarks, 8000))
    return [np.concatenate(one) for one in zip((a[chosen], b[chosen], c), any_number, strict=True)]


def test_wrong_operations_are_those_of_columns():
    a, b, c = pairs()
    names, columns = {"a": a, "b": b, "c": c}, [[float(x) for x in one] for one in (a, b, c)]
    terms = [variable(name) for name in names]
    wrong = {f"{sign} {one.name}": one.of(sign) for sign in OPERATIONS for one in ROUNDED}
    wrong |= {"newton": one_newton_step, "fused +": fused(1), "fused -": fused(-1)}
    assert wrong.keys() <= WRONG.keys()
    for name, operation in wrong.items():
        count = {"square": 1, "fused": 3}.get(name.split()[0], 2)
        computed = values_of(WRONG[name](*terms[:count]), names)
        expected = patterns_of(operation(*columns[:count]))
        assert np.array_equal(patterns_of(computed), expected), name


# ---------------------------------------------------------------------- golden vectors

SCALES_OF_NVFP4 = {
    "S": "global_encode_scale",
    "g": "global_decode_scale",
    "G": "global_encode_scale",
}


@pytest.mark.parametrize("rule", ["floor", "ceil", "even", "rceil"])
def test_elements_of_mx_are_those_of_the_vectors(rule):
    for case in cases_of("mx_blocks", scale_rule=rule):
        fmt, x = formats[case.parameters["format"]], case.arrays["x"].view(F)
        record = mx_formulas(fmt, rule, x.shape[1])
        compare(record, x, {"amax_s": np.abs(x).max(axis=1)}, {"s": "scale"}, case.arrays)


def test_elements_of_nvfp4_are_those_of_the_vectors():
    for case in cases_of("nvfp4_blocks"):
        record = nvfp4_formulas(PROFILES[case.parameters["profile"]], (1, 16))
        if len(record.tries) == 1:
            above = record.scales[0].name
            amaxes = {f"amax_{above}": "amax", "amax_s": "block_amax"}
            columns = {name: case.arrays[field].view(F) for name, field in amaxes.items()}
            scales = {above: SCALES_OF_NVFP4[above], "s": "block_scale"}
            compare(record, case.arrays["x"].view(F), columns, scales, case.arrays)


@pytest.mark.parametrize("scaling", ["gam", "e8m0", "fp32"])
def test_elements_of_scaled_formats_are_those_of_the_vectors(scaling):
    for case in cases_of("quantize_blocks", scaling=scaling):
        fmt = formats[case.parameters["format"]]
        record = scaled_formulas(fmt, scaling, (1, case.arrays["x"].shape[1]), "tensor")
        amaxes = {"amax_m": "group_amax", "amax_s": "amax"}
        columns = {name: case.arrays[field].view(F) for name, field in amaxes.items()}
        scales = {"s": "scale" if scaling == "fp32" else "exponent"}
        compare(record, case.arrays["x"].view(F), columns, scales, case.arrays)


def cases_of(suite, **parameters):
    """Return the cases of a suite whose inputs are of binary32, and which have some parameters."""
    wanted = {"source": "f32", **parameters}
    return [case for case in golden.load(suite) if wanted.items() <= case.parameters.items()]


def compare(record, x, amaxes, scales, arrays):
    """Compare the terms of each element with the fields of vectors; a row is a block."""
    rows = {name: np.repeat(amax[:, None], x.shape[1], axis=1) for name, amax in amaxes.items()}
    terms = outputs(record)
    for name, field in {**scales, "code": "code", "y": "y"}.items():
        expected = arrays[field] if name in ("code", "y") else arrays[field][:, None]
        computed = np.broadcast_to(values_of(terms[name], {"x": x, **rows}), x.shape)
        if computed.dtype == F:
            computed, expected = patterns_of(computed), patterns_of(expected.view(F))
        assert np.array_equal(computed, np.broadcast_to(expected, x.shape)), (record.name, name)


# ---------------------------------------------------------------------- the solver


def of_proofs(name):
    """Return a module of the proofs that needs the solver, or skip the test."""
    imported("bitwuzla")
    return import_module(f"mor_ref.proofs.{name}")


def test_the_solver_has_the_operators_of_the_columns():
    """For each operator and for numbers that are fixed, no other result than that of NumPy."""
    decide = of_proofs("solver").decide
    a, b, c = pairs()
    for name in WRONG:
        count = {"square": 1, "fused": 3}.get(name.split()[0], 2)
        for place in range(0, a.size, 3001):
            operands = [number(int(one[place].view(U))) for one in (a, b, c)[:count]]
            term = WRONG[name](*operands)
            (expected,) = np.atleast_1d(values_of(term, {})).astype(F)
            is_other = is_not(same(term, number(int(patterns_of([expected])[0]))))
            assert decide([is_other], 60) == "never", (name, place)


@pytest.mark.parametrize("fmt", ["e4m3", "e5m2", "e2m1", "e8m0", "int8_mx", "f16"])
def test_the_solver_has_the_codes_of_the_columns(fmt):
    decide = of_proofs("solver").decide
    x = numbers_of((1, 110, 113, 120, 126, 127, 142, 255))[::3]
    for rounding in roundings_of(formats[fmt]):
        codes = encoded(variable("x"), formats[fmt], rounding)
        for one, code in zip(x, values_of(codes, {"x": x}), strict=True):
            fixed = number(int(one.view(U)))
            is_other = is_not(same(encoded(fixed, formats[fmt], rounding), word(int(code))))
            assert decide([is_other], 60) == "never", (one, rounding)


def left_of(recipe):
    """Return a block format, and which of its mistakes no entry of its vectors shows."""
    record = as_block_format(recipe)
    shown = {row.mistake.name: row.case for row in mistakes_shown(record, Size(1, 0))}
    mistakes = {one.name: one for one in sites_and_operators(record)}
    return record, {name: mistakes[name] for name, case in shown.items() if case is None}


def test_every_mistake_of_mxfp8_that_no_vector_shows_changes_nothing():
    survivors = of_proofs("survivors")
    record, left = left_of("mxfp8")
    assert len(left) > 20
    for mistake in left.values():
        assert survivors.verdict_on(record, mistake, 60) == survivors.Proved(), mistake.name


@pytest.mark.tier("full")
@pytest.mark.parametrize("recipe", ["mxfp4", "mxfp8:rceil", "nvfp4", "nvfp4:torchao", "e4m3:gam"])
def test_no_mistake_that_vectors_show_is_proved_to_change_nothing(recipe):
    survivors = of_proofs("survivors")
    record, left = left_of(recipe)
    for mistake in sites_and_operators(record):
        if mistake.name not in left:
            assert survivors.verdict_on(record, mistake, 1) != survivors.Proved(), mistake.name


PAPER = """name = "paper"
element = "e2m1"
decode = "s * S"
encode = "min(1 / decode, MAX)"
tries = ["t", "1.5 * t"]

[[scales]]
name = "S"
over = "tensor"
number = "amax / 688128 or 1"

[[scales]]
name = "s"
over = [1, 8]
number = "(amax / 6) / S"
stored = "e4m3"
"""


@pytest.mark.parametrize(
    ("mistake", "kind"),
    [
        ("decode/product-saturated", "proved"),
        ("s/other-order", "shown"),
        ("s/stored-flushed", "shown"),
        ("elements/rtz", "shown"),
        ("error/square-truncated", "open"),
        ("tries/last-of-equals", "open"),
        ("amax/counts-finite", "open"),
        ("s/amax-first-1", "open"),
    ],
)
def test_mistakes_of_an_own_format_are_judged_by_all_of_its_tries(mistake, kind):
    """Numbers that show a mistake count only if the exact model differs on a tensor of them."""
    survivors = of_proofs("survivors")
    record = block_format_of(tomllib.loads(PAPER))
    (asked,) = (one for one in sites_and_operators(record) if one.name == mistake)
    verdict = survivors.verdict_on(record, asked, 10)
    assert verdict.kind == kind, verdict
    if kind == "shown":
        assert differs_for(record, asked, verdict.numbers)
        zeros = dict.fromkeys(verdict.numbers, 0)
        assert not differs_for(record, asked, zeros)


def test_the_command_proves(tmp_path):
    of_proofs("solver")
    scale = BlockScale("s", (1, 8), "amax / 256", "e8m0")
    (tmp_path / "mine.toml").write_text(BlockFormat("mine", "e4m3", (scale,), decode="s").text)
    printed = run("golden", "mistakes", "mine.toml", "--prove", "10", cwd=tmp_path).stdout
    title = "these have the same bits for all numbers, which is proved:\n"
    rows = json.loads(
        run("golden", "mistakes", "mine.toml", "--prove", "10", "--json", cwd=tmp_path).stdout
    )
    assert title in printed
    for row in rows:
        assert (row["proof"] is None) == (row["case"] is not None)
        if row["proof"] is not None:
            before, _, after = printed.partition(title)
            part = after if row["proof"]["kind"] == "proved" else before
            assert f"  {row['mistake']}: {row['summary']}\n" in part


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("mxfp8", "--prove", "0"), "--prove is 0; give the seconds of a question, such as 3"),
        (("scale_steps", "--prove", "3"), "whose mistakes are no formulas; omit it, or give a"),
    ],
)
def test_what_cannot_be_proved_is_refused(arguments, said):
    done = run("golden", "mistakes", *arguments)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())


def test_a_quotient_by_two_thirds_is_a_truncated_product():
    """The two numbers of the scale for 4 (NVF-006) have the same code, whatever base is."""
    decide = of_proofs("solver").decide
    base = variable("base")
    three_halves, two_thirds = literal(Fraction(3, 2)), literal(Fraction(2, 3))
    numbers = (
        arithmetic("/", base, two_thirds),
        arithmetic("*", base, three_halves, direction="zero"),
    )
    codes = [encoded(one, formats["e4m3"], "rne") for one in numbers]
    assert decide([is_not(same(*codes))], 60) == "never"
    rounded = encoded(arithmetic("*", base, three_halves), formats["e4m3"], "rne")
    assert decide([is_not(same(codes[1], rounded))], 60) not in ("never", "open")


@pytest.mark.parametrize("by_square", [False, True])
def test_an_error_of_four_is_not_finite_where_that_of_six_is_nan(by_square):
    """Of an element, whatever x, amax and the codes are (NVF-006); and so is a sum of them."""
    decide = of_proofs("solver").decide
    x, amax = variable("x"), variable("amax")
    errors = []
    for name in ("six", "four"):
        stored = variable(name)
        value = arithmetic("/", arithmetic("*", stored, amax), literal(Fraction(1536)))
        d = arithmetic("-", value, x)
        errors.append(arithmetic("*", d, d) if by_square else absolute(d))

    def is_finite(term):
        return [is_not(is_class(kind, term)) for kind in ("nan", "infinite")]

    given = [is_class("nan", errors[0]), *is_finite(variable("six")), *is_finite(variable("four"))]
    assert decide([*given, *is_finite(errors[1])], 60) == "never"
    assert decide([*given, is_not(is_class("nan", errors[1]))], 60) not in ("never", "open")
