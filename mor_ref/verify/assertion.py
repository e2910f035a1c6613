"""An assertion for other people's tests."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mor_ref.arrays import code_dtype, unsigned_from
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import as_format
from mor_ref.verify.comparing.distance import code_distance, code_shown

_SHOWN = 8  # entries


def assert_bit_exact(actual: ArrayLike, expected: ArrayLike, fmt: str | Format) -> None:
    """Fail if two arrays of codes differ in any bit, and say where and by how much.

    Codes are unsigned integers; `.view(np.uint8)` shows those of a small float dtype. So -0 is not
    0, and equal NaNs are equal.

    >>> import mor_ref
    >>> assert_bit_exact(mor_ref.encode([0.3, -0.0], "e4m3"), [0x2A, 0x80], "e4m3")
    >>> assert_bit_exact([0x2B, 0x00], [0x2A, 0x80], "e4m3")
    Traceback (most recent call last):
    AssertionError: 2 of 2 codes of e4m3 differ:
      [0]: 0x2B (0.34375) where 0x2A (0.3125) is expected, 1 ulp above
      [1]: 0x00 (0) where 0x80 (-0) is expected, the sign of zero
    """
    meant = as_format(fmt)
    found, right = (
        unsigned_from(codes, meant.bits, code_dtype(meant), name)
        for codes, name in ((actual, "actual"), (expected, "expected"))
    )
    if found.shape != right.shape:
        raise AssertionError(
            f"actual has shape {found.shape}, expected has {right.shape}; give arrays of one shape"
        )
    wrong = np.argwhere(np.atleast_1d(found != right))
    if not len(wrong):
        return
    lines = [
        _line(index, np.atleast_1d(found), np.atleast_1d(right), meant) for index in wrong[:_SHOWN]
    ]
    if len(wrong) > _SHOWN:
        lines.append(f"  and {len(wrong) - _SHOWN} more")
    heading = f"{len(wrong)} of {found.size} codes of {meant.name} differ:"
    raise AssertionError("\n".join([heading, *lines]))


def _line(
    index: NDArray[np.intp], found: NDArray[np.integer], right: NDArray[np.integer], fmt: Format
) -> str:
    place = tuple(map(int, index))
    codes = int(found[place]), int(right[place])
    shown = [code_shown(code, fmt) for code in codes]
    where = ", ".join(map(str, place))
    apart = code_distance(*codes, fmt)
    end = f", {apart}" if apart else ""
    return f"  [{where}]: {shown[0]} where {shown[1]} is expected{end}"
