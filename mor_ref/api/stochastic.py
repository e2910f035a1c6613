"""Stochastic rounding of scaled elements, with given random words."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.dequantization import OutcomeOfCodes, Record
from mor_ref.api.encoding import encode, words_for
from mor_ref.api.errors import error_sums
from mor_ref.arrays import Bits, Numbers, RandomWords, numbers_from
from mor_ref.definitions.blocks import Partition, rows_and_columns
from mor_ref.definitions.table_format import ElementFormat, TableFormat

if TYPE_CHECKING:
    from mor_ref.engine.strips import TileScales


def given_words(
    random_bits: object, n_random_bits: object, shape: tuple[int, ...]
) -> RandomWords | None:
    """Return the random words for a tensor; None if none are given."""
    if random_bits is None and n_random_bits is None:
        return None
    for name, value in (("random_bits", random_bits), ("n_random_bits", n_random_bits)):
        if value is None:
            raise ValueError(f"{name} is not given; give random_bits and n_random_bits, or neither")
    return words_for(random_bits, n_random_bits, shape)


def inputs_of(numbers: Numbers, words: RandomWords | None) -> list[Bits]:
    """Return the arrays that codes are computed from."""
    return [numbers.bits] if words is None else [numbers.bits, words.words]


def at_random(
    outcome: OutcomeOfCodes[Record],
    numbers: Numbers,
    words: RandomWords | None,
    units: Partition,
    threads: int | None,
    store: Callable[[Bits], Bits],
    *,
    drops_sign_of_zero: bool = False,
) -> Record:
    """Return the record of a tensor, rounded with random words if there are any (QNT-005).

    Scales stay. `units` are those of the error sums, and `store` returns the array for the codes.
    """
    if words is None:
        return outcome.make(store(outcome.codes))
    from mor_ref.engine.measuring import measure  # imports Numba

    codes = codes_at_random(
        numbers, outcome.fmt, outcome.scales, words, threads, drops_sign_of_zero=drops_sign_of_zero
    )
    rounded = replace(outcome.record, codes=codes.reshape(numbers.shape))
    y = numbers_from(rounded.dequantize(threads=threads), "y")
    error = error_sums(measure(numbers, y, units, threads))
    outcome.codes[:] = codes.reshape(-1)  # which may be in the memory of the numbers
    return replace(rounded, codes=store(outcome.codes), error=error)


def codes_at_random(
    numbers: Numbers,
    fmt: ElementFormat,
    scales: "TileScales",
    words: RandomWords,
    threads: int | None,
    *,
    drops_sign_of_zero: bool,
) -> Bits:
    """Return the codes of scaled numbers by stochastic rounding, in rows and columns."""
    if isinstance(fmt, TableFormat):
        raise TypeError(
            f"random_bits are given, and the elements are values of the table {fmt.name!r}, which "
            "are not rounded at random; leave random_bits out"
        )
    rows, columns = rows_and_columns(numbers.shape)
    x = numbers.bits.view(numbers.dtype).astype(np.float32).reshape(rows, columns)

    def spread(scale: NDArray[np.uint32]) -> NDArray[np.float32]:
        wide = scale.view(np.float32).repeat(scales.tile.rows, 0).repeat(scales.tile.columns, 1)
        return wide[:rows, :columns]

    with np.errstate(all="ignore"):
        if scales.encode is not None:
            x *= spread(scales.encode)
        elif scales.decode is not None:
            x /= spread(scales.decode)
    if fmt.sign == "none":  # BLF-004
        x[x < 0] = 0
    random_bits = words.words.reshape(rows, columns)
    options: Any = {"rounding": "sr", "random_bits": random_bits, "n_random_bits": words.n}
    codes = encode(x, fmt, threads=threads, **options)
    if drops_sign_of_zero:
        codes[x == 0] = 0
    return codes
