"""Kernels whose codes are outside the grid: a verification ends with a report."""

import numpy as np
import pytest
from forking import mor_ref as run
from verifying import MANIFEST

import mor_ref
from mor_ref.operations import OPERATIONS
from mor_ref.operations.way_back import check_codes
from mor_ref.verify.comparing.evidence import Evidence
from mor_ref.verify.comparing.names_given import fields_of
from mor_ref.verify.diagnosing.codes_outside import with_codes_outside
from mor_ref.verify.diagnosing.sample import samples_of
from mor_ref.verify.diagnosing.structure import structures_of
from mor_ref.verify.reporting.structure_text import structure_lines

MODULE = '''
import numpy as np

from mor_ref.operations import OPERATIONS


def unlimited_int8(operation, parameters, inputs):
    """An int8 kernel of torch without the clamp: amax becomes the code 128."""
    asked = {"grid": "int8", "profile": "torch_fake_tensor", "symmetric": True, "source": "f32"}
    if operation != "affine" or any(parameters[name] != one for name, one in asked.items()):
        return None
    right = OPERATIONS[operation].engine(parameters, inputs)
    xs, scale = (right[name].view(np.float32) for name in ("xs", "scale"))
    rows, columns = (-(-n // m) for n, m in zip(xs.shape, scale.shape, strict=True))
    scales = np.repeat(np.repeat(scale, rows, 0)[: len(xs)], columns, 1)[:, : xs.shape[1]]
    with np.errstate(all="ignore"):
        whole = np.where(np.isnan(xs), -128, np.clip(np.rint(xs), -(2.0**31), 2.0**31 - 128))
        code = whole.astype(np.int32)
        y = (code.astype(np.float32) * scales).view(np.uint32)
    return {"code": code, "y": y}


def twice(asked):
    """Return a kernel of an operation whose codes and numbers are twice the right ones, plus 8."""

    def kernel(operation, parameters, inputs):
        if operation != asked:
            return None
        right = OPERATIONS[operation].engine(parameters, inputs)
        with np.errstate(all="ignore"):
            y = (2 * right["y"].view(np.float32)).view(np.uint32)
        return {"code": 2 * right["code"] + right["code"].dtype.type(8), "y": y}

    return kernel


groups, shared, levels = map(twice, ("affine_groups", "shared", "levels"))
elements, zeros = map(twice, ("affine_element", "affine_float_zero"))
weights, blocks = map(twice, ("levels_element", "shared_block"))
'''


SAID = "is not a code of its case, such as"
SUITES = {
    "affine": "affine", "affine_groups": "groups", "shared": "shared", "levels": "levels",
    "affine_steps": "elements", "affine_float_zeros": "zeros", "levels_steps": "weights",
    "shared_blocks": "blocks",
}  # fmt: skip


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    (tmp_path / "outside.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.parametrize("suite", SUITES)
def test_codes_outside_the_grid_are_a_structure(suite):
    """AFF-008, LVL-008, SHX-005: y of such codes is computed, and the codes are named."""
    operation = MANIFEST[suite]["operation"]
    codes = OPERATIONS[operation].codes
    some = [one for one in mor_ref.golden.load(suite) if codes(one.parameters)[1] < 200]
    case = min(some, key=lambda one: abs(one.arrays["code"].size - 30))
    right = {name: case.arrays[name] for name in OPERATIONS[operation].outputs}
    with np.errstate(all="ignore"):
        y = (2 * right["y"].view(np.float32)).view(np.uint32)
    given = {"code": 2 * right["code"] + right["code"].dtype.type(44), "y": y}
    fields = fields_of(MANIFEST[suite])
    samples = list(samples_of(Evidence(suite, operation, fields, [case], {case.name: given})))
    lines = list(structure_lines(with_codes_outside(structures_of(samples), [], samples)))
    lowest, highest = codes(case.parameters)
    assert SAID in lines[0], lines
    assert f" where codes are {lowest} to {highest}, in " in lines[0]


@pytest.mark.tier("full")
@pytest.mark.usefixtures("kernels")
def test_a_missing_clamp_of_a_users_own_tensor_is_named():
    """AFF-008: the largest number of each row has the code 128 in int8."""
    x = np.random.default_rng(8).standard_normal((8, 40)).astype(np.float32)
    np.save("x.npy", np.abs(x))
    found = run("verify", "outside:unlimited_int8", "--inputs", "x.npy", "--recipe", "int8:row")
    assert found.returncode == 1, found.stderr
    assert "`affine_not_limited` (rule AFF-008)" in found.stdout
    assert "code: 8 of 320 differ" in found.stdout


@pytest.mark.tier("full")
@pytest.mark.usefixtures("kernels")
def test_a_missing_clamp_is_named():
    """AFF-008."""
    found = run("verify", "outside:unlimited_int8", "--suite", "affine")
    assert found.returncode == 1, found.stderr
    assert "`affine_not_limited` (rule AFF-008)" in found.stdout


@pytest.mark.tier("full")
@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("suite", [one for one in SUITES if one != "affine"])
def test_a_verification_of_codes_outside_the_grid_ends_with_a_report(suite):
    """AFF-008, LVL-008, SHX-005: no code of a kernel ends the diagnosis."""
    found = run("verify", f"outside:{SUITES[suite]}", "--suite", suite)
    assert found.returncode == 1, found.stderr
    assert SAID in found.stdout


@pytest.mark.parametrize(("code", "codes"), [(128, (-128, 127)), (-1, (0, 255)), (8, (0, 7))])
def test_the_way_back_refuses_such_codes(code, codes):
    """AFF-009: a file with codes of another grid was not made by its recipe."""
    words = np.array([0, code], np.int32).view(np.uint32)
    with pytest.raises(ValueError, match=f"code has {code}; codes of this recipe are {codes[0]}"):
        check_codes(words, codes)


def test_every_operation_with_integers_says_which_codes_it_has():
    """AFF-001, LVL-008, SHX-005: the codes of right results are among them."""
    of = {name for name, one in OPERATIONS.items() if one.codes is not None}
    assert of == {
        "affine", "affine_element", "affine_float_zero", "affine_groups", "blocks", "levels",
        "levels_element", "shared", "shared_block",
    }  # fmt: skip
    for name, suite in (("affine", "affine"), ("levels", "levels"), ("shared", "shared")):
        for case in mor_ref.golden.load(suite):
            lowest, highest = OPERATIONS[name].codes(case.parameters)
            codes = case.arrays["code"]
            codes = codes.view(np.int32) if codes.dtype == np.uint32 else codes
            assert not codes.size or lowest <= codes.min() <= codes.max() <= highest
