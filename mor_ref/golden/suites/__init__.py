"""All suites: single steps, single blocks, tensors and large tensors, each by chapter."""

from mor_ref.golden.model.suite import Suite
from mor_ref.golden.suites import (
    affine,
    decoding,
    dot,
    encoding,
    errors,
    fp8lm,
    levels,
    mx,
    nvfp4,
    policies,
    policies_large,
    quantization,
    scales,
    shared,
)

SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        *encoding.STEPS,
        decoding.STEPS,
        scales.STEPS,
        quantization.STEPS,
        errors.STEPS,
        policies.STEPS,
        quantization.BLOCKS,
        nvfp4.BLOCKS,
        mx.BLOCKS,
        quantization.TENSORS,
        policies.TENSORS,
        *nvfp4.TENSORS,
        mx.TENSORS,
        quantization.LARGE,
        policies_large.LARGE,
        nvfp4.LARGE,
        mx.LARGE,
        shared.BLOCKS,
        shared.TENSORS,
        shared.LARGE,
        levels.STEPS,
        levels.TENSORS,
        levels.LARGE,
        affine.STEPS,
        affine.TENSORS,
        affine.GROUPS,
        affine.LARGE,
        fp8lm.SCALES,
        fp8lm.CASTS,
        fp8lm.SUMMED,
        fp8lm.ADAM,
        dot.CHUNKS,
        dot.ROWS,
        dot.SCALED,
    )
}
