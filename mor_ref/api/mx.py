"""MX: the public function and its record."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.block_formats import First, RecordOf, outcome_of, quantized_whole
from mor_ref.api.border import public
from mor_ref.api.coded_blocks import CodedBlocks
from mor_ref.api.decoding import decode
from mor_ref.api.dequantization import Dequantizable, OutcomeOfCodes
from mor_ref.api.plans import Plans
from mor_ref.argument_checks import known_name, whole_number
from mor_ref.arrays import Bits, Numbers, numbers_from
from mor_ref.counts_in_words import counted
from mor_ref.definitions.block_formulas import mx_formulas
from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import FormatLike, as_format, formats
from mor_ref.definitions.mx import SCALE_RULES, mx_element
from mor_ref.records import Values
from mor_ref.tracing import untraced

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from mor_ref.definitions.block_formats import BlockFormat
    from mor_ref.engine.small_tensors import InBlocks
    from mor_ref.engine.strips import TileScales


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

    codes: NDArray[np.uint8]
    scale: NDArray[np.uint8]
    scale_rule: str

    @property
    @public
    def _tile_scales(self) -> "TileScales":
        """The power of two of each block (MXS-007)."""
        return self._as_tile_scales(decode(self.scale, "e8m0"))

    def in_blocks(self) -> CodedBlocks:
        """Return the codes, and the factor of each block (GEM-003)."""
        from mor_ref.engine.dot_operands import scale_numbers  # imports Numba

        e8m0 = formats["e8m0"]
        numbers = scale_numbers(self.scale, e8m0)
        return CodedBlocks(self.codes, as_format(self.fmt), self.tile, numbers, self.scale, e8m0)

    @untraced
    def __repr__(self) -> str:
        blocks = f"{counted(self.scale.size, 'block')} of {self.tile[1]}"
        return self._described(f"MX {self.fmt.name}, {self.scale_rule}: {blocks}")


@public
def quantize_mx(
    x: "ArrayLike",
    fmt: FormatLike,
    *,
    scale_rule: str = "floor",
    block: SupportsIndex = 32,
    random_bits: "ArrayLike | None" = None,
    n_random_bits: int | str | None = None,
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
    plan = _plans(fmt, scale_rule, block)
    return quantized_whole(numbers_from(x, "x"), *plan, random_bits, n_random_bits, out, threads)


def _plan(
    fmt: FormatLike, scale_rule: str, block: SupportsIndex
) -> "tuple[BlockFormat, RecordOf[Mx]]":
    element = mx_element(fmt)
    known_name("scale_rule", scale_rule, SCALE_RULES)
    side = whole_number("block", block, 1, 1 << 62)
    return mx_formulas(element, scale_rule, side), _record_by(scale_rule)


_plans = Plans(_plan)


def mx(
    numbers: Numbers,
    fmt: Format,
    scale_rule: str,
    block: int,
    units: Partition,
    out: Bits | None,
    threads: int | None,
) -> OutcomeOfCodes[Mx]:
    """Quantize a tensor, with error sums of the units; `out` takes y as bfloat16."""
    formulas = mx_formulas(fmt, scale_rule, block)
    return outcome_of(numbers, formulas, units, out, threads, _record_by(scale_rule))


def _record_by(scale_rule: str) -> "RecordOf[Mx]":
    def values(first: First, tensor: "InBlocks", _: None) -> Values:
        yield from (*first, tensor.stored["s"], scale_rule)

    return RecordOf(Mx, values)
