"""Records as values: equal by their bits, and the numbers that they stand for as arrays."""

import dataclasses
import doctest
import io
import json
import re
from xml.etree import ElementTree as ET

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file

import mor_ref
from mor_ref import exact, formats, fp8lm
from mor_ref.api.coded_blocks import CodedBlocks
from mor_ref.metrics import Metric
from mor_ref.records import NumbersRecord, Record

X = np.random.default_rng(7).standard_normal((6, 32), dtype=np.float32)

MAKE = {
    "quantize": lambda x: mor_ref.quantize(x, "e4m3", block=(2, 8)),
    "quantize fp32": lambda x: mor_ref.quantize(x, "e5m2", scaling="fp32"),
    "quantize nvfp4": lambda x: mor_ref.quantize(x, "nvfp4:te_2_13"),
    "block format": lambda x: mor_ref.quantize(x, "mxfp8"),
    "quantize_mx": lambda x: mor_ref.quantize_mx(x, "e2m1"),
    "quantize_nvfp4": mor_ref.quantize_nvfp4,
    "quantize_affine": lambda x: mor_ref.quantize_affine(x, "int8"),
    "quantize_levels": lambda x: mor_ref.quantize_levels(x, "seq2"),
    "quantize_shared": lambda x: mor_ref.quantize_shared(x, "mx9"),
    "mix_formats": lambda x: mor_ref.mix_formats(x, ["int8", "e4m3"]),
    "mor": lambda x: mor_ref.mor(x, "three_way", block=(2, 8)),
    "cast": lambda x: fp8lm.cast(x, 8.0),
    "shared_scale": lambda x: fp8lm.shared_scale([x, 2 * x]),
}
OF_MANY = {
    "error sums": lambda x: mor_ref.quantize(x, "e4m3").error,
    "scale": lambda x: fp8lm.scale(abs(x).ravel()),
    "adam": lambda x: fp8lm.adam(fp8lm.begin_adam(x), x),
    "dot_chunks": lambda x: mor_ref.dot_chunks(*[mor_ref.encode(x, "e4m3")] * 2),
    "history": lambda x: fp8lm.history(fp8lm.History((0.0, 1.0)), float(x[0, 0] ** 2)),
    "auto_scale": lambda x: fp8lm.auto_scale(fp8lm.AutoScale(float(abs(x[0, 0]))), [0x30]),
}


def bits_of(x):
    return np.ascontiguousarray(x).view(np.uint8).tobytes()


@pytest.mark.parametrize("make", (MAKE | OF_MANY).values(), ids=MAKE | OF_MANY)
def test_records_are_equal_by_their_bits(make):
    one, same, other = make(X), make(X.copy()), make(X * np.float32(1.5))
    assert isinstance(one, Record)
    assert one == same
    assert not one != same  # noqa: SIM202  (its own operator)
    assert one != other
    assert one != 3
    assert one is not None


def test_the_sign_of_zero_is_a_bit_and_a_nan_equals_itself():
    zero, minus, nan, again = (
        fp8lm.Scale(*[np.float32([number])] * 5) for number in (0.0, -0.0, np.nan, np.nan)
    )
    assert zero != minus
    assert nan == again


def test_records_of_other_kinds_are_not_equal():
    found = mor_ref.quantize(X, "e4m3")
    assert found != mor_ref.quantize(X, "e4m3", block="row")
    assert found != mor_ref.quantize_mx(X, "e4m3")
    assert mor_ref.mor(X) != mor_ref.mor(X, threshold=0.2)
    with pytest.raises(TypeError, match="unhashable"):
        hash(found)


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
def test_a_record_is_the_array_of_its_numbers(make):
    found = make(X)
    assert isinstance(found, NumbersRecord)
    y = found.dequantize()
    assert y.dtype == np.float32
    assert y.shape == X.shape
    assert bits_of(np.asarray(found)) == bits_of(y)
    assert np.asarray(found, np.float64).dtype == np.float64
    assert np.array_equal(np.asarray(found, np.float64), y)
    assert bits_of(np.array(found, copy=True)) == bits_of(y)
    assert np.array_equal(X - found, X - y)
    with pytest.raises(ValueError, match="copy is False, but the numbers of a record of type"):
        np.asarray(found, copy=False)
    file = io.BytesIO()
    np.save(file, found)
    file.seek(0)
    assert bits_of(np.load(file)) == bits_of(y)


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
@pytest.mark.parametrize("dtype", [np.uint8, np.int32, bool, ml_dtypes.int4])
def test_a_record_is_not_cast_to_integers(make, dtype):
    """They would be neither its codes nor its numbers."""
    found = make(X)
    field = r"use \.codes$" if hasattr(found, "codes") else r"use one of \.\w+, \.\w+"
    said = f"^dtype is {np.dtype(dtype).name}, but as an array, a record of type .*; {field}"
    with pytest.raises(TypeError, match=said):
        np.asarray(found, dtype)


@pytest.mark.parametrize("make", OF_MANY.values(), ids=OF_MANY)
def test_a_record_of_many_arrays_is_never_pickled_by_numpy(make):
    with pytest.raises(TypeError, match="is not one array; give one of its fields: "):
        np.asarray(make(X))
    with pytest.raises(TypeError, match="is not one array"):
        np.save(io.BytesIO(), make(X))


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_the_output_of_mor_as_numbers(dtype):
    found = mor_ref.mor(X, "three_way", block=(2, 8))
    right = [exact.decode(int(code), formats["bf16"]) for code in found.output.flat]
    y = found.dequantize(dtype)
    assert y.dtype == dtype
    assert y.astype(np.float32).view(np.uint32).ravel().tolist() == right


def test_which_way_a_scale_goes():
    """The scale multiplies x; its rounded reciprocal is exact for a power of two alone."""
    found = mor_ref.quantize(X, "e4m3", scaling="fp32", block=(2, 8))
    assert np.array_equal(found.decode_scale, np.float32(1) / found.scale)
    assert found.decode_scale.shape == found.scale.shape
    wide = np.repeat(np.repeat(found.scale, 2, axis=0), 8, axis=1)
    values = mor_ref.decode(found.codes, "e4m3")
    assert np.array_equal(values / wide, found.dequantize())
    assert not np.allclose(values * wide, X, rtol=0.1)
    powers = mor_ref.quantize(X, "e4m3", scaling="e8m0")
    assert np.array_equal(
        mor_ref.decode(powers.codes, "e4m3") * powers.decode_scale, powers.dequantize()
    )


# ---------------------------------------------------------------------- one family


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
def test_a_record_has_the_shape_of_its_numbers(make):
    found = make(X)
    assert (found.shape, found.ndim, found.size, len(found)) == (X.shape, 2, X.size, len(X))
    assert found.codes.shape == X.shape
    assert found.T.shape == X.shape[::-1]
    assert found.T.T is found
    assert bits_of(np.asarray(found.T)) == bits_of(np.asarray(found).T)
    assert bits_of(found.T.codes) == bits_of(found.codes.T)
    assert mor_ref.transposed(found) == found.T


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
def test_every_record_is_dequantized_alike(make):
    found, out = make(X), np.empty(X.shape, ml_dtypes.bfloat16)
    expected = np.asarray(found).astype(ml_dtypes.bfloat16)  # whose rounding is not ours
    assert bits_of(found.dequantize("bfloat16")) == bits_of(expected)
    assert found.dequantize(ml_dtypes.bfloat16, out=out) is out
    assert bits_of(out) == bits_of(expected)
    y = found.dequantize()
    y[...] = 0
    assert bits_of(found.dequantize()) != bits_of(y)


def test_numbers_that_bfloat16_lacks_become_infinite():
    largest = np.float32([[-3.4028235e38]])
    found = mor_ref.quantize_affine(largest).dequantize("bfloat16")
    assert found.astype(np.float32).tolist() == [[-np.inf]]


def test_a_record_of_one_number_has_no_length():
    found = mor_ref.quantize(np.float32(0.3), "e4m3")
    assert (found.shape, found.ndim, found.size) == ((), 0, 1)
    with pytest.raises(TypeError, match="of one number has no length; its size is 1"):
        len(found)


ONE = {
    "quantize": ("1 block of 1x32", "6 blocks of 1x32"),
    "quantize_mx": ("1 block of 32", "6 blocks of 32"),
    "quantize_nvfp4": ("2 tiles of 1x16", "12 tiles of 1x16"),
    "quantize_affine": ("1 block of 1x32", "6 blocks of 1x32"),
    "quantize_levels": ("1 row>", "6 rows>"),
    "quantize_shared": ("2 blocks of 16", "12 blocks of 16"),
    "mix_formats": ("1 unit of 1x32", "6 units of 1x32"),
}
BY_ROWS = MAKE | {
    "quantize": lambda x: mor_ref.quantize(x, "e4m3", block="row"),
    "quantize_affine": lambda x: mor_ref.quantize_affine(x, block="row"),
    "mix_formats": lambda x: mor_ref.mix_formats(x, block="row"),
}


@pytest.mark.parametrize("name", ONE)
def test_one_block_is_singular(name):
    single, several = ONE[name]
    assert single in repr(BY_ROWS[name](X[:1]))
    assert several in repr(BY_ROWS[name](X))
    assert "1 tile of 1x16" in repr(mor_ref.quantize_nvfp4(X[0, :16]))
    assert "1 block of 16" in repr(mor_ref.quantize_shared(X[0, :16], "mx9"))


@pytest.mark.parametrize("make", (MAKE | OF_MANY).values(), ids=MAKE | OF_MANY)
def test_the_text_of_a_record_is_short(make):
    wide = np.random.default_rng(3).standard_normal((64, 96), dtype=np.float32)
    assert len(repr(make(wide))) < 160
    assert "\n" not in repr(make(wide))


def test_a_long_history_is_short_as_text():
    assert repr(fp8lm.History((1.0,) * 1024)) == (
        "<History of 1,024 amaxes, the latest 1.0, scale 1.0>"
    )


def _parsed(html):
    return ET.fromstring(html)  # noqa: S314  # of ours


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
def test_a_notebook_shows_the_text_and_a_picture(make):
    found = make(X)
    root = _parsed(found._repr_html_())
    assert root.find("div/code").text == repr(found)
    squares = root.findall(".//rect")
    assert 1 < len(squares) <= 16 * 48
    assert len({square.get("fill") for square in squares}) <= 9


def test_a_picture_of_choices_has_a_square_for_each_unit():
    x = np.ones((2, 64), np.float32)
    x[0, 0] = np.nan
    found = mor_ref.mor(x, "three_way", block=(1, 32))
    root = _parsed(found._repr_html_())
    fills = [square.get("fill") for square in root.findall(".//rect")]
    assert found.choice.ravel().tolist() == [2, 0, 0, 0]
    assert [fill == fills[1] for fill in fills] == [False, True, True, True]
    assert "".join(root.find("div[3]").itertext()).split() == [
        "■",
        "e4m3",
        "■",
        "e5m2",
        "■",
        "bf16",
    ]


def test_a_picture_of_many_choices_shows_some_rows_and_columns():
    x = np.ones((40, 200), np.float32)
    x[:, 8:] = np.nan
    html = mor_ref.mor(x, "two_way", block=(1, 1))._repr_html_()
    fills = [square.get("fill") for square in _parsed(html).findall(".//rect")]
    assert len(fills) == 14 * 40  # each third row, each fifth column
    assert sum(fill == fills[0] for fill in fills) == 14 * 2
    assert "one of 8,000 units. 560 are shown." in html


def test_a_picture_of_magnitudes_has_powers_of_two_and_what_is_not_finite():
    x = np.float32([[1, 2, 0, np.nan], [-4, 1, 1.5, 1]])
    html = mor_ref.quantize(x, "e5m2", scaling="fp32", scale=1.0)._repr_html_()
    words = "".join(_parsed(html).itertext())
    assert "2^0 ■ 2^1 ■ 2^2 ■ not finite" in words
    assert "Each square is the magnitude of a number." in words
    assert "It has no elements" in mor_ref.quantize(np.empty((0, 4), "f4"), "e4m3")._repr_html_()
    blank = mor_ref.quantize(np.zeros((40, 100), "f4"), "e4m3")._repr_html_()
    assert "the largest of 3x3 numbers" in blank


def test_codes_as_bytes():
    mx = mor_ref.quantize_mx(X[:, :31], "e2m1")
    rows = [[*row, 0] for row in mx.codes.tolist()]
    expected = [[low | high << 4 for low, high in zip(r[::2], r[1::2], strict=True)] for r in rows]
    assert mx.packed.tolist() == expected
    wide = mor_ref.quantize(X, "e4m3")
    assert wide.packed is wide.codes
    with pytest.raises(ValueError, match="packed is of codes of 4 or 8 bits, and e2m3 has 6"):
        _ = mor_ref.quantize_mx(X, "e2m3").packed


def test_which_way_the_scale_of_a_mixture_goes():
    mixed = mor_ref.mix_formats(X, ["int8", "e4m3"], block="row")
    assert np.array_equal(mixed.decode_scale, np.float32(1) / mixed.scale)
    assert mor_ref.mix_formats(X, ["mxfp8", "mxfp4"]).decode_scale is None


# ---------------------------------------------------------------------- files

OWN = {
    "own format": lambda x: mor_ref.quantize(
        x, mor_ref.Format("e2m3x", exponent_bits=2, mantissa_bits=3, bias=1, specials="fn")
    ),
    "te_row": lambda x: mor_ref.quantize_nvfp4(x, profile="te_row"),
    "compressed_tensors": lambda x: mor_ref.quantize_nvfp4(x, profile="compressed_tensors"),
    "nvfp4": lambda x: mor_ref.mor(x, "nvfp4", block=(2, 16), threshold={"nvfp4": "1/22"}),
    "peg": lambda x: mor_ref.quantize_affine(x, profile="peg", groups=4, permute="range"),
    "mixture of MX": lambda x: mor_ref.mix_formats(x, ["mxfp8", "mxfp4"]),
    "transposed": lambda x: mor_ref.quantize(x, "e4m3").T,
    "a scale of blocks": lambda x: mor_ref.quantize(x, "e4m3", block="row").in_blocks(),
    "vector": lambda x: mor_ref.quantize(x[0], "e4m3"),
    "scalar": lambda x: mor_ref.quantize(x[0, 0], "e4m3"),
    "empty": lambda x: mor_ref.quantize_mx(x[:0], "e4m3"),
}


@pytest.mark.parametrize("ending", ["npz", "safetensors"])
@pytest.mark.parametrize("make", (MAKE | OF_MANY | OWN).values(), ids=MAKE | OF_MANY | OWN)
def test_a_record_is_the_same_from_a_file(make, ending, tmp_path):
    record, path = make(X), tmp_path / f"record.{ending}"
    record.save(str(path))
    found = mor_ref.load(path)
    assert found == record
    assert repr(found) == repr(record)
    if isinstance(record, NumbersRecord):
        assert bits_of(np.asarray(found)) == bits_of(np.asarray(record))


OF_SQUARES = [mor_ref.RelativeFrobenius, mor_ref.Sqnr, mor_ref.Cosine, mor_ref.LargestByRow]


@pytest.mark.parametrize("metric", OF_SQUARES)
@pytest.mark.parametrize("threshold", ["0.05", {"*": 0.5, "weight": "1/3"}], ids=str)
def test_a_policy_is_the_same_from_a_file(metric, threshold, tmp_path):
    ladder = (mor_ref.Rung("mxfp4", metric(threshold)), mor_ref.Rung("e4m3", metric("1/7")))
    result = mor_ref.mor(X, mor_ref.Policy("own", ladder, unit="block"), block=(1, 16))
    result.save(tmp_path / "x.npz")
    assert mor_ref.load(tmp_path / "x.npz") == result


def test_a_number_is_no_array_after_a_file(tmp_path):
    cast = fp8lm.cast(X, 8.0)
    cast.save(tmp_path / "x.npz")
    assert type(mor_ref.load(tmp_path / "x.npz").scale) is type(cast.scale) is np.float32


def test_arrays_in_a_file_have_the_names_of_the_fields(tmp_path):
    nvfp4 = mor_ref.quantize_nvfp4(X)
    nvfp4.save(tmp_path / "x.npz")
    nvfp4.save(tmp_path / "x.safetensors")
    for arrays in (dict(np.load(tmp_path / "x.npz")), load_file(tmp_path / "x.safetensors")):
        assert {*arrays} - {"record"} == {
            "codes", "block_scale", "global_encode_scale", "global_decode_scale",
            "error.sum", "error.nonzero", "error.nonfinite",
        }  # fmt: skip
        assert bits_of(arrays["codes"]) == bits_of(nvfp4.codes)
        assert arrays["global_decode_scale"].shape == ()


def test_a_file_is_refused_if_it_has_no_ending_or_no_record(tmp_path):
    found, path = mor_ref.quantize(X, "e4m3"), tmp_path / "x.npz"
    for name in ("x", "x.npy", "x.pt"):
        with pytest.raises(ValueError, match=f"path is '{name}'; give a file that ends in one of"):
            found.save(name)
    np.savez(path, x=X)
    with pytest.raises(ValueError, match="has no record that can be read"):
        mor_ref.load(path)
    path.write_bytes(b"PK")
    with pytest.raises(ValueError, match="has no record that can be read"):
        mor_ref.load(path)
    with pytest.raises(FileNotFoundError):
        mor_ref.load(tmp_path / "y.npz")
    np.savez(path, record=np.array({"a": 1}, object))
    with pytest.raises(ValueError, match="has no record that can be read"):
        mor_ref.load(path)


class Own(Metric):
    def accepts(self, own, errors, amax, amin):
        del errors, amax, amin
        return own.sum < 1 << 40


def test_a_metric_of_ones_own_is_in_no_file(tmp_path):
    record = mor_ref.mor(X, mor_ref.Policy("mine", (mor_ref.Rung("e4m3", Own()),)))
    with pytest.raises(ValueError, match="policy.ladder.0.metric has a Own of your own, which a"):
        record.save(tmp_path / "x.npz")
    assert not list(tmp_path.iterdir())


SCALE = np.zeros((6, 1), np.uint8)
WRONG_FILES = {  # arrays, and fields that are none
    "codes that the format lacks": ({"codes": np.full((6, 32), 0x40, np.uint8)}, {}),
    "wide codes": ({"codes": np.zeros((6, 32), np.uint16)}, {}),
    "codes of another shape": ({"codes": np.zeros((64, 512), np.uint8)}, {}),
    "fewer scales": ({"scale": SCALE[:3]}, {}),
    "scales in another shape": ({"scale": SCALE.reshape(2, 3)}, {}),
    "scales that are floats": ({"scale": SCALE.astype(np.float32)}, {}),
    "a small tile": ({}, {"tile": [1, 1]}),
    "no tile": ({}, {"tile": [0, 0]}),
    "a large tile": ({}, {"tile": [64, 64]}),
    "text as format": ({}, {"fmt": "e2m1"}),
    "text as codes": ({}, {"codes": "e2m1"}),
    "another type": ({}, {"fmt": {"type": "Popen", "fields": {"args": "id"}}}),
    "a field too many": ({}, {"other": 1}),
    "no array": ({}, {"codes": {"array": "code"}}),
}


@pytest.mark.parametrize(("arrays", "changed"), WRONG_FILES.values(), ids=WRONG_FILES)
def test_a_file_whose_fields_do_not_go_together_is_refused(arrays, changed, tmp_path):
    path = tmp_path / "x.npz"
    mor_ref.quantize_mx(X, "e2m1").save(path)
    whole = dict(np.load(path))
    tree = json.loads(str(whole.pop("record")))
    tree["fields"].update(changed)
    np.savez(path, record=np.array(json.dumps(tree)), **(whole | arrays))
    with pytest.raises(ValueError, match="x.npz has no record that can be read"):
        mor_ref.load(path)


@pytest.mark.parametrize("ending", ["npz", "safetensors"])
def test_a_file_with_wrong_bytes_has_a_record_or_is_refused(ending, tmp_path):
    path, rng = tmp_path / f"x.{ending}", np.random.default_rng(9)
    mor_ref.quantize(X, "e4m3", block=(2, 8)).save(path)
    whole, read = path.read_bytes(), 0
    for _ in range(300):
        wrong = bytearray(whole[: rng.integers(1, len(whole) + 1)] if rng.random() < 0.1 else whole)
        for at in rng.integers(0, len(wrong), rng.integers(1, 4)):
            wrong[at] = rng.integers(256)
        path.write_bytes(wrong)
        try:
            assert mor_ref.load(path).dequantize().shape
            read += 1
        except ValueError as error:
            assert str(error).startswith(str(path))  # noqa: PT017  # or there is no error
    assert read < 300


# ---------------------------------------------------------------------- which way scales go

WITH_SCALES = [
    mor_ref.Quantized, mor_ref.Mx, mor_ref.Nvfp4, mor_ref.Mixed, mor_ref.Affine, mor_ref.Levels,
    mor_ref.Shared, fp8lm.Scale, fp8lm.Cast, fp8lm.SharedScale, fp8lm.AdamState, fp8lm.History,
    CodedBlocks, mor_ref.MorResult,
]  # fmt: skip


@pytest.mark.parametrize("kind", WITH_SCALES)
def test_a_record_says_which_way_its_scale_goes_and_shows_it(kind):
    """An example of three lines after the import runs as a doctest."""
    said = " ".join(kind.__doc__.split())
    assert re.search(r"multipl(y|ies)|each record says which way they go", said)
    examples = doctest.DocTestParser().get_examples(kind.__doc__)
    lines = [example for example in examples if "import" not in example.source]
    assert 0 < len(lines) <= 3
    divides = "numbers of the codes are divided by it" in said
    assert divides == (hasattr(kind, "decode_scale") and kind is not mor_ref.Nvfp4)


def test_no_other_record_has_scales():
    names = {kind.__name__ for kind in WITH_SCALES}
    for record in (make(X) for make in (MAKE | OF_MANY).values()):
        fields = {field.name for field in dataclasses.fields(record)}
        assert type(record).__name__ in names or not {"scale", "alpha"} & fields
