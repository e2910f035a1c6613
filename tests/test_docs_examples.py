"""The documentation: worked examples are results of the engine."""

import json
import re
import subprocess

import numpy as np
import pytest
from extras import skip_without
from mor_docs.shown import (
    conversions,
    four_bits,
    golden,
    profiles,
    scaling,
    tensors,
    theorems,
    units,
)
from mor_docs.shown.markup import number
from site_of_docs import ROOT, cells

import mor_ref
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.mistakes.catalogue import CAUSES

NUMBERS = ["3.3", "-1.1", "0.007", "1e-6", "0", "-0.0", "448", "7.5"]


def bits_of(numbers):
    return [f"0x{word:08X}" for word in np.asarray(numbers, np.float32).view(np.uint32).ravel()]


def test_the_example_of_quantization_is_what_the_engine_gives():
    shown = tensors.elements("e4m3", *NUMBERS)
    found = mor_ref.quantize(np.array(NUMBERS, np.float64), "e4m3")
    assert [int(code, 16) for code in cells(shown, 3)] == found.codes.tolist()
    assert cells(shown, 6) == bits_of(found.dequantize())
    sums = tensors.errors("e4m3", *NUMBERS)
    error = found.error
    assert f"sum = {error.sum.item()}, nonzero = {error.nonzero.item()}, nonfinite = 0" in sums


@pytest.mark.parametrize("profile", ["te", "te_4over6_mse", "torchao", "modelopt"])
def test_the_example_of_nvfp4_is_what_the_engine_gives(profile):
    shown = four_bits.tile(profile, *NUMBERS)
    found = mor_ref.quantize_nvfp4(np.array([NUMBERS], np.float64), profile=profile)
    assert [int(code, 16) for code in cells(shown, 2)] == found.codes.ravel().tolist()
    packed = shown.splitlines()[-1].split(": ")[1].replace("`", "").split()
    assert [int(byte, 16) for byte in packed] == found.packed.ravel().tolist()


def test_the_nvfp4_chapter_shows_which_zeros_lose_their_sign():
    """NVF-010: a -0 of binary32 loses its sign, and a -0 of e2m1 alone does not."""
    shown = four_bits.tile("modelopt", *computed("nvfp4", "four_bits.tile modelopt"))
    codes = dict(zip(cells(shown, 1), cells(shown, 2), strict=True))
    assert "NaN" not in shown
    assert "| encode |" not in shown
    assert "| encode |" in four_bits.tile("te", "1")
    minus = "\N{MINUS SIGN}"
    assert codes[f"{minus}0"] == "0x0"
    assert codes[f"{minus}2^{minus}149"] == "0x8"


def test_the_example_of_mx_is_what_the_engine_gives():
    shown = four_bits.mx_block("e2m1", "rceil", *NUMBERS)
    found = mor_ref.quantize_mx(np.array([NUMBERS], np.float64), "e2m1", scale_rule="rceil")
    assert f"c = `0x{found.scale.item():02X}`" in shown
    assert [int(code, 16) for code in cells(shown, 2)] == found.codes.ravel().tolist()


def test_the_example_of_subnormal_amaxes_is_what_the_engine_gives():
    """MXS-005: the addition to bits that are not normalised would leave the binade too early."""
    element, *words = computed("mx", "four_bits.even_of_subnormals")
    shown = four_bits.even_of_subnormals(element, *words)
    bits = np.array([int(word, 16) for word in words], np.uint32)
    assert bits.max() < 0x00800000
    found = mor_ref.quantize_mx(bits.view(np.float32)[:, None], element, scale_rule="even")
    assert [int(code, 16) for code in cells(shown, 2)] == found.scale.ravel().tolist()
    counterexample = words.index("007F0000")
    assert [cells(shown, column)[counterexample] for column in (1, 2, 3)] == [
        "\N{MINUS SIGN}127",
        "0x00",
        "0x01",
    ]


def test_the_scales_of_the_example_are_what_the_engine_gives():
    """One group of blocks of one number each."""
    shown = scaling.blocks("e4m3", "7.5", "3.3", "1.9", "0.011", "0")
    x = np.array([[7.5, 3.3, 1.9, 0.011, 0]])
    found = mor_ref.quantize(x, "e4m3", block=(1, 1))
    assert [int(code, 16) for code in cells(shown, 3)] == found.scale_exponent.ravel().tolist()
    assert [cell.split(" `")[1] for cell in cells(shown, 4)] == bits_of(found.scale)


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (["3", "1.5", "-1", "0.52", "6", "2.1"], "nvfp4"),
        (["3.3", "-1.1", "0.12", "0.1", "0.9", "0.13"], "e4m3"),
        (["3.3", "-1.1", "0", "1e-6", "0.9", "16777216"], "bf16"),
    ],
)
def test_the_examples_of_a_policy_are_what_the_engine_gives(given, taken):
    shown = units.unit("nvfp4", *given)
    found = mor_ref.mor(np.array(given, np.float64), "nvfp4")
    assert found.ladder[found.choice.item()] == taken
    assert f"takes **{taken}** (choice {found.choice.item()})" in shown
    for column, name in ((1, "nvfp4"), (4, "e4m3")):
        codes = found.quantized[name].codes.ravel()
        assert [int(code, 16) for code in cells(shown, column)] == codes.tolist()
        refused = found.ladder.index(name) < found.choice.item()
        sign = "≥" if refused else "<"
        assert f"{name}: sum = {found.error[name].sum.item()} {sign} " in shown
    assert [int(code, 16) for code in cells(shown, 7)] == found.output.ravel().tolist()


def test_every_unit_of_the_chapter_is_what_the_engine_gives():
    """MOR-001 to MOR-004: each is decided as shown, and together they take every rung.

    Two of them are decided without a metric: one has an infinity, and one has zeros alone.
    """
    chapter = (ROOT / "spec" / "policies.md").read_text()
    taken, without_metric = set(), set()
    for policy, numbers in re.findall(r"\{computed\} units\.unit (\w+) (.+)", chapter):
        shown = units.unit(policy, *numbers.split())
        found = mor_ref.mor(np.array(numbers.split(), np.float64), policy)
        choice = found.choice.item()
        assert f"takes **{found.ladder[choice]}** (choice {choice})" in shown
        assert [int(code, 16) for code in cells(shown, -1)] == found.output.ravel().tolist()
        for i, error in enumerate(found.error.values()):
            terms = [int(u) for u in cells(shown, 3 * i + 3) if u != "—"]
            assert (sum(terms), len(terms)) == (error.sum.item(), error.nonzero.item())
        asked = shown.splitlines()[-1]
        verdicts = [sign not in "≥>" for sign in re.findall(r"[<≤≥>]|nonzero = 0", asked)]
        assert len(verdicts) == len(found.ladder) - 1
        assert verdicts.index(True) == choice if True in verdicts else choice == len(verdicts)
        taken.add((policy, found.ladder[choice]))
        without_metric.update(re.findall(r"nonfinite = 1 >|nonzero = 0", asked))
    rungs = {"tensor": ["e4m3"], "two_way": ["e4m3", "bf16"], "three_way": ["e5m2", "bf16"]}
    assert taken >= {(policy, name) for policy, names in rungs.items() for name in names}
    assert without_metric == {"nonfinite = 1 >", "nonzero = 0"}


def test_the_second_block_of_the_decisions_is_the_first_but_for_one_number():
    bell, scaled, _ = tensors._blocks().values()
    assert scaled == [*bell[:-1], bell[-1] * 2**24]


def test_the_examples_of_theorems_are_what_the_engine_gives():
    """THM-001 to THM-005."""
    given = ["3.4", "1.7", "1.9", "3", "0.87", "0.011"]
    shown = theorems.group("e4m3", *given)
    x = np.array([given], np.float64)
    found = mor_ref.quantize(x, "e4m3", block=(1, 1))
    own = mor_ref.quantize(x, "e4m3", block=(1, 1), scaling="fp32")
    stored = found.scale_exponent.ravel().astype(int) - 127
    assert [int(cell) for cell in cells(shown, 2)] == stored.tolist()
    alike = (found.scale == own.scale).ravel()
    assert [cell == "its own" for cell in cells(shown, 3)] == alike.tolist()
    assert [int(cell, 16) for cell in cells(shown, 5)] == found.codes.ravel().tolist()
    assert cells(shown, 4)[0].endswith("0x43E00001")
    shown = theorems.exponents("e4m3", "e5m2", *given)
    for column, name in ((2, "e4m3"), (4, "e5m2")):
        ideal = mor_ref.quantize(x, name, block=(1, 1), scaling="e8m0").scale_exponent.ravel()
        assert [int(cell.split(" = ")[1]) + 127 for cell in cells(shown, column)] == ideal.tolist()
    assert cells(shown, 3) == cells(shown, 5)


def computed(chapter, name):
    """Return the arguments after the name of a function in a chapter of the specification."""
    text = (ROOT / "spec" / f"{chapter}.md").read_text()
    return text.split(f"{{computed}} {name} ", 1)[1].split("\n", 1)[0].split()


def test_the_program_of_the_protocol_answers_as_its_chapter_shows(tmp_path):
    """PRO-001 to PRO-006."""
    skip_without("gcc")
    shown = golden.exchange(*computed("protocol", "golden.exchange"))
    asked, answered = (part.split("\n```")[0] for part in shown.split("```text\n")[1:])
    source, program = ROOT / "examples" / "protocol" / "e4m3.c", tmp_path / "program"
    subprocess.run(["gcc", source, "-o", program], check=True)
    done = subprocess.run([program], input=asked, capture_output=True, text=True, check=True)
    assert done.stdout.split() == answered.split()
    assert "3e99999a c3fa0000 7fc00000" in asked
    assert "2a fe 7f" in answered


def test_the_blocks_of_the_example_are_what_the_engine_gives():
    """BLK-002, BLK-003, BLK-004."""
    name, columns, *cuts_and_numbers = computed("blocks", "tensors.amaxes")
    block, group, *numbers = cuts_and_numbers
    x = np.array(numbers, np.float64).reshape(-1, int(columns))
    shown = tensors.amaxes(name, columns, *cuts_and_numbers)
    sides = tuple(map(int, block.split("x")))
    found = mor_ref.quantize(x, name, block=sides, group=group)
    assert found.amax.shape == (2, 2)
    assert [cell.split(" `")[1] for cell in cells(shown, 2)] == bits_of(found.amax)
    assert [int(cell, 16) for cell in cells(shown, 4)] == found.scale_exponent.ravel().tolist()
    assert {int(cell, 16) for cell in cells(shown, 3)} == set(found.scale_mantissa.ravel().tolist())
    whole = [int(code.strip("`"), 16) for code in cells(shown, 5)[0].split()]
    assert whole == found.codes[: sides[0], : sides[1]].ravel().tolist()


def test_the_deviation_of_the_chapter_differs_from_what_the_engine_gives():
    name, fmt, *numbers = computed("deviations", "golden.deviating")
    shown = golden.deviating(name, fmt, *numbers)
    found = mor_ref.quantize(np.array(numbers, np.float64), fmt)
    assert [int(code, 16) for code in cells(shown, 1)] == found.codes.tolist()
    assert cells(shown, 2) == bits_of(found.dequantize())
    assert cells(shown, 3) != cells(shown, 1)
    assert "SCL-002" in CAUSES[name].rules


def test_profiles_that_differ_are_counted_on_both_sides_of_the_diagonal():
    """Scales above it, and codes below."""
    counted = json.loads((ROOT / "tests" / "witnesses.json").read_text())
    scales, codes = counted["differing scales and codes"]["nvfp4 1x16"]["te torchao"]
    shown = profiles.disagreement("1x16").removesuffix(":::\n")
    names = [cell.split("** ")[1] for cell in cells(shown, 0)]
    te, torchao = names.index("te"), names.index("torchao")
    assert cells(shown, torchao + 1)[te] == str(scales)
    assert cells(shown, te + 1)[torchao] == str(codes)


def test_profiles_that_differ_are_counted_with_the_site(monkeypatch):
    """On zeros te and te_2_13 store the same, and torchao another scale than compressed_tensors."""
    monkeypatch.setattr(profiles, "bell_shaped", lambda: np.zeros((1, 2, 32), np.float32))
    shown = profiles.disagreement("1x16").removesuffix(":::\n")
    names = [cell.split("** ")[1] for cell in cells(shown, 0)]
    assert cells(shown, names.index("te_2_13") + 1)[names.index("te")] == "0"
    last = names.index("compressed_tensors")
    assert cells(shown, last + 1)[names.index("torchao")] == "4"


def test_the_encodings_of_the_example_are_what_the_engine_gives():
    given = ["0.3", "464", "465", "-0.0146484375", "1000", "1e-9"]
    shown = conversions.steps("e4m3", *given)
    assert [int(code, 16) for code in cells(shown, 5)] == mor_ref.encode(
        np.array(given, np.float64), "e4m3"
    ).tolist()


@pytest.mark.parametrize(
    ("x", "shown"),
    [
        (448.0, "448"),
        (447.99997, "447.99997"),
        (0.1, "0.1"),
        (1 / 3, "≈ 0.3333333"),
        (2.0**-149, "2^\N{MINUS SIGN}149"),
        (3.4028234663852886e38, "(2^24 \N{MINUS SIGN} 1) · 2^104"),
        (-255 * 2.0**120, "\N{MINUS SIGN}(2^8 \N{MINUS SIGN} 1) · 2^120"),
        (1e10, "1e+10"),
        (1.0000000150474662e30, "≈ 1e+30"),
        (-0.0, "\N{MINUS SIGN}0"),
        (float("nan"), "NaN"),
        (-float("inf"), "\N{MINUS SIGN}∞"),
    ],
)
def test_numbers_are_shown_in_as_many_digits_as_they_need(x, shown):
    assert number(np.float32(x).item() if x == 447.99997 else x) == shown


@pytest.mark.parametrize("policy", ["tensor", "nvfp4"])
def test_a_unit_without_numbers_takes_the_same_rung_by_the_flow(policy):
    """MOR-002: zeros have sum 0 and nonzero 0, which the comparison alone would refuse."""
    assert mor_ref.mor(np.zeros((2, 32), np.float32), policy).choice.tolist() == [[0]]
    asked = re.findall(r">([^<]*)</text>", tensors.ladder(policy))
    for i, said in enumerate(asked):
        if "nonzero" in said and "sum" in said:
            assert asked[i + 1] == "or nonzero = 0) ?"
    assert any("sum" in said for said in asked)


def test_all_profiles_part_on_numbers_that_are_shown():
    """NVF-002: the tables of the tensors, which are there as words."""
    shown = four_bits.witness("nvfp4_1x16")
    parted = set()
    for part in re.split(r"\n(?=Row |The numbers)", shown):
        stored = {
            line.split(" | ")[0].strip("| "): line.split(" | ")[2:] for line in part.splitlines()
        }
        names = [name for name in stored if name in PROFILES]
        parted |= {(a, b) for a in names for b in names if stored[a] != stored[b]}
    assert parted >= {(a, b) for a in PROFILES for b in PROFILES if a != b}
    kept = json.loads((ROOT / "tests" / "witnesses.json").read_text())["witnesses"]["nvfp4 1x16"]
    words = shown.partition("```text")[2].split()
    for tensor in kept:
        assert set(" ".join(tensor["x"]).split()) <= set(words)
