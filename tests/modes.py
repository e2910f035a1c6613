"""The modes of the processor: directions of rounding, and flushing of subnormal numbers."""

import contextlib
import ctypes
import platform
import sys

import pytest

# Bits of MXCSR. Flushing is of results (FTZ) and of operands (DAZ).
MODES = {"up": 0x4000, "down": 0x2000, "toward zero": 0x6000, "FTZ": 0x8000, "DAZ": 0x0040}
_WORDS, _MXCSR = 8, 7  # of glibc's environment on x86-64

has_modes = pytest.mark.skipif(
    platform.machine() != "x86_64" or sys.platform != "linux",
    reason="the tests set the modes of x86-64 processors, through glibc",
)


def set_modes(bits):
    """Change the modes of this thread, and return its environment from before."""
    libm = ctypes.CDLL("libm.so.6")
    before, changed = (ctypes.c_uint32 * _WORDS)(), (ctypes.c_uint32 * _WORDS)()
    libm.fegetenv(before)
    libm.fegetenv(changed)
    changed[_MXCSR] |= bits
    libm.fesetenv(changed)
    return lambda: libm.fesetenv(before)


@contextlib.contextmanager
def modes(bits):
    """Set modes of this thread inside of a `with` block."""
    restore = set_modes(bits)
    try:
        yield
    finally:
        restore()
