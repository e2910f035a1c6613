"""Names of functions in other libraries, each with what to write here; for errors alone."""

from collections.abc import Collection, Mapping

from mor_ref.argument_checks import UnknownNameError, hint_of
from mor_ref.definitions.formats import as_format

_ROUND_TRIP = (
    "call mor_ref.quantize(x, 'e4m3').dequantize(), or mor_ref.torch.fake_quantize for a tensor "
    "of torch"
)
_ROUND = "call mor_ref.decode(mor_ref.encode(x, 'e4m3'), 'e4m3'); encode alone returns codes"
_ERRORS = (
    "compute it from the numbers, as np.mean((np.float64(x) - mor_ref.quantize(x, 'e4m3')) ** 2); "
    "the command mor-ref compare prints mse, SQNR and others"
)
_FORMATS = "mor_ref.formats has them: list(mor_ref.formats), mor_ref.formats['e4m3']"
_NEXT = "call mor_ref.neighbours(x, 'e4m3'), which has the number below and the one above"
_MEANT: Mapping[str, str] = {
    "dequantize": "call the method of the record: mor_ref.quantize(x, 'e4m3').dequantize()",
    "save": "call the method of the record: mor_ref.quantize(x, 'e4m3').save('x.npz')",
    **dict.fromkeys(("astype", "cast", "round", "round_to", "to"), _ROUND),
    **dict.fromkeys(("fake_quant", "fake_quantize", "qdq", "quantize_dequantize"), _ROUND_TRIP),
    **dict.fromkeys(("error", "error_metrics", "errors", "mae", "mse", "rmse"), _ERRORS),
    **dict.fromkeys(("snr", "sqnr", "psnr"), _ERRORS),
    **dict.fromkeys(("get_format", "list_formats", "format", "FORMATS"), _FORMATS),
    **dict.fromkeys(("list_recipes", "get_recipe"), "run the command mor-ref recipes"),
    **dict.fromkeys(("next_after", "nextafter", "neighbors", "spacing", "ulp"), _NEXT),
    **dict.fromkeys(
        ("pack", "packed"), "call mor_ref.layouts.packed(codes), with rows and columns"
    ),
    **dict.fromkeys(("unpack", "unpacked"), "call mor_ref.layouts.plain(codes, 'packed', shape)"),
    "compare": "run the command mor-ref compare FILE --recipe mxfp8 --recipe nvfp4",
    "iinfo": "call numpy.iinfo('int8') or ml_dtypes.iinfo('int4')",
    "quantize_fp8": "call mor_ref.quantize(x, 'e4m3')",
    "quantize_int4": "call mor_ref.quantize_affine(x, 'int4')",
    "quantize_int8": "call mor_ref.quantize_affine(x, 'int8')",
    "quantize_mxfp4": "call mor_ref.quantize_mx(x, 'e2m1')",
    "quantize_mxfp6": "call mor_ref.quantize_mx(x, 'e2m3') or (x, 'e3m2')",
    "quantize_mxfp8": "call mor_ref.quantize_mx(x, 'e4m3') or (x, 'e5m2')",
}
_OF_RECIPES = ("mxfp8", "mxfp6", "mxfp4", "mx", "nvfp4")


def hint_of_function(name: str, known: Collection[str]) -> str:
    """Return what to write for a name that the package does not have; '' if that is not known."""
    if name in _MEANT:
        return _MEANT[name]
    if name.startswith("__"):
        return ""
    if name.lower() in _OF_RECIPES:
        recipe = {"mxfp6": "mxfp6_e2m3", "mx": "mxfp8"}.get(name.lower(), name.lower())
        return f"call mor_ref.quantize(x, {recipe!r})"
    try:
        fmt = as_format(name).name
    except UnknownNameError:
        return hint_of(name, known).strip()
    return f"give functions the name {fmt!r}; mor_ref.formats[{fmt!r}] is the format"


# Names of fields in other libraries, and the attributes here; a record has one of them, or some.
_FIELDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("data", "qdata", "quantized", "quantized_data", "values", "q"), ("codes",)),
    **dict.fromkeys(("code", "codes_packed", "int_repr"), ("codes",)),
    **dict.fromkeys(("s", "scale_inv", "scale_codes"), ("scale", "scales", "inverse_scale")),
    "scale": ("scales", "scale_exponent", "block_scale"),
    "scales": ("scale", "block_scale"),
    **dict.fromkeys(("y", "dequantized", "dequant", "numpy", "float"), ("dequantize()",)),
    **dict.fromkeys(("to", "astype", "tolist"), ("dequantize()",)),
    **dict.fromkeys(("dtype", "format"), ("fmt",)),
    **dict.fromkeys(("mse", "sqnr", "metrics"), ("error",)),
}


def hint_of_field(name: str, record: type) -> str:
    """Return the attributes of a record that stand for a name; '' if none is known to."""
    fields = getattr(record, "__dataclass_fields__", {})
    meant = [
        one
        for one in _FIELDS.get(name, ())
        if one in fields or hasattr(record, one.removesuffix("()"))
    ]
    return f"use {' or '.join(f'.{one}' for one in meant)}" if meant else ""
