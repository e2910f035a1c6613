"""Decoding: the public function."""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.border import public_in_every_mode
from mor_ref.arrays import codes_from, room_for
from mor_ref.definitions.formats import FormatLike
from mor_ref.definitions.table_format import TableFormat, as_element_format

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


_WORD, _NUMBER = np.dtype(np.uint32), np.dtype(np.float32)


@cache
def _decode_into() -> Callable[..., None]:
    from mor_ref.engine.decoding import decode_into  # imports Numba

    return decode_into


@public_in_every_mode
def decode(
    codes: "ArrayLike",
    fmt: FormatLike | TableFormat,
    *,
    out: NDArray[np.float32] | None = None,
    threads: int | None = None,
) -> NDArray[np.float32]:
    """Return the numbers that `codes` stand for, as float32; every NaN is 0x7FFFFFFF.

    The numbers go to `out`, if it is given. By default, `threads` is all that can run.

    >>> import mor_ref
    >>> mor_ref.decode([0x2A, 0xFE, 0x7F], "e4m3")
    array([ 3.125e-01, -4.480e+02,        nan], dtype=float32)
    """
    source = as_element_format(fmt)
    words = codes_from(codes, source, "codes")
    numbers, store = room_for(out, words.shape, _NUMBER, [words])
    flat = words if words.ndim == 1 else words.reshape(-1)
    _decode_into()(numbers.view(_WORD), flat, source, threads)
    return store(numbers)
