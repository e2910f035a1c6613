"""The inputs that a report shows of an entry: those that it was really made of.

An input that a report does not show can be changed, and the entry of the exact model stays. An
input that it shows has the shown bits.
"""

import math
import re

import numpy as np
import pytest

from mor_ref import formats, golden
from mor_ref.golden import bundled_files
from mor_ref.golden.model.suite import question
from mor_ref.golden.store.manifest import read_manifest
from mor_ref.verify.comparing.inputs_of_entry import largest_of, origins
from mor_ref.verify.comparing.names_given import fields_of

MANIFEST = read_manifest(bundled_files())


def shown(suite, case, kept, given, index):
    """Return the shown inputs of an entry: bits by the names of inputs."""
    entry = MANIFEST["suites"][suite]
    asked = question(fields_of(entry), case)
    return {i.what: i.bits for i in origins(entry["operation"], asked, kept, given)(index)}


def case_of(suite, wanted):
    return next(case for case in golden.load(suite) if wanted(case))


def test_single_steps_show_the_inputs_of_their_row():
    case = golden.load("quantize_steps")[0]
    assert shown("quantize_steps", case, "y", "y", (5,)) == {
        "x[5]": int(case.arrays["x"][5]),
        "scale[5]": int(case.arrays["scale"][5]),
    }


def test_a_block_shows_its_own_number_or_its_largest():
    case = golden.load("quantize_blocks")[0]
    row, group = case.arrays["x"][3], int(case.arrays["group_amax"][3])
    assert shown("quantize_blocks", case, "code", "code", (3, 2)) == {
        "x[3, 2]": int(row[2]),
        "group_amax[3]": group,
    }
    (name, largest), other = shown("quantize_blocks", case, "scale", "scale", (3,)).items()
    assert name == f"the largest of x[3:4, 0:{len(row)}]"
    assert largest & 0x7FFFFFFF == int(case.arrays["amax"][3])
    assert other == ("group_amax[3]", group)


def test_integers_of_a_signed_grid_are_shown_with_their_sign():
    case = case_of("affine_steps", lambda one: one.parameters["grid"] == "int8")
    zeros = case.arrays["zero_point"].view(np.int32)
    at = int(np.flatnonzero(zeros < 0)[0])
    found = shown("affine_steps", case, "code", "code", (at,))
    assert found[f"zero_point[{at}]"] == zeros[at] < 0


def as_f32(bits, source):
    """Return the bits of the magnitude of a number as binary32."""
    dtype = {"f32": np.float32, "f16": np.float16, "bf16": None}[source]
    if dtype is None:
        return (bits << 16) & 0x7FFFFFFF
    array = np.array(bits, f"u{dtype().itemsize}").view(dtype)
    return int(np.abs(array.astype(np.float32)).view(np.uint32))


SOME = r"x\[\d+:\d+, \d+:\d+\]"
PART = (
    rf"x\[\d+, \d+\]|the largest of {SOME}"
    rf"|the largest finite number of {SOME} \(\d+ are not finite\)"
)
PARTS = [
    ("quantize", "scale"),
    ("quantize", "scale@transposed"),
    ("quantize", "scale@reciprocal"),
    ("quantize", "exponent"),
    ("quantize", "sum"),
    ("policies", "choice"),
    ("policies", "e4m3.sum"),
]


@pytest.mark.tier("full", but=["quantize-scale]", "policies-choice"])
@pytest.mark.parametrize(("suite", "given"), PARTS)
def test_what_is_of_a_part_shows_its_largest_number(suite, given):
    """Of every partition and unit: it is the amax that the model found there."""
    kept = given.partition("@")[0]
    for case in golden.load(suite):
        amax = case.arrays["amax"]
        for place in np.ndindex(amax.shape if kept in case.arrays else ()):
            index = place[::-1] if given.endswith("transposed") else place
            found = shown(suite, case, kept, given, index)
            source = case.parameters["source"]
            magnitudes = [as_f32(bits, source) for bits in found.values()]
            # A block without a finite number shows what there is.
            finite = [magnitude for magnitude in magnitudes if magnitude < 0x7F800000]
            assert max(finite, default=0) == int(amax[place])
            for name in found:
                assert re.fullmatch(PART, name)


def test_transposed_codes_of_a_square_tensor_show_the_number_of_their_place():
    case = case_of("mx", lambda c: c.arrays["x"].shape[0] > 1 < c.arrays["x"].shape[1])
    x = case.arrays["x"]
    for given, index in (("code", (0, 1)), ("code@transposed", (1, 0))):
        assert shown("mx", case, "code", given, index) == {"x[0, 1]": int(x[0, 1])}


def test_a_byte_of_two_codes_shows_both_numbers():
    for suite, kept, given in (
        ("nvfp4_te", "packed", "packed"),
        ("nvfp4_te", "code", "code@packed"),
    ):
        case = case_of(suite, lambda c: c.arrays["x"].shape[1] > 1 == c.arrays["x"].shape[1] % 2)
        x = case.arrays["x"]
        last = x.shape[1] // 2
        assert shown(suite, case, kept, given, (0, last)) == {f"x[0, {2 * last}]": int(x[0, -1])}
        assert shown(suite, case, kept, given, (0, 0)) == {
            "x[0, 0]": int(x[0, 0]),
            "x[0, 1]": int(x[0, 1]),
        }


def test_scales_in_tiles_show_their_block_and_padding_shows_nothing():
    case = case_of(
        "nvfp4_te",
        lambda c: c.parameters["tile"] == [1, 16] and min(c.arrays["x"].shape) > 2,
    )
    given = "block_scale@swizzled_128x4"
    second_row = 16  # r % 32 * 16
    ((name, _),) = shown("nvfp4_te", case, "block_scale", given, (second_row,)).items()
    assert name.startswith("the largest of x[1:2, 0:")
    assert shown("nvfp4_te", case, "block_scale", given, (511,)) == {}


def test_a_digest_shows_the_part_that_it_is_of():
    case = golden.load("quantize_large")[0]
    x = case.arrays["x"]
    rows, columns = x.shape
    ((name, bits),) = shown(
        "quantize_large", case, "y@sha256_128x128", "y@sha256_128x128", (0, 1, 7)
    ).items()
    assert name == f"the largest of x[0:{min(128, rows)}, 128:{min(256, columns)}]"
    assert bits in x[:128, 128:256]


def test_a_scale_of_all_shows_the_largest_of_all():
    for case in golden.load("nvfp4_torchao"):
        rows, columns = case.arrays["x"].shape
        found = shown("nvfp4_torchao", case, "global_encode_scale", "global_encode_scale", (0,))
        assert list(found) == [
            "x[0, 0]" if rows * columns == 1 else f"the largest of x[0:{rows}, 0:{columns}]"
        ] or all("are not finite" in name for name in found)
    for case in golden.load("nvfp4_te_row"):
        rows, columns = case.arrays["x"].shape
        name = "global_encode_scale"
        (last,) = shown("nvfp4_te_row", case, name, name, (rows - 1,))
        assert f"[{rows - 1}:{rows}, 0:{columns}]" in last or last == f"x[{rows - 1}, 0]"


@pytest.mark.parametrize("fmt", [fmt.name for fmt in formats.values() if fmt.bits <= 8])
def test_the_largest_number_is_the_one_of_the_format(fmt):
    """Of all codes, and of all pairs: by the values of the catalogue."""
    values = [formats[fmt].value(code) for code in range(formats[fmt].code_count)]
    lost = sum(not math.isfinite(value) for value in values)
    codes = np.arange(len(values), dtype=np.uint8)
    found = largest_of("x", codes, fmt)
    assert abs(values[found.bits]) == max(filter(math.isfinite, map(abs, values)))
    assert found.what == (
        f"the largest finite number of x ({lost} are not finite)" if lost else "the largest of x"
    )
    for code in range(len(codes) - 1):
        pair = [values[code], values[code + 1]]
        found = values[largest_of("x", codes[code : code + 2], fmt).bits]
        finite = [abs(value) for value in pair if math.isfinite(value)]
        assert not finite or abs(found) == max(finite)
