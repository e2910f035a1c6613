"""Mistakes as data: what they compute, their names and words, and that reports name them."""

import itertools
import json
from dataclasses import replace
from fractions import Fraction
from operator import add, mul, sub, truediv

import numpy as np
import pytest
from forking import mor_ref as run
from hypothesis import given
from hypothesis import strategies as st
from test_block_formulas import OWN

from mor_ref import BlockFormat, BlockScale
from mor_ref.definitions.block_formats import formulas_of
from mor_ref.definitions.formulas import parsed
from mor_ref.deviations import applied
from mor_ref.exact.arithmetic import nearest_in
from mor_ref.exact.block_formats import evaluated, quantize
from mor_ref.golden.model.suite import Size
from mor_ref.golden.suites.block_formats import suite_of
from mor_ref.mistakes import mistakes_of, shown_by
from mor_ref.mistakes.arithmetic import ROUNDED, TF32
from mor_ref.mistakes.formulas import text_of, wrong_formulas
from mor_ref.operations import OPERATIONS
from mor_ref.recipes import as_block_format
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.reporting.text import lines
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in

PAPER = replace(OWN, name="paper")
RECIPES = ["mxfp8:rceil", "mxfp4:even", "nvfp4", "nvfp4:torchao", "e4m3:gam:128x128"]
EXACT = {"+": add, "-": sub, "*": mul, "/": truediv}
WRONG = {wrong.name: wrong for wrong in ROUNDED}
numbers = st.floats(width=32, allow_nan=False, allow_infinity=False)
pairs = st.tuples(numbers, numbers)


def neighbours(x):
    """Return the numbers of binary32 around one, as NumPy has them; infinities are very large."""
    with np.errstate(all="ignore"):
        around = [float(np.nextafter(np.float32(x), np.float32(end))) for end in (-np.inf, np.inf)]
    return [Fraction(y) if np.isfinite(y) else Fraction(2) ** 200 * int(np.sign(y)) for y in around]


@pytest.mark.parametrize("operator", EXACT)
@given(operands=st.lists(pairs, min_size=1, max_size=20))
def test_wrong_roundings_are_what_their_words_say(operator, operands):
    """Against exact fractions and the neighbours that NumPy knows."""
    operands = [(a, b) for a, b in operands if operator != "/" or b] or [(1.0, 3.0)]
    columns = list(map(list, zip(*operands, strict=True)))
    results = {
        name: WRONG[name].of(operator)(*columns)
        for name in ("truncated", "up", "down", "ties-away", "flushed")
    }
    for place, (a, b) in enumerate(operands):
        exact = EXACT[operator](Fraction(a), Fraction(b))
        found = {name: column[place] for name, column in results.items()}
        if abs(exact) > Fraction(float(np.finfo(np.float32).max)):
            assert abs(found["truncated"]) == float(np.finfo(np.float32).max)
            continue
        if not exact:
            continue
        toward, up, down = (Fraction(found[name]) for name in ("truncated", "up", "down"))
        assert abs(toward) <= abs(exact)
        assert toward == exact or abs(neighbours(found["truncated"])[exact > 0]) > abs(exact)
        assert down <= exact <= up
        assert up == down == exact or neighbours(found["down"])[1] == up
        away = Fraction(found["ties-away"])
        distance = {way: abs(exact - way) for way in (up, down)}
        if distance[up] == distance[down] and up != down:
            assert abs(away) == max(abs(up), abs(down))
        else:
            assert abs(exact - away) == min(distance.values())
        assert found["flushed"] == 0 or abs(found["flushed"]) >= 2.0**-126


@given(numbers)
def test_tf32_has_ten_bits_of_mantissa(x):
    """As the bits say: add half of the last bit that stays, and the odd bit, and cut."""
    bits = int(np.float32(x).view(np.uint32))
    near = (bits + 0xFFF + (bits >> 13 & 1)) & ~0x1FFF
    if abs(x) >= 2.0**-126 and near & 0x7FFFFFFF < 0x7F800000:
        assert np.float32(nearest_in(x, TF32)).view(np.uint32) == near


@pytest.mark.parametrize("name", [*RECIPES, "paper"])
def test_formulas_are_written_as_they_are_read(name):
    record = PAPER if name == "paper" else as_block_format(name)
    for text in formulas_of(record):
        tree = parsed(text)
        assert parsed(text_of(tree)) == tree


@pytest.mark.parametrize("name", [*RECIPES, "paper"])
def test_each_mistake_has_a_name_and_a_sentence_of_its_own(name):
    mistakes = mistakes_of(PAPER if name == "paper" else as_block_format(name))
    assert len({mistake.name for mistake in mistakes}) == len(mistakes) > 60
    sentences = [(mistake.name.split("/")[0], mistake.summary) for mistake in mistakes]
    assert len(set(sentences)) > 0.9 * len(sentences)  # twins of one text differ in their numbers
    for mistake in mistakes:
        assert mistake.rules
        assert "None" not in mistake.summary


def test_orders_of_operations_are_those_of_numpy():
    """Each order of a * (b * (1 / c)), as NumPy computes it in binary32."""
    generator = np.random.default_rng(2)
    a, b, c = (generator.lognormal(0, 3, 2000).astype(np.float32) for _ in range(3))
    wrong = {one.name: one.formula for one in wrong_formulas(parsed("a * (b * (1 / c))"))}
    columns = {name: column.tolist() for name, column in zip("abc", (a, b, c), strict=True)}
    one = np.float32(1)
    for name, expected in {
        "other-order-of-right": (a * b) * (one / c),
        "divided": a * (b / c),
        "in-binary64": (a.astype(float) * (b * (1 / c.astype(float)))).astype(np.float32),
    }.items():
        assert np.array_equal(np.float32(evaluated(wrong[name], columns, 2000)), expected), name
    (fused,) = [one.formula for one in wrong_formulas(parsed("a * b + c")) if one.name == "fused"]
    exact = [float(np.float32(float(Fraction(x) * Fraction(y) + Fraction(z)))) for x, y, z in
             zip(*(column.tolist() for column in (a, b, c)), strict=True)]  # fmt: skip
    found = evaluated(fused, columns, 2000)
    assert sum(map(float.__ne__, map(float, found), exact)) <= 2  # doubly rounded ones
    plain = evaluated(parsed("a * b + c"), columns, 2000)
    assert list(found) != list(plain)


def lanes_of(record):
    cases = {case.name: case for case in suite_of(record).questions(Size())}
    return {name: case for name, case in cases.items() if name.startswith("lanes")}


@pytest.mark.parametrize("name", ["mxfp8:rceil", "nvfp4"])
def test_each_lane_of_a_block_is_looked_at(name):
    """A scale that one number does not reach is another one: of the largest, and of a NaN."""
    record = as_block_format(name)
    case = lanes_of(record)["lanes.f32"]
    x = [float(v) for v in case.arrays["x"].view(np.float32).ravel()]
    right = quantize(x, case.arrays["x"].shape, record).scales["s"].codes
    width = record.block[1]
    for lane in range(width):
        (mistake,) = [m for m in mistakes_of(record) if m.name == f"s/amax-without-{lane}"]
        with applied(mistake):
            wrong = quantize(x, case.arrays["x"].shape, record).scales["s"].codes
        pairs_of_codes = enumerate(zip(right, wrong, strict=True))
        assert [k for k, codes in pairs_of_codes if len({*codes}) > 1] == [lane]


def test_vectors_show_most_mistakes():
    """What is left has the same bits, or needs ties that no amax of the suite makes."""
    record, operation = as_block_format("mxfp8:rceil"), OPERATIONS["blocks"]
    cases = {
        case.name: lambda case=case: operation.exact(case.parameters, case.arrays)
        for case in suite_of(record).questions(Size())
    }
    rows = shown_by(mistakes_of(record), cases)
    assert len(rows) > 80
    left = {row.mistake.name for row in rows if row.case is None}
    # x / 2^k and x * 2^-k are equal, and so is each rounding of them; amax / 448 has no ties.
    assert {name for name in left if not name.startswith("encode/")} <= {
        "s/quotient-ties-away", "s/quotient-operands-flushed", "s/quotient-saturated",
        "s/by-reciprocal", "elements/divided",
    }  # fmt: skip
    shown = next(row for row in rows if row.mistake.name == "s/amax-signed")
    assert shown.field in ("outer_scale", "scale")


# ---------------------------------------------------------------------- wrong kernels

KERNEL = """
import numpy as np

F, U = np.float32, np.uint32
E2M1 = F([0, 0.5, 1, 1.5, 2, 3, 4, 6])
k = np.arange(255)
UE5M3 = F(np.ldexp(np.where(k < 8, k, 8 + k % 8), np.maximum(k // 8, 1) - 18))

def nearest(x, values):
    ties = (values[:-1].astype(float) + values[1:]) / 2
    low = np.searchsorted(ties, x)
    return low + ((low % 2 == 1) & np.isin(x, ties))

def amax_of(x):
    return np.fmax.reduce(np.abs(x), axis=None, initial=F(0))

def tried(x, t, S):
    scale = 255 if np.isnan(t) else nearest(t, UE5M3)
    decode = (UE5M3[scale] if scale < 255 else F(np.nan)) * S
    encode = np.minimum(F(1) / decode, np.finfo(F).max)
    xs = x * encode
    code = np.where(np.isnan(xs), 7, nearest(np.abs(xs), E2M1) | np.signbit(xs) * 8)
    y = np.where(code < 8, E2M1[code % 8], -E2M1[code % 8]) * decode
    return np.cumsum(np.square(y - x))[-1], scale, code

def kernel(operation, parameters, inputs):
    bits, source = inputs["x"], parameters["source"]
    wide = bits.astype(U) << 16 if source == "bf16" else bits
    x = wide.view({"f16": np.float16}.get(source, F)).astype(F)
    code = np.empty(x.shape, np.uint8)
    scale = np.empty((x.shape[0], -(-x.shape[1] // 64)), U)
    with np.errstate(all="ignore"):
        S = amax_of(x) / F(688128) or F(1)
        for i, j in np.ndindex(scale.shape):
            block = slice(64 * j, 64 * j + 64)
            t = amax_of(x[i, block]) / F(6) / S
            best, scale[i, j], code[i, block] = tried(x[i, block], t, S)
            for factor in F([0.875, 1.5]):
                error, *blocks = tried(x[i, block], factor * t, S)
                if error < best:
                    best, (scale[i, j], code[i, block]) = error, blocks
    return {"scale": scale, "code": code}
"""
KERNELS = {  # what is written in place of what, and the mistakes that a report names
    "order": ("/ F(6) / S", "/ (F(6) * S)", ["s/other-order"]),
    "equals": ("error < best", "error <= best", ["tries/last-of-equals"]),
    "half": ("amax_of(x[i, block])", "amax_of(x[i, block][:32])", ["s/amax-first-32"]),
    "lane": ("amax_of(x[i, block])", "amax_of(np.delete(x[i, block], 5))", ["s/amax-without-5"]),
    "binary64": (
        "amax_of(x[i, block]) / F(6) / S",
        "F(float(amax_of(x[i, block])) / 6 / float(S))",
        ["s/in-binary64"],
    ),
    "no_limit": ("np.minimum(F(1) / decode, np.finfo(F).max)", "F(1) / decode",
                 ["encode/limit-left-out"]),
    "two_tries": ("F([0.875, 1.5])", "F([1.5])", ["try-2/left-out"]),
    "signed": ("reduce(np.abs(x)", "reduce(x", ["S/amax-signed", "s/amax-signed"]),
    "away": ("(low % 2 == 1) & np.isin(x, ties)", "np.isin(x, ties)",
             ["elements/rna", "s/stored-rna"]),
}  # fmt: skip


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    directory = tmp_path_factory.mktemp("own")
    (directory / "paper.toml").write_text(PAPER.text)
    done = run("golden", "make", "paper.toml", "--out", "vectors", cwd=directory)
    assert "mistakes follow from its formulas: `mor-ref golden mistakes` counts" in done.stderr
    return directory / "vectors"


def kernel(old="", new=""):
    assert old in KERNEL
    namespace = {}
    exec(KERNEL.replace(old, new) if old else KERNEL, namespace)  # noqa: S102  # a kernel as a text
    return namespace["kernel"]


def test_the_kernel_without_a_mistake_matches(vectors):
    assert verify(PythonFunction("kernel", kernel()), suites_in(vectors)).verdict == "match"


@pytest.mark.tier("full", but=("order", "half"))
@pytest.mark.parametrize("name", KERNELS)
def test_a_report_names_the_mistake_of_a_kernel(vectors, name):
    """Of a format that nobody else has: nothing was written down about it before."""
    old, new, causes = KERNELS[name]
    report = verify(PythonFunction("kernel", kernel(old, new)), suites_in(vectors))
    text = "\n".join(lines(report))
    names = " and ".join(f"`{cause}`" for cause in causes)
    assert f"mismatches are explained by {names}" in text, text[:2000]


def test_the_command_counts_what_vectors_show(tmp_path):
    (tmp_path / "mine.toml").write_text(
        BlockFormat("mine", "e4m3", (BlockScale("s", (1, 8), "amax / 448 or 1"),), decode="s").text
    )
    printed = run("golden", "mistakes", "mine.toml", cwd=tmp_path).stdout.splitlines()
    rows = json.loads(run("golden", "mistakes", "mine.toml", "--json", cwd=tmp_path).stdout)
    shown = [row for row in rows if row["case"] is not None]
    assert printed[0] == f"mine: {len(shown)} of {len(rows)} mistakes shown"
    left = [row["mistake"] for row in rows if row["case"] is None]
    assert [line.split(":")[0].strip() for line in printed[2:]] == left
    assert all(row["addresses"] == {rule: f"spec/{rule}" for rule in row["rules"]} for row in rows)
    named = {"mistake", "summary", "rules", "addresses"}
    assert rows[0].keys() == named | {"case", "field", "proof"}
    refused = run("golden", "mistakes", "quantize", cwd=tmp_path)
    assert refused.returncode == 2
    assert "give the file of a block format, such as OWN.toml, or a recipe" in refused.stderr


def test_mistakes_of_formulas_are_each_another_tree():
    for text in ("amax * (S * (1 / 6))", "min(max((amax / 6) / g, 2**-6), 448)", "a + b + c"):
        trees = [wrong.formula for wrong in wrong_formulas(parsed(text))]
        assert all(a != b for a, b in itertools.combinations([parsed(text), *trees], 2))


# ---------------------------------------------------------------------- percentiles


def record_with_percentile(number, over=(1, 20), **fields):
    scale = BlockScale("s", over, number)
    return BlockFormat("clipped", "e4m3", (scale,), decode="s", **fields)


def scales_with(name, x, record):
    """Return the scales of a tensor, as a program with the mistake has them."""
    (mistake,) = [one for one in mistakes_of(record) if one.name == name]
    with applied(mistake):
        return list(quantize(x.ravel().tolist(), x.shape, record).scales["s"].numbers["s"])


def names_of(record):
    return {mistake.name for mistake in mistakes_of(record)}


def test_a_percentile_has_mistakes_of_its_own_and_none_of_an_amax():
    """BLF-007: only what formulas read can be wrong."""
    alone = names_of(record_with_percentile("percentile(85) / 448 or 1"))
    assert not [name for name in alone if "amax" in name]
    assert {"s/percentile-85-rank-above", "percentile/counts-all"} <= alone
    both = names_of(record_with_percentile("max(percentile(85), amax / 2) or 1"))
    assert {"s/percentile-85-rank-above", "s/amax-signed", "amax/counts-all"} <= both
    amax = names_of(record_with_percentile("amax / 448 or 1"))
    assert "s/amax-signed" in amax
    assert not [name for name in amax if "percentile" in name]
    # The 85th percentile of one or two numbers is the largest of them.
    assert not [
        n for n in names_of(record_with_percentile("percentile(85)", (1, 1))) if "rank" in n
    ]


@pytest.mark.parametrize(
    ("name", "method"),
    [("interpolated", "linear"), ("lower", "lower"), ("higher", "higher"), ("nearest", "nearest"),
     ("midpoint", "midpoint"), ("averaged", "averaged_inverted_cdf"),
     ("rank-to-nearest", "closest_observation")],
)  # fmt: skip
@pytest.mark.parametrize("percent", [85, 15])
def test_other_ways_between_ranks_are_those_of_numpy(name, method, percent):
    """BLF-007: numbers whose sums are exact in binary32; closest_observation ends in even ranks."""
    x = np.random.default_rng(3).permuted(np.tile(np.arange(1, 21), (8, 1)), axis=1)
    x = (x * np.where(np.arange(20) % 3, 16.0, -16.0)).astype(np.float32)
    record = record_with_percentile(f"percentile({percent:g})")
    expected = np.percentile(np.abs(x).astype(float), percent, axis=1, method=method)
    found = scales_with(f"s/percentile-{percent:g}-{name}", x, record)
    assert found == expected.astype(np.float32).tolist()


def test_percentiles_of_other_numbers_are_those_of_numpy():
    """BLF-007: of signed numbers, of rows, of the tensor, of a padded block, of NaNs."""

    def percentile(numbers):
        return float(np.percentile(np.float32(numbers), 85, method="inverted_cdf"))

    x = np.random.default_rng(4).standard_normal((6, 50)).astype(np.float32)
    x[0, :4], x[2, 20:30] = np.nan, 0
    record = record_with_percentile("percentile(85)", (2, 20))
    numbers = np.abs(x)
    blocks = [(i, j) for i in (0, 2, 4) for j in (0, 20, 40)]
    parts = [numbers[i : i + 2, j : j + 20].ravel() for i, j in blocks]
    counted = [part[~np.isnan(part)] for part in parts]
    signed = [x[i : i + 2, j : j + 20].ravel() for i, j in blocks]
    rows = [numbers[i : i + 2].ravel() for i, _ in blocks]
    columns = [numbers[:, j : j + 20].ravel() for _, j in blocks]
    filled = [
        np.concatenate([part, np.zeros(40 - len(p))])
        for part, p in zip(counted, parts, strict=True)
    ]
    expected = {
        "signed": [percentile(np.maximum(p[~np.isnan(p)], 0)) for p in signed],
        "zeros-left-out": [percentile(part[part != 0]) for part in counted],
        "nan-largest": [percentile(np.where(np.isnan(part), np.inf, part)) for part in parts],
        "nan-zero": [percentile(np.nan_to_num(part)) for part in parts],
        "padded": [percentile(part) for part in filled],
        "of-row": [percentile(row[~np.isnan(row)]) for row in rows],
        "of-column": [percentile(column[~np.isnan(column)]) for column in columns],
        "of-all": [percentile(numbers[~np.isnan(numbers)])] * 9,
        "largest": [float(part.max()) for part in counted],
        "rank-above": [float(np.sort(part)[-(-85 * len(part) // 100)]) for part in counted],
    }  # fmt: skip
    right = [percentile(part) for part in counted]
    for name, scales in expected.items():
        assert scales != right
        assert scales_with(f"s/percentile-85-{name}", x, record) == scales, name


def test_vectors_of_a_percentile_show_wrong_ranks():
    """Blocks have each count of numbers, so that each rank differs from another in one."""
    record = record_with_percentile("percentile(85) / 448 or 1", (1, 32))
    operation = OPERATIONS["blocks"]
    cases = {
        case.name: lambda case=case: operation.exact(case.parameters, case.arrays)
        for case in suite_of(record).questions(Size())
    }
    mistakes = [one for one in mistakes_of(record) if "percentile" in one.name]
    assert [row.mistake.name for row in shown_by(mistakes, cases) if row.case is None] == []
