"""NVFP4 and MX: the public functions and their records."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.quantization import ErrorSums, dequantized, describe, error_sums, percent
from mor_ref.api.tracing import untraced
from mor_ref.arguments import known_name, whole_number
from mor_ref.arrays import Bits, Numbers, numbers_from
from mor_ref.definitions.blocks import Partition, partition
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.mx import SCALE_RULES, ScaleRule, mx_element
from mor_ref.definitions.nvfp4 import Nvfp4Profile, profile_named, tile_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from mor_ref.engine.strips import TileScales

_E2M1 = formats["e2m1"]


@dataclass(frozen=True, eq=False, repr=False)
class _InTiles:
    """What NVFP4 and MX have in common."""

    codes: NDArray[np.uint8]
    error: ErrorSums
    fmt: Format
    source: str
    _scales: "TileScales"  # as the engine takes them
    _sides: tuple[int, int]

    @untraced
    def dequantize(
        self, dtype: "np.typing.DTypeLike" = np.float32, *, threads: int | None = None
    ) -> NDArray[Any]:
        """What the codes stand for: float32, or rounded from there to bfloat16."""
        return dequantized(self.codes, self.fmt, self._scales, self._sides, dtype, threads)

    def _describe(self, recipe: str) -> str:
        lost = int(self.error.nonfinite.sum())
        mean = percent(self.error.overall)
        return f"<{self.source} as {recipe}, mean relative error {mean}, {lost} non-finite>"


@dataclass(frozen=True, eq=False, repr=False)
class Nvfp4(_InTiles):
    """A tensor in NVFP4.

    `codes` has the shape of x, an e2m1 code in each byte; `packed` has two. `block_scale` has the
    e4m3 code of each tile. The global scales are float32: numbers times the one, codes times the
    other; of shape (), or with one for each row under te_row.
    """

    block_scale: NDArray[np.uint8]
    global_encode_scale: NDArray[np.float32]
    global_decode_scale: NDArray[np.float32]
    profile: Nvfp4Profile

    @property
    @untraced
    def packed(self) -> NDArray[np.uint8]:
        """Two codes in a byte: the even element of a row in the low nibble (NVF-011)."""
        codes = np.atleast_1d(self.codes)
        low, high = codes[..., 0::2], codes[..., 1::2]
        packed = low.copy()
        packed[..., : high.shape[-1]] |= high << np.uint8(4)
        return packed

    @untraced
    def __repr__(self) -> str:
        rows, columns = self._scales.tile
        return self._describe(
            f"NVFP4 by {self.profile.name}: {self.block_scale.size} tiles of {rows}x{columns}"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Mx(_InTiles):
    """A tensor in an MX format.

    `codes` has the shape of x, an element's code in each byte; `scale` has the e8m0 code of each
    block.
    """

    scale: NDArray[np.uint8]
    scale_rule: ScaleRule

    @untraced
    def __repr__(self) -> str:
        block = self._scales.tile.columns
        return self._describe(
            f"MX {self.fmt.name}, {self.scale_rule}: {self.scale.size} blocks of {block}"
        )


@untraced
def quantize_nvfp4(
    x: "ArrayLike",
    *,
    profile: str = "te",
    tile: tuple[int, int] = (1, 16),
    threads: int | None = None,
) -> Nvfp4:
    """Quantize `x` to NVFP4: e2m1 elements, an e4m3 scale for a tile, a float32 scale for all.

    `profile` says in whose order of operations: "te" (Transformer Engine since 2.14), "te_2_13",
    "te_row", "te_4over6_mae", "te_4over6_mse", both also with "_448", "torchao", "modelopt" or
    "compressed_tensors". `tile` is (1, 16), or (16, 16) for those of Transformer Engine but te_row.

    >>> import mor_ref, numpy as np
    >>> found = mor_ref.quantize_nvfp4(np.linspace(-3, 3, 32, dtype=np.float32))
    >>> found
    <32 float32 as NVFP4 by te: 2 tiles of 1x16, mean relative error 14.9 %, 0 non-finite>
    >>> found.block_scale.tolist(), found.packed[:4].tolist()
    ([[126, 126]], [255, 239, 238, 222])
    """
    rules = profile_named(profile)
    sides = tile_of(rules, tile)
    numbers = numbers_from(x, "x")
    whole = partition(numbers.shape, "tensor")
    found, _ = nvfp4_with(numbers, rules, sides, whole, None, threads)
    return found


def nvfp4_with(
    numbers: Numbers,
    profile: Nvfp4Profile,
    tile: tuple[int, int],
    units: Partition,
    out: Bits | None,
    threads: int | None,
) -> tuple[Nvfp4, "TileScales"]:
    """The record of a tensor, with the error sums of units, and its scales for the engine.

    `out` takes y as bfloat16.
    """
    from mor_ref.engine.nvfp4 import nvfp4_scales
    from mor_ref.engine.quantization import quantize

    tiles = partition(numbers.shape, tile)
    found = nvfp4_scales(numbers, profile, tiles, threads)
    codes, errors = quantize(
        numbers,
        _E2M1,
        found.tiles,
        units,
        out,
        threads,
        drops_sign_of_zero=profile.drops_sign_of_zero,
    )
    encode, decode = (s if profile.per_row else s[0] for s in found.overall)
    record = Nvfp4(
        codes.reshape(numbers.shape),
        error_sums(errors),
        _E2M1,
        describe(numbers.shape, numbers.dtype),
        found.tiles,
        (units.rows, units.columns),
        found.code,
        np.asarray(encode),
        np.asarray(decode),
        profile,
    )
    return record, found.tiles


@untraced
def quantize_mx(
    x: "ArrayLike",
    fmt: str | Format,
    *,
    scale_rule: ScaleRule = "floor",
    block: int = 32,
    threads: int | None = None,
) -> Mx:
    """Quantize `x` to an MX format: blocks along the rows share a power of two.

    `fmt` is e4m3, e5m2, e2m3, e3m2, e2m1 or int8_mx; `scale_rule` is "floor" (OCP's), "ceil",
    "even" or "rceil" (Transformer Engine's and PTX's).

    >>> import mor_ref, numpy as np
    >>> found = mor_ref.quantize_mx(np.linspace(-3, 3, 64, dtype=np.float32), "e2m1")
    >>> found
    <64 float32 as MX e2m1, floor: 2 blocks of 32, mean relative error 14.5 %, 0 non-finite>
    >>> found.scale.tolist()
    [[126, 126]]
    """
    element = mx_element(fmt)
    known_name("scale_rule", scale_rule, SCALE_RULES)
    side = whole_number("block", block, 1, 1 << 62)
    numbers = numbers_from(x, "x")
    from mor_ref.engine.mx import mx_scales  # imports Numba
    from mor_ref.engine.quantization import quantize

    whole = partition(numbers.shape, "tensor")
    found = mx_scales(numbers, element, scale_rule, partition(numbers.shape, (1, side)), threads)
    codes, errors = quantize(numbers, element, found.blocks, whole, None, threads)
    return Mx(
        codes.reshape(numbers.shape),
        error_sums(errors),
        element,
        describe(numbers.shape, numbers.dtype),
        found.blocks,
        (whole.rows, whole.columns),
        found.code,
        scale_rule,
    )
