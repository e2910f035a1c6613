"""Comparing recipes: the totals, the text, the tables and the picture."""

import csv
import io
import json
import math
import sys

import numpy as np
import pytest
from analyzing import BF16, heavy, running, sentence, write
from extras import imported, needs
from integers import Integers

from mor_ref.analysis.compare_files import Comparison, compare_files
from mor_ref.analysis.compare_tensor import Compared, TensorComparison, compare, is_matrix
from mor_ref.analysis.listing import Listed
from mor_ref.analysis.recipes import recipes_from
from mor_ref.api.measures import Measures
from mor_ref.cli.compare_text import _described, _short, print_comparison
from mor_ref.counts_in_words import counted
from mor_ref.metrics import Always
from mor_ref.policies import POLICIES, Policy, Rung

RECIPES = ("mxfp4", "mxfp8:rceil", "mor:three_way:8x16")
OPTIONS = tuple(word for recipe in RECIPES for word in ("--recipe", recipe))


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Return a function that runs the command in its own directory and returns its output."""
    monkeypatch.chdir(tmp_path)
    return running(monkeypatch, capsys, "compare", columns=120)


def tensors():
    return {
        "layers.0.weight": heavy((64, 48), 0.3).astype(np.float32),
        "layers.1.weight": heavy((16, 32), 2, 1).astype(BF16),
        "layers.0.bias": heavy(48, 1, 2).astype(np.float32),
        "norm": np.ones((1, 48), np.float32),
        "count": np.arange(6).reshape(2, 3),
    }


@pytest.fixture
def model(tmp_path):
    return write(tmp_path / "model.safetensors", tensors())


def test_totals_count_every_number_once(run, model):
    found = json.loads(run(model, *OPTIONS, "--json"))
    chosen = [x for name, x in tensors().items() if name.endswith("weight")]
    for index, recipe in enumerate(RECIPES):
        each = [compare(x, [recipe])[recipe] for x in chosen]
        sums = sum((one.measures for one in each), Measures())
        record = found["totals"][index]
        assert record["elements"] == 64 * 48 + 16 * 32
        assert record["error"] == sum(o.measures.sum for o in each) / 2**23 / sums.nonzero
        assert record["bits"] == sum(one.bits for one in each)
        assert (int(record["noise"], 16), record["error_sum"]) == (sums.noise, sums.sum)
        assert record["sqnr"] == 10 * math.log10(sums.signal / sums.noise)
    assert [record["recipe"] for record in found["tensors"]] == [*RECIPES] * 2
    assert found["recipes"]["mxfp4"] == "mxfp4:floor:32"


def test_the_conclusion_comes_first_and_the_files_last(run, model):
    lines = run(model, *OPTIONS, "--out", "all.csv").splitlines()
    assert lines[0] == f"2 tensors, {counted(3584, 'number')}"
    assert lines[1].startswith("fewest bits:    mxfp4: 4.32 bits, error ")
    assert lines[2].startswith("smallest error: m")
    assert lines[-1] == "all.csv: 6 rows, one for each tensor and recipe"
    assert "skipped: count in" in lines[-3]
    assert lines[-2] == "left out: 2 tensors, not a matrix; --all-shapes takes them"


def test_the_worst_tensor_has_the_largest_error(run, model):
    lines = run(model, *OPTIONS).splitlines()
    for recipe in RECIPES:
        errors = {
            name: compare(x, [recipe])[recipe].measures.error
            for name, x in tensors().items()
            if name.endswith("weight")
        }
        worst = max(errors, key=errors.__getitem__)
        line = next(line for line in lines if line.startswith(recipe.partition(":")[0]))
        assert line.endswith(f"{100 * errors[worst]:.3g} % {worst}"), line


@pytest.mark.parametrize("columns", [120, 60, 44])
def test_the_table_fits_the_terminal(run, columns, tmp_path):
    write(tmp_path / "x.safetensors", {"w": heavy((8, 64), 1).astype(np.float32)})
    lines = run("x.safetensors", *OPTIONS, columns=columns).splitlines()
    heading = next(line for line in lines if line.startswith("recipe"))
    assert ("worst tensor" in heading, "SQNR dB" in heading) == (columns == 120, True)
    assert all(len(line) <= columns for line in lines[lines.index(heading) :][: len(RECIPES) + 1])


@pytest.mark.parametrize("columns", [120, 44])
def test_lost_numbers_are_said_on_any_terminal(run, columns, tmp_path):
    """Else a tensor of infinities has no error."""
    write(tmp_path / "x.safetensors", {"w": np.full((4, 32), np.inf, np.float32)})
    lines = run("x.safetensors", "--recipe", "mxfp4", columns=columns).splitlines()
    assert lines[3].split()[:5] == ["recipe", "bits", "error", "%", "SQNR"]
    assert lines[3].split()[6] == "NaN,inf"
    assert lines[4].split()[4] == "128"
    became = "or became NaN or infinite; no error counts them"
    assert lines[-1] == f"NaN,inf: numbers that are NaN or infinite, {became}"


def test_names_choose_tensors(run, model):
    def names(*options):
        found = json.loads(run(model, "--recipe", "mxfp4", "--json", *options))
        return {record["tensor"] for record in found["tensors"]}, found["left_out"]

    assert names("--include", r"layers\.\d") == (
        {"layers.0.weight", "layers.1.weight"},
        {r"not named as --include layers\.\d": 1, "not a matrix; --all-shapes takes them": 1},
    )
    assert names("--exclude", "0")[0] == {"layers.1.weight"}
    chosen, left_out = names("--all-shapes", "--exclude", "^norm$")
    assert chosen == {"layers.0.weight", "layers.1.weight", "layers.0.bias"}
    assert left_out == {"named as --exclude ^norm$": 1}


@pytest.mark.parametrize(
    ("shape", "is_one"),
    [((), 0), ((9,), 0), ((1, 9), 0), ((9, 1), 0), ((2, 2), 1), ((4, 1, 3), 1), ((0, 4), 0)],
)
def test_a_matrix_has_two_sides(shape, is_one):
    assert is_matrix(shape) == bool(is_one)


def test_tables_have_the_records(run, model, tmp_path):
    run(model, *OPTIONS, "--out", "t.csv", "--out", "t.json")
    records = compare_files(str(model), RECIPES).to_records()
    with io.StringIO((tmp_path / "t.csv").read_text()) as text:
        rows = list(csv.DictReader(text))
    assert rows == [{name: str(cell) for name, cell in one.items()} for one in records]
    assert json.loads((tmp_path / "t.json").read_text()) == records
    assert {(one["tensor"], one["shape"], one["dtype"]) for one in records} == {
        ("layers.0.weight", "64x48", "f32"),
        ("layers.1.weight", "16x32", "bf16"),
    }


def test_a_ratio_without_noise_is_null(run, tmp_path):
    write(tmp_path / "x.npy", {"x": np.ones((4, 32), np.float32)})
    found = json.loads(run("x.npy", "--recipe", "mxfp8", "--json", "--out", "x.csv"))
    assert (found["totals"][0]["sqnr"], found["totals"][0]["noise"]) == (None, "0x0")
    assert ",inf," in (tmp_path / "x.csv").read_text()
    assert "inf dB" in run("x.npy", "--recipe", "mxfp8")


@needs("pyarrow")
def test_parquet_has_the_records(run, model, tmp_path):
    run(model, *OPTIONS, "--out", "t.parquet")
    found = imported("pyarrow.parquet").read_table(tmp_path / "t.parquet").to_pylist()
    assert found == compare_files(str(model), RECIPES).to_records()


def test_without_pyarrow_parquet_alone_is_refused(run, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    said = sentence(run(model, "--recipe", "mxfp4", "--out", "t.parquet", status=2))
    assert said.endswith("which is not installed; pip install 'mor-ref[parquet]'")


def test_the_picture_has_a_row_for_each_recipe_and_a_dot_for_each_tensor(
    run, model, tmp_path, monkeypatch
):
    figures = []
    figure = imported("matplotlib.figure").Figure
    save = figure.savefig
    monkeypatch.setattr(figure, "savefig", lambda f, *a, **k: (figures.append(f), save(f, *a, **k)))
    run(model, *OPTIONS, "--out", "t.png")
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    found = compare_files(str(model), RECIPES)
    bits, error, sqnr = figures.pop().axes
    assert [text.get_text() for text in bits.get_yticklabels()] == [*RECIPES]
    assert [bar.get_width() for bar in bits.patches] == [o.bits_per_number for o in found.totals]
    for axes, measure in ((error, lambda m: 100 * m.error), (sqnr, lambda m: m.sqnr)):
        dots = [d.get_offsets()[:, 0].tolist() for d in axes.collections[::2]]
        assert dots == [[measure(t.under[i].measures) for t in found.tensors] for i in range(3)]
        lines = [d.get_segments()[0][0, 0] for d in axes.collections[1::2]]
        assert lines == [measure(one.measures) for one in found.totals]


class Silent(Integers):
    """A row of a user that does not say how many bits its codes and scales take."""

    stored_bits = None


@pytest.fixture
def silent(monkeypatch):
    """Add a policy whose row takes every tensor, and return its recipe."""
    monkeypatch.setitem(POLICIES, "silent", Policy("silent", (Rung(Silent(), Always()),)))
    return "mor:silent"


class Said(Integers):
    """A row of a user that says its bits, too few of them."""

    def stored_bits(self, scaling, parts):
        del scaling
        return parts.rows * parts.columns, 0


def test_what_nobody_measured_is_marked(run, model, monkeypatch):
    """Bits are what the author says, and saturated numbers are not 0 if nobody counted them."""
    monkeypatch.setitem(POLICIES, "said", Policy("said", (Rung(Said(), Always()),)))
    text = run(model, "--recipe", "mor:said", "--recipe", "mxfp8", columns=200)
    (own,) = (line.split() for line in text.splitlines() if line.startswith("mor:said "))
    (ours,) = (line.split() for line in text.splitlines() if line.startswith("mxfp8 "))
    headings = next(line for line in text.splitlines() if line.startswith("recipe")).split(" ")
    assert "saturated" in headings
    assert own[1].startswith("1.")
    assert own[1].endswith("*")
    assert "?" in own
    assert not any("*" in cell or "?" in cell for cell in ours)
    assert "*: bits that the author of a representation says" in text
    assert "?: not known, as a representation counts none" in text
    first, second = json.loads(run(model, "--recipe", "mor:said", "--recipe", "mxfp8", "--json"))[
        "totals"
    ]
    assert (first["saturated"], first["saturated_share"], first["bits_by_author"]) == (
        None,
        None,
        True,
    )
    assert second["saturated"] is not None
    assert not second["bits_by_author"]


def test_bits_that_are_not_known_are_never_the_fewest(run, model, silent):
    """ERR-009: nor is a recipe with such bits beaten."""
    text = run(model, "--recipe", silent, "--recipe", "elastic1")
    assert "fewest bits:    elastic1: 2.39 bits" in text
    assert "smallest error: mor:silent: ? bits, error" in text
    assert "beaten:" not in text
    unknown = "bits not known: mor:silent, where a representation has no method stored_bits"
    assert unknown in text
    found = json.loads(run(model, "--recipe", silent, "--recipe", "elastic1", "--json"))
    assert found["best"] == ["elastic1"]
    (first, _) = found["totals"]
    assert first["bits"] is first["bits_per_number"] is None
    alone = run(model, "--recipe", silent)
    assert "fewest bits" not in alone
    assert unknown in alone


@needs("matplotlib")
def test_bits_that_are_not_known_have_no_bar(model, silent):
    from mor_ref.analysis import comparison_plot

    axes = comparison_plot.figure_class()().subplots()
    comparison_plot._draw_bits(axes, compare_files(str(model), [silent]), ["blue"])
    assert [text.get_text() for text in axes.texts] == [" not known"]
    assert axes.get_xlim() == (0, 1)


def of_places(*places, names=("mxfp4", "mxfp8", "nvfp4", "mxint8")):
    """Return a comparison of recipes with these bits of a number, errors in percent and SQNR."""
    names = names[: len(places)]
    under = tuple(
        Compared(
            name,
            Measures(
                1000,
                round(error * 2**23 * 10),
                1000,
                signal=round(10 ** (db / 10 + 9)),
                noise=10**9,
            ),
            {},
            round(1000 * bits),
        )
        for name, (bits, error, db) in zip(names, places, strict=True)
    )
    tensor = TensorComparison("x.npy", "w", (25, 40), "f32", under)
    return Comparison(recipes_from(names), (tensor,))


def test_a_recipe_is_beaten_by_one_that_is_worse_in_nothing():
    def best(*places):
        return [one.recipe for one in of_places(*places).best]

    assert best((4, 20, 20), (8, 2, 30)) == ["mxfp4", "mxfp8"]
    assert best((4, 20, 20), (4, 19, 20)) == ["mxfp8"]
    assert best((4, 20, 20), (4, 20, 20)) == ["mxfp4", "mxfp8"]
    assert best((8, 2, 30), (8.001, 2, 30), (8, 2, 20)) == ["mxfp4", "mxfp8"]
    assert best((8, 2, 30), (8, 3, 40), (9, 3, 40), (8, 3, 50)) == ["mxfp4", "mxint8"]


@pytest.mark.parametrize(
    ("same", "other"),
    [
        ((8.004, 2, 20), (8.01, 2, 20)),
        ((8, 2.004, 20), (8, 2.01, 20)),
        ((8, 2, 20.04), (8, 2, 20.1)),
    ],
)
def test_recipes_are_as_good_as_they_are_printed(same, other):
    """ERR-009: by 0.01 bits, three digits of the error and 0.1 dB."""
    first = of_places((8, 2, 20), same)
    assert len(first.best) == 2
    assert len(of_places((8, 2, 20), other).best) == 1
    first, second = ("".join(_described(one).split(": ")[1:]) for one in first.totals)
    assert first == second


@pytest.mark.parametrize(("db", "is_said"), [(20.08, False), (20.12, True)])
def test_a_higher_ratio_is_said_from_a_tenth_of_a_decibel_on(capsys, db, is_said):
    """That which is printed as higher may be nearer."""
    print_comparison(of_places((8, 2, 20), (8, 3, db)), Listed())
    text = capsys.readouterr().out
    assert ("highest SQNR:   mxfp8: 8.00 bits, error 3 %, 20.1 dB" in text) == is_said
    assert ("also not beaten: mxfp8" in text) != is_said
    assert "smallest error: mxfp4: 8.00 bits, error 2 %, 20.0 dB" in text


def test_a_table_has_40_columns_in_a_narrow_window(monkeypatch, capsys):
    def printed(columns, name):
        monkeypatch.setenv("COLUMNS", str(columns))
        print_comparison(of_places((8, 2, 20), names=[name]), Listed())
        return capsys.readouterr().out

    short, long = "mxfp4", "uint8:peg:asymmetric:5_permuted_groups"
    assert printed(10, short) == printed(39, short) == printed(40, short) != printed(80, short)
    assert "SQNR dB flushed %\n" in printed(40, short)
    lines = printed(40, long).splitlines()
    assert lines[lines.index(long) - 1].split() == ["recipe", "bits", "error", "%"]


def test_names_of_24_letters_are_whole_in_a_column():
    whole = "model.layers.10.mlp.down"
    assert len(whole) == 24
    assert _short(whole) == whole
    assert _short(f"a{whole}") == f"..{whole[2:]}"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--recipe", "fp8"], "recipe is 'fp8', which is not known; "),
        (["--include", "("], "include is '(', which is not a regular expression (missing ), "),
        (["--include", "none"], "no tensor is left to compare: 4 not named as --include none; 1 s"),
        (["--out", "x.txt"], "out is 'x.txt'; give a file that ends in .csv, .json, .parquet, .md"),
        (["--out", "no/x.csv"], "out is 'no/x.csv', which cannot be written (No such "),
        (["--recipe", "mxfp8", "--recipe", "mxfp8:floor:32"], "recipe mxfp8:floor:32 is the same "),
    ],
)  # fmt: skip
def test_mistakes_are_a_sentence_and_status_2(run, model, arguments, said):
    assert sentence(run(model, *arguments, status=2)).startswith(f"mor-ref: {said}")


def test_the_usual_recipes_are_eight(run, model):
    found = json.loads(run(model, "--json"))
    assert len(found["totals"]) == 8
    assert found["totals"][0]["bits_per_number"] < 8.1


def test_thresholds_by_kind_and_layer(run, tmp_path):
    """MOR-015: in TOML; files have weights unless another kind is given."""
    x = heavy((64, 96), 0.5).astype(np.float32)
    file = str(write(tmp_path / "m.safetensors", {"layers.0.weight": x, "layers.1.weight": x}))
    table = '{ nvfp4 = { "*" = 0.1, weight = 0.17, "layers.1" = 0.19 } }'
    recipe = f'{{ representation = "mor", policy = "nvfp4", block = [8, 16], threshold = {table} }}'

    def errors(found):
        return [tensor["error"] for tensor in found["tensors"]]

    def alone(threshold):
        text = recipe.replace(table, f"{{ nvfp4 = {threshold} }}")
        (found,) = compare(x, [text]).values()
        return found.measures.error

    assert len({alone(0.1), alone(0.17), alone(0.19)}) == 3
    found = json.loads(run(file, "--json", "--recipe", recipe))
    assert errors(found) == [alone(0.17), alone(0.19)]
    found = json.loads(run(file, "--json", "--recipe", recipe, "--kind", "gradient"))
    assert errors(found) == [alone(0.1), alone(0.19)]
    assert compare_files(file, [recipe], kind="gradient").tensors[0].under[
        0
    ].measures.error == alone(0.1)
    (named,) = compare(x, [recipe], layer="layers.1", kind="activation").values()
    assert named.measures.error == alone(0.19)
    assert "kind is 'bias'" in run(file, "--recipe", recipe, "--kind", "bias", status=2)


def test_a_function_sees_the_role_of_each_tensor(tmp_path, monkeypatch):
    """MOR-014 and MOR-015: a function is asked about whole tensors, without a state."""
    seen = []

    def metric(unit, state):
        seen.append((unit.layer, unit.kind, unit.index, dict(state)))
        state["seen"] = True
        return unit.layer == "layers.0"

    monkeypatch.setitem(POLICIES, "mine", Policy("mine", (Rung("e4m3", metric),)))
    x = heavy((64, 96), 0.5).astype(np.float32)
    file = str(write(tmp_path / "m.safetensors", {"layers.0.weight": x, "b": x}))
    first, second = compare_files(file, ["mor:mine"], kind="activation").tensors
    assert first.under[0].taken != second.under[0].taken
    assert sorted(seen) == [
        ("b", "activation", (0, 0), {}), ("layers.0", "activation", (0, 0), {}),
    ]  # fmt: skip
