"""NVFP4: the public function and its record."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.block_formats import First, RecordOf, outcome_of, quantized_whole
from mor_ref.api.border import public
from mor_ref.api.coded_blocks import CodedBlocks
from mor_ref.api.decoding import decode
from mor_ref.api.dequantization import Dequantizable, OutcomeOfCodes
from mor_ref.api.given_scales import Given, given_for_rows
from mor_ref.api.packing import in_pairs
from mor_ref.api.tracing import untraced
from mor_ref.arrays import Bits, Numbers, numbers_from
from mor_ref.counts_in_words import counted
from mor_ref.definitions.block_formulas import nvfp4_formulas
from mor_ref.definitions.blocks import Pair, Partition, rows_and_columns
from mor_ref.definitions.formats import formats
from mor_ref.definitions.nvfp4 import PROFILES, ROW_TILE, Nvfp4Profile, tile_of
from mor_ref.definitions.scales import NOTHING_GIVEN, AmaxOrScale

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from mor_ref.engine.block_formats import FormatScales
    from mor_ref.engine.strips import TileScales

_E2M1 = formats["e2m1"]


@dataclass(frozen=True, eq=False, repr=False)
class Nvfp4(Dequantizable):
    """A tensor in NVFP4.

    `codes` has the shape of x, an e2m1 code in each byte; `packed` has two. `block_scale` has the
    e4m3 code of each tile. The global scales are float32: numbers are multiplied by
    `global_encode_scale`, codes by `global_decode_scale`. They have shape (), or one for each row
    with te_row.

    `block_scale` and `global_decode_scale` multiply the numbers of the codes. The order in which
    they are multiplied, and rounded, is that of the profile.

    >>> import mor_ref, numpy as np
    >>> nvfp4 = mor_ref.quantize_nvfp4(np.float32([[0.3, -1.1]]))
    >>> scale = mor_ref.decode(nvfp4.block_scale, "e4m3") * nvfp4.global_decode_scale
    >>> (mor_ref.decode(nvfp4.codes, "e2m1") * scale).tolist() == nvfp4.dequantize().tolist()
    True
    """

    codes: NDArray[np.uint8]
    block_scale: NDArray[np.uint8]
    global_encode_scale: NDArray[np.float32]
    global_decode_scale: NDArray[np.float32]
    profile: Nvfp4Profile

    @property
    @untraced
    def packed(self) -> NDArray[np.uint8]:
        """Two codes in a byte: the even element of a row in the low nibble (NVF-011)."""
        return in_pairs(self.codes)

    @property
    @public
    def _tile_scales(self) -> "TileScales":
        """The factor of each tile, from its code and the global scale (NVF-010)."""
        scale = decode(self.block_scale, "e4m3")
        with np.errstate(all="ignore"):
            if self.profile.scales.global_scale == "G":  # NVF-009
                return self._as_tile_scales(scale / self.global_encode_scale.reshape(-1, 1))
            return self._as_tile_scales(scale * self.global_decode_scale.reshape(-1, 1))

    def in_blocks(self) -> CodedBlocks:
        """Return the codes, and the factors of each tile and of all of them (GEM-003)."""
        from mor_ref.engine.dot_operands import scale_numbers  # imports Numba

        e4m3, overall = formats["e4m3"], self.global_decode_scale.reshape(-1)
        numbers, codes = scale_numbers(self.block_scale, e4m3), self.block_scale
        return CodedBlocks(self.codes, self.fmt, self.tile, numbers, codes, e4m3, overall)

    @untraced
    def __repr__(self) -> str:
        rows, columns = self.tile
        tiles = counted(self.block_scale.size, "tile")
        return self._described(f"NVFP4 by {self.profile.name}: {tiles} of {rows}x{columns}")


@public
def quantize_nvfp4(
    x: "ArrayLike",
    *,
    profile: str = "te",
    tile: Pair = ROW_TILE,
    amax: Given | None = None,
    global_scale: Given | None = None,
    random_bits: "ArrayLike | None" = None,
    n_random_bits: int | None = None,
    out: Bits | None = None,
    threads: int | None = None,
) -> Nvfp4:
    """Quantize `x` to NVFP4: e2m1 elements, an e4m3 scale for a tile, a float32 scale for all.

    `profile` names the order of operations: "te" (Transformer Engine since 2.14), "te_2_13",
    "te_row", "te_4over6_mae", "te_4over6_mse", both also with "_448", "torchao", "modelopt" or
    "compressed_tensors". `tile` is (1, 16); a profile of Transformer Engine other than te_row also
    takes (16, 16). `amax` replaces the amax of the tensor, or of each row with te_row.
    `global_scale` replaces the global encode scale, or with torchao and modelopt the global decode
    scale; the profiles of 4 over 6 take none. With te_row, both may have a number for each row.
    With `random_bits` and `n_random_bits`, as `encode` has them, the codes are rounded with "sr".
    The codes go to `out`, if it is given.

    >>> import mor_ref, numpy as np
    >>> nvfp4 = mor_ref.quantize_nvfp4(np.linspace(-3, 3, 32, dtype=np.float32))
    >>> nvfp4
    <32 float32 as NVFP4 by te: 2 tiles of 1x16, mean relative error 14.9 %, 0 non-finite>
    >>> nvfp4.block_scale.tolist(), nvfp4.packed[:4].tolist()
    ([[126, 126]], [255, 239, 238, 222])
    """
    rules = PROFILES[profile]
    sides = tile_of(rules, tile)
    numbers = numbers_from(x, "x")
    given = given_for_rows(rules, amax, global_scale, rows_and_columns(numbers.shape)[0])
    formulas = nvfp4_formulas(rules, sides)
    record_of, by_name = _record_by(numbers, rules, given), {formulas.scales[0].name: given}
    return quantized_whole(
        numbers, formulas, record_of, random_bits, n_random_bits, out, threads, by_name
    )


def nvfp4(
    numbers: Numbers,
    profile: Nvfp4Profile,
    tile: tuple[int, int],
    units: Partition,
    out: Bits | None,
    threads: int | None,
    given: AmaxOrScale = NOTHING_GIVEN,
) -> OutcomeOfCodes[Nvfp4]:
    """Quantize a tensor, with error sums of the units; `out` takes y as bfloat16.

    An amax or a global scale may be given.
    """
    formulas, record_of = nvfp4_formulas(profile, tile), _record_by(numbers, profile, given)
    by_name = {formulas.scales[0].name: given}
    return outcome_of(numbers, formulas, units, out, threads, record_of, given=by_name)


def _record_by(numbers: Numbers, profile: Nvfp4Profile, given: AmaxOrScale) -> "RecordOf[Nvfp4]":
    def record(first: First, scales: "FormatScales") -> Nvfp4:
        encode, decode = _global_scales(numbers, profile, scales, given)
        return Nvfp4(*first, scales.codes["s"], encode, decode, profile)

    return record


def _global_scales(
    numbers: Numbers, profile: Nvfp4Profile, scales: "FormatScales", given: AmaxOrScale
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the scales of the tensor or of its rows: for numbers, and for codes (NVF-003)."""
    from mor_ref.engine.block_formats import scales_of

    formulas = nvfp4_formulas(profile, ROW_TILE)
    if not numbers.bits.size:  # they are those of zeros
        count = rows_and_columns(numbers.shape)[0] if profile.per_row else 1
        zeros = numbers_from(np.zeros((count, 1), np.float32), "x")
        scales = scales_of(zeros, formulas, 1, {formulas.scales[0].name: given})
    first = scales.codes[formulas.scales[0].name].view(np.float32).reshape(-1)
    with np.errstate(all="ignore"):
        second = np.divide(np.float32(1), first)
    encode, decode = (second, first) if profile.begins_with_decode else (first, second)
    return (encode, decode) if profile.per_row else (encode[0, ...], decode[0, ...])
