"""The fixtures that all tests on a GPU share."""

import pytest

from mor_ref.cuda.device import Gpu
from mor_ref.cuda.unavailable import CudaError


@pytest.fixture(scope="module")
def gpu():
    """Return the GPU; without one a test fails, with the part that is missing."""
    try:
        return Gpu()
    except CudaError as error:
        pytest.fail(str(error))
