"""Columns of numbers and of their amaxes at which wrong programs often differ."""

from typing import Any

import numpy as np

from mor_ref.definitions.block_formats import BlockFormat, percentiles_of
from mor_ref.proofs.elements import X, amax_of
from mor_ref.proofs.terms import Term

Array = np.ndarray[Any, Any]
_SIGNIFICANDS = (
    *(0, 1, 2, 3, 0x200000, 0x2AAAAA, 0x3FFFFF, 0x400000, 0x400001, 0x555555, 0x600000),
    *(0x7FFFFE, 0x7FFFFF),
)
_INFINITY, _SUBNORMAL = 0x7F800000, 1 << 17


def samples(record: BlockFormat, count: int, seed: int = 0) -> dict[str, Array]:
    """Return values of the variables of an element, with each amax at most that above it."""
    rng = np.random.default_rng(seed)
    columns = [_magnitudes(rng, count)]
    for _ in record.scales[1:]:
        near = columns[-1] * np.exp2(-rng.integers(0, 20, count))
        columns.append(np.where(rng.random(count) < 0.7, near, _magnitudes(rng, count)))
    ordered = np.sort(np.array(columns, np.float32), axis=0)[::-1]
    values = {
        _name(amax_of(scale)): amax for scale, amax in zip(record.scales, ordered, strict=True)
    }
    for scale, amax in zip(record.scales, ordered, strict=True):
        for one in percentiles_of(record, scale):
            values[one.name] = amax * np.exp2(-rng.integers(0, 3, count)).astype(np.float32)
    part = np.where(rng.random(count) < 0.3, 1, rng.random(count)).astype(np.float32)
    x = np.minimum(
        np.where(rng.random(count) < 0.3, _magnitudes(rng, count), ordered[-1] * part), ordered[-1]
    )
    return {**values, _name(X): np.where(rng.random(count) < 0.5, -x, x)}


def _name(term: Term) -> str:
    return str(term.data[0])


def _magnitudes(rng: np.random.Generator, count: int) -> Array:
    """Return magnitudes: of any binade, often with a special significand, subnormal or infinite."""
    any_significand = rng.integers(0, 1 << 23, count)
    significands = np.where(
        rng.random(count) < 0.5, rng.choice(_SIGNIFICANDS, count), any_significand
    )
    bits = rng.integers(0, 255, count) << 23 | significands
    bits = np.where(rng.random(count) < 0.2, rng.integers(0, _SUBNORMAL, count), bits)
    bits = np.where(rng.random(count) < 0.02, _INFINITY, bits)
    return bits.astype(np.uint32).view(np.float32)
