"""Views: the layouts that kernels write, against other people's code and by hand."""

import hashlib
import struct

import numpy as np
import pytest
from extras import needs

from mor_ref import golden
from mor_ref.golden import bundled_files
from mor_ref.golden.inputs.generated import generated
from mor_ref.golden.inputs.placed import End, Region, ends_of
from mor_ref.golden.model.views import VIEWS, seen, split
from mor_ref.golden.store.manifest import read_manifest
from mor_ref.operations import OPERATIONS, random_words
from mor_ref.operations.bits import tensor_of
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.comparing.evidence import Evidence
from mor_ref.verify.comparing.names_given import fields_of
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in

RANDOM = np.random.default_rng(0)


def test_transposed():
    """VEC-004."""
    array = RANDOM.integers(0, 256, (3, 5), np.uint8)
    assert seen(array, ["transposed"], {})[4, 2] == array[2, 4]


def test_packed():
    """VEC-005, which NVF-011 has for the suites of NVFP4 as a field of its own."""
    assert seen(np.array([[1, 2, 3]], np.uint8), ["packed"], {}).tolist() == [[0x21, 0x03]]
    for case in golden.load("nvfp4_te")[:12]:
        assert np.array_equal(seen(case.arrays["code"], ["packed"], {}), case.arrays["packed"])


@pytest.mark.tier("full")
def test_packed_columns():
    """VEC-003, VEC-005: a kernel that quantizes columns packs the rows of its result."""
    name = "code@transposed@packed"
    for case in golden.load("nvfp4_te")[:12]:
        codes = case.arrays["code"].T
        odd = [[*row, 0] if len(row) % 2 else row for row in codes.tolist()]
        packed = np.array([[a | b << 4 for a, b in zip(r[::2], r[1::2], strict=True)] for r in odd])
        assert np.array_equal(seen(case.arrays["code"], split(name)[1], case.parameters), packed)
        assert differences(case, {name: packed}) == []
        packed[-1, -1] ^= 1
        (difference,) = differences(case, {name: packed})
        place = 2 * (packed.shape[1] - 1), packed.shape[0] - 1  # of the plain array
        assert difference.entries[0].index == place


def test_what_is_not_of_four_bits_is_not_packed():
    """VEC-005."""
    codes = np.zeros((2, 2), np.uint8)

    def function(operation, parameters, _):
        return (
            {"code@packed": codes} if operation == "mx" and parameters["format"] != "e2m1" else {}
        )

    found = verify(PythonFunction("packs", function), suites_in(bundled_files(), ["mx"]))
    assert found.verdict == "mismatch"
    assert "packed is of codes of 4 bits, and e4m3 has 8" in str(found.results[0].differences[0])


def test_reciprocal():
    """VEC-006, as the machine divides."""
    bits = RANDOM.integers(0x00800000, 0x7F000000, (4, 6), np.uint32)
    wanted = (np.float32(1) / bits.view(np.float32)).view(np.uint32)
    assert np.array_equal(seen(bits, ["reciprocal"], {}), wanted)


def test_replicated():
    """VEC-007."""
    scale = np.array([[1, 2], [3, 4]], np.uint8)
    wide = seen(scale, ["replicated"], {"tile": [16, 16]})
    assert wide.shape == (32, 2)
    assert wide[15].tolist() == [1, 2]
    assert wide[16].tolist() == [3, 4]


def swizzled_by_formula(scale):
    """VEC-008: each entry is where the formula puts it, and the rest is 0."""
    rows, columns = scale.shape
    tiles = -(-columns // 4)
    flat = np.zeros(-(-rows // 128) * 128 * tiles * 4, np.uint8)
    for r in range(rows):
        for c in range(columns):
            at = ((r // 128) * tiles + c // 4) * 512 + (r % 32) * 16 + (r // 32 % 4) * 4 + c % 4
            flat[at] = scale[r, c]
    return flat


@pytest.mark.parametrize("shape", [(1, 1), (128, 4), (129, 5), (300, 33)])
def test_swizzled(shape):
    """VEC-008."""
    scale = RANDOM.integers(1, 256, shape, np.uint8)
    assert np.array_equal(seen(scale, ["swizzled_128x4"], {}), swizzled_by_formula(scale))


def in_memory_of_32x8(scale):
    """VEC-018: each byte is where the formula puts it, and the rest is 0."""
    rows, columns = scale.shape
    height, width = -(-rows // 256) * 256, -(-columns // 8) * 8
    flat = np.zeros(height * width, np.uint8)
    for row, column in np.ndindex(rows, columns):
        tile, r, c = row // 32 * (width // 8) + column // 8, row % 32, column % 8
        flat[tile * 256 + (c % 4) * 64 + (r % 16) * 4 + c // 4 * 2 + r // 16] = scale[row, column]
    return flat.reshape(height, width)


def in_memory_of_16x32(codes):
    """VEC-019: each byte is where the formula puts it, and the rest is 0."""
    rows, columns = codes.shape
    height, width = -(-rows // 16) * 16, -(-columns // 32) * 32
    flat = np.zeros(height * width, np.uint8)
    for row, column in np.ndindex(rows, columns):
        tile, r, c = row // 16 * (width // 32) + column // 32, row % 16, column % 32
        flat[tile * 512 + c // 16 * 256 + r * 16 + c % 16] = codes[row, column]
    return flat.reshape(height, width)


def packed_by_formula(scale):
    """VEC-017: four columns of a row in a word."""
    rows, columns = scale.shape
    words = np.zeros((-(-columns // 4), -(-rows // 4) * 4), "<u4")
    for row, column in np.ndindex(rows, columns):
        words[column // 4, row] |= int(scale[row, column]) << 8 * (column % 4)
    return words.view(np.uint8)


def mn_major_by_formula(scale):
    """VEC-016."""
    columns = [[*scale[:, c], *[0] * (-len(scale) % 4)] for c in range(scale.shape[1])]
    return np.array(columns, scale.dtype)


def padded_by_formula(scale):
    """VEC-015."""
    return np.array([[*row, *[0] * (-len(row) % 4)] for row in scale], scale.dtype)


BY_FORMULA = {
    "padded_4": padded_by_formula,
    "mn_major": mn_major_by_formula,
    "mn_major_packed": packed_by_formula,
    "shuffled_32x8": in_memory_of_32x8,
    "shuffled_16x32": in_memory_of_16x32,
}


@pytest.mark.parametrize("view", BY_FORMULA)
@pytest.mark.parametrize("shape", [(1, 1), (16, 32), (33, 7), (130, 9), (257, 40)])
def test_layouts_of_scales_and_weights(view, shape):
    """VEC-015, VEC-016, VEC-017, VEC-018, VEC-019."""
    codes = RANDOM.integers(1, 256, shape, np.uint8)
    assert np.array_equal(seen(codes, [view], {}), BY_FORMULA[view](codes))


def test_scales_as_deepgemm_and_aiter_have_them():
    """VEC-016 to VEC-018: with anything in the padding; a wrong order of words is a mismatch."""
    case, found = case_and_fields("mx_large", "e4m3.floor")
    scale, code = found["scale"], found["code"]
    for view in ("mn_major_packed", "shuffled_32x8"):
        there = seen(scale, [view], {})
        places = seen(np.ones_like(scale), [view], {})
        anything = np.where(places == 0, 0xA5, there).astype(np.uint8)
        assert differences(case, {f"scale@{view}": anything}, "mx_large") == []
        (fault,) = differences(case, {f"scale@{view}": there[:, ::-1]}, "mx_large")
        assert fault.count
    shuffled = seen(code, ["shuffled_16x32"], {})
    assert differences(case, {"code@shuffled_16x32": shuffled}, "mx_large") == []
    case = golden.load("mx")[0]
    words = seen(case.arrays["scale"], ["mn_major_packed"], {}).view(np.int32)
    (fault,) = differences(case, {"scale@mn_major_packed": words}, "mx")
    assert "has 4 bytes of scale@mn_major_packed, the first in the low bits, give uint8" in str(
        fault
    )


def differences(case, answer, suite="nvfp4_te"):
    """Return the faults of an answer to a case."""
    entry = read_manifest(bundled_files())["suites"][suite]
    fields = fields_of(entry)
    found = Evidence(suite, entry["operation"], fields, [case], {case.name: answer})
    return list(found.differences())


def case_and_fields(suite, name):
    """Return a case of a large suite, and its fields, which the suite has as digests."""
    (case,) = (case for case in golden.load(suite) if case.name == name)
    operation = read_manifest(bundled_files())["suites"][suite]["operation"]
    return case, OPERATIONS[operation].engine(case.parameters, {"x": case.arrays["x"]})


def test_layouts_of_fields_that_are_compared_as_digests():
    """VEC-003, VEC-010: the digests are those of the plain array."""
    case, found = case_and_fields("mx_large", "e4m3.floor")
    scale, code = swizzled_by_formula(found["scale"]), found["code"].T
    layouts = {"scale@swizzled_128x4": scale, "code@transposed": code, "y": found["y"]}
    assert differences(case, layouts, "mx_large") == []
    assert differences(case, {"scale@transposed": found["scale"].T}, "mx_large") == []
    case, found = case_and_fields("mx_large", "e2m1.rceil")
    packed = found["code"][:, ::2] | found["code"][:, 1::2] << 4
    assert differences(case, {"code@packed": packed}, "mx_large") == []
    case, found = case_and_fields("nvfp4_large", "tall.te.16x16")
    rows = np.repeat(found["block_scale"], 16, axis=0)
    swizzled = swizzled_by_formula(rows)
    layouts = {"block_scale@replicated@swizzled_128x4": swizzled}
    assert differences(case, layouts, "nvfp4_large") == []
    assert differences(case, {"block_scale@replicated": rows}, "nvfp4_large") == []


def test_fields_of_rungs_that_are_compared_as_digests():
    """They are not among those that no suite compares."""
    case = min(golden.load("policies_large"), key=lambda case: case.arrays["x"].size)
    entry = read_manifest(bundled_files())["suites"]["policies_large"]
    answer = {"e4m3.sum": np.zeros((1, 1), np.uint64), "e4m3.code": np.zeros((1, 1), np.uint8)}
    found = Evidence("policies_large", "mor", fields_of(entry), [case], {case.name: answer})
    assert found.given == ["e4m3.sum@sha256_128x128"]
    assert found.of_rungs == ["e4m3.code"]


def test_faults_of_layouts_of_fields_that_are_compared_as_digests():
    """VEC-010, VEC-013: of an entry, of padding, of copies, of the shape and of the layout."""

    def fault(name, array):
        (difference,) = differences(case, {name: array}, suite)
        return difference

    suite = "mx_large"
    case, found = case_and_fields(suite, "e4m3.floor")
    scale = found["scale"].copy()
    scale[200, 9] ^= 1
    wrong = fault("scale@swizzled_128x4", swizzled_by_formula(scale))
    assert wrong.count
    assert {entry.index[:2] for entry in wrong.entries} == {(1, 0)}  # the tile of the entry
    padded = swizzled_by_formula(found["scale"])
    padded[-1] = 1
    said = "is as expected, but has 1 entry of padding that is not 0; write 0 there (VEC-008)"
    assert fault("scale@swizzled_128x4", padded).problem == said
    assert (
        "has shape (6143,), and (4608,) is exp"
        in fault("scale@swizzled_128x4", np.zeros(6143, np.uint8)).problem
    )
    assert (
        "code has no view 'swizzled_128x4'" in fault("code@swizzled_128x4", found["code"]).problem
    )
    suite = "nvfp4_large"
    case, found = case_and_fields(suite, "tall.te.16x16")
    rows = np.repeat(found["block_scale"], 16, axis=0)
    rows[3, 0] ^= 1
    assert (
        "has 1 entry unlike the other rows of the same tile"
        in fault("block_scale@replicated", rows).problem
    )


def test_padding_is_compared():
    """VEC-013: where a view has some."""
    case = golden.load("nvfp4_te")[0]
    flat = seen(case.arrays["block_scale"], ["swizzled_128x4"], {})
    assert differences(case, {"block_scale@swizzled_128x4": flat}) == []
    flat[-1] ^= 1
    (difference,) = differences(case, {"block_scale@swizzled_128x4": flat})
    assert "has 1 entry of padding that is not 0; write 0 there" in difference.problem
    longer = np.append(
        case.arrays["code"], np.zeros((1, case.arrays["code"].shape[1]), np.uint8), 0
    )
    (difference,) = differences(case, {"code": longer})
    assert "has shape" in difference.problem


@needs("torch", "torchao")
@pytest.mark.parametrize("shape", [(128, 4), (200, 12), (33, 7)])
def test_swizzled_as_torchao_has_it(shape):
    """VEC-008: an independent implementation."""
    import torch
    from torchao.prototype.mx_formats.utils import to_blocked

    scale = RANDOM.integers(0, 256, shape, np.uint8)
    wanted = to_blocked(torch.from_numpy(scale), use_triton_kernel=False).numpy()
    assert np.array_equal(seen(scale, ["swizzled_128x4"], {}), wanted.ravel())


def test_digests_of_tiles():
    """VEC-010."""
    array = RANDOM.integers(0, 1 << 32, (130, 200), np.uint32)
    found = seen(array, ["sha256_128x128"], {})
    assert found.shape == (2, 2, 32)
    tile = np.ascontiguousarray(array[128:, 128:]).astype("<u8").tobytes()
    assert bytes(found[1, 1]) == hashlib.sha256(tile).digest()


def random(i, seed, stream):
    mask = (1 << 64) - 1
    z = (1 + i + (stream << 32) + (seed << 48)) * 0x9E3779B97F4A7C15 & mask
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
    return z ^ z >> 31


@pytest.mark.parametrize(
    ("source", "kept"), [("f32", 0x1E66D78C), ("f16", 0xD78C), ("bf16", 0xD78C)]
)
def test_placed_elements(source, kept):
    """VEC-009: later entries replace earlier ones, and the source has the low bits."""
    recipe = {"shape": [3, 5], "seed": 0, "stream": 0}
    entries = [[2, 4, 1], [0, 2, 6, 7], [2, 4, 0x1E66D78C]]
    placed = generated({**recipe, "placed": entries}, source)
    expected = generated(recipe, source)
    expected[0, 2], expected[0, 3], expected[2, 4] = 6, 7, kept
    assert np.array_equal(placed, expected)


@pytest.mark.parametrize("end", [*End])
@pytest.mark.parametrize("source", ["f32", "f16", "bf16"])
def test_the_end_of_a_region(source, end):
    recipe = {"shape": [70, 12], "seed": 0, "stream": 5}
    region = Region(slice(60, 70), slice(2, 9))
    before = np.asarray(tensor_of(generated(recipe, source)[region], source), np.float64)
    entries = [*ends_of(generated(recipe, source), source, region, [end])]
    x = generated({**recipe, "placed": entries}, source)
    after = np.asarray(tensor_of(x, source)[region], np.float64)
    size, last = np.abs(before), after[-1, -1]
    match end:
        case End.LARGEST:
            assert last == before.flat[size.argmax()]
            assert after.flat[size.argmax()] == last / 2
        case End.SMALLEST:
            assert last == size[size > 0].min() / 2
        case End.INFINITY:
            assert last == np.inf
        case End.NAN:
            assert np.isnan(last)
    assert (before != after).sum() == len(entries)
    assert np.array_equal(x[:60], generated(recipe, source)[:60])


@pytest.mark.parametrize("source", ["f32", "f16", "bf16"])
@pytest.mark.parametrize(
    ("more", "larger"), [({}, 16), ({"doublings": 0}, 1), ({"doublings": 9}, 512)]
)
def test_generated_tensors(source, more, larger):
    """VEC-009, with Python's integers and floats."""
    rows, columns, seed, stream = 70, 110, 3, 9
    x = generated({"shape": [rows, columns], "seed": seed, "stream": stream, **more}, source)
    mask = (1 << 22) - 1
    for r in range(0, rows, 7):
        for c in range(0, columns, 11):
            k = r * columns + c
            words = random(k, seed, stream), random(k + rows * columns, seed, stream)
            n = sum((w >> s) & mask for w in words for s in (0, 32)) - (1 << 23)
            value = n * 2.0**-22 * (larger if r % 61 == 7 else 1) * (8 if c % 97 == 11 else 1)
            if source == "f16":
                (bits,) = struct.unpack("<H", struct.pack("<e", value))
            else:
                (bits,) = struct.unpack("<I", struct.pack("<f", value))
            assert x[r, c] == (bits >> 16 if source == "bf16" else bits)


def test_large_suites_hold_what_their_recipe_generates():
    for case in golden.load("nvfp4_large"):
        assert case.arrays["x"].shape == tuple(case.parameters["recipe"]["shape"])
        assert "code@sha256_128x128" in case.arrays


def test_names():
    """VEC-003."""
    assert split("code@replicated@swizzled_128x4") == ("code", ["replicated", "swizzled_128x4"])
    with pytest.raises(ValueError, match="view is 'swizled_128x4', which is not known; did you m"):
        split("scale@swizled_128x4")
    assert all(view.meaning for view in VIEWS.values())


def test_every_random_word_is_of_its_counter():
    assert random_words.random_words(5, 1, 2).tolist() == [random(i, 1, 2) for i in range(5)]
