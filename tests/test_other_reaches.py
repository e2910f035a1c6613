"""Fields of blocks with extremes of other numbers, and blocks of another size."""

import numpy as np
import pytest

from mor_ref.golden.model.suite import Case
from mor_ref.operations import OPERATIONS
from mor_ref.verify.diagnosing.other_reaches import _over, _with_extremes
from mor_ref.verify.diagnosing.sample import Pair, Sample
from mor_ref.verify.diagnosing.scales_of_other_blocks import block_of, other_block_sizes

FIELDS = ("minimum", "maximum", "scale", "inverse_scale", "zero_float", "zero_point")


@pytest.mark.parametrize("source", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("profile", ["peg", "torch_fake_tensor"])
def test_extremes_of_a_row_of_blocks_are_those_of_a_wide_block(profile, symmetric, source):
    random, exact = np.random.default_rng(4), OPERATIONS["affine"].exact
    x = random.standard_normal((5, 70)) * np.exp2(random.integers(-5, 5, (5, 1)))
    words = x.astype(np.float32).view(np.uint32)
    narrow = x.astype(np.float16).view(np.uint16) if source == "f16" else words >> 16
    inputs = {"x": words if source == "f32" else narrow.astype(np.uint16)}
    own = {"grid": "int8" if symmetric else "uint8", "profile": profile, "symmetric": symmetric}
    parameters = {**own, "block": [2, 32], "source": source}
    right, wide = exact(parameters, inputs), exact({**parameters, "block": [2, 70]}, inputs)
    for name in FIELDS:
        pair = Pair(right[name], right[name], right[name] != right[name])
        sample = Sample("affine", Case("", parameters, inputs), {name: pair})
        found = _with_extremes(_over((1, 2, 3)), sample, name).reshape(right[name].shape)
        np.testing.assert_array_equal(found, np.broadcast_to(wide[name], found.shape))


@pytest.mark.parametrize("shape", [(2, 300), (300, 2)])
def test_blocks_of_a_tensor_that_is_narrower_than_a_block_have_a_scale_for_each_number(shape):
    """Or none is known, if a smaller block would have to begin inside of a block."""
    asked = {"format": "e4m3", "scaling": "gam", "block": [128, 128], "group": "tensor"}
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32).view(np.uint32)
    sample = Sample("quantize", Case("", {**asked, "source": "f32"}, {"x": x}), {})
    blocks = [one for _, one in other_block_sizes(block_of(sample))]
    found = [one.scales(sample, "scale") for one in blocks]
    assert {scales.shape for scales in found if scales is not None} == {shape}
