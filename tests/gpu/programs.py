"""The programs of this directory, compiled as the kernels are: for tests with a GPU and without."""

import shutil
import tempfile
from pathlib import Path

import numpy as np

from mor_ref.cuda import nvrtc, source
from mor_ref.cuda import structures as rows
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.definitions.formats import formats

HERE = Path(__file__).parent
_NARROW = (100, 103, 110, 120, 121)  # families that convert to 4 and 6 bits, and to e8m0


def architecture(capability):
    """Return the architecture to compile for; some features need the "a" of its family."""
    return f"sm_{capability}{'a' if capability in _NARROW else ''}"


def conversions_of(capability):
    """Return the conversions that a GPU has, and the integer encoder's arguments for each."""
    names = [("bf16", 80, SpecialCases(overflow="ieee"))]
    names += [(name, 89, SpecialCases()) for name in ("e4m3", "e5m2")]
    found = {
        name: rows.encoding(formats[name], "rne", special)
        for name, first, special in names
        if capability >= first
    }
    if capability in _NARROW:
        found |= {name: rows.encoding(formats[name]) for name in ("e2m3", "e3m2", "e2m1")}
        for mode, rounding in (("rp", "rtp"), ("rz", "rtz")):
            to = rows.power_encoding(formats["e8m0"], rounding, SpecialCases())
            found[f"e8m0_{mode}"] = to
    return found


def compiled_conversions(capability):
    """Return PTX and a cubin of all conversions that a GPU has."""
    with tempfile.TemporaryDirectory() as place:
        folder = shutil.copytree(source.KERNELS, Path(place) / "kernels")
        shutil.copy(HERE / "conversions.cu", folder / "hardware.cu")
        text = source._with_headers("hardware.cu", folder, set())
    options = (*nvrtc.ARITHMETIC, *(["-DMOR_NARROW"] if capability in _NARROW else []))
    return nvrtc.compiled(text, architecture(capability), "conversions", options)


def compiled_canary(capability, options=nvrtc.ARITHMETIC):
    """Return PTX and a cubin of plain arithmetic under some options."""
    text = (HERE / "canary.cu").read_text("utf-8")
    return nvrtc.compiled(text, f"sm_{capability}", "canary", options)


def canary_numbers():
    """Return numbers that show every wrong option in products and quotients, and the results."""
    random = np.random.default_rng(4)
    x, y = (random.integers(0, 1 << 23, 1 << 16, np.uint32) | np.uint32(0x3F800000) for _ in "xy")
    x, y = x.view(np.float32), y.view(np.float32)
    x[:1000] *= np.float32(2.0**-100)
    y[:1000] *= np.float32(2.0**-30)
    x[1000:2000] *= np.float32(2.0**-127)
    with np.errstate(under="ignore"):
        right = np.stack([x * y, x * y - x, x / y], axis=1)
    return x, y, right


WRONG_OPTIONS = {
    "contraction": ("--fmad=true", *nvrtc.ARITHMETIC[1:]),
    "flushing": (nvrtc.ARITHMETIC[0], "--ftz=true", *nvrtc.ARITHMETIC[2:]),
    "approximation": (*nvrtc.ARITHMETIC[:2], "--prec-div=false", nvrtc.ARITHMETIC[3]),
}
