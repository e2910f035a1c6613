"""The profiles of Transformer Engine, against its own reference in torch, on a CPU.

The reference is a file of the wheel that has no library of CUDA. The package cannot be imported
without these libraries, so the file is loaded alone. The wheel is not in `peers`: Model Optimizer
imports each package that it finds, and warns in every process that this one fails.
"""

import importlib.util
import sys
import types
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from extras import needs

import mor_ref
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.recipes.training_recipes import recipes

pytestmark = needs("torch", "transformer_engine")
RECIPES = "transformer_engine.pytorch.custom_recipes"
STORAGE = "transformer_engine.pytorch.quantized_tensor"
FAST = ("te_4over6_mae_fast", "te_4over6_mse_fast")
CASES = [
    *((name, tile) for name, rules in PROFILES.items() for tile in rules.tiles
      if name.startswith("te") and name != "te_2_13"),
    *((name, (1, 16)) for name in FAST),
]  # fmt: skip


def loaded(name, patch):
    """Return a file of the wheel as a module, which others can import for a while."""
    (place,) = importlib.util.find_spec("transformer_engine").submodule_search_locations
    path = Path(place, "pytorch", "custom_recipes", f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"{RECIPES}.{name}", path)
    module = importlib.util.module_from_spec(spec)
    patch.setitem(sys.modules, module.__name__, module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def reference():
    """The class whose methods quantize; what its file imports is there while it is loaded."""
    recipes, storage = types.ModuleType(RECIPES), types.ModuleType(STORAGE)
    storage.Quantizer = storage.QuantizedTensorStorage = object
    with pytest.MonkeyPatch.context() as patch:
        recipes.quantization, recipes.utils = (
            loaded(name, patch) for name in ("quantization", "utils")
        )
        for module in (recipes, storage):
            patch.setitem(sys.modules, module.__name__, module)
        return loaded("quantization_ref_nvfp4", patch).NVFP4QuantizerRef


def tensors():
    """Yield numbers of bfloat16 and binary32: bell-shaped, at ties, wide, tiny, huge, and zeros."""
    random = np.random.default_rng(11)
    bell = random.standard_normal((384, 768)).astype(np.float32)
    # With this amax, many scales are next to ties: the order of products and quotients shows.
    near_ties = np.clip(bell, -4, 4)
    near_ties[::2, 0] = 4.375
    yield near_ties.astype(ml_dtypes.bfloat16).astype(np.float32)
    yield bell
    # Blocks whose largest number is 6 times a power of two, so that numbers of few bits are ties.
    ties = random.integers(-24, 25, (384, 768)).astype(np.float32) / 4
    ties[:, ::16] = 6
    yield ties * np.exp2(random.integers(-3, 4, (384, 48))).astype(np.float32).repeat(16, axis=1)
    yield bell * np.exp2(random.integers(-30, 30, bell.shape)).astype(np.float32)
    for scale in (2.0**-146, 2.0**-126, 2.0**-110, 2.0**120):
        yield (bell[:64] * np.float64(scale)).astype(np.float32)
    spotted = np.where(random.random((64, 768)) < 0.9, 0, bell[:64])
    spotted[0, :32], spotted[1, 0], spotted[2, 40] = -0.0, 3.4e38, -1e-45
    yield spotted.astype(np.float32)
    yield np.zeros((32, 64), np.float32)


def theirs(reference, x, profile, tile):
    """Return the codes and the scales of the reference."""
    import torch

    t, per_row = torch.from_numpy(x), profile == "te_row"
    packed, scales = reference._quantize_blockwise_reference(
        t,
        t.abs().amax(dim=1, keepdim=True) if per_row else t.abs().max(),
        tile[1],
        tile[0],
        pow_2_scales=False,
        row_scaled_nvfp4=per_row,
        nvfp4_use_4over6="4over6" in profile,
        nvfp4_e4m3_max=448 if profile.endswith("448") else 256,
        nvfp4_4over6_err_mode="MSE" if "mse" in profile else "MAE",
        nvfp4_4over6_err_use_fast_math=profile in FAST,
        eps=0.0,
    )
    both = torch.stack([packed & 15, packed >> 4], dim=-1).reshape(x.shape)
    return both.numpy(), scales.view(torch.uint8).numpy()


@pytest.mark.tier("full", but=["[te-", "[te_row-"])
@pytest.mark.parametrize(("profile", "tile"), CASES, ids=str)
def test_codes_and_scales_are_those_of_the_reference(reference, profile, tile):
    """NVF-004, NVF-006, NVF-010, NVF-012 and FPF-001: a million numbers, but for the sign of 0."""
    count = 0
    for x in tensors():
        codes, scales = theirs(reference, x, profile, tile)
        if profile in FAST:
            found = mor_ref.quantize(x, profile)
            ours = found.codes, found.scales["s"]
        else:
            found = mor_ref.quantize_nvfp4(x, profile=profile, tile=tile)
            ours = found.codes, found.block_scale.repeat(tile[0], axis=0)
        assert np.array_equal(ours[1], scales)
        # The reference drops the sign of -0; the kernels keep it.
        with_signs = np.where((codes == 0) & np.signbit(x) & (ours[0] == 8), 8, codes)
        assert np.array_equal(ours[0], with_signs)
        count += x.size
    assert count > 1_000_000


def test_the_transform_is_that_of_the_reference(reference):
    """TRN-009: a million numbers whose sums are exact, so that no order of them matters."""
    import torch

    from mor_ref.torch.linear import transformed

    numbers = np.random.default_rng(12).integers(-255, 256, (1024, 1024))
    x = torch.from_numpy(numbers.astype(np.float32)).bfloat16()
    own = types.SimpleNamespace(with_rht=True, quant_tile_shape=(1, 16), with_random_sign_mask=True)
    own._build_hadamard_matrix = reference._build_hadamard_matrix
    wanted = reference._apply_rht(own, x)
    signs = recipes["nvfp4_te"].input.column.hadamard.signs
    assert torch.equal(transformed(x.T.contiguous(), signs).T, wanted)
    assert not torch.equal(transformed(x.T.contiguous(), signs ^ 1).T, wanted)
