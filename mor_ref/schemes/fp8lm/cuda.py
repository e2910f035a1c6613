"""Steps of FP8-LM on a device."""

from collections.abc import Mapping

import numpy as np

from mor_ref.cuda import structures as rows
from mor_ref.cuda.launching import Array, Device, launch
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats

_SCALING = rows.structure("f4 largest; i4 margin; u4 is_exact")
_SUMS = np.dtype(
    [("from", rows.DECODING), ("to", rows.ENCODING), ("unit", "i4"), ("by_rank", "u4")], align=True
)
_INPUTS = (
    "first", "second", "master", "gradient", "first_inverse", "second_inverse", "master_inverse",
    "lr", "beta1", "beta2", "eps", "weight_decay", "rate", "root",
)  # fmt: skip
_UPDATED = ("new_first", "new_second", "new_master")
_ADAM = rows.structure(f"u8 {','.join((*_INPUTS, *_UPDATED))}")


def _empty(device: Device, count: int, names: tuple[str, ...]) -> dict[str, Array]:
    return {name: device.empty((count,), np.uint32) for name in names}


def scaling(fmt: Format, margin: int, profile: str) -> rows.Row:
    """Return the numbers that a scale follows from, for kernels."""
    return rows.row(_SCALING, largest=fmt.largest, margin=margin, is_exact=profile == "exact")


def scales(
    device: Device, amax: Array, previous: Array, fmt: Format, margin: int, profile: str
) -> dict[str, Array]:
    """Return the scales of amaxes, and the numbers that they follow from (FLM-001)."""
    count = int(amax.size)
    by_name = _empty(device, count, ("ratio", "exponent", "scale", "scale_inv"))
    arguments = (amax, previous, np.uint64(count), scaling(fmt, margin, profile))
    launch(device, "fp8lm", "fp8lm_scales", count, *arguments, *by_name.values())
    return by_name


def casts(device: Device, x: Array, scale: Array, fmt: Format) -> dict[str, Array]:
    """Return the codes and y of numbers, each with a scale of its own."""
    count, bits = int(x.size), 8 if fmt.bits <= 8 else 16
    code = device.empty((count,), f"u{bits // 8}")
    by_name = {"code": code, **_empty(device, count, ("scale_inv", "y"))}
    arguments = (x, scale, np.uint64(count), rows.encoding(fmt), rows.decoding(fmt))
    launch(device, "fp8lm", f"fp8lm_casts_u{bits}", count, *arguments, *by_name.values())
    return by_name


def sums_of_ranks(device: Device, codes: Array, fmt: Format, sums: str) -> Array:
    """Return the code of the sum of each row."""
    (count, ranks), bits = codes.shape, 8 if fmt.bits <= 8 else 16
    unit = fmt.smallest_exponent - fmt.mantissa_bits
    rule = rows.row(
        _SUMS, **{"from": rows.decoding(fmt)}, to=rows.encoding(fmt), unit=unit,
        by_rank=sums == "by_rank",
    )  # fmt: skip
    sum_codes = device.empty((count,), f"u{bits // 8}")
    arguments = (codes, np.uint64(count), np.uint64(ranks), rule, sum_codes)
    launch(device, "fp8lm", f"fp8lm_sums_u{bits}", count, *arguments)
    return sum_codes


def adam(device: Device, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return the moments and the weights after a step."""
    count = int(arrays["first"].size)
    updated = _empty(device, count, _UPDATED)
    places = {name: device.address(array) for name, array in {**arrays, **updated}.items()}
    e4m3, f16 = (rows.decoding(formats[name]) for name in ("e4m3", "f16"))
    arguments = (rows.row(_ADAM, **places), np.uint64(count), e4m3, f16)
    launch(device, "fp8lm", "fp8lm_adam", count, *arguments)
    return updated
