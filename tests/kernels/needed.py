"""Software that tests of kernels need; without it they are skipped with the reason."""

import extras
import pytest

from mor_ref.cuda import host, nvrtc
from mor_ref.cuda.unavailable import CudaError


def compiler():
    """Return the command of a C++ compiler, or skip the test."""
    return _or_skip(host.compiler, "a C++ compiler")


def library():
    """Return NVRTC, or skip the test."""
    return _or_skip(nvrtc.library, "NVRTC")


def disassembler():
    """Return the path of NVIDIA's disassembler, or skip the test."""
    found = extras.of_benchmarks("sass").disassembler()
    if found is None:
        pytest.skip(extras.reason("nvdisasm"))
    return found


def _or_skip(find, name):
    try:
        return find()
    except CudaError:
        pytest.skip(extras.reason(name))
