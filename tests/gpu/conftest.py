"""What all tests on a GPU share."""

import pytest

from mor_ref.cuda.device import Gpu
from mor_ref.cuda.unavailable import CudaError


@pytest.fixture(scope="module")
def gpu():
    """Return the GPU; a test fails without one, and says what is missing."""
    try:
        return Gpu()
    except CudaError as error:
        pytest.fail(str(error))
