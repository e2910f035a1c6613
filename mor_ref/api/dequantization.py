"""From codes and scales back to numbers: what the records of all quantizers have in common."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.encoding import encode
from mor_ref.api.errors import ErrorSums, percent
from mor_ref.api.tracing import untraced
from mor_ref.arrays import BF16, dequantized_dtype
from mor_ref.definitions.blocks import rows_and_columns
from mor_ref.definitions.format import Format

if TYPE_CHECKING:
    from mor_ref.engine.strips import TileScales


@dataclass(frozen=True, eq=False, repr=False)
class Dequantizable:
    """Codes of a format, with a scale for each tile."""

    codes: NDArray[np.uint8]
    error: ErrorSums
    fmt: Format
    source: str
    _scales: "TileScales"  # as the engine takes them

    @untraced
    def dequantize(
        self, dtype: "np.typing.DTypeLike" = np.float32, *, threads: int | None = None
    ) -> NDArray[Any]:
        """Return the numbers that the codes stand for: float32, or rounded from it to bfloat16."""
        from mor_ref.engine.dequantization import dequantize  # imports Numba

        wanted, codes = dequantized_dtype(dtype), self.codes
        sides = rows_and_columns(codes.shape)
        bits = dequantize(codes.reshape(-1), self.fmt, self._scales, sides, threads)
        y = bits.view(np.float32).reshape(codes.shape)
        return y if wanted == np.float32 else encode(y, "bf16", overflow="ieee").view(BF16)

    def _described(self, how: str) -> str:
        lost = int(self.error.nonfinite.sum())
        mean = percent(self.error.overall)
        return f"<{self.source} as {how}, mean relative error {mean}, {lost} non-finite>"


Record = TypeVar("Record", bound=Dequantizable)


class Outcome(NamedTuple, Generic[Record]):
    """A quantized tensor: its record, and the scales and the error sums as the engine has them."""

    record: Record
    scales: "TileScales"
    sums: NDArray[np.uint64]
