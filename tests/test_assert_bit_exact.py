"""The assertion on codes: where they differ, and by how much."""

import numpy as np
import pytest

from mor_ref.verify import assert_bit_exact


def test_assert_bit_exact():
    same = np.arange(256, dtype=np.uint8)
    assert_bit_exact(same, same.copy(), "e4m3")
    assert_bit_exact(np.uint8(3), 3, "e2m1")
    with pytest.raises(AssertionError, match=r"256 of 256 codes of e4m3 differ:") as failed:
        assert_bit_exact(same, same ^ np.uint8(1), "e4m3")
    assert str(failed.value).count("\n") == 9
    assert "and 248 more" in str(failed.value)


def test_an_assertion_takes_codes_alone():
    with pytest.raises(TypeError, match="actual holds the float 1.0; give unsigned integers"):
        assert_bit_exact([1.0], [1], "e4m3")
    with pytest.raises(ValueError, match="expected holds 256, which is not of 8 bits"):
        assert_bit_exact([1], [256], "e4m3")
