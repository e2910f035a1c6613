"""Numbers of 16 bits as the words of wider ones (ENC-001).

A kernel is given bfloat16 as uint16 and binary16 as int16: so the type says which bits they are.
"""

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from mor_ref.arrays import Bits
from mor_ref.engine.intrinsics import bits_of, use_full_vectors
from mor_ref.engine.kernel import integer_kernel

_U = np.uint32
_BIAS_DIFFERENCE = _U((127 - 15) << 23)
_BINARY16_UNIT = np.float32(2.0**-24)


def as_binary16(bits: Bits) -> Bits:
    """Return the bits of binary16 numbers as kernels take them."""
    return bits.view(np.int16)


@intrinsic
def widen(typing_context, value, word):
    """Return a bfloat16 or binary16 as the bits of a binary32, and other numbers unchanged.

    A NaN stays one of its sign, and its payload may change.
    """

    def codegen(context, builder, signature, args):
        narrow, wide = args[0], ir.IntType(word.dtype.bitwidth)
        if signature.args[0] == types.int16:
            return _binary32_of(context, builder, narrow)
        if narrow.type.width == wide.width:
            return narrow
        distance = wide(wide.width - narrow.type.width)
        return builder.shl(builder.zext(narrow, wide), distance)

    return word.dtype(value, word), codegen


def _binary32_of(context, builder, narrow):
    """Convert by an instruction, if there is one: LLVM would call a function that is not loaded."""
    _, _, features = context.codegen().magic_tuple()
    if {"+avx", "+f16c"} <= set(features.split(",")):
        number = builder.bitcast(narrow, ir.HalfType())
        return builder.bitcast(builder.fpext(number, ir.FloatType()), ir.IntType(32))
    return context.compile_internal(
        builder, binary32_by_integers, types.uint32(types.uint16), [narrow]
    )


def binary32_by_integers(bits):
    """Return the bits of the binary32 that equals a binary16."""
    magnitude = _U(bits & np.uint16(0x7FFF))
    sign = _U(_U(bits & np.uint16(0x8000)) << _U(16))
    normal = _U(_U(magnitude << _U(13)) + _BIAS_DIFFERENCE)
    normal = _U(normal + _BIAS_DIFFERENCE) if magnitude >= _U(0x7C00) else normal
    # Exact, and neither a factor nor the product is subnormal: nothing is there to flush.
    subnormal = bits_of(np.float32(np.float32(np.int32(magnitude)) * _BINARY16_UNIT))
    return _U((subnormal if magnitude < _U(0x0400) else normal) | sign)


@integer_kernel
def widen_array(numbers, out):
    """Return the binary32 bits of each binary16."""
    use_full_vectors()
    for i in range(numbers.size):
        out[i] = widen(numbers[i], _U)
