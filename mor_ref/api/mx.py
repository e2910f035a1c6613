"""MX: the public function and its record."""

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
from mor_ref.argument_checks import known_name, whole_number
from mor_ref.arrays import Bits, Numbers, numbers_from, room_for
from mor_ref.definitions.blocks import Partition, partition
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.mx import SCALE_RULES, mx_element

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False, repr=False)
class Mx(Dequantizable):
    """A tensor in an MX format.

    `codes` has the shape of x, an element's code in each byte; `scale` has the e8m0 code of each
    block.

    `scale` multiplies the numbers of the codes.

    >>> import mor_ref, numpy as np
    >>> mx = mor_ref.quantize_mx(np.float32([[0.3, -1.1]]), "e4m3")
    >>> y = mor_ref.decode(mx.codes, "e4m3") * mor_ref.decode(mx.scale, "e8m0")
    >>> y.tolist() == mx.dequantize().tolist() == np.asarray(mx).tolist()
    True
    """

    scale: NDArray[np.uint8]
    scale_rule: str

    def in_blocks(self) -> CodedBlocks:
        """Return the codes, and the factor of each block (GEM-003)."""
        from mor_ref.engine.dot_operands import scale_numbers  # imports Numba

        e8m0 = formats["e8m0"]
        numbers = scale_numbers(self.scale, e8m0)
        return CodedBlocks(self.codes, self.fmt, self.tile, numbers, self.scale, e8m0)

    @untraced
    def __repr__(self) -> str:
        block = self._scales.tile.columns
        return self._described(
            f"MX {self.fmt.name}, {self.scale_rule}: {self.scale.size} blocks of {block}"
        )


@public
def quantize_mx(
    x: "ArrayLike",
    fmt: str | Format,
    *,
    scale_rule: str = "floor",
    block: int = 32,
    random_bits: "ArrayLike | None" = None,
    n_random_bits: int | None = None,
    out: Bits | None = None,
    threads: int | None = None,
) -> Mx:
    """Quantize `x` to an MX format: blocks along the rows share a power of two.

    `fmt` is e4m3, e5m2, e2m3, e3m2, e2m1 or int8_mx; `scale_rule` is "floor" (OCP's), "ceil",
    "even" or "rceil" (Transformer Engine's and PTX's). With `random_bits` and `n_random_bits`, as
    `encode` has them, the codes are rounded with "sr". The codes go to `out`, if it is given.

    >>> import mor_ref, numpy as np
    >>> mx = mor_ref.quantize_mx(np.linspace(-3, 3, 64, dtype=np.float32), "e2m1")
    >>> mx
    <64 float32 as MX e2m1, floor: 2 blocks of 32, mean relative error 14.5 %, 0 non-finite>
    >>> mx.scale.tolist()
    [[126, 126]]
    """
    element = mx_element(fmt)
    known_name("scale_rule", scale_rule, SCALE_RULES)
    side = whole_number("block", block, 1, 1 << 62)
    numbers = numbers_from(x, "x")
    units = partition(numbers.shape, "tensor")
    words = given_words(random_bits, n_random_bits, numbers.shape)
    codes, store = room_for(out, numbers.shape, np.dtype(np.uint8), inputs_of(numbers, words))
    outcome = mx(numbers, element, scale_rule, side, units, None, threads, codes)
    return at_random(outcome, numbers, words, units, threads, store)


def mx(
    numbers: Numbers,
    fmt: Format,
    scale_rule: str,
    block: int,
    units: Partition,
    out: Bits | None,
    threads: int | None,
    room: Bits | None = None,
) -> OutcomeOfCodes[Mx]:
    """Quantize a tensor, with error sums of the units; `out` takes y as bfloat16, `room` codes."""
    from mor_ref.engine.mx import mx_scales  # imports Numba
    from mor_ref.engine.quantization import quantize

    scales = mx_scales(numbers, fmt, scale_rule, partition(numbers.shape, (1, block)), threads)
    codes, sums = quantize(numbers, fmt, scales.blocks, units, out, threads, room=room)

    def record() -> Mx:
        return Mx(
            codes.reshape(numbers.shape),
            error_sums(sums),
            fmt,
            numbers.described,
            scales.blocks,
            scales.code,
            scale_rule,
        )

    return OutcomeOfCodes(codes, fmt, scales.blocks, sums, record)
