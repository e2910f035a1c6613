"""The pipelines as a careful user would write them: whole arrays, float32 between, float sums.

In NumPy with ml_dtypes, and in eager torch; scaling blocks of 128 x 128, and one
mantissa for all where nothing else is said.
"""

import ml_dtypes
import numpy as np

SIDE = 128
LARGEST = {"e4m3": 448.0, "e5m2": 57344.0}
SMALLEST_NORMAL_E5M2 = 2.0**-14
THRESHOLD = 0.045
THRESHOLD_NVFP4 = 0.2
E2M1_MIDPOINTS = (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0)
E2M1_TIE_GOES_UP = (False, True, False, True, False, True, False)
E2M1_VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def numpy_quantize(x):
    """Return tiles of x, codes, their values, and the mean relative error of all."""
    rows, columns = x.shape
    tiles = x.astype(np.float32).reshape(rows // SIDE, SIDE, columns // SIDE, SIDE)
    magnitudes = np.abs(tiles)
    ideal = (np.float32(448) / magnitudes.max(axis=(1, 3))).view(np.uint32)
    shared = (np.float32(448) / magnitudes.max()).view(np.uint32) & 0x7FFFFF
    exponent = (ideal >> 23) - (shared > (ideal & 0x7FFFFF))
    scale = ((exponent << 23) | shared).astype(np.uint32).view(np.float32)[:, None, :, None]
    codes = (tiles * scale).astype(ml_dtypes.float8_e4m3fn)
    y = codes.astype(np.float32) / scale
    counts = magnitudes > 0
    errors = np.where(counts, np.abs(tiles - y) / np.where(counts, magnitudes, 1), 0)
    return codes, y, errors.sum(dtype=np.float64) / counts.sum()


def numpy_mor(x):
    """Return codes and output of the policy `tensor`."""
    codes, y, mean = numpy_quantize(x)
    return codes, y.reshape(x.shape).astype(x.dtype) if mean < THRESHOLD else x.copy()


def torch_tiles(x):
    """Return the tiles of a matrix as float32, with axes of their own for rows and columns."""
    rows, columns = x.shape
    return x.float().view(rows // SIDE, SIDE, columns // SIDE, SIDE)


def torch_scales(tiles, fmt, scaling):
    """Return the scale of each tile: with one mantissa for all, as a power of two, or unrounded."""
    import torch

    magnitudes = tiles.abs()
    numerator = torch.tensor(LARGEST[fmt])  # a plain number would be multiplied by reciprocals
    ideal = (numerator / magnitudes.amax(dim=(1, 3))).view(torch.int32)
    if scaling == "fp32":
        return ideal.view(torch.float32)
    if scaling == "e8m0":
        return (ideal & 0x7F800000).view(torch.float32)
    shared = (numerator / magnitudes.max()).view(torch.int32) & 0x7FFFFF
    exponent = (ideal >> 23) - (shared > (ideal & 0x7FFFFF)).int()
    return ((exponent << 23) | shared).view(torch.float32)


def torch_scaled(tiles, fmt, scaling="gam"):
    """Return codes and their values."""
    import torch

    dtype = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}[fmt]
    scale = torch_scales(tiles, fmt, scaling)[:, None, :, None]
    codes = (tiles * scale).to(dtype)
    return codes, codes.float() / scale


def torch_errors(tiles, y):
    """Return the sum of the relative errors of each tile, and the count of its numbers."""
    import torch

    magnitudes = tiles.abs()
    counts = magnitudes > 0
    errors = torch.where(counts, (tiles - y).abs() / magnitudes, 0)
    return errors.sum(dim=(1, 3)), counts.sum(dim=(1, 3))


def torch_quantize(x, scaling="gam"):
    """Return codes, their values, and the mean relative error of all."""
    tiles = torch_tiles(x)
    codes, y = torch_scaled(tiles, "e4m3", scaling)
    errors, counts = torch_errors(tiles, y)
    return codes, y, errors.sum() / counts.sum()


def torch_mor(x):
    """Return codes and output of the policy `tensor`."""
    codes, y, mean = torch_quantize(x)
    return codes, y.view(x.shape).bfloat16() if mean < THRESHOLD else x.clone()


def torch_by_block(x, *, three_way):
    """Return the outputs of the policies `two_way` and `three_way`."""
    import torch

    tiles = torch_tiles(x)
    (_, narrow), (_, wide) = (torch_scaled(tiles, fmt) for fmt in LARGEST)
    narrow_is_better = torch_errors(tiles, narrow)[0] <= torch_errors(tiles, wide)[0]
    otherwise = tiles
    if three_way:
        magnitudes = tiles.abs()
        amin = torch.where(magnitudes > 0, magnitudes, torch.inf).amin(dim=(1, 3))
        fits = magnitudes.amax(dim=(1, 3)) <= amin * (LARGEST["e5m2"] / SMALLEST_NORMAL_E5M2)
        otherwise = torch.where(fits[:, None, :, None], wide, tiles)
    chosen = torch.where(narrow_is_better[:, None, :, None], narrow, otherwise)
    return chosen.view(x.shape).bfloat16()


def torch_nvfp4(x):
    """Return codes, stored scales and scales of the codes: NVFP4 with profile te, tiles of 1x16."""
    import torch

    tiles = x.float().view(-1, 16)
    s_enc = torch.tensor(2688.0) / tiles.abs().max()
    stored = (tiles.abs().amax(dim=1) * (s_enc * (1.0 / 6.0))).to(torch.float8_e4m3fn)
    decode = stored.float() * (1.0 / s_enc)
    scaled = tiles * (1.0 / decode)[:, None]
    magnitude = scaled.abs()
    codes = torch.signbit(scaled).to(torch.uint8) << 3
    for midpoint, up in zip(E2M1_MIDPOINTS, E2M1_TIE_GOES_UP, strict=True):
        codes += magnitude >= midpoint if up else magnitude > midpoint
    return codes, stored, decode


def torch_mor_nvfp4(x):
    """Return the output of the policy `nvfp4`."""
    import torch

    tiles = torch_tiles(x)
    codes, _, decode = torch_nvfp4(x)
    values = torch.tensor([*E2M1_VALUES, *(-v for v in E2M1_VALUES)])
    small = (values[codes.int()] * decode[:, None]).view(tiles.shape)
    _, narrow = torch_scaled(tiles, "e4m3")
    taken = tiles
    for y, threshold in ((narrow, THRESHOLD), (small, THRESHOLD_NVFP4)):
        errors, counts = torch_errors(tiles, y)
        taken = torch.where((errors < threshold * counts)[:, None, :, None], y, taken)
    return taken.view(x.shape).bfloat16()


def torch_integers(rows, symmetric, steps):
    """Return codes and scale of each row, zero points, xs, y, and the error sums.

    `steps` divide amax, or the range if there are zero points.
    """
    import torch

    least, most = torch.aminmax(rows, dim=1, keepdim=True)
    low, high = -least.clamp(max=0), most.clamp(min=0)
    width = torch.maximum(low, high) if symmetric else high + low
    scale = (width / torch.tensor(steps)).clamp(min=2.0**-23)
    zero = torch.zeros(()) if symmetric else torch.round(low / scale)
    lowest, highest = (-(steps + 0.5), steps - 0.5) if symmetric else (0, steps)
    xs = rows * (1.0 / scale)
    q = torch.clamp(torch.round(xs) + zero, lowest, highest)
    codes = q.to(torch.int8 if symmetric else torch.uint8)
    y = (q - zero) * scale
    magnitudes = rows.abs()
    counts = magnitudes > 0
    errors = torch.where(counts, ((rows - y).abs() / magnitudes).clamp(max=1), 0)
    return codes, scale, zero, xs, y, errors.sum(dim=1), counts.sum(dim=1)
