"""The suites by name: those of the core, and those of each scheme."""

from mor_ref.golden.model.suite import Suite
from mor_ref.golden.suites import (
    decoding,
    dot,
    dot_integers,
    dot_scaled,
    encoding,
    errors,
    matmul,
    metrics,
    mx,
    nvfp4,
    nvfp4_large,
    policies,
    policies_large,
    quantization,
    quantization_large,
    scales,
)
from mor_ref.schemes import values_in_schemes

SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        *encoding.STEPS,
        decoding.STEPS,
        scales.STEPS,
        quantization.STEPS,
        errors.STEPS,
        policies.STEPS,
        metrics.SUMS,
        quantization.BLOCKS,
        nvfp4.BLOCKS,
        mx.BLOCKS,
        quantization.TENSORS,
        policies.TENSORS,
        metrics.ACCEPTANCE,
        *nvfp4.TENSORS,
        mx.TENSORS,
        mx.DECODED,
        quantization_large.LARGE,
        policies_large.LARGE,
        nvfp4_large.LARGE,
        mx.LARGE,
        *values_in_schemes("suites", Suite),
        dot.CHUNKS,
        dot.ROWS,
        dot_scaled.SCALED,
        dot_integers.INTEGERS,
        matmul.ENTRIES,
    )
}
