"""Decoding: the public function."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.border import public_in_every_mode
from mor_ref.api.plans import Plans
from mor_ref.arrays import codes_from, room_for
from mor_ref.definitions.formats import FormatLike
from mor_ref.definitions.table_format import ElementFormat, TableFormat, as_element_format

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from mor_ref.engine.kernel import Direct


_WORD, _NUMBER = np.dtype(np.uint32), np.dtype(np.float32)


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
    source, loop, decode_with = _plans(fmt)
    words = codes_from(codes, source, "codes")
    numbers, store = room_for(out, words.shape, _NUMBER, (words,))
    flat = words if words.ndim == 1 else words.reshape(-1)
    decode_with(loop, numbers.view(_WORD), flat, threads)
    return store(numbers)


class _Plan(NamedTuple):
    """What follows from the format: its loop, and the function of the engine that runs it."""

    fmt: ElementFormat
    loop: "Direct"
    decode_with: "Callable[..., None]"


def _plan(fmt: FormatLike | TableFormat) -> _Plan:
    from mor_ref.engine import decoding  # imports Numba

    source = as_element_format(fmt)
    return _Plan(source, decoding.loop_for(source), decoding.decode_with)


_plans = Plans(_plan)
