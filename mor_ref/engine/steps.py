"""Single steps of the engine over arrays: the steps inside the loops over tensors."""

import numpy as np

from mor_ref.engine.dequantization import canonical
from mor_ref.engine.errors import error_terms
from mor_ref.engine.intrinsics import bits_of, float_of
from mor_ref.engine.kernel import kernel
from mor_ref.engine.quantization import quantized

_U = np.uint32
_F = np.float32
_MAGNITUDE = _U(0x7FFFFFFF)
_SIGN = _U(0x80000000)


@kernel
def quantize_elements(x, scale, grid, scaled, codes):
    """QNT-001 for each number and its scale."""
    for i in range(x.size):
        product = _F(float_of(_U(x[i] & _MAGNITUDE)) * float_of(scale[i]))
        code, _ = quantized(x[i], product, grid)
        codes[i] = code
        signed = _U(bits_of(product) | _U(x[i] & _SIGN))
        scaled[i] = signed if product == product else canonical(product)


@kernel
def errors_of_elements(x, y, d, r, u):
    """ERR-001 for each number and its y."""
    for i in range(x.size):
        distance, ratio, units = error_terms(float_of(x[i]), float_of(y[i]))
        d[i], r[i], u[i] = bits_of(distance), bits_of(ratio), units
