"""NVFP4: the public function and its record."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.border import public
from mor_ref.api.coded_blocks import CodedBlocks
from mor_ref.api.dequantization import Dequantizable, OutcomeOfCodes
from mor_ref.api.errors import error_sums
from mor_ref.api.stochastic import at_random, given_words, inputs_of
from mor_ref.api.tracing import untraced
from mor_ref.arrays import Bits, Numbers, numbers_from, room_for
from mor_ref.definitions.blocks import Partition, partition
from mor_ref.definitions.formats import formats
from mor_ref.definitions.nvfp4 import PROFILES, ROW_TILE, Nvfp4Profile, given_in, tile_of
from mor_ref.definitions.scales import NOTHING_GIVEN, AmaxOrScale

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


_E2M1 = formats["e2m1"]


@dataclass(frozen=True, eq=False, repr=False)
class Nvfp4(Dequantizable):
    """A tensor in NVFP4.

    `codes` has the shape of x, an e2m1 code in each byte; `packed` has two. `block_scale` has the
    e4m3 code of each tile. The global scales are float32: numbers are multiplied by the
    encode scale, codes by the decode scale. They have shape (), or one for each row with te_row.

    `block_scale` and `global_decode_scale` multiply the numbers of the codes. The order in which
    they are multiplied, and rounded, is that of the profile.

    >>> import mor_ref, numpy as np
    >>> nvfp4 = mor_ref.quantize_nvfp4(np.float32([[0.3, -1.1]]))
    >>> scale = mor_ref.decode(nvfp4.block_scale, "e4m3") * nvfp4.global_decode_scale
    >>> (mor_ref.decode(nvfp4.codes, "e2m1") * scale).tolist() == nvfp4.dequantize().tolist()
    True
    """

    block_scale: NDArray[np.uint8]
    global_encode_scale: NDArray[np.float32]
    global_decode_scale: NDArray[np.float32]
    profile: Nvfp4Profile

    @property
    @public
    def packed(self) -> NDArray[np.uint8]:
        """Two codes in a byte: the even element of a row in the low nibble (NVF-011)."""
        codes = np.atleast_1d(self.codes)
        low, high = codes[..., 0::2], codes[..., 1::2]
        packed = low.copy()
        packed[..., : high.shape[-1]] |= high << np.uint8(4)
        return packed

    def in_blocks(self) -> CodedBlocks:
        """Return the codes, and the factors of each tile and of all of them (GEM-003)."""
        from mor_ref.engine.dot_operands import scale_numbers  # imports Numba

        e4m3, overall = formats["e4m3"], self.global_decode_scale.reshape(-1)
        numbers, codes = scale_numbers(self.block_scale, e4m3), self.block_scale
        return CodedBlocks(self.codes, self.fmt, self.tile, numbers, codes, e4m3, overall)

    @untraced
    def __repr__(self) -> str:
        rows, columns = self._scales.tile
        return self._described(
            f"NVFP4 by {self.profile.name}: {self.block_scale.size} tiles of {rows}x{columns}"
        )


@public
def quantize_nvfp4(
    x: "ArrayLike",
    *,
    profile: str = "te",
    tile: tuple[int, int] = ROW_TILE,
    amax: float | None = None,
    global_scale: float | None = None,
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
    scale; the profiles of 4 over 6 take none. With `random_bits` and `n_random_bits`,
    as `encode` has them, the codes are rounded with "sr". The codes go to `out`, if it is given.

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
    units = partition(numbers.shape, "tensor")
    given = given_in(rules, amax, global_scale)
    words = given_words(random_bits, n_random_bits, numbers.shape)
    codes, store = room_for(out, numbers.shape, np.dtype(np.uint8), inputs_of(numbers, words))
    outcome = nvfp4(numbers, rules, sides, units, None, threads, given, codes)
    drops = rules.drops_sign_of_zero
    return at_random(outcome, numbers, words, units, threads, store, drops_sign_of_zero=drops)


def nvfp4(
    numbers: Numbers,
    profile: Nvfp4Profile,
    tile: tuple[int, int],
    units: Partition,
    out: Bits | None,
    threads: int | None,
    given: AmaxOrScale = NOTHING_GIVEN,
    room: Bits | None = None,
) -> OutcomeOfCodes[Nvfp4]:
    """Quantize a tensor, with error sums of the units; `out` takes y as bfloat16, `room` codes.

    An amax or a global scale may be given.
    """
    from mor_ref.engine.nvfp4 import nvfp4_scales
    from mor_ref.engine.quantization import quantize

    tiles = partition(numbers.shape, tile)
    scales = nvfp4_scales(numbers, profile, tiles, threads, given)
    codes, sums = quantize(
        numbers,
        _E2M1,
        scales.tiles,
        units,
        out,
        threads,
        room=room,
        drops_sign_of_zero=profile.drops_sign_of_zero,
    )
    encode, decode = (s if profile.per_row else s[0] for s in scales.overall[:2])

    def record() -> Nvfp4:
        return Nvfp4(
            codes.reshape(numbers.shape),
            error_sums(sums),
            _E2M1,
            numbers.described,
            scales.tiles,
            scales.code,
            np.asarray(encode),
            np.asarray(decode),
            profile,
        )

    return OutcomeOfCodes(codes, _E2M1, scales.tiles, sums, record)
