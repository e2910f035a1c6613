"""FP4 of kernels with fast math: the public function, which takes their reciprocals."""

import hashlib
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.border import public
from mor_ref.argument_checks import known_name
from mor_ref.arrays import numbers_from
from mor_ref.definitions.blocks import CutLike, as_cut
from mor_ref.definitions.formula_functions import FormulaFunction, formula_functions
from mor_ref.schemes.fp4.definition import (
    FP4_PROFILES,
    FastFormulas,
    fast_formulas,
    fp4_formulas,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from mor_ref.definitions.block_formats import BlockFormat

_COUNT = 1 << 23  # the significands of binary32
_SMALLEST_NORMAL = 2.0**-126
_DIGITS = 16


@public
def fp4_with_reciprocals(
    profile: str,
    reciprocals: "ArrayLike | FormulaFunction",
    *,
    tile: CutLike | None = None,
) -> "BlockFormat":
    """Return a profile of a kernel with fast math, with the reciprocals of a GPU (FPF-003).

    `profile` is "flashinfer_nvfp4", "vllm_nvfp4" or "flashinfer_mxfp4". `reciprocals` are the 2^23
    results of `rcp.approx.ftz.f32` for 1 + k / 2^23, in order, as the GPU returns them, or a
    function of formulas. Other exponents shift a result, and subnormal numbers are zeros. A table
    gets a name in `formula_functions`, by its digest. `tile` is a tile that is not the usual one.

    >>> import mor_ref, numpy as np
    >>> rounded = 1 / (1 + np.arange(2**23, dtype=np.float32) / np.float32(2**23))
    >>> own = mor_ref.fp4_with_reciprocals("flashinfer_nvfp4", rounded)
    >>> x = np.random.default_rng(0).standard_normal((16, 64), dtype=np.float32)
    >>> default = mor_ref.quantize(x, "flashinfer_nvfp4")
    >>> bool((mor_ref.quantize(x, own).codes == default.codes).all())
    True
    """
    rows = {name: row for name, row in FP4_PROFILES.items() if row.fast is not None}
    row = rows[known_name("profile", profile, rows)]
    own = reciprocals if isinstance(reciprocals, FormulaFunction) else _function_of(reciprocals)
    if formula_functions.get(own.name) != own:
        formula_functions[own.name] = own
    exact = fp4_formulas(row, row.tile if tile is None else as_cut("tile", tile))
    return fast_formulas(exact, cast("FastFormulas", row.fast), own.name)


def _function_of(table: "ArrayLike") -> FormulaFunction:
    """Return the function of a table, whose name has the digest of the table."""
    numbers = numbers_from(table, "reciprocals")
    results = numbers.bits.view(np.float32) if numbers.dtype == np.float32 else None
    if results is None or numbers.shape != (_COUNT,):
        raise ValueError(
            f"reciprocals has shape {numbers.shape} and dtype {numbers.dtype}; give the float32 "
            "results of rcp.approx for 1 + k / 2^23, for k from 0 to 2^23 - 1"
        )
    wrong = np.flatnonzero(abs(results.view(np.int32) - _rounded().view(np.int32)) > 1)
    if wrong.size:
        k = int(wrong[0])
        raise ValueError(
            f"reciprocals[{k}] is {float(results[k])!r}, which is not within an ulp of the "
            f"reciprocal of 1 + {k} / 2^23; give the results of rcp.approx in the order of k"
        )
    name = f"rcp_{hashlib.sha256(results.tobytes()).hexdigest()[:_DIGITS]}"
    known: FormulaFunction | None = formula_functions.get(name)
    return known or FormulaFunction(_by_table(results.copy()), name)


def _rounded() -> NDArray[np.float32]:
    """Return the reciprocals of all significands, rounded correctly."""
    significands = 1 + np.arange(_COUNT, dtype=np.float32) / np.float32(_COUNT)
    found: NDArray[np.float32] = np.float32(1) / significands
    return found


def _by_table(results: NDArray[np.float32]) -> Callable[[float], Any]:
    """Return rcp.approx.ftz.f32 with these results for significands (FPF-003)."""

    def reciprocal(x):  # type: ignore[no-untyped-def]  # Numba compiles it  # noqa: ANN001, ANN202
        if math.isnan(x):
            return x
        if abs(x) < _SMALLEST_NORMAL:
            return math.copysign(math.inf, x)
        if math.isinf(x):
            return math.copysign(0.0, x)
        half, exponent = math.frexp(np.float64(abs(x)))
        number = math.ldexp(np.float64(results[int((2 * half - 1) * _COUNT)]), 1 - exponent)
        return math.copysign(number if number >= _SMALLEST_NORMAL else 0.0, x)

    return reciprocal
