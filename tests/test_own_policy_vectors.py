"""Vectors of a policy of one's own: made from its text, and verified without it."""

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file
from test_own_suites import Here
from test_own_vectors import command

from mor_ref import Format, MeanRelativeError, Policy, Rung
from mor_ref.definitions.formats import formats
from mor_ref.golden.generation.vectors import make
from mor_ref.golden.inputs.next_to_decisions import next_to_decisions
from mor_ref.golden.model.suite import Size
from mor_ref.golden.store.manifest import MANIFEST, GoldenError, read_manifest
from mor_ref.golden.suites.own import suite_of_own
from mor_ref.golden.suites.own_policies import parameters_of_policy
from mor_ref.metrics import Unit
from mor_ref.operations import OPERATIONS
from mor_ref.policies import POLICIES
from mor_ref.recipes import Mor, as_policy, as_tensor_recipe, policy_text

F = np.float32
TEXT = """
name = "ladder"
unit = "block"
block = [2, 64]

[[ladder]]
representation = "mxfp4"
metric = "relative_frobenius"
threshold = { "*" = 0.12, gradient = 0.15 }

[[ladder]]
representation = "mxfp8"
metric = "sqnr"
threshold = 28
"""
RUNGS = {
    "mxfp4": (ml_dtypes.float4_e2m1fn, 6, 2),
    "mxfp8": (ml_dtypes.float8_e4m3fn, 448, 8),
}


@pytest.fixture(scope="module")
def given_away(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return vectors that an author made with a file, which is gone."""
    folder = tmp_path_factory.mktemp("author")
    (folder / "ladder.toml").write_text(TEXT)
    made = command(folder, "golden", "make", "ladder.toml", "--out", "vectors")
    assert "1 suite is in vectors" in made
    (folder / "ladder.toml").unlink()
    return folder / "vectors"


@pytest.fixture(scope="module")
def cases(given_away: Path) -> dict[str, dict[str, NDArray[Any]]]:
    """Return the arrays of each case."""
    found: dict[str, dict[str, NDArray[Any]]] = {}
    for key, array in load_file(given_away / "ladder.safetensors").items():
        case, _, field = key.partition("/")
        found.setdefault(case, {})[field] = array
    return found


def entry_of(directory: Path, name: str = "ladder") -> Mapping[str, Any]:
    entry: Mapping[str, Any] = read_manifest(directory)["suites"][name]
    return entry


# ---------------------------------------------------------------------- a kernel without mor_ref


def in_blocks(x: NDArray[np.float32], kind: Any, largest: int, exponent: int) -> NDArray[Any]:
    """Return y of MX: blocks of 32 with the scale of the OCP specification."""
    y = np.empty_like(x)
    for row, start in np.ndindex(len(x), -(-x.shape[1] // 32)):
        block = x[row, 32 * start : 32 * start + 32]
        amax = np.abs(block).max()
        scale = np.ldexp(F(1), int(np.frexp(amax)[1]) - 1 - exponent)
        codes = np.clip(block / scale, -largest, largest).astype(kind)
        y[row, 32 * start : 32 * start + 32] = codes.astype(F) * scale
    return y


def squares(numbers: NDArray[Any]) -> Fraction:
    return sum((Fraction(float(number)) ** 2 for number in numbers.ravel()), Fraction(0))


def decided(x: NDArray[np.float32], limit: str) -> tuple[int, NDArray[Any]]:
    """Return the rung that a tensor of one unit takes, and its output."""
    ys = [in_blocks(x, *rules) for rules in RUNGS.values()]
    signal, (first, second) = squares(x), (squares(x - y) for y in ys)
    if first < Fraction(limit) ** 2 * signal:
        choice, y = 0, ys[0]
    elif second == 0 or signal / second >= Fraction(round(10**2.8 * 2**23), 2**23):
        choice, y = 1, ys[1]
    else:
        choice, y = 2, x
    return choice, y.astype(ml_dtypes.bfloat16).view(np.uint16)


def test_decisions_next_to_thresholds_are_those_of_fractions(
    cases: Mapping[str, Mapping[str, NDArray[Any]]],
) -> None:
    """By ml_dtypes and exact fractions, from the specification of OCP and the text alone."""
    seen = set()
    for name, arrays in cases.items():
        if not name.startswith("rung_"):
            continue
        x = arrays["x"].view(F)
        choice, output = decided(x, "0.15" if name.endswith("gradient") else "0.12")
        assert arrays["choice"].ravel().tolist() == [choice], name
        np.testing.assert_array_equal(arrays["output"], output, name)
        for rung, rules in RUNGS.items():
            y = in_blocks(x, *rules)
            d = np.abs(x - y)
            u = (F(1) + np.minimum(d / np.abs(x), F(1))).view(np.uint32) - 0x3F800000
            assert arrays[f"{rung}.sum"].item() == u.sum(dtype=np.uint64), name
        seen.add((name.rpartition(".")[2], choice))
    assert seen == {(kind, n) for kind in ("weight_activation_other", "gradient") for n in range(3)}


def test_a_step_of_one_number_is_another_decision(
    cases: Mapping[str, Mapping[str, NDArray[Any]]],
) -> None:
    pairs = [name for name in cases if "_taken_" in name]
    assert len(pairs) >= 12
    for name in pairs:
        one, other = cases[name], cases[name.replace("taken", "left")]
        rung = int(name[5])
        assert one["choice"].item() <= rung < other["choice"].item(), name
        steps = np.abs(one["x"].astype(np.int64) - other["x"].astype(np.int64))
        assert steps.sum() == 1, name


# ---------------------------------------------------------------------- without the file


def test_a_directory_is_checked_without_the_file(given_away: Path) -> None:
    checked = command(given_away.parent, "golden", "check", "vectors")
    assert "compared with the exact model" in checked
    assert "ladder: match" in checked
    assert "vectors: match (1 suite, 0 findings)" in checked


def test_the_engine_is_verified_without_the_file(given_away: Path) -> None:
    report = command(given_away.parent, "verify", "numba", "--vectors", "vectors")
    assert re.search(r"ladder: match, [\d,]+ entries in \d+ cases, not normative", report)


WRONG = {
    "a threshold by a millionth": {'"0.12"': '"0.1200001"'},
    "decibels by a millionth": {'"28"': '"28.000001"'},
    "one threshold for all kinds": {'"0.15"': '"0.12"'},
    "a unit of the whole tensor": {'unit = "block"': 'unit = "tensor"'},
}


def differing_cases(
    directory: Path, cases: Mapping[str, Mapping[str, NDArray[Any]]], changes: Mapping[str, str]
) -> list[str]:
    """Return the cases whose decisions a kernel with another policy makes otherwise."""
    found = []
    for name, parameters in entry_of(directory)["cases"].items():
        policy = parameters["policy"]
        for right, wrong in changes.items():
            policy = policy.replace(right, wrong)
        inputs = {"x": cases[name]["x"]}
        answer = OPERATIONS["mor"].engine({**parameters, "policy": policy}, inputs)
        if not np.array_equal(answer["choice"], cases[name]["choice"]):
            found.append(name)
    return found


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_kernel_decides_otherwise(
    name: str, given_away: Path, cases: Mapping[str, Mapping[str, NDArray[Any]]]
) -> None:
    assert differing_cases(given_away, cases, WRONG[name])
    assert not differing_cases(given_away, cases, {})


def test_a_decision_by_squares_has_no_margin(
    given_away: Path, cases: Mapping[str, Mapping[str, NDArray[Any]]]
) -> None:
    """It asked the metric of a case that has no numbers of units, and the report ended there."""
    name = next(name for name in cases if name.startswith("rung_0_taken"))
    parameters, arrays = entry_of(given_away)["cases"][name], cases[name]
    expected = arrays["choice"]
    differs = np.ones(expected.shape, np.bool_)
    choice = SimpleNamespace(actual=expected + 1, expected=expected, differs=differs)
    margin = OPERATIONS["mor"].margin
    assert margin is not None
    assert margin(parameters, arrays, {"choice": choice}, {"choice"}) is None


def test_the_manifest_says_what_choices_mean(given_away: Path) -> None:
    entry = entry_of(given_away)
    assert entry["normative"] is False
    assert {"MOR-001", "MOR-010", "MOR-011"} <= set(entry["rules"])
    meanings = {field["name"]: field["meaning"] for field in entry["fields"]}
    assert meanings["choice"] == (
        "the rung that each unit takes: 0 is mxfp4, 1 is mxfp8, 2 is bf16"
    )
    assert {f"{rung}.{field}" for rung in RUNGS for field in ("sum", "nonzero", "nonfinite")} <= (
        meanings.keys()
    )
    thresholds = {
        name.rpartition(".")[2]: as_policy(parameters["policy"]).ladder[0].metric
        for name, parameters in entry["cases"].items()
    }
    assert {kind: str(one.value) for kind, one in thresholds.items()} == {
        "weight_activation_other": "0.12",
        "gradient": "0.15",
    }


def test_the_page_has_the_rules_and_an_example(given_away: Path) -> None:
    text = (given_away / "ladder.txt").read_text()
    html = (given_away / "ladder.html").read_text()
    for words in (
        "not normative", "A unit is 2 x 64 numbers", "weight, activation, other",
        "625 * noise", "9 * signal", "400 * noise", "5292853828 * noise", "2^23 * signal",
        "Representation mxfp4", "largest number", "mor-ref golden check",
    ):  # fmt: skip
        assert " ".join(words.split()) in " ".join(text.split()), words
    assert "not normative" in html
    assert "5292853828" in html
    counts = dict(re.findall(r"^(mxfp\d|bf16) +(\d+)$", text, re.MULTILINE))
    assert set(counts) == {*RUNGS, "bf16"}
    assert all(int(count) > 10 for count in counts.values())
    assert TEXT.strip().splitlines()[0] in text


# ---------------------------------------------------------------------- ties, and what is refused


def test_a_sum_at_its_threshold_is_among_the_tensors() -> None:
    """The rung of MOR-002 refuses it; a kernel with <= takes it."""
    policy = Policy("mean", (Rung("e4m3", MeanRelativeError("0.045")),), block=(2, 32))
    limit = round(Fraction("0.045") * 2**23)
    (parameters,) = parameters_of_policy(Mor(policy)).values()
    operation = OPERATIONS["mor"]

    def found(x: NDArray[np.uint32]) -> Mapping[str, NDArray[Any]]:
        return operation.exact({**parameters, "source": "f32"}, {"x": x})

    tensors = next_to_decisions(1, lambda x: found(x)["choice"].item(), (2, 32), Size())
    sums = [found(tensor.x) for tensor in tensors]
    at = [one for one in sums if one["e4m3.sum"].item() == limit * one["e4m3.nonzero"].item()]
    assert at
    assert all(one["choice"].item() == 1 for one in at)


def with_ladder(rung: str, name: str = "mine") -> Mor:
    recipe = as_tensor_recipe(f'name = "{name}"\n[[ladder]]\n{rung}')
    assert isinstance(recipe, Mor)
    return recipe


MEAN = 'representation = "e4m3"\nmetric = "mean_relative_error"\nthreshold = '


def test_thresholds_by_layers_are_refused() -> None:
    recipe = with_ladder(MEAN + '{ "*" = 0.1, "layers.0:weight" = 0.2 }')
    with pytest.raises(ValueError, match=r"a threshold for the layers 'layers\.0:weight', and"):
        suite_of_own(recipe)


def is_loud(unit: Unit) -> bool:
    return unit.sqnr > 20


def is_new(unit: Unit, state: dict[str, Any]) -> bool:
    return unit.sqnr > 20 and not state


@pytest.mark.parametrize("function", [is_loud, is_new])
def test_python_of_the_author_is_refused(
    function: Callable[..., bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a memory or without one: nobody else could compute the decisions."""
    monkeypatch.setitem(POLICIES, "mine", Policy("mine", (Rung("e4m3", function),)))
    with pytest.raises(ValueError, match=r"rung 'e4m3', which is Python that no directory of vect"):
        suite_of_own(Mor("mine"))


def test_a_format_of_rows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Format("own8", exponent_bits=4, mantissa_bits=3, bias=9, specials="none")
    monkeypatch.setitem(formats, "own8", own)
    with pytest.raises(ValueError, match=r"names 'own8', a row of --rows, which no directory of"):
        suite_of_own(with_ladder(MEAN.replace("e4m3", "own8") + "0.1"))


def test_another_policy_of_the_name_does_not_take_its_place(given_away: Path) -> None:
    other = as_tensor_recipe(TEXT.replace("0.15", "0.16"))
    assert isinstance(other, Mor)
    with pytest.raises(GoldenError, match="holds a suite 'ladder' of another policy; remove it"):
        make([other], given_away, Size(), workers=Here())


def test_sums_of_a_representation_that_no_case_tries_are_refused(
    given_away: Path, tmp_path: Path
) -> None:
    text = (given_away / MANIFEST).read_text()
    (tmp_path / MANIFEST).write_text(text.replace("mxfp4.sum", "mxfp6.sum"))
    with pytest.raises(GoldenError, match=r"has the field mxfp6\.sum, which mor does not have"):
        read_manifest(tmp_path)


def test_the_texts_of_kinds_are_texts_of_policies() -> None:
    recipe = as_tensor_recipe(TEXT)
    assert isinstance(recipe, Mor)
    for parameters in parameters_of_policy(recipe).values():
        assert policy_text(as_policy(parameters["policy"])) == parameters["policy"]
        assert not as_policy(parameters["policy"]).depends_on_role
    (named,) = parameters_of_policy(Mor("three_way")).values()
    assert named["policy"] == "three_way"
