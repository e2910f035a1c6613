"""Decoding: the public function."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.border import with_hints
from mor_ref.api.tracing import untraced
from mor_ref.arrays import codes_from, room_for
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import as_format

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@with_hints
@untraced
def decode(
    codes: "ArrayLike",
    fmt: str | Format,
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
    source = as_format(fmt)
    words = codes_from(codes, source, "codes")
    from mor_ref.engine.decoding import decode_into  # imports Numba

    numbers, store = room_for(out, words.shape, np.dtype(np.float32), [words])
    decode_into(numbers.view(np.uint32), words.reshape(-1), source, threads)
    return store(numbers)
