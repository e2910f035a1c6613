"""A function of a user as a representation: it is given x, and returns y."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mor_ref.argument_checks import check_name, fault_of_name, whole_number
from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.scales import Scaling, ScalingBlocks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mor_ref.api.dequantization import OutcomeOfValues
    from mor_ref.arrays import Bits, Numbers
    from mor_ref.cuda import launching, measuring
    from mor_ref.exact.blocks import Rows
    from mor_ref.exact.quantization import Element


_OF_Y = 32
_MOST_BITS = 64  # of a number


@dataclass(frozen=True)
class FunctionRepresentation:
    """Numbers as a function of a matrix returns them (MOR-017).

    The function is given x as a matrix of float32, and returns y: a matrix of float32 of the same
    shape. It may be of NumPy or of Numba. `bits` are those of a number with its share of scales, as
    its author says. The 32 of y say nothing of what is stored.

    >>> import mor_ref
    >>> def whole(x):
    ...     return x.round()
    >>> mor_ref.mor([[0.75, 2.5]], mor_ref.Policy("p", (mor_ref.Rung(whole, lambda _: True),)))
    <1x2 float64 by p: 1 x 1x2: whole 100 %, bf16 0 %; error in whole 26.7 %>
    """

    function: Callable[["NDArray[np.float32]"], Any]
    name: str = ""
    bits: int = _OF_Y

    def __post_init__(self) -> None:
        """Take the name of the function if none is given."""
        if self.bits != _OF_Y:
            whole_number("bits", self.bits, 1, _MOST_BITS)
        if self.name:
            check_name(self.name)
            return
        name = getattr(self.function, "__name__", "function")
        if fault_of_name(name):
            raise ValueError(
                f"representation is a function whose name is {name!r}; give it another as "
                "mor_ref.representations.FunctionRepresentation(function, 'mine')"
            )
        object.__setattr__(self, "name", name)

    def stored_bits(self, scaling: Scaling, parts: Partition) -> tuple[int, int] | None:
        """Return the bits of all codes (ERR-009), if the author says them."""
        del scaling
        is_said = self.bits != _OF_Y
        return (self.bits * parts.rows * parts.columns, 0) if is_said else None

    def exact(self, x: "Rows", scaling: Scaling, parts: Partition) -> "list[list[Element]]":
        """Return the elements of a tensor, by the function: there is one implementation."""
        import numpy as np

        from mor_ref.exact.quantization import Element

        del scaling
        numbers = np.array(x, np.float32).reshape(parts.rows, parts.columns)
        rows = self._y(numbers).tolist()
        return [
            [Element(v, 0, y) for v, y in zip(row, of_row, strict=True)]
            for row, of_row in zip(x, rows, strict=True)
        ]

    def engine(
        self, numbers: "Numbers", blocks: ScalingBlocks, out: "Bits | None", threads: int | None
    ) -> "OutcomeOfValues":
        """Quantize with the function, and measure with the engine."""
        import numpy as np

        from mor_ref.api.decoding import decode
        from mor_ref.api.dequantization import values
        from mor_ref.api.encoding import encode

        x = decode(encode(numbers.bits.view(numbers.dtype), "f32", overflow="ieee"), "f32")
        y = self._y(np.asarray(x, np.float32).reshape(blocks.parts.rows, blocks.parts.columns))
        return values(numbers, y, blocks, out, threads)

    def cuda(
        self, device: "launching.Device", x: "launching.Bits", blocks: ScalingBlocks
    ) -> "measuring.ErrorRule":
        """Return the rule of kernels, with y, which the host finds."""
        import numpy as np

        from mor_ref.api.decoding import decode
        from mor_ref.cuda.measuring import by_value

        numbers = decode(device.download(x.array), x.source)
        y = self._y(
            np.asarray(numbers, np.float32).reshape(blocks.parts.rows, blocks.parts.columns)
        )
        return by_value(device, device.upload(y.view(np.uint32)))

    def _y(self, x: "NDArray[np.float32]") -> "NDArray[np.float32]":
        """Call the function; refuse what is no matrix of float32 of the shape of x."""
        import numpy as np

        y = self.function(x.copy())
        if not isinstance(y, np.ndarray) or y.dtype != np.float32 or y.shape != x.shape:
            kind = f"{y.shape} {y.dtype}" if isinstance(y, np.ndarray) else type(y).__name__
            raise TypeError(
                f"representation {self.name!r} returned {kind} for x of {x.shape} float32; return "
                "an array of float32 with the shape of x"
            )
        return np.ascontiguousarray(y)
