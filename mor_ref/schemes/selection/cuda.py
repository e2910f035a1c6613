"""Selections of numbers on a device, and y of the representations that select."""

import numpy as np

from mor_ref.cuda.launching import Array, Bits, Device, launch
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.integer_grids import integer_grid
from mor_ref.schemes.affine.cuda import Choices, quantize_affine
from mor_ref.schemes.affine.definition import affine_profile
from mor_ref.schemes.levels.cuda import first_alphas, quantize_levels
from mor_ref.schemes.levels.definition import level_kind

_SHIFTS = (24, 16, 8, 0)  # of the digits of a threshold


def by_rank(device: Device, x: Bits, share: float) -> Array:
    """Return 1 for each number above the threshold (SEL-001)."""
    selected, count = device.empty(x.array.shape, np.uint8), np.uint64(x.size)
    if not x.size:
        return selected
    place = min(int(x.size * share), x.size - 1)
    state = device.upload(np.array([place, 0], np.uint64))
    counts = device.filled((256,), np.uint64, 0)
    for shift in _SHIFTS:
        arguments = (x.array, count, state, np.uint32(shift), counts)
        launch(device, "selection", f"rank_counts_{x.source}", x.size, *arguments)
        launch(device, "selection", "rank_digit", 1, state, counts)
    name = f"selected_by_rank_{x.source}"
    launch(device, "selection", name, x.size, x.array, count, state, selected)
    return selected


def by_column(device: Device, x: Bits, limit: float) -> Array:
    """Return 1 for each number of a column with an outlier (SEL-002)."""
    selected, columns = device.empty(x.array.shape, np.uint8), x.array.shape[1]
    if not x.size:
        return selected
    sides = np.uint64(x.size), np.uint64(columns)
    has_outlier = device.filled((columns,), np.uint32, 0)
    least = np.float32(limit).view(np.uint32)
    name = f"outlier_columns_{x.source}"
    launch(device, "selection", name, x.size, x.array, *sides, least, has_outlier)
    launch(device, "selection", "selected_by_column", x.size, has_outlier, *sides, selected)
    return selected


def pb_llm(device: Device, x: Bits, share: float) -> Array:
    """Return y of weights with PB-LLM (SEL-003)."""
    y, is_low = _integers(device, x, "uint8", "onnxruntime"), by_rank(device, x, share) == 0
    low = x.array[is_low].reshape(1, -1)
    if low.size:
        rest, kind = Bits(low, x.source), level_kind("elastic1")
        alpha = first_alphas(device, rest, kind, "f32")
        y[is_low] = quantize_levels(device, rest, alpha, kind, "f32").y.reshape(-1)
    return y


def llm_int8(device: Device, x: Bits, limit: float) -> Array:
    """Return y of activations with LLM.int8 (SEL-004)."""
    is_kept, words = by_column(device, x, limit) == 1, _binary32(x)
    magnitude, least = words & np.uint32(0x7FFFFFFF), np.float32(limit).view(np.uint32)
    rest = words.copy()
    rest[(magnitude >= least) & (magnitude <= np.uint32(0x7F800000))] = 0
    y = _integers(device, Bits(rest, "f32"), "int8", "bnb_int8_row")
    y[is_kept] = words[is_kept]
    return y


def _integers(device: Device, x: Bits, grid: str, profile: str) -> Array:
    """Return y of rows as integers; the numbers count as binary32 (SEL-005)."""
    integers, rule = integer_grid(grid), affine_profile(profile)
    choices = Choices(rule, integers, rule.stores_amax, "f32")
    return quantize_affine(device, x, choices, partition(x.array.shape, "row")).y


def _binary32(x: Bits) -> Array:
    """Return the numbers as patterns of binary32."""
    if x.source == "bf16":
        return x.array.astype(np.uint32) << np.uint32(16)
    if x.source == "f16":
        return x.array.view(np.float16).astype(np.float32).view(np.uint32)
    return x.array
