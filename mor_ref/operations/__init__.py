"""The operations of the suites: one declaration for each, which everything else reads.

A declaration has the parameters, the fields and the three implementations. An operation on single
numbers or blocks also declares random inputs; suites make tensors.
"""

from mor_ref.operations.affine import AFFINE
from mor_ref.operations.affine_element import AFFINE_ELEMENT
from mor_ref.operations.affine_float_zero import AFFINE_FLOAT_ZERO
from mor_ref.operations.affine_groups import AFFINE_GROUPS
from mor_ref.operations.decide import DECIDE
from mor_ref.operations.decode import DECODE
from mor_ref.operations.dot import DOT, DOT_SCALED
from mor_ref.operations.dot_integers import DOT_INTEGERS
from mor_ref.operations.encode import ENCODE
from mor_ref.operations.encode_preset import ENCODE_PRESET
from mor_ref.operations.encode_stochastic import ENCODE_STOCHASTIC
from mor_ref.operations.error_term import ERROR_TERM
from mor_ref.operations.fp8lm_adam import FP8LM_ADAM
from mor_ref.operations.fp8lm_cast import FP8LM_CAST, FP8LM_RECAST
from mor_ref.operations.fp8lm_scale import FP8LM_SCALE
from mor_ref.operations.fp8lm_shared import FP8LM_SHARED, FP8LM_STORED
from mor_ref.operations.fp8lm_state import (
    FP8LM_MU,
    FP8LM_PARTITION,
    FP8LM_RATE,
    FP8LM_WINDOW,
)
from mor_ref.operations.fp8lm_steps import FP8LM_STEPS
from mor_ref.operations.fp8lm_sum import FP8LM_SUM
from mor_ref.operations.levels import LEVELS
from mor_ref.operations.levels_element import LEVELS_ELEMENT
from mor_ref.operations.matmul import MATMUL
from mor_ref.operations.mix_errors import MIX_ERRORS
from mor_ref.operations.mix_layers import MIX_LAYERS
from mor_ref.operations.mixed import MIX
from mor_ref.operations.mor import MOR
from mor_ref.operations.mx import MX
from mor_ref.operations.mx_block import MX_BLOCK
from mor_ref.operations.mx_decode import MX_DECODE
from mor_ref.operations.nvfp4 import NVFP4
from mor_ref.operations.nvfp4_block import NVFP4_BLOCK
from mor_ref.operations.operation import Operation, RandomInputs
from mor_ref.operations.packed import LEVELS_PACKED, SHARED_PACKED
from mor_ref.operations.quantize import QUANTIZE
from mor_ref.operations.quantize_block import QUANTIZE_BLOCK
from mor_ref.operations.quantize_element import QUANTIZE_ELEMENT
from mor_ref.operations.scale import SCALE
from mor_ref.operations.select import SELECT
from mor_ref.operations.shared import SHARED
from mor_ref.operations.shared_block import SHARED_BLOCK

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
        QUANTIZE,
        MOR,
        NVFP4,
        MX,
        QUANTIZE_BLOCK,
        NVFP4_BLOCK,
        MX_BLOCK,
        MX_DECODE,
        SHARED,
        SHARED_BLOCK,
        LEVELS,
        LEVELS_ELEMENT,
        AFFINE,
        AFFINE_GROUPS,
        AFFINE_ELEMENT,
        AFFINE_FLOAT_ZERO,
        SHARED_PACKED,
        LEVELS_PACKED,
        MIX,
        MIX_ERRORS,
        MIX_LAYERS,
        SELECT,
        FP8LM_SCALE,
        FP8LM_CAST,
        FP8LM_RECAST,
        FP8LM_SUM,
        FP8LM_ADAM,
        FP8LM_STEPS,
        FP8LM_SHARED,
        FP8LM_STORED,
        FP8LM_WINDOW,
        FP8LM_MU,
        FP8LM_RATE,
        FP8LM_PARTITION,
        DOT,
        DOT_SCALED,
        DOT_INTEGERS,
        MATMUL,
    )
}

__all__ = ["OPERATIONS", "Operation", "RandomInputs"]
