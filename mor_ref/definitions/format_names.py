"""The names of number formats in other software, each with the format here of the same values.

A hint to a format of other values would be worse than none: `float8_e4m3` of ml_dtypes has
infinities, and our `e4m3` has none.
"""

from collections.abc import Mapping
from types import MappingProxyType

from mor_ref.argument_checks import spelling

# The dtypes of NumPy, ml_dtypes, JAX and torch, and the formats that they are.
DTYPES: Mapping[str, str] = MappingProxyType(
    {
        "float8_e4m3fn": "e4m3",
        "float8_e5m2": "e5m2",
        "float8_e8m0fnu": "e8m0",
        "float8_e4m3fnuz": "e4m3fnuz",
        "float8_e5m2fnuz": "e5m2fnuz",
        "float8_e4m3b11fnuz": "e4m3b11fnuz",
        "float8_e4m3": "e4m3_ieee",
        "float8_e3m4": "e3m4",
        "float6_e2m3fn": "e2m3",
        "float6_e3m2fn": "e3m2",
        "float4_e2m1fn": "e2m1",
        "float4_e2m1fn_x2": "e2m1",
        "bfloat16": "bf16",
        "float16": "f16",
        "float32": "f32",
    }
)
# The types of MLIR: as they are written, each is one format. F8_E4M3 of safetensors is another one.
MLIR_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "f8E4M3": "e4m3_ieee",
        "f8E4M3FN": "e4m3",
        "f8E4M3FNUZ": "e4m3fnuz",
        "f8E4M3B11FNUZ": "e4m3b11fnuz",
        "f8E5M2": "e5m2",
        "f8E5M2FNUZ": "e5m2fnuz",
        "f8E3M4": "e3m4",
        "f8E8M0FNU": "e8m0",
        "f6E2M3FN": "e2m3",
        "f6E3M2FN": "e3m2",
        "f4E2M1FN": "e2m1",
    }
)
_SPELLED = {spelling(name): fmt for name, fmt in DTYPES.items() if not name.endswith("_x2")}


def format_of_dtype(dtype: object) -> str | None:
    """Return the format that a dtype is, given it or its name, or a type of MLIR; else None.

    >>> format_of_dtype("float16"), format_of_dtype("ml_dtypes.float8_e4m3"), format_of_dtype("f8")
    ('f16', 'e4m3_ieee', None)
    """
    of_mlir = MLIR_TYPES.get(dtype) if isinstance(dtype, str) else None
    return of_mlir or _SPELLED.get(spelling(dtype))


# Names of one format, or of one of several; a name without any is of a format that is not here.
_OTHERS: Mapping[str, tuple[str, ...]] = {
    # CUDA, Triton, MLIR, ONNX, and how people write.
    **dict.fromkeys(("e4m3fn", "fp8_e4m3", "fp8_e4m3fn", "f8e4m3fn"), ("e4m3",)),
    **dict.fromkeys(("__nv_fp8_e4m3", "CUDA_R_8F_E4M3", "float8e4nv", "fp8e4nv"), ("e4m3",)),
    **dict.fromkeys(("fp8_e5m2", "__nv_fp8_e5m2", "CUDA_R_8F_E5M2", "f8e5m2"), ("e5m2",)),
    **dict.fromkeys(("float8e5", "fp8e5"), ("e5m2",)),
    **dict.fromkeys(("fp8_e4m3fnuz", "f8e4m3fnuz", "float8e4b8", "fp8e4b8"), ("e4m3fnuz",)),
    **dict.fromkeys(("fp8_e5m2fnuz", "f8e5m2fnuz", "float8e5b16", "fp8e5b16"), ("e5m2fnuz",)),
    **dict.fromkeys(("float8_e4m3b11", "f8e4m3b11fnuz"), ("e4m3b11fnuz",)),
    **dict.fromkeys(("fp8_e3m4", "f8e3m4"), ("e3m4",)),
    **dict.fromkeys(("e8m0fnu", "ue8m0", "f8e8m0fnu", "CUDA_R_8F_UE8M0"), ("e8m0",)),
    **dict.fromkeys(("e2m3fn", "fp6_e2m3", "f6e2m3fn", "__nv_fp6_e2m3"), ("e2m3",)),
    **dict.fromkeys(("e3m2fn", "fp6_e3m2", "f6e3m2fn", "__nv_fp6_e3m2"), ("e3m2",)),
    **dict.fromkeys(("e2m1fn", "fp4_e2m1", "f4e2m1fn", "__nv_fp4_e2m1"), ("e2m1",)),
    **dict.fromkeys(("float8_e8m0", "float4_e2m1", "float8e8m0", "float4e2m1"), ()),
    **dict.fromkeys(("bfloat", "__nv_bfloat16", "nv_bfloat16"), ("bf16",)),
    **dict.fromkeys(("fp16", "half", "binary16", "__half"), ("f16",)),
    **dict.fromkeys(("fp32", "single", "binary32"), ("f32",)),
    # Each may be one of several: MLIR's f8E4M3 has infinities, safetensors' F8_E4M3 has not.
    "f8e4m3": ("e4m3", "e4m3_ieee"),
    **dict.fromkeys(("fp8", "float8", "f8"), ("e4m3", "e5m2")),
    "bf8": ("e5m2", "e5m2fnuz"),
    **dict.fromkeys(("fp6", "float6", "f6"), ("e2m3", "e3m2")),
    **dict.fromkeys(("fp4", "float4", "f4"), ("e2m1", "e2m1_ieee")),
    # Formats that are not here.
    **dict.fromkeys(("tf32", "xf32", "f64", "fp64", "float64", "double", "binary64", "float"), ()),
    **dict.fromkeys(("float8_e5m3fnu", "f8e5m3fnu", "ue5m3", "e5m3"), ()),
    **dict.fromkeys(("ue4m3", "CUDA_R_8F_UE4M3", "nf4", "e5m2fn", "float8e4b15", "fp8e4b15"), ()),
    **{f"{sign}int{bits}": () for sign in ("", "u") for bits in (1, 2, 4, 8, 16, 32, 64)},
}
OTHER_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {spelling(name): formats for name, formats in _OTHERS.items()}
    | {spelling(name): (format_,) for name, format_ in DTYPES.items()}
)
