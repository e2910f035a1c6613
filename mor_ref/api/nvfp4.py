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
from mor_ref.api.plans import Plans
from mor_ref.arrays import Bits, Numbers, numbers_from
from mor_ref.counts_in_words import counted
from mor_ref.definitions.block_formulas import nvfp4_formulas
from mor_ref.definitions.blocks import Pair, Partition, is_plain, rows_and_columns
from mor_ref.definitions.formats import as_format, formats
from mor_ref.definitions.nvfp4 import PROFILES, ROW_TILE, Nvfp4Profile, tile_of
from mor_ref.definitions.scales import NO_SCALES_GIVEN, NOTHING_GIVEN, AmaxOrScale, given_of
from mor_ref.records import Values
from mor_ref.tracing import untraced

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from mor_ref.definitions.block_formats import BlockFormat
    from mor_ref.engine.small_tensors import InBlocks
    from mor_ref.engine.strips import TileScales

_E2M1 = formats["e2m1"]
Scales = tuple[NDArray[np.float32], NDArray[np.float32]]


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
        fmt = as_format(self.fmt)
        return CodedBlocks(self.codes, fmt, self.tile, numbers, codes, e4m3, overall)

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
    n_random_bits: int | str | None = None,
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
    plans = _plans if is_plain(tile) else _plan
    rules, formulas, record_of = plans(profile, tile)
    numbers = numbers_from(x, "x")
    by_name = NO_SCALES_GIVEN
    if not amax is global_scale is None:
        given = given_for_rows(rules, amax, global_scale, numbers.shape)
        by_name, record_of = {formulas.scales[0].name: given}, _record_by(rules, given)
    return quantized_whole(
        numbers, formulas, record_of, random_bits, n_random_bits, out, threads, by_name
    )


def _plan(profile: str, tile: Pair) -> "tuple[Nvfp4Profile, BlockFormat, RecordOf[Nvfp4]]":
    rules = PROFILES[profile]
    return rules, nvfp4_formulas(rules, tile_of(rules, tile)), _record_by(rules)


_plans = Plans(_plan)


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
    formulas = nvfp4_formulas(profile, tile)
    by_name, record_of = given_of(formulas.scales[0].name, given), _record_by(profile, given)
    return outcome_of(numbers, formulas, units, out, threads, record_of, given=by_name)


def _record_by(profile: Nvfp4Profile, given: AmaxOrScale = NOTHING_GIVEN) -> "RecordOf[Nvfp4]":
    from mor_ref.engine.block_formats import scales_of  # imports Numba
    from mor_ref.engine.matmul import decode_scales

    formulas = nvfp4_formulas(profile, ROW_TILE)
    name, is_one = formulas.scales[0].name, not profile.per_row
    begins_with_decode = profile.begins_with_decode

    def global_scales(tensor: "InBlocks", shape: tuple[int, ...]) -> Scales:
        """Find the scales of the tensor or of its rows: for numbers, and for codes (NVF-003)."""
        stored = tensor.stored
        if 0 in shape:  # they are those of zeros
            count = 1 if is_one else rows_and_columns(shape)[0]
            zeros = numbers_from(np.zeros((count, 1), np.float32), "x")
            stored = scales_of(zeros, formulas, 1, {name: given}).codes
        overall = stored[name].view(np.float32)
        return overall, decode_scales(overall)

    def values(first: First, tensor: "InBlocks", scales: Scales) -> Values:
        both = (own[0, 0, ...] if is_one else own.reshape(-1) for own in scales)
        encode, decode = (*both,)[::-1] if begins_with_decode else both
        yield from (*first, tensor.stored["s"], encode, decode, profile)

    return RecordOf(Nvfp4, values, global_scales)
