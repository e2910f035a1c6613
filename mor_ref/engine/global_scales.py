"""The global scales of NVFP4: from an amax, or from a given scale."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.nvfp4 import Nvfp4Profile
from mor_ref.processor_modes import check_processor

_F = np.float32
_ONE = _F(1)
_FLT_MAX = np.finfo(np.float32).max
_LEAST_AMAX = _F(2.0**-126)


class GlobalScales(NamedTuple):
    """The binary32 scales of the tensor, or of its rows: for numbers, and for codes, and amax."""

    encode: NDArray[np.float32]
    decode: NDArray[np.float32]
    amax: NDArray[np.float32]


def global_scales(profile: Nvfp4Profile, amax: NDArray[np.float32]) -> GlobalScales:
    """NVF-003, and NVF-007 to NVF-009 for the profiles of other libraries."""
    check_processor()  # this is not a kernel
    aim = _F(profile.range)
    with np.errstate(all="ignore"):
        if profile.scales.global_scale == "g":
            g = np.divide(amax, aim)
            return GlobalScales(np.divide(_ONE, g), g, amax)
        if profile.scales.global_scale == "G":
            g = np.multiply(np.divide(_ONE, np.maximum(amax, _LEAST_AMAX)), aim)
            g[~np.isfinite(g)] = _ONE
            return GlobalScales(g, np.divide(_ONE, g), amax)
        s_enc = np.minimum(np.divide(aim, amax), _FLT_MAX)
        s_enc[(amax == 0) | (s_enc == 0)] = _ONE
        return GlobalScales(s_enc, np.divide(_ONE, s_enc), amax)


def given_scales(profile: Nvfp4Profile, amax: NDArray[np.float32], scale: float) -> GlobalScales:
    """NVF-014: the scales of the tensor, or of each row, from a given one."""
    check_processor()  # this is not a kernel
    first = np.full_like(amax, scale)
    second = np.divide(_ONE, first)
    if profile.begins_with_decode:
        return GlobalScales(second, first, amax)
    return GlobalScales(first, second, amax)
