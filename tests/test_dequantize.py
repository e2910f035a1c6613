"""From the codes and scales of files back to numbers."""

import json
import sys
from dataclasses import replace
from zipfile import ZipFile

import ml_dtypes
import numpy as np
import pytest
from own_fields import exact_fields, rungs_in_blocks
from safetensors.numpy import load_file, save, save_file
from test_block_formats import FORMATS
from test_block_formulas import OWN

from mor_ref.cli import main
from mor_ref.definitions.format import Format
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.golden.inputs.own_tensors import cases_of
from mor_ref.golden.store.array_files import ArrayEntry, array_file, metadata_of
from mor_ref.metrics import MeanRelativeError
from mor_ref.policies import POLICIES, Policy, Rung
from mor_ref.recipes import as_tensor_recipe, own_recipe
from mor_ref.schemes.mixed.representation import mixture
from mor_ref.verify.own_inputs import from_arrays

THREE = FORMATS["three scales"]
WIDE = Format("e5m8", exponent_bits=5, mantissa_bits=8, bias=15, specials="ieee")
RECIPES = [
    "e4m3:gam:8x16",
    "e5m2:fp32:row",
    "e2m1:e8m0:column",
    "mxfp8:rceil",
    "mxfp4:16",
    *(f"nvfp4:{profile}" for profile in PROFILES.specified),
    "nvfp4:te:16x16",
    "mor:three_way",
    OWN.text,
    replace(OWN, name="wide", element=WIDE, tries=("t",)).text,
]
BLOCK_FORMATS = (
    OWN,
    replace(OWN, name="encoded", decode=None, encode="1 / (s * S)"),
    replace(OWN, name="of_an_amax", decode="s * (amax_S / 688128 or 1)"),
    replace(OWN, name="of_three", scales=THREE.scales, decode="s * g * h", tries=("t",)),
)


@pytest.fixture
def run(monkeypatch, capsys):
    """Return a function that runs the command line: its status, its output and its errors."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["mor-ref", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code, *capsys.readouterr()

    return call


def tensors():
    """Return numbers of many magnitudes, with zeros and an infinity."""
    random = np.random.default_rng(7)
    x = random.standard_normal((20, 34), dtype=np.float32)
    x *= np.exp2(random.integers(-12, 12, (20, 1))).astype(np.float32)
    x[3, 5:20], x[4], x[5, 0] = 0, 0, -0.0
    x[7, 9] = np.inf
    other = random.standard_normal(70).astype(ml_dtypes.bfloat16)
    return {"matrix": x, "vector": other}


def of_the_exact_model(recipe):
    """Return the fields of each tensor."""
    asked = as_tensor_recipe(recipe).asked
    return {
        case.name: exact_fields(asked.operation, case)
        for case in cases_of(own_recipe(recipe), from_arrays(tensors()))
    }


def y_of(fields):
    """Return the bits of y; the output of MoR is in bfloat16."""
    return fields["y"] if "y" in fields else fields["output"].astype(np.uint32) << 16


def read(path):
    return dict(np.load(path)) if path.suffix == ".npz" else load_file(path)


@pytest.mark.tier("full", but_one_in=2)
@pytest.mark.parametrize("recipe", RECIPES)
def test_codes_and_scales_of_the_exact_model_become_its_y(run, tmp_path, recipe):
    fields = of_the_exact_model(recipe)
    arrays = {f"{t}/{f}": a for t, own in fields.items() for f, a in own.items()}
    save_file(arrays, tmp_path / "codes.safetensors")
    np.savez(tmp_path / "codes.npz", **arrays)
    for source, out in (("codes.safetensors", "y.npz"), ("codes.npz", "y.safetensors")):
        given = (tmp_path / source, "--recipe", recipe, "--out", tmp_path / out)
        status, printed, errors = run("dequantize", *given)
        assert (status, errors) == (0, "")
        assert printed.splitlines()[0] == "matrix: 20x34 f32"
        found = read(tmp_path / out)
        assert sorted(found) == ["matrix", "vector"]
        for name, own in fields.items():
            assert found[name].dtype == np.float32
            assert np.array_equal(found[name].view(np.uint32), y_of(own))


@pytest.mark.parametrize(
    "recipe", [*(own.text for own in BLOCK_FORMATS), "mxfp8:rceil", "nvfp4:torchao:columns"]
)
def test_a_file_of_quantize_says_its_recipe(run, tmp_path, recipe):
    x, codes, y = (tmp_path / f"{name}.safetensors" for name in ("x", "codes", "y"))
    finite = np.nan_to_num(tensors()["matrix"], posinf=3)
    save_file({"infinite": tensors()["matrix"], "finite": finite}, x)
    assert run("quantize", x, "--recipe", recipe, "--out", codes)[0] == 0
    assert run("dequantize", codes, "--out", y)[0] == 0
    for name, found in load_file(y).items():
        right = load_file(codes)[f"{name}/y"]
        right = right.T if "columns" in recipe else right
        assert np.array_equal(np.ascontiguousarray(found).view(np.uint32), right)


def test_a_file_that_does_not_say_its_recipe_needs_one(run, tmp_path):
    codes, out = tmp_path / "codes.safetensors", tmp_path / "y.npz"
    fields = {"a/code": np.zeros((2, 64), np.uint8), "a/scale": np.zeros((2, 1), np.uint32)}
    for metadata, said in (
        ({}, "codes.safetensors does not say its recipe; give --recipe"),
        ({"recipe": "e4m9"}, "says that its recipe is e4m9, which cannot be read; give --recipe"),
    ):
        save_file(fields, codes, metadata)
        status, _, errors = run("dequantize", codes, "--out", out)
        assert (status, said in " ".join(errors.split())) == (2, True)


def test_the_factor_stands_for_the_scales_of_a_block_format(run, tmp_path):
    """A kernel may keep either. Codes that the formats lack are refused."""
    codes, out = tmp_path / "codes.safetensors", tmp_path / "y.npz"
    given = (codes, "--recipe", OWN.text, "--out", out)
    own = of_the_exact_model(OWN.text)["matrix"]
    for kept in (("code", "scale", "outer_scale"), ("code", "factor"), ("code", "scale", "factor")):
        save_file({f"a/{name}": own[name] for name in kept}, codes)
        assert run("dequantize", *given)[0] == 0
        assert np.array_equal(read(out)["a"].view(np.uint32), own["y"])
    for changes, said in (
        ({"scale": own["scale"] + 128}, "codes of ue5m3 are 0 to 255; give the recipe that made"),
        ({"code": own["code"] + 16}, "codes of this recipe are 0 to 15"),
        ({"outer_scale": None}, "no field outer_scale or factor; for { representation = "),
    ):
        fields = {name: own[name] for name in ("code", "scale", "outer_scale")} | changes
        save_file({f"a/{n}": array for n, array in fields.items() if array is not None}, codes)
        status, _, errors = run("dequantize", *given)
        assert (status, said in " ".join(errors.split())) == (2, True), errors


@pytest.mark.parametrize(
    ("recipe", "rung", "block"),
    [
        ("mor:three_way:4x16", "e4m3", (4, 16)),
        ("mor:nvfp4:4x16", "nvfp4", (4, 16)),
        ("mor:two_way:16x4:columns", "e4m3", (16, 4)),
    ],
)
def test_units_come_from_the_codes_and_scales_of_their_rung(run, tmp_path, recipe, rung, block):
    """The output is needed only where units are bfloat16."""
    codes, y = tmp_path / "codes.safetensors", tmp_path / "y.safetensors"
    save_file({"x": rungs_in_blocks()}, tmp_path / "x.safetensors")
    given = "--recipe", recipe, "--out"
    assert run("quantize", tmp_path / "x.safetensors", *given, codes)[0] == 0
    fields = load_file(codes)
    output = fields["x/output"].astype(np.uint32) << 16
    rows, columns = output.shape
    choice = np.repeat(np.repeat(fields["x/choice"], block[0], axis=0), block[1], axis=1)
    is_left = choice[:rows, :columns] == choice.max()
    fields["x/output"] = np.where(is_left, fields["x/output"], np.uint16(0x3F80))
    save_file(fields, codes)
    assert run("dequantize", codes, *given, y)[0] == 0
    found = load_file(y)["x"]
    found = np.ascontiguousarray(found.T if "columns" in recipe else found)
    assert np.array_equal(found.view(np.uint32), output)
    without = {n: a for n, a in fields.items() if n.split(".")[-1] not in ("code", "packed")}
    save_file(without, codes)
    status, _, errors = run("dequantize", codes, *given, y)
    assert status == 2
    assert f"tensor 'x' has no field {rung}.code" in errors


def test_units_of_a_mixture_come_from_the_output(run, tmp_path, monkeypatch):
    """The rung of a mixture has no scales, from which y would follow."""
    rung = Rung(mixture("int8_or_e4m3", (1, 16)), MeanRelativeError("0.02"))
    own = Policy("own", (rung, Rung("e4m3", MeanRelativeError("0.05"))), unit="block")
    monkeypatch.setitem(POLICIES, "own", own)
    codes, y = tmp_path / "codes.safetensors", tmp_path / "y.safetensors"
    save_file({"x": rungs_in_blocks()}, tmp_path / "x.safetensors")
    given = "--recipe", "mor:own:4x16", "--out"
    assert run("quantize", tmp_path / "x.safetensors", *given, codes)[0] == 0
    fields = load_file(codes)
    assert {0, 1} <= {*fields["x/choice"].flat}
    assert run("dequantize", codes, *given, y)[0] == 0
    right = fields["x/output"].astype(np.uint32) << 16
    assert np.array_equal(load_file(y)["x"].view(np.uint32), right)


@pytest.mark.parametrize("ending", [".safetensors", ".npz"])
@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
@pytest.mark.parametrize("recipe", ["int8:row", "uint8:peg:asymmetric:5_permuted_groups"])
def test_y_of_integers_is_rounded_to_the_dtype_of_x(run, tmp_path, recipe, dtype, ending):
    """AFF-009: a file of mor-ref quantize says the dtype."""
    x = np.random.default_rng(8).standard_normal((3, 70)).astype(dtype)
    x_file, codes = tmp_path / "x.safetensors", tmp_path / f"codes{ending}"
    save_file({"a": x}, x_file)
    given = ("--recipe", recipe, "--out")
    assert run("quantize", x_file, *given, codes)[0] == 0
    assert run("dequantize", codes, *given, tmp_path / "y.npz")[0] == 0
    (case,) = cases_of(own_recipe(recipe), from_arrays({"a": x}))
    right = exact_fields(as_tensor_recipe(recipe).asked.operation, case)["y"]
    assert np.array_equal(read(tmp_path / "y.npz")["a"].view(np.uint32), right)


@pytest.mark.parametrize(
    ("recipe", "forms"),
    [
        ("uint8:onnx:asymmetric", "uint8 int16 int64 uint64"),
        ("uint4:onnx:1x32:asymmetric", "uint8 int8"),
        ("int8:onnx:asymmetric", "int8 uint8 int64 uint64"),
        ("int4:1x32", "int8 uint8"),
    ],
)
def test_integers_are_those_that_verify_takes(run, tmp_path, recipe, forms):
    x = np.random.default_rng(2).standard_normal((8, 32), dtype=np.float32)
    (case,) = cases_of(own_recipe(recipe), from_arrays({"a": x}))
    right = exact_fields(as_tensor_recipe(recipe).asked.operation, case)
    integers = {name: right[name].view(np.int32) for name in ("code", "zero_point")}
    for form in forms.split():
        written = {f"a/{name}": array.astype(form) for name, array in integers.items()}
        save_file({"a/scale": right["scale"], **written}, tmp_path / "codes.safetensors")
        given = (tmp_path / "codes.safetensors", "--recipe", recipe)
        assert run("dequantize", *given, "--out", tmp_path / "y.npz")[0] == 0, form
        assert np.array_equal(read(tmp_path / "y.npz")["a"].view(np.uint32), right["y"]), form


def test_packed_codes_take_the_place_of_codes(run, tmp_path):
    save_file(tensors(), tmp_path / "x.safetensors")
    codes, y = tmp_path / "codes.safetensors", tmp_path / "y.safetensors"
    assert run("quantize", tmp_path / "x.safetensors", "--recipe", "nvfp4", "--out", codes)[0] == 0
    save_file({name: a for name, a in read(codes).items() if not name.endswith("/code")}, codes)
    assert run("dequantize", codes, "--recipe", "nvfp4", "--out", y)[0] == 0
    right = of_the_exact_model("nvfp4")["matrix"]["y"]
    assert np.array_equal(load_file(y)["matrix"].view(np.uint32), right)


@pytest.mark.parametrize(
    ("arguments", "names", "dtype"),
    [
        (("--format", "e5m2"), ["a", "b"], ml_dtypes.float8_e5m2),
        (("--format", "bf16", "--field", "output"), ["c"], ml_dtypes.bfloat16),
    ],
)
def test_codes_without_scales(run, tmp_path, arguments, names, dtype):
    codes = np.arange(256, dtype=np.uint8).reshape(16, 16)
    words = np.arange(0, 1 << 16, 37, dtype=np.uint16)
    arrays = {"a/code": codes, "b": codes} if "b" in names else {"a/code": codes, "c/output": words}
    save_file(arrays, tmp_path / "codes.safetensors")
    out = tmp_path / "x.safetensors"
    given = (tmp_path / "codes.safetensors", *arguments, "--out", out)
    assert run("decode", *given)[::2] == (0, "")
    found, right = load_file(out), (words if names == ["c"] else codes).view(dtype)
    assert sorted(found) == names
    for array in found.values():
        assert np.array_equal(array, right.astype(np.float32), equal_nan=True)


def put_safetensors(path, arrays):
    """Write arrays by name with their dtypes, also those that NumPy has no name for."""
    header, content = {}, b""
    for name, (dtype, array) in arrays.items():
        place = [len(content), len(content) + array.nbytes]
        header[name] = {"dtype": dtype, "shape": [*array.shape], "data_offsets": place}
        content += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content)


@pytest.mark.parametrize(
    ("fmt", "dtype", "name"),
    [
        ("e4m3", ml_dtypes.float8_e4m3fn, "F8_E4M3"),
        ("e5m2", ml_dtypes.float8_e5m2, "F8_E5M2"),
        ("e8m0", ml_dtypes.float8_e8m0fnu, "F8_E8M0"),
        ("bf16", ml_dtypes.bfloat16, "BF16"),
        ("f16", np.float16, "F16"),
    ],
)
def test_codes_have_the_dtypes_that_files_have(run, tmp_path, fmt, dtype, name):
    """The scales next to them are numbers, and not codes."""
    words = np.arange(0, 1 << 16, 257, np.uint16) if np.dtype(dtype).itemsize == 2 else None
    codes = np.arange(256, dtype=np.uint8) if words is None else words
    right = codes.view(dtype).astype(np.float32)
    scale = np.ones((4, 1), np.float32)
    path, out = tmp_path / "model.safetensors", tmp_path / "x.npz"
    put_safetensors(path, {"w.weight": (name, codes), "w.weight_scale": ("F32", scale)})
    status, printed, _ = run("decode", path, "--format", fmt, "--out", out)
    assert (status, printed.splitlines()[1:3]) == (
        0,
        ["skipped: 1 tensor", f"  w.weight_scale (4x1 F32): its dtype is not {fmt}"],
    )
    assert list(read(out)) == ["w.weight"]
    assert np.array_equal(read(out)["w.weight"], right, equal_nan=True)
    for kind in ("V", "i"):  # raw bytes, as NumPy saves those of ml_dtypes, or integers
        array = codes.view(f"{kind}{codes.itemsize}")
        np.save(tmp_path / "codes.npy", array)
        assert run("decode", tmp_path / "codes.npy", "--format", fmt, "--out", out)[0] == 0
        assert np.array_equal(read(out)["codes"], right, equal_nan=True)


def test_raw_bytes_of_another_width_are_skipped(run, tmp_path):
    """NumPy saves bfloat16 and the small floats of ml_dtypes as raw bytes of their width."""
    arrays = {"small": np.float32([1, 2]).astype(ml_dtypes.float8_e4m3fn)}
    arrays["wide"] = arrays["small"].astype(ml_dtypes.bfloat16)
    np.savez(tmp_path / "x.npz", **arrays)
    for fmt, name, other in (
        ("e4m3", "small", "wide (2 void16)"),
        ("bf16", "wide", "small (2 void8)"),
    ):
        given = (tmp_path / "x.npz", "--format", fmt, "--out", tmp_path / "y.npz")
        status, printed, _ = run("decode", *given)
        assert (status, f"{other}: its dtype is not {fmt}" in printed) == (0, True)
        found = read(tmp_path / "y.npz")
        assert [(key, found[key].tolist()) for key in found] == [(name, [1, 2])]


def test_what_a_file_says_of_its_tensors_is_refused_in_one_sentence(run, tmp_path):
    fields = {"a/code": np.zeros((2, 32), np.uint8), "a/scale": np.zeros((2, 1), np.uint8)}
    file, recipe = tmp_path / "codes.safetensors", "mxfp8_e4m3:floor:32"
    given = (file, "--recipe", recipe, "--out", tmp_path / "y.npz")
    for sources in ("[" * 100_000, '{"a": ["bf16"]}', '{"a": "f64"}'):
        save_file(fields, file, {"recipe": recipe, "sources": sources})
        status, _, errors = run("dequantize", *given)
        assert status == 2
        assert "codes.safetensors has sources in its metadata that are not dtypes of" in errors
    save_file(fields, file, {"sources": "of another program"})
    assert run("dequantize", *given)[0] == 0


def test_another_format_than_that_of_the_dtype_is_refused(run, tmp_path):
    path, out, codes = tmp_path / "x.safetensors", tmp_path / "y.npz", np.zeros((2, 32), np.uint8)
    arrays = {"a/code": ("F8_E5M2", codes), "a/scale": ("U8", codes[:, :1])}
    put_safetensors(path, arrays | {"b": ("I8", codes)})
    given = (path, "--format", "e4m3", "--out", out)
    status, _, errors = run("decode", *given, "--exclude", "b")
    assert status == 2
    assert "no codes of e4m3: a (2x32 F8_E5M2): its dtype is not e4m3" in " ".join(errors.split())
    assert run("decode", *given, "--include", "b")[0] == 0
    assert list(read(out)) == ["b"]
    status, _, errors = run("decode", *given, "--include", "c")
    assert "has no array TENSOR/code of the chosen names" in " ".join(errors.split())
    given = ("dequantize", path, "--out", out, "--recipe")
    status, _, errors = run(*given, "mxfp8")
    assert status == 2
    assert "code of tensor 'a' has dtype F8_E5M2; for mxfp8_e4m3:floor:32, give e4m3" in errors
    status, printed, _ = run(*given, "mxfp8_e5m2")
    assert (status, "b (2x32 I8): it is not TENSOR/FIELD" in printed) == (0, True)
    assert list(read(out)) == ["a"]


def test_an_array_in_a_file_of_its_own(run, tmp_path):
    codes, out = np.arange(256, dtype=np.uint8).reshape(2, 128), tmp_path / "x.npy"
    np.save(tmp_path / "codes.npy", codes)
    given = (tmp_path / "codes.npy", "--format", "e4m3", "--out", out)
    assert run("decode", *given) == (
        0,
        f"codes: 2x128 f32\n{out}: 1 tensor from e4m3\n",
        "",
    )
    right = codes.view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    assert np.array_equal(np.load(out), right, equal_nan=True)


def test_several_arrays_are_not_written_to_a_file_of_one(run, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, 32), np.float32))
    out = tmp_path / "own.npy"
    status, printed, errors = run("quantize", tmp_path / "x.npy", "--recipe", "mxfp8", "--out", out)
    assert (status, printed) == (2, "")
    assert "which holds one array, and there are" in errors
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("dequantize", "--recipe", "mxfp8"),
            "tensor 'a' has no field scale; for mxfp8_e4m3:floor:32, give code and scale",
        ),
        (
            ("dequantize", "--recipe", "nvfp4"),
            "tensor 'a' has no field block_scale; for nvfp4:te:1x16, give code or packed and",
        ),
        (("decode", "--format", "e2m1"), "tensor 'a': codes holds 200, which does not fit 4 bits;"),
        (
            ("decode", "--format", "e4m3", "--field", "x"),
            "has no array TENSOR/x; give --field with one of code\n",
        ),
        (
            ("decode", "--format", "int4"),
            "format is 'int4', a recipe whose codes have scales; write their numbers with mor-ref ",
        ),
        (("decode", "--format", "e9m3"), "'e9m3', which is not known; take one of"),
    ],
)
def test_files_that_are_refused(run, tmp_path, arguments, message):
    save_file({"a/code": np.full((2, 32), 200, np.uint8)}, tmp_path / "codes.safetensors")
    command, *rest = arguments
    out = tmp_path / "y.npz"
    status, printed, errors = run(command, tmp_path / "codes.safetensors", *rest, "--out", out)
    assert (status, printed) == (2, "")
    assert message in errors
    assert [path.name for path in tmp_path.iterdir()] == ["codes.safetensors"]


@pytest.mark.parametrize(
    ("recipe", "field", "wrong", "message"),
    [
        ("seq2", "code", 4, "tensor 'a': code has 4; codes of this recipe are 0 to 3;"),
        ("elastic1", "code", 3, "are 0 to 2"),
        ("mx6", "code", 32, "are 0 to 31"),
        ("int4", "code", -9, "code has -9; codes of this recipe are -8 to 7"),
        ("mor:three_way:4x16", "choice", 3, "choice of tensor 'a' has 3; choices of mor:three"),
    ],
)
def test_codes_that_a_recipe_lacks_are_refused(run, tmp_path, recipe, field, wrong, message):
    x = np.random.default_rng(2).standard_normal((8, 32), dtype=np.float32)
    np.savez(tmp_path / "x.npz", a=x)
    codes, given = tmp_path / "codes.npz", ("--recipe", recipe, "--out")
    assert run("quantize", tmp_path / "x.npz", *given, codes)[0] == 0
    fields = read(codes)
    if recipe == "int4":
        fields["a/code"] = fields["a/code"].view(np.int32).astype(np.int8)
    np.savez(codes, **fields)
    assert run("dequantize", codes, *given, tmp_path / "y.npz")[0] == 0
    right = fields["a/output"].astype(np.uint32) << 16 if "a/output" in fields else fields["a/y"]
    assert np.array_equal(read(tmp_path / "y.npz")["a"].view(np.uint32), right)
    fields[f"a/{field}"].flat[3] = wrong
    np.savez(codes, **fields)
    status, _, errors = run("dequantize", codes, *given, tmp_path / "y.npz")
    assert status == 2
    assert message in " ".join(errors.split())


@pytest.mark.parametrize("ending", [".safetensors", ".npz"])
def test_another_recipe_than_that_of_the_file_is_refused(run, tmp_path, ending):
    """Codes of e4m3 are numbers of e5m2 as well, but others."""
    x, codes, y = (tmp_path / f"{name}{ending}" for name in ("x", "codes", "y"))
    with array_file(x, [ArrayEntry("a", np.dtype(np.float32), (2, 40))]) as file:
        file.put("a", np.ones((2, 40), np.float32))
    assert run("quantize", x, "--recipe", "mxfp8:rceil", "--out", codes)[0] == 0
    status, _, errors = run("dequantize", codes, "--recipe", "mxfp8_e5m2:rceil", "--out", y)
    assert status == 2
    assert "recipe is mxfp8_e5m2:rceil:32, but" in errors
    assert "was quantized with mxfp8_e4m3:rceil:32; give this second" in " ".join(errors.split())
    assert not y.exists()
    assert run("dequantize", codes, "--recipe", "mxfp8_e4m3:rceil:32", "--out", y)[0] == 0


def test_an_input_is_not_replaced(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_file({"a": np.ones((2, 40), np.float32)}, "x.safetensors")
    before = (tmp_path / "x.safetensors").read_bytes()
    for command in (
        ("quantize", "x.safetensors", "--recipe", "mxfp8"),
        ("dequantize", "x.safetensors", "--recipe", "mxfp8"),
        ("decode", "x.safetensors", "--format", "e4m3"),
    ):
        status, _, errors = run(*command, "--out", tmp_path / "x.safetensors")
        assert status == 2
        assert "which is also an input; give another file" in " ".join(errors.split())
    assert (tmp_path / "x.safetensors").read_bytes() == before


def test_fields_of_another_size_or_range_are_refused(run, tmp_path):
    codes, out = tmp_path / "codes.safetensors", tmp_path / "y.npz"
    code = np.zeros((2, 40), np.uint8)
    for scale, fill, message in (
        (np.zeros((2, 3), np.uint8), 0, "scale of tensor 'a' has the shape (2, 3) and 1 bytes"),
        (np.full((2, 2), 256, np.int64), 0, "scale of tensor 'a' has 256, which does not fit 8"),
        (np.full((2, 2), -1, np.int32), 0, "scale of tensor 'a' holds -1; give bit patterns"),
        (
            np.zeros((2, 2), np.uint8),
            16,
            "code of tensor 'a' has 16, which does not fit 4 bits",
        ),
    ):
        save_file({"a/code": code + np.uint8(fill), "a/scale": scale}, codes)
        status, _, errors = run("dequantize", codes, "--recipe", "mxfp4", "--out", out)
        assert status == 2
        assert message in errors
        assert not out.exists()
    assert run("dequantize", codes, "--recipe", "mxfp4", "--out", "y.bin")[0] == 2
    assert run("dequantize", tmp_path / "no.npz", "--recipe", "mxfp4", "--out", out)[0] == 2
    (tmp_path / "bad.safetensors").write_bytes(b"12345678901234567890")
    given = (tmp_path / "bad.safetensors", "--recipe", "mxfp4", "--out", out)
    status, _, errors = run("dequantize", *given)
    assert status == 2
    assert "bad.safetensors cannot be read as a .safetensors file" in errors


def parts_of(array):
    """Yield the first row and rows of an array in parts, the last ones first."""
    if array.ndim < 2 or not len(array):
        yield 0, array
    else:
        yield 2, array[2:]
        yield 0, array[:2]


def test_files_are_those_of_the_library_in_whatever_order_rows_come(tmp_path):
    random = np.random.default_rng(0)
    arrays = {
        "b/x": random.integers(0, 9, (5, 3), np.uint8),
        "a/\u00e9": random.integers(0, 9, (4, 3), np.uint32),
        "a.b/c": random.integers(0, 9, 3, np.uint64),
        "a/x": random.integers(0, 9, 5, np.uint16),
        "s": np.array(3, np.float32),
        "none": np.zeros((0, 4), np.float32),
    }
    entries = [ArrayEntry(name, one.dtype, one.shape) for name, one in arrays.items()]
    for path in (tmp_path / "x.safetensors", tmp_path / "x.npz"):
        with array_file(path, entries) as file:
            for name, one in reversed(arrays.items()):
                for first, rows in parts_of(one):
                    file.put(name, rows, first)
        found = read(path)
        assert {*found} == {*arrays}
        for name, one in arrays.items():
            assert found[name].dtype == one.dtype
            assert np.array_equal(found[name], one)
    assert (tmp_path / "x.safetensors").read_bytes() == save(arrays)


def test_metadata_are_left_out_of_an_archive_if_they_are_too_long(tmp_path):
    """A comment of a ZIP archive has at most 65,535 bytes; short metadata stay."""
    x = tmp_path / "x.npz"
    most = 65_535 - len(json.dumps({"long": ""}))
    short = {"short": "s"}
    for given, kept in (
        ({"long": "l" * most}, {"long": "l" * most}),
        ({"long": "l" * (most + 1)} | short, short),
        (short | {"long": "l" * most}, short),
        ({"long": "l" * (most + 1)}, {}),
    ):
        with array_file(x, [], given):
            pass
        assert metadata_of(str(x)) == kept
    with ZipFile(x) as archive:
        assert archive.comment == b""


def test_a_file_that_is_not_finished_is_not_there(tmp_path):
    entries = [ArrayEntry("a", np.dtype(np.uint8), (2,))]
    with pytest.raises(KeyError), array_file(tmp_path / "x.npz", entries) as file:
        file.put("b", np.zeros(2, np.uint8))
    assert not list(tmp_path.iterdir())


def test_codes_of_integers_are_refused_with_the_recipe_of_their_file(run, tmp_path):
    """Their numbers follow from scales, which decode does not read."""
    x, codes, out = (tmp_path / f"{name}.safetensors" for name in ("x", "codes", "y"))
    save_file({"w": np.ones((2, 32), np.float32)}, x)
    assert run("quantize", x, "--recipe", "int4:1x32", "--out", codes)[0] == 0
    status, _, errors = run("decode", codes, "--format", "int4", "--out", out)
    assert status == 2
    assert f"mor-ref dequantize {codes} --recipe int4:torch_fake_tensor:1x32:" in errors
    status, _, errors = run("decode", codes, "--format", "e4m3", "--field", "sc", "--out", out)
    assert status == 2
    assert "has no array TENSOR/sc; give --field with one of code, inverse_scale, ma" in errors
