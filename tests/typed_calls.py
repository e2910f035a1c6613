"""Calls of users with their types: mypy takes those that run, and refuses those that do not.

`test_types` has mypy check this file, and makes the calls. A comment on a refused call says which
error mypy finds there; mypy finds a comment that is not needed.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, assert_type

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import mor_ref
from mor_ref.verify.reporting.report import Report

X = np.linspace(-3, 3, 64, dtype=np.float32).reshape(2, 32)
CODES = np.arange(64, dtype=np.uint8).reshape(2, 32)
E2M3X = mor_ref.Format("e2m3x", exponent_bits=2, mantissa_bits=3, bias=1, specials="fn")


def engine(
    operation: str, parameters: Mapping[str, Any], arrays: Mapping[str, Any]
) -> Mapping[str, Any]:
    from mor_ref.operations import OPERATIONS

    return OPERATIONS[operation].engine(parameters, arrays)


def check_types() -> None:
    """Mypy knows what comes out."""
    quantized, mx = mor_ref.quantize(X, "e4m3"), mor_ref.quantize_mx(X, "e4m3")
    nvfp4, result = mor_ref.quantize_nvfp4(X), mor_ref.mor(X)
    assert_type(quantized, mor_ref.Quantized)
    assert_type(mx, mor_ref.Mx)
    assert_type(nvfp4, mor_ref.Nvfp4)
    assert_type(result, mor_ref.MorResult)
    assert_type(mor_ref.mix_formats(X), mor_ref.Mixed)
    assert_type(mor_ref.quantize_affine(X), mor_ref.Affine)
    assert_type(mor_ref.quantize_levels(X, "seq2"), mor_ref.Levels)
    assert_type(mor_ref.quantize_shared(X, "mx9"), mor_ref.Shared)
    assert_type(quantized.codes, NDArray[np.uint8])
    assert_type(quantized.scale, NDArray[np.float32])
    assert_type(quantized.decode_scale, NDArray[np.float32])
    assert_type(quantized.shape, tuple[int, ...])
    assert_type(len(quantized), int)
    assert_type(quantized == mx, bool)
    assert_type(quantized.error, mor_ref.ErrorSums)
    assert_type(quantized.error.overall, float)
    assert_type(nvfp4.packed, NDArray[np.uint8])
    assert_type(result.ladder, tuple[str, ...])
    assert_type(result.shares, dict[str, float])
    assert_type(mor_ref.decode(CODES, "e4m3"), NDArray[np.float32])
    assert_type(mor_ref.finfo("e4m3").max, float)
    assert_type(mor_ref.formats["e4m3"], mor_ref.Format)
    report = mor_ref.verify(engine, inputs={"x": X}, recipe="mxfp8")
    assert_type(report, Report)
    assert_type(bool(report), bool)
    assert_type(report.headline, str)
    numbers: NDArray[Any] = np.asarray(quantized)
    assert numbers.shape == quantized.shape


ACCEPTED: list[Callable[[], object]] = [
    lambda: mor_ref.encode(0.3, "e4m3"),
    lambda: mor_ref.encode([1, 2.5], "e4m3", rounding="rtz", overflow="ieee", nan="signed"),
    lambda: mor_ref.encode(X.astype(ml_dtypes.bfloat16), "e4m3", profile="cuda"),
    lambda: mor_ref.encode(X, E2M3X, threads=2),
    lambda: mor_ref.encode(X, ml_dtypes.float8_e4m3fn),
    lambda: mor_ref.encode(X, np.dtype(ml_dtypes.float8_e4m3fn)),
    lambda: mor_ref.encode(X, np.float16),
    lambda: mor_ref.decode([1, 2], "e4m3"),
    lambda: mor_ref.decode(CODES.view(ml_dtypes.float8_e4m3fn), ml_dtypes.float8_e4m3fn),
    lambda: mor_ref.quantize(X, "e4m3", amax=3.5),
    lambda: mor_ref.quantize(X, "e4m3", amax=3),
    lambda: mor_ref.quantize(X, "e4m3", amax=np.abs(X).max()),
    lambda: mor_ref.quantize(X, "e4m3", amax=Fraction(7, 2)),
    lambda: mor_ref.quantize(X, "e4m3", amax=[3.5]),
    lambda: mor_ref.quantize(
        X, "e4m3", scaling="fp32", block="row", scale=448 / np.abs(X).max(axis=1)
    ),
    lambda: mor_ref.quantize(X, "e4m3", scaling="fp32", scale=np.float32(0.5)),
    lambda: mor_ref.quantize(X, "e4m3", block="row", group=(2, 32)),
    lambda: mor_ref.quantize(X, "e4m3", block=(1, 16)),
    lambda: mor_ref.quantize(X, "e4m3", block=[1, 16]),
    lambda: mor_ref.quantize(X, "e4m3", block=np.array([1, 16])),
    lambda: mor_ref.quantize_mx(X, "e2m1", scale_rule="rceil", block=np.int64(16)),
    lambda: mor_ref.quantize_nvfp4(X, tile=np.array([1, 16]), global_scale=np.float64(0.5)),
    lambda: mor_ref.quantize_affine(X, block=[1, 16], symmetric=False),
    lambda: mor_ref.mor(X, "nvfp4", block="row", threshold={"nvfp4": "0.18"}),
    lambda: mor_ref.select(X, "column", np.float32(2.5)),
    lambda: mor_ref.matmul(mor_ref.quantize(X, "e4m3"), mor_ref.quantize(X, "e4m3").T),
    lambda: mor_ref.quantize(X, "e4m3").dequantize(ml_dtypes.bfloat16),
    lambda: mor_ref.dot(CODES, CODES, formats=("e4m3", ml_dtypes.float8_e5m2)),
    lambda: mor_ref.exact.decode(0x2A, mor_ref.formats["e4m3"]),
    lambda: mor_ref.layouts.packed(CODES & 15),
    lambda: mor_ref.fp8lm.cast(X, 8.0).dequantize(),
    lambda: mor_ref.verify.assert_bit_exact,
]
REFUSED: list[Callable[[], object]] = [
    lambda: mor_ref.quantise(X, "e4m3"),  # type: ignore[attr-defined]
    lambda: mor_ref.quantize_mxfp4(X),  # type: ignore[attr-defined]
    lambda: mor_ref.encode(X),  # type: ignore[call-arg]
    lambda: mor_ref.encode(X, 8),  # type: ignore[arg-type]
    lambda: mor_ref.encode(X, X),  # type: ignore[arg-type]
    lambda: mor_ref.encode(X, float),  # type: ignore[arg-type]
    lambda: mor_ref.encode(X, "e4m3", rounding="nearest"),  # type: ignore[arg-type]
    lambda: mor_ref.encode(X, "e4m3", overflow="saturate"),  # type: ignore[arg-type]
    lambda: mor_ref.encode(X, "e4m3", mode="rne"),  # type: ignore[call-arg]
    lambda: mor_ref.encode(X, "e4m3", threads="all"),  # type: ignore[arg-type]
    lambda: mor_ref.quantize(X, "e4m3", "fp32"),  # type: ignore[call-overload]
    lambda: mor_ref.quantize(X, "e4m3", scaling="fp16"),  # type: ignore[call-overload]
    lambda: mor_ref.quantize(X, "e4m3", block="rows"),  # type: ignore[call-overload]
    lambda: mor_ref.quantize(X, "e4m3", block=16),  # type: ignore[call-overload]
    lambda: mor_ref.quantize(X, "e4m3", block=(1, 16, 16)),  # type: ignore[arg-type]
    lambda: mor_ref.quantize(X, "e4m3", block=(1.0, 16.0)),  # type: ignore[arg-type]
    lambda: mor_ref.quantize(X, "e4m3", amax="3.5"),  # type: ignore[arg-type]
    lambda: mor_ref.quantize(X, "e4m3", amax=["3"]),  # type: ignore[arg-type]
    lambda: mor_ref.quantize(X, "e4m3", axis=0),  # type: ignore[call-overload]
    lambda: mor_ref.quantize_mx(X, "e4m3", block=32.0),  # type: ignore[arg-type]
    lambda: mor_ref.quantize_nvfp4(X, tile="row"),  # type: ignore[arg-type]
    lambda: mor_ref.mor(X, 3),  # type: ignore[arg-type]
    lambda: mor_ref.mor(X, threshold=[0.045]),  # type: ignore[arg-type]
    lambda: mor_ref.select(X, "row"),  # type: ignore[arg-type]
    lambda: mor_ref.quantize(X, "e4m3").code,  # type: ignore[attr-defined]
    lambda: mor_ref.quantize(X, "e4m3").dequantize("float16"),  # a dtype by its name
    lambda: mor_ref.quantize(X, "e4m3").dequantise(),  # type: ignore[attr-defined]
    lambda: mor_ref.verify(engine, inputs={"x": X}),  # type: ignore[call-arg]
    lambda: mor_ref.verify(3, inputs={"x": X}, recipe="mxfp8"),  # type: ignore[arg-type]
]
