"""The public layouts: as other libraries lay scales out, and the way back."""

import ml_dtypes
import numpy as np
import pytest
from extras import imported, needs

from mor_ref import layouts

RANDOM = np.random.default_rng(0)
SHAPES = [(1, 1), (3, 5), (130, 6), (256, 8)]


def bytes_of_shape(shape, below=256):
    return RANDOM.integers(0, below, shape, np.uint8)


@needs("torch", "torchao")
@pytest.mark.parametrize("shape", SHAPES)
def test_the_swizzled_layout_is_that_of_torchao(shape):
    """VEC-008."""
    torch = imported("torch")
    blocked = imported("torchao.prototype.mx_formats.utils").to_blocked
    scale = bytes_of_shape(shape)
    theirs = blocked(torch.from_numpy(scale), use_triton_kernel=False).numpy()
    assert layouts.swizzled_128x4(scale).tolist() == theirs.ravel().tolist()


@needs("torch", "torchao")
def test_packed_codes_are_those_of_torchao():
    """VEC-005."""
    pack = imported("torchao.prototype.mx_formats.kernels").pack_uint4
    codes = bytes_of_shape((6, 32), 16)
    theirs = pack(imported("torch").from_numpy(codes)).numpy()
    assert np.array_equal(layouts.packed(codes), theirs)


def test_layouts_of_few_entries():
    """VEC-004, VEC-006, VEC-007: by hand."""
    assert layouts.transposed(np.array([[1, 2, 3]], np.uint8)).tolist() == [[1], [2], [3]]
    assert layouts.replicated(np.array([[7, 8]], np.uint8), 3).tolist() == [[7, 8]] * 3
    thirds = layouts.reciprocal(np.array([[3.0, 0.5]], np.float32))
    assert thirds.dtype == np.float32
    assert thirds.tolist() == [[float(np.float32(1) / np.float32(3)), 2.0]]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "layout",
    [*layouts.MOVING, "transposed@packed", "transposed@swizzled_128x4", "packed@shuffled_16x32"],
)
def test_the_way_back(layout, shape):
    codes = bytes_of_shape(shape, 16)
    there = codes
    for name in layout.split("@"):
        there = getattr(layouts, name)(there)
    assert np.array_equal(layouts.plain(there, layout, shape), codes)


def test_small_float_dtypes_are_taken_as_their_codes():
    scale = np.array([[1.0, 2.0]], ml_dtypes.float8_e8m0fnu)
    assert layouts.transposed(scale).tolist() == [[127], [128]]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: layouts.packed(np.array([[16]], np.uint8)),
            "codes holds 16, which does not fit 4",
        ),
        (lambda: layouts.transposed(np.zeros(3, np.uint8)), r"array has shape \(3,\); give rows"),
        (lambda: layouts.swizzled_128x4([[1.5]]), "scale has dtype float64; give unsigned"),
        (lambda: layouts.reciprocal(np.ones((1, 1))), "scale has dtype float64; give float32"),
        (lambda: layouts.replicated(np.ones((1, 1), np.uint8), 0), "rows is 0"),
        (
            lambda: layouts.plain(np.zeros(6, np.uint8), "swizzled_128x4", (2, 3)),
            r"array has shape \(6,\), and \(512,\) is the shape of swizzled_128x4 for 2x3 entries",
        ),
        (
            lambda: layouts.plain(np.zeros(6, np.uint8), "swizzled", (2, 3)),
            "layout is 'swizzled'; give transposed, packed, swizzled_128x4, padded_4, ",
        ),
    ],
)
def test_what_is_refused(call, said):
    with pytest.raises((TypeError, ValueError), match=said):
        call()
