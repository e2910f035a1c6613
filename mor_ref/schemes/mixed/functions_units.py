"""Mixtures of formats: their record, and the candidates of the units of a tensor."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.border import public
from mor_ref.api.dequantization import Tried, WithY
from mor_ref.api.errors import percent
from mor_ref.api.quantization import Quantized
from mor_ref.arrays import Bits, Numbers
from mor_ref.counts_in_words import counted
from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.scales import ScalingBlocks


class Quantizer(Protocol):
    """A representation, as the engine quantizes with it."""

    @property
    def name(self) -> str:
        """The name in results."""

    def engine(
        self, numbers: Numbers, blocks: ScalingBlocks, out: Bits | None, threads: int | None
    ) -> Tried:
        """Return a quantized tensor."""


@dataclass(frozen=True, eq=False, repr=False)
class Mixed(WithY):
    """A tensor whose units took the candidates of the least squared error.

    `squared_error` has an array for each candidate, with an integer for each unit, and `choice` an
    index into `candidates` for each unit. `amax` is of the units. `codes` and `scale` come from the
    candidates that were taken; they are None if a candidate is not a scaled format.
    `quantized` has the tensor with every candidate, by name. `y` has the shape of x.

    `scale` multiplies x, so the numbers of the codes are divided by it.

    >>> import mor_ref, numpy as np
    >>> mixed = mor_ref.mix_formats(np.float32([[0.3, -1.1]]), ["e4m3", "e5m2"])
    >>> y = mor_ref.decode(mixed.codes, mixed.candidates[mixed.choice.item()]) / mixed.scale
    >>> y.tolist() == mixed.dequantize().tolist() == np.asarray(mixed).tolist()
    True
    """

    _ENTRIES: ClassVar[str] = "y"

    candidates: tuple[str, ...]
    amax: NDArray[np.float32]
    squared_error: dict[str, NDArray[Any]]
    choice: NDArray[np.uint8]
    codes: NDArray[np.uint8] | None
    scale: NDArray[np.float32] | None
    y: NDArray[np.float32]
    quantized: dict[str, Any]
    units: Partition
    source: str

    @property
    @public
    def decode_scale(self) -> NDArray[np.float32] | None:
        """RN32(1 / scale) of each unit; None without scales. `Quantized` says what it is for."""
        from mor_ref.engine.matmul import decode_scales  # imports Numba

        return None if self.scale is None else decode_scales(self.scale).reshape(self.scale.shape)

    @property
    @public
    def shares(self) -> dict[str, float]:
        """The share of units that took each candidate; 0 for all if there are none."""
        count = max(self.choice.size, 1)
        return {
            name: np.count_nonzero(self.choice == index) / count
            for index, name in enumerate(self.candidates)
        }

    def __repr__(self) -> str:
        rows, columns = self.units.block
        shares = ", ".join(f"{name} {percent(share)}" for name, share in self.shares.items())
        units = f"{counted(self.choice.size, 'unit')} of {rows}x{columns}"
        return f"<{self.source}: {units}: {shares}>"

    def _choices(self) -> tuple[NDArray[np.uint8], tuple[str, ...]]:
        return self.choice, self.candidates


class Measured(NamedTuple):
    """A tensor by each candidate, with the amax and the squared errors of its units."""

    amax: NDArray[np.uint32]
    tried: list[Tried]
    errors: list[NDArray[Any]]
    units: Partition


def mixed(
    numbers: Numbers, candidates: Sequence[Quantizer], units: Partition, threads: int | None
) -> Mixed:
    """Quantize a tensor with the best candidate of each unit."""
    from mor_ref.schemes.mixed.engine import least  # imports Numba

    tensor = measured(numbers, candidates, units, threads)
    return record_of(numbers, candidates, tensor, least(tensor.errors), threads)


def measured(
    numbers: Numbers, candidates: Sequence[Quantizer], units: Partition, threads: int | None
) -> Measured:
    """Return a tensor by each candidate, with the squared errors of its units."""
    from mor_ref.engine.scales import amax_of_blocks
    from mor_ref.schemes.mixed.engine import joined, squared_errors  # imports Numba

    amax = amax_of_blocks(numbers, units, threads)
    blocks = ScalingBlocks(units, "fp32", amax)
    tried = [candidate.engine(numbers, blocks, None, threads) for candidate in candidates]
    every = np.zeros(units.grid, np.uint8)
    errors = [
        squared_errors(numbers, units, amax, outcome.fill_of_y(units, every, 0), threads)
        for outcome in tried
    ]
    return Measured(amax, tried, [joined(sums) for sums in errors], units)


def record_of(
    numbers: Numbers,
    candidates: Sequence[Quantizer],
    tensor: Measured,
    choice: NDArray[np.uint8],
    threads: int | None,
) -> Mixed:
    """Return the record of a tensor whose units took these candidates (MFQ-006)."""
    from mor_ref.engine.unrounded_y import from_units
    from mor_ref.schemes.mixed.engine import write_values  # imports Numba

    y = np.empty(numbers.bits.size, np.uint32)
    fills = [outcome.fill_of_y(tensor.units, choice, k) for k, outcome in enumerate(tensor.tried)]
    write_values(tensor.units, fills, y, threads)
    names = tuple(candidate.name for candidate in candidates)
    quantized = {name: outcome.record for name, outcome in zip(names, tensor.tried, strict=True)}
    codes = scale = None
    records = list(quantized.values())
    if all(isinstance(record, Quantized) for record in records):
        scale = _taken([record.scale for record in records], choice)
        codes = np.empty(numbers.bits.size, np.uint8)
        fills_of_codes = [
            from_units(record.codes.reshape(-1), tensor.units, choice, k)
            for k, record in enumerate(records)
        ]
        write_values(tensor.units, fills_of_codes, codes, threads)
        codes = codes.reshape(numbers.shape)
    return Mixed(
        names,
        tensor.amax.view(np.float32),
        dict(zip(names, tensor.errors, strict=True)),
        choice,
        codes,
        scale,
        y.view(np.float32).reshape(numbers.shape),
        quantized,
        tensor.units,
        numbers.described,
    )


def _taken(arrays: Sequence[NDArray[Any]], choice: NDArray[np.uint8]) -> NDArray[Any]:
    """Return an array with the entries of the candidates taken."""
    taken = arrays[0].copy()
    for k in range(1, len(arrays)):
        np.copyto(taken, arrays[k], where=choice == k)
    return taken
