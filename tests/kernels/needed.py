"""What tests of kernels need; where it is missing they are skipped with the reason."""

import pytest

from mor_ref.cuda import host, nvrtc
from mor_ref.cuda.errors import CudaError


def compiler():
    """The command of a C++ compiler."""
    return _or_skip(host.compiler)


def library():
    """NVRTC."""
    return _or_skip(nvrtc.library)


def _or_skip(find):
    try:
        return find()
    except CudaError as error:
        pytest.skip(str(error))
