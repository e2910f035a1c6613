"""Stochastic rounding of scaled elements, with given random words."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.encoding import encode, words_for
from mor_ref.arrays import Bits, Numbers, RandomWords
from mor_ref.definitions.blocks import rows_and_columns
from mor_ref.definitions.format import Format
from mor_ref.definitions.table_format import ElementFormat

if TYPE_CHECKING:
    from mor_ref.engine.strips import TileScales


def words_given(
    random_bits: object, n_random_bits: object, shape: tuple[int, ...], fmt: ElementFormat
) -> RandomWords:
    """Return the random words for a tensor; refuse some that do not come with their length."""
    for name, value in (("random_bits", random_bits), ("n_random_bits", n_random_bits)):
        if value is None:
            raise ValueError(f"{name} is not given; give random_bits and n_random_bits, or neither")
    return words_for(random_bits, n_random_bits, shape, fmt)


def codes_at_random(
    numbers: Numbers,
    fmt: Format,
    scales: "TileScales",
    words: RandomWords,
    threads: int | None,
) -> Bits:
    """Return the codes of scaled numbers by stochastic rounding, in rows and columns."""
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
    return encode(x, fmt, threads=threads, **options)
