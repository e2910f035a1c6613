"""Whether the processor computes as IEEE 754 has it, which other libraries can change."""

import numpy as np

from mor_ref.engine.intrinsics import bits_of, float_of
from mor_ref.engine.kernel import kernel

_U = np.uint32
_F = np.float32
# Operands of a product or a sum, and what comes out: a subnormal operand, a subnormal result, and
# sums that go up, go down and tie under rounding to nearest even.
_PRODUCTS = np.array(
    [[0x00000001, 0x4B800000, 0x01000000], [0x00800000, 0x3F000000, 0x00400000]], np.uint32
)
_SUMS = np.array(
    [
        [0x3F800000, 0x33800001, 0x3F800001],
        [0x3F800000, 0x337FFFFF, 0x3F800000],
        [0xBF800000, 0xB3800001, 0xBF800001],
        [0xBF800000, 0xB37FFFFF, 0xBF800000],
        [0x3F800000, 0x33800000, 0x3F800000],
    ],
    np.uint32,
)


@kernel
def count_deviations(products, sums):
    """How many results are not as expected."""
    found = 0
    for i in range(products.shape[0]):
        result = _F(float_of(products[i, 0]) * float_of(products[i, 1]))
        found += bits_of(result) != products[i, 2]
    for i in range(sums.shape[0]):
        found += bits_of(_F(float_of(sums[i, 0]) + float_of(sums[i, 1]))) != sums[i, 2]
    return found


def check_processor() -> None:
    """Refuse to compute in a thread whose arithmetic is not that of IEEE 754."""
    if count_deviations(_PRODUCTS, _SUMS):
        raise RuntimeError(
            "this thread flushes subnormal numbers or rounds in another direction, as some library "
            "in this process has told the processor to; undo that "
            "(torch.set_flush_denormal(False)) or call from another process"
        )
