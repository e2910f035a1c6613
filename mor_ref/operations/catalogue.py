"""The operations by name: those of the core, and those of each scheme."""

from mor_ref.operations.block_formats import BLOCKS
from mor_ref.operations.decoding import DECODE
from mor_ref.operations.dot import DOT, DOT_INTEGERS, DOT_SCALED
from mor_ref.operations.encoding import ENCODE, ENCODE_PRESET, ENCODE_STOCHASTIC
from mor_ref.operations.errors import ERROR_TERM
from mor_ref.operations.matmul import MATMUL
from mor_ref.operations.metrics import ACCEPT, UNIT_SUMS
from mor_ref.operations.mx import MX, MX_BLOCK, MX_DECODE
from mor_ref.operations.nvfp4 import NVFP4, NVFP4_BLOCK
from mor_ref.operations.operation import Operation
from mor_ref.operations.policies import DECIDE, MOR
from mor_ref.operations.quantization import QUANTIZE, QUANTIZE_BLOCK, QUANTIZE_ELEMENT
from mor_ref.operations.scales import SCALE
from mor_ref.schemes import values_in_schemes

# In the order of the specification.
OPERATIONS: dict[str, Operation] = {
    operation.name: operation
    for operation in (
        ENCODE,
        ENCODE_PRESET,
        ENCODE_STOCHASTIC,
        DECODE,
        SCALE,
        QUANTIZE_ELEMENT,
        ERROR_TERM,
        DECIDE,
        UNIT_SUMS,
        ACCEPT,
        QUANTIZE,
        MOR,
        NVFP4,
        MX,
        BLOCKS,
        QUANTIZE_BLOCK,
        NVFP4_BLOCK,
        MX_BLOCK,
        MX_DECODE,
        *values_in_schemes("operation", Operation),
        DOT,
        DOT_SCALED,
        DOT_INTEGERS,
        MATMUL,
    )
}
