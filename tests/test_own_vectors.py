"""Vectors of a block format of one's own: made from its record, and verified without it."""

import dataclasses
import json
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from pages import blocks_of
from safetensors.numpy import load_file
from test_block_formats import FORMATS
from test_block_formulas import OWN
from test_own_suites import Here

import mor_ref
from mor_ref import BlockFormat, BlockScale, golden
from mor_ref.definitions.formats import formats
from mor_ref.exact.block_formats import quantize
from mor_ref.golden.generation.vectors import made, make
from mor_ref.golden.inputs.formula_blocks import next_to_choices, next_to_turns
from mor_ref.golden.inputs.shapes_of_blocks import parts_of, shapes
from mor_ref.golden.model.suite import Size
from mor_ref.golden.store.manifest import MANIFEST, GoldenError, read_manifest
from mor_ref.golden.suites import SUITES
from mor_ref.golden.suites.block_formats import suite_of
from mor_ref.operations import OPERATIONS
from mor_ref.operations.bits import numbers_of
from mor_ref.recipes import as_block_format
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.checking.check import check, lines
from mor_ref.verify.reporting.text import lines as lines_of_report
from mor_ref.verify.running.run import Verification, verify
from mor_ref.verify.running.suites import suites_in

ROOT = Path(__file__).resolve().parent.parent
PAGE = {block.file: block.text for block in blocks_of(ROOT / "docs" / "guide" / "own-vectors.md")}
KERNEL = PAGE["kernel.py"]
LAST = OWN.scales[1]


def with_last(**changes: Any) -> BlockFormat:
    """Return the own format with other fields of its last scale."""
    return dataclasses.replace(OWN, scales=(OWN.scales[0], dataclasses.replace(LAST, **changes)))


def changed(*changes: tuple[str, str]) -> str:
    """Return the kernel of the guide with other texts, each of which it has once."""
    text = KERNEL
    for right, wrong in changes:
        assert text.count(right) == 1, right
        text = text.replace(right, wrong)
    return text


_UP = "255 if np.isnan(t) else min(np.searchsorted(UE5M3, t), 254)"
_NEAREST = "255 if np.isnan(t) else nearest(t, UE5M3)"
_OWN_AMAX, _LAST_AMAX = "amax_of(x[i, block])", "amax_of(x[i, -64:])"
WRONG = {
    "one tie": changed(("np.isin(x, ties))", "np.isin(x, ties) | (x == 2.5))")),
    "rounded up": changed((_NEAREST, _UP)),
    "amax of the neighbour": changed((_OWN_AMAX, "amax_of(np.roll(x[i], 64)[block])")),
    "tail": changed((_OWN_AMAX, f"({_OWN_AMAX} if 64 * j + 64 <= len(x[i]) else {_LAST_AMAX})")),
    "last of equal errors": changed(("if error < best", "if error <= best")),
    "other order": changed(("/ F(6) / S", "/ (F(6) * S)")),
    "errors in pairs": changed(
        ("np.cumsum(np.square(y - x))[-1]", "np.sum(np.square(y - x), dtype=F)")
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def given_away(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return vectors that an author made with formats of a module, which is gone."""
    folder = tmp_path_factory.mktemp("author")
    (folder / "author.py").write_text(
        "import mor_ref\n"
        "mor_ref.formats['ue5m3'] = mor_ref.Format('ue5m3', exponent_bits=5, mantissa_bits=3, "
        "bias=15, specials='fn', sign='none')\n"
    )
    table = re.search(r"stored = .*", PAGE["paper.toml"])
    assert table is not None
    (folder / "paper.toml").write_text(PAGE["paper.toml"].replace(table[0], "stored = 'ue5m3'"))
    made = command(folder, "--rows", "author", "golden", "make", "paper.toml", "--out", "paper")
    assert "1 suite is in paper" in made
    for name in ("author.py", "paper.toml"):
        (folder / name).unlink()
    return folder


def command(folder: Path, *arguments: str, status: int = 0) -> str:
    """Return what a command prints, in a directory."""
    done = subprocess.run(
        [sys.executable, "-m", "mor_ref", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def verified(vectors: Path, kernel: str) -> Verification:
    """Return the report on a kernel, which runs in this process."""
    path = vectors.parent / "own_kernel.py"
    path.write_text(kernel)
    run = runpy.run_path(str(path))["run"]
    return verify(PythonFunction("kernel", run), suites_in(vectors))


def said(report: Verification) -> str:
    return "\n".join(lines_of_report(report))


# ---------------------------------------------------------------------- percentiles

CLIPPED = BlockFormat(
    "clipped", "e4m3", (BlockScale("s", (1, 64), "percentile(97) / 448 or 1"),), decode="s"
)


def clipped(rank: int) -> Callable[..., dict[str, Any]]:
    """Return a kernel of NumPy whose percentile is a rank of the 64 numbers of a block."""

    def run(_: str, parameters: dict[str, Any], inputs: dict[str, Any]) -> dict[str, Any]:
        x = inputs["x"].view(
            {"f32": "f4", "f16": "f2", "bf16": ml_dtypes.bfloat16}[parameters["source"]]
        )
        magnitudes = np.abs(x.astype(np.float32))
        height, width = x.shape
        scale = np.ones((height, -(-width // 64)), np.float32)
        for i, j in np.ndindex(*scale.shape):
            block = magnitudes[i, 64 * j : 64 * j + 64]
            counted = np.sort(block[~np.isnan(block)])
            place = -(-97 * len(counted) // 100) - 1 if rank else len(counted) - 1
            if len(counted):
                scale[i, j] = counted[place] / np.float32(448) or 1
        return {"scale": scale.view(np.uint32)}

    return run


def test_vectors_of_a_percentile_tell_it_from_the_largest_number(tmp_path: Path) -> None:
    make([CLIPPED], tmp_path, Size(), workers=Here())
    for rank, verdict in ((1, "match"), (0, "mismatch")):
        report = verify(PythonFunction("kernel", clipped(rank)), suites_in(tmp_path))
        assert report.results[0].verdict == verdict, said(report)


# ---------------------------------------------------------------------- verified without the record


def test_a_kernel_of_numpy_matches_without_the_module_of_the_author(given_away: Path) -> None:
    (given_away / "kernel.py").write_text(KERNEL)
    report = command(given_away, "verify", "kernel:run", "--vectors", "paper")
    assert "paper: match, 71,314 entries in 80 cases, not normative" in report
    checked = command(given_away, "golden", "check", "paper")
    assert "compared with the exact model" in checked
    assert "paper: match (1 suite, 0 findings)" in checked


@pytest.mark.tier("full", but=["[one tie", "[rounded up", "[amax of", "[tail"])
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_kernel_is_a_mismatch(name: str, given_away: Path) -> None:
    assert verified(given_away / "paper", WRONG[name]).verdict == "mismatch"


def test_scales_that_are_rounded_up_are_told_from_nearest(tmp_path: Path) -> None:
    up = dataclasses.replace(with_last(rounding="rtp"), name="up")
    make([up], tmp_path, Size(), workers=Here())
    assert verified(tmp_path, changed((_NEAREST, _UP))).verdict == "match"
    assert verified(tmp_path, KERNEL).verdict == "mismatch"


def test_codes_of_wrong_scales_are_explained_by_them(given_away: Path) -> None:
    report = said(verified(given_away / "paper", WRONG["tail"]))
    assert "code: each entry is that of x with the given scale, in all" in report


def test_the_manifest_says_what_codes_mean(given_away: Path) -> None:
    entry = read_manifest(given_away / "paper")["suites"]["paper"]
    assert entry["normative"] is False
    meanings = {field["name"]: field["meaning"] for field in entry["fields"]}
    assert meanings["outer_scale"] == "the bits of scale S of the whole tensor, in binary32"
    assert meanings["scale"].startswith("the code of scale s of 1 x 64 numbers, in ue5m3 (8 bits: ")
    assert "5 of exponent with bias 15, 3 of mantissa; all ones is NaN" in meanings["scale"]
    views = {field["name"]: field["views"] for field in entry["fields"]}
    assert views["code"] == ["transposed", "packed"]
    (text,) = {parameters["block_format"] for parameters in entry["cases"].values()}
    assert mor_ref.quantize(np.ones((1, 64), np.float32), text).block_format.name == "paper"


def test_the_vectors_are_exported(given_away: Path) -> None:
    for kind in ("c", "npz"):
        command(given_away, "golden", "export", "paper", "--to", kind, "--out", f"to_{kind}")
        assert list((given_away / f"to_{kind}").iterdir())


def test_codes_can_be_given_two_in_a_byte(given_away: Path) -> None:
    pairs = "{'scale': scale.T, 'code': code}"
    text = changed(('{"scale": scale, "code": code}', pairs)).replace(
        "'scale'", "'scale@transposed'"
    )
    packed = (
        "    even = np.zeros((len(code), -(-code.shape[1] // 2) * 2), np.uint8)\n"
        "    even[:, : code.shape[1]] = code\n"
        "    code = even[:, ::2] | even[:, 1::2] << 4\n"
        "    return"
    )
    text = text.replace("    return {'scale", f"{packed} {{'scale").replace(
        "'code'", "'code@packed'"
    )
    assert verified(given_away / "paper", text).verdict == "match"


# ---------------------------------------------------------------------- the page


def test_the_page_has_the_rules_and_a_worked_example(given_away: Path) -> None:
    text = (given_away / "paper" / "paper.txt").read_text()
    html = (given_away / "paper" / "paper.html").read_text()
    for words in (
        "normative", "t = (amax / 6) / S", "0.875 * t", "encode = min(1 / decode, MAX)",
        "square(y - x)", "xs = x * encode", "y  = v * decode", "rounded to", "mor-ref verify",
    ):  # fmt: skip
        assert words in text
        assert words in html
    rows = re.findall(r"^(0x\S{8}) +\S+ +\S+ +0x(\S) +\S+ +\S+ +(0x\S{8})$", text, re.MULTILINE)
    arrays = load_file(given_away / "paper" / "paper.safetensors")
    shown = re.search(r"first block of case (\S+),", text)
    assert shown is not None
    assert len(rows) == 8
    for column, field in enumerate(("x", "code", "y")):
        expected = arrays[f"{shown[1]}/{field}"][0, :8].tolist()
        assert [int(row[column], 16) for row in rows] == expected
    table = re.findall(r"^(t|0.875 \* t|1.5 \* t) +.* (\S+)$", text, re.MULTILINE)
    taken = min(range(3), key=lambda k: float(table[k][1]))
    codes = re.findall(r"^(?:t|0.875 \* t|1.5 \* t) +\S+ +(0x\S+)", text, re.MULTILINE)
    assert int(codes[taken], 16) == arrays[f"{shown[1]}/scale"][0, 0]


@pytest.mark.tier("full", but=["[powers"])
@pytest.mark.parametrize("name", ["three scales", "tall", "bf16", "powers, to nearest"])
def test_any_block_format_has_a_page(name: str) -> None:
    record = dataclasses.replace(FORMATS[name], name="mine")
    files, _ = made(record, Size())
    text = files["mine.txt"].decode()
    assert all(scale.number in text for scale in record.scales)
    assert record.digest in text
    assert "two's complement" in text or record.fmt.sign != "twos-complement"


# ---------------------------------------------------------------------- the inputs


def test_turns_are_next_to_ties_of_the_scales() -> None:
    """A quotient that is a power of two has that scale, and the next one above has twice that."""
    (tensor,) = next_to_turns(as_block_format("mxfp8:rceil"), Size())
    blocks = np.abs(tensor.x.view(np.float32)).reshape(len(tensor.x), -1, 32)
    amax = np.unique(blocks.max(axis=2))
    powers = amax[(amax > 0) & (np.frexp(amax / np.float32(448))[0] == 0.5)]
    above = np.nextafter(powers, np.float32(np.inf))
    assert np.isin(above, amax).sum() > 50


@pytest.mark.tier("full", but=["[4 over 6"])
@pytest.mark.parametrize(
    "record",
    [OWN, as_block_format("nvfp4:te_4over6_mse"), FORMATS["wide"]],
    ids=["own", "4 over 6", "wide"],
)
def test_choices_differ_by_one_step_of_one_number(record: BlockFormat) -> None:
    tensors = list(next_to_choices(record, Size()))
    half, name = len(tensors) // 2, record.scales[-1].name
    flips = 0
    for one, other in zip(tensors[:half], tensors[half:], strict=True):
        steps = np.abs(one.x.astype(np.int64) - other.x.astype(np.int64))
        assert steps.max() <= 1
        codes = [
            np.array(quantize(numbers_of(x, "f32"), x.shape, record).scales[name].codes)
            for x in (one.x, other.x)
        ]
        flips += np.count_nonzero(codes[0] != codes[1])
        assert np.count_nonzero(steps) == np.count_nonzero(codes[0] != codes[1])
    assert flips >= 8


MISTAKES = {
    "reciprocal of 6": with_last(number="(amax * (1 / 6)) / S"),
    "one quotient": with_last(number="amax / (6 * S)"),
    "rna": with_last(rounding="rna"),
    "a zero tensor": dataclasses.replace(
        OWN, scales=(dataclasses.replace(OWN.scales[0], number="amax / 688128"), LAST)
    ),
    "no MAX": dataclasses.replace(OWN, encode="1 / decode"),
    "divided": dataclasses.replace(OWN, encode=None),
    "infinity does not count": dataclasses.replace(OWN, counted="finite"),
    "tries in another order": dataclasses.replace(OWN, tries=OWN.tries[::-1]),
    "two tries": dataclasses.replace(OWN, tries=OWN.tries[:2]),
    "absolute errors": dataclasses.replace(OWN, error="abs(y - x)"),
    "no sign of zero": dataclasses.replace(OWN, drops_sign_of_zero=True),
    "ties away": dataclasses.replace(OWN, rounding="rna"),
    "ties toward zero": dataclasses.replace(OWN, rounding="rnz"),
    "no negative zero": dataclasses.replace(OWN, has_negative_zero=False),
}


@pytest.fixture(scope="module")
def expected() -> list[tuple[Any, Any]]:
    """Return the cases of the own format, each with its codes, scales and y."""
    cases = sorted(suite_of(OWN).questions(Size()), key=lambda case: case.arrays["x"].size)
    return [(case, bits_of(OWN, case)) for case in cases]


def bits_of(record: BlockFormat, case: Any) -> tuple[str, ...]:
    x, source = case.arrays["x"], case.parameters["source"]
    blocks = quantize(numbers_of(x, source), x.shape, record)
    numbers = (blocks.scales[scale.name].numbers[scale.name] for scale in record.scales)
    return tuple(map(repr, (blocks.codes, list(blocks.y), *map(list, numbers))))


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_formula_shows(mistake: str, expected: list[tuple[Any, Any]]) -> None:
    """By the exact model with the wrong formula."""
    record = MISTAKES[mistake]
    assert any(bits_of(record, case) != right for case, right in expected)


@pytest.mark.parametrize(
    ("recipe", "operation", "parameters"),
    [
        ("mxfp8:rceil", "mx", {"format": "e4m3", "scale_rule": "rceil", "block": 32}),
        ("mxfp4:even", "mx", {"format": "e2m1", "scale_rule": "even", "block": 32}),
        ("nvfp4:torchao", "nvfp4", {"profile": "torchao", "tile": [1, 16]}),
    ],
)
def test_suites_of_recipes_are_those_of_their_rules(
    recipe: str, operation: str, parameters: dict[str, Any]
) -> None:
    """The exact model of MX and NVFP4 is written in the words of their rules."""
    record = dataclasses.replace(as_block_format(recipe), name="mine")
    suite, compared = suite_of(record), 0
    for case in suite.questions(Size()):
        own = {**parameters, "source": case.parameters["source"]}
        right = OPERATIONS[operation].exact(own, case.arrays)
        found = OPERATIONS["blocks"].exact(case.parameters, case.arrays)
        for name, other in (("code", "code"), ("y", "y"), ("scale", "scale")):
            expected = right[other if other in right else "block_scale"]
            np.testing.assert_array_equal(found[name], expected, f"{case.name}, {name}")
            compared += expected.size
    assert compared > 9_000


@pytest.mark.parametrize("block", [(1, 64), (4, 8), (128, 128), (1, 20_000), "row", "tensor"])
def test_shapes_cut_blocks_and_are_small(block: Any) -> None:
    record = dataclasses.replace(
        OWN, scales=(dataclasses.replace(LAST, over=block, number="amax / 6"),), decode="s"
    )
    found = shapes(parts_of(record))
    assert (1, 1) in found
    assert all(rows * columns <= 1 << 15 for rows, columns in found)
    if not isinstance(block, str):
        for side, axis in zip(block, (0, 1), strict=True):
            sizes = {shape[axis] for shape in found}
            assert side == 1 or any(size % side and size > side for size in sizes)


# ---------------------------------------------------------------------- what is refused


def test_the_same_bytes_come_each_time_and_no_other_format_takes_their_place(
    tmp_path: Path,
) -> None:
    small = dataclasses.replace(as_block_format("mxfp4"), name="small")
    for name in ("one", "two"):
        make([small], tmp_path / name, Size(), workers=Here())
    files = sorted(path.name for path in (tmp_path / "one").iterdir() if path.suffix)
    assert files == [MANIFEST, "small.html", "small.safetensors", "small.txt"]
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    (tmp_path / "one" / "small.txt").unlink()
    make([small], tmp_path / "one", Size(), workers=Here())
    assert (tmp_path / "one" / "small.txt").exists()
    other = dataclasses.replace(small, drops_sign_of_zero=True)
    with pytest.raises(GoldenError, match="holds a suite 'small' of another block format; remove"):
        make([other], tmp_path / "one", Size(), workers=Here())
    assert json.loads((tmp_path / "one" / MANIFEST).read_text())["suites"].keys() == {"small"}


def test_changed_words_of_a_manifest_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = dataclasses.replace(as_block_format("mxfp4"), name="small")
    make([small], tmp_path, Size(), workers=Here())
    monkeypatch.setattr("mor_ref.verify.checking.check.processes", Here)
    assert check(tmp_path, [])
    path = tmp_path / MANIFEST
    path.write_text(
        path.read_text().replace("code of scale s of 1 x 32", "code of scale s of 1 x 16")
    )
    found = check(tmp_path, [])
    assert not found
    assert any("the manifest says meaning" in line for line in lines(found))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("nvfp4",),
            "block format 'nvfp4_te' has the name of a suite of mor-ref golden list; give",
        ),
        (("away.toml",), "SUITE is 'away.toml', a file that is not there"),
        (("mx.toml", "paper.toml"), "two block formats or policies have the name 'paper'; give"),
        (("negative.toml",), "decode of block format 'negative' is '0 - s', which is negative"),
        (("llm_int8",), "recipe is llm_int8, which is no block format; give the text of a block"),
        (("papper",), "the file of a block format or of a policy, such as OWN.toml, or --rows"),
    ],
)
def test_what_cannot_be_made(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    (tmp_path / "paper.toml").write_text(PAGE["paper.toml"])
    (tmp_path / "mx.toml").write_text(
        as_block_format("mxfp4").text.replace("mx_e2m1_floor_32", "paper")
    )
    negative = dataclasses.replace(OWN, name="negative", decode="0 - s", encode="1 / s")
    (tmp_path / "negative.toml").write_text(negative.text)
    message = command(tmp_path, "golden", "make", *arguments, "--out", "made", status=2)
    assert said in " ".join(message.split())
    assert not list(tmp_path.glob("made/*.safetensors"))


def test_a_formula_that_rounds_to_a_format_of_rows_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(formats, "ue5m3", LAST.fmt)
    record = with_last(number="ue5m3(amax / 6) / S")
    with pytest.raises(ValueError, match="rounds to 'ue5m3', a format of --rows, which no text"):
        suite_of(record)


def test_suites_of_own_operations_are_made_as_before() -> None:
    """A suite of the catalogue is asked for by its name."""
    files, entry = made("decode", Size())
    assert files.keys() == {"decode.safetensors", "negative/decode.safetensors"}
    assert entry["sha256"] == read_manifest(golden.bundled_files())["suites"]["decode"]["sha256"]
    assert "decode" in SUITES
