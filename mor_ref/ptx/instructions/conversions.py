"""Conversions between types of numbers."""

from mor_ref.ptx.rows import Row

_INTEGERS = r"[us](?:8|16|32|64)"

_MODE = r"\.(?P<mode>rn|rz|rm|rp)"
_TO_INTEGER = r"\.(?P<mode>rni|rzi|rmi|rpi)"
_BYTES = r"e4m3|e5m2|e3m2|e2m3"
_NARROW = rf"{_BYTES}|e2m1"
_HALF = r"f16|bf16"
# The manual has them in both orders.
_FINITE = r"(?:\.(?:(?P<relu>relu)|(?P<satfinite>satfinite))){0,2}"
_OPEN_RS = (
    "its order of random bits is that of the figures of PTX 9, which no GPU has confirmed here; "
    "use .rn, or round with random bits in integers"
)
_SATURATING = rf"(?=.*\.satfinite){_FINITE}"
_FTZ, _SAT = r"(?:\.(?P<ftz>ftz))?", r"(?:\.(?P<sat>sat))?"

# All that ptxas 13 takes for sm_90. Without f32 there is no .ftz, bf16 has no .sat, and a result
# that may round has a rounding, save between f16, bf16 and f64.
_WIDE = r"[us](?:16|32|64)"
_FROM_FLOATS = (
    rf"{_FTZ}(?:\.sat)?\.(?P<t>{_INTEGERS})\.(?P<f>f32)",
    rf"(?:\.sat)?\.(?P<t>{_INTEGERS})\.(?P<f>f16|f64)",
    rf"\.(?P<t>{_WIDE})\.(?P<f>bf16)",
)
_FROM_INTEGERS = (
    rf"{_FTZ}{_SAT}\.(?P<t>f32)\.(?P<f>{_INTEGERS})",
    rf"{_SAT}\.(?P<t>f16|f64)\.(?P<f>{_INTEGERS})",
    rf"\.(?P<t>bf16)\.(?P<f>{_WIDE})",
)
_SAME_FLOATS = (
    rf"{_FTZ}{_SAT}\.(?P<t>f32)\.(?P<f>f32)",
    rf"{_SAT}\.(?P<t>f16|f64)\.(?P<f>(?P=t))",
    r"\.(?P<t>bf16)\.(?P<f>bf16)",
)
_OTHER_FLOATS = (
    rf"{_MODE}{_FTZ}{_SAT}\.(?P<t>f16)\.(?P<f>f32)",
    rf"{_MODE}{_FTZ}{_SAT}\.(?P<t>f32)\.(?P<f>f64)",
    rf"{_MODE}{_SAT}\.(?P<t>f16)\.(?P<f>f64)",
    rf"{_MODE}{_FTZ}\.(?P<t>bf16)\.(?P<f>f32)",
    rf"{_MODE}\.(?P<t>bf16)\.(?P<f>f64)",
    rf"(?:{_MODE})?\.(?P<t>f16|f64)\.(?P<f>bf16)",
    rf"(?:{_MODE})?\.(?P<t>bf16)\.(?P<f>f16)",
    rf"(?:{_MODE})?{_FTZ}\.(?P<t>f32)\.(?P<f>bf16)",
    rf"{_FTZ}{_SAT}\.(?P<t>f32)\.(?P<f>f16)",
    rf"{_FTZ}{_SAT}\.(?P<t>f64)\.(?P<f>f32)",
    rf"{_SAT}\.(?P<t>f64)\.(?P<f>f16)",
)

# Those whose NaN is another one on a GPU; they come before the others.
_OPEN_NANS = (
    rf"{_MODE}{_FTZ}\.(?P<t>f32)\.(?P<f>f64)",
    rf"{_MODE}\.(?P<t>f16|bf16)\.(?P<f>f64)",
    rf"(?:{_MODE})?\.(?P<t>f64)\.(?P<f>bf16)",
    r"\.(?P<t>f64)\.(?P<f>f16)",
)
_CONVERTED = "cvt_float<{upper}, {f_upper}, {mode}, {flags}>"
_SAME_NAN = "OpenNan<{{f_upper}}, {}, same_nan<{{upper}}, {{f_upper}}, {}>>{{{{m, LINE}}}}"


def _rows(begin: str, forms: tuple[str, ...], call: str) -> tuple[Row, ...]:
    """Return a row for each form of an instruction."""
    return tuple(Row(begin + form, call, ("{t}", "{f}")) for form in forms)


ROWS = (
    Row(rf"cvt\.(?P<t>{_INTEGERS})\.(?P<f>{_INTEGERS})", "cvt<{t}, {f}>", ("{t}", "{f}")),
    Row(
        rf"cvt\.sat\.(?P<t>{_INTEGERS})\.(?P<f>{_INTEGERS})",
        "cvt_sat<{t}, {f}>",
        ("{t}", "{f}"),
    ),
    *_rows(rf"cvt{_TO_INTEGER}", _FROM_FLOATS, "cvt_to_integer<{t}, {f_upper}, {mode}, {flags}>"),
    *_rows(rf"cvt{_MODE}", _FROM_INTEGERS, "cvt_from_integer<{upper}, {f}, {mode}, {flags}>"),
    Row(
        rf"cvt{_TO_INTEGER}\.f64\.f64",
        "OpenNan<F64, cvt_integral<F64, {mode}, 0>, quieted>{{m, LINE}}",
        ("f64", "f64"),
    ),
    *_rows(
        rf"cvt{_MODE}",
        (r"\.(?P<t>f32)\.(?P<f>bf16)",),
        _SAME_NAN.format(_CONVERTED, "false"),
    ),
    *_rows("cvt", _OPEN_NANS, _SAME_NAN.format(_CONVERTED, "true")),
    *_rows(rf"cvt{_TO_INTEGER}", _SAME_FLOATS, "cvt_integral<{upper}, {mode}, {flags}>"),
    Row(r"cvt\.f32\.f32", "Converted{{m, LINE}}", ("f32", "f32")),
    Row(r"cvt\.f32\.bf16", "ShiftedBf16{{m, LINE}}", ("f32", "bf16")),
    Row(rf"cvt\.(?P<ftz>ftz){_SAT}\.f64\.f32", "cvt_product_of_one<{flags}>", ("f64", "f32")),
    *_rows(r"cvt", _SAME_FLOATS, _CONVERTED),
    *_rows(r"cvt", _OTHER_FLOATS, _CONVERTED),
    Row(
        rf"cvt\.(?P<mode>rn|rz){_FINITE}\.(?P<t>{_HALF})\.f32",
        "cvt_float<{upper}, F32, {mode}, {flags}>",
        ("{t}", "f32"),
    ),
    Row(
        rf"cvt\.(?P<mode>rn|rz){_FINITE}\.(?P<t>{_HALF})x2\.f32",
        "cvt_pair<{upper}, F32, {mode}, {flags}>",
        ("b32", "f32", "f32"),
    ),
    Row(
        rf"cvt\.rn{_SATURATING}\.(?P<t>{_NARROW})x2\.f32",
        "cvt_pair<{upper}, F32, {mode}, {flags}>",
        ("{packed_t}", "f32", "f32"),
    ),
    Row(
        rf"cvt\.rn{_SATURATING}\.(?P<t>{_NARROW})x2\.(?P<f>{_HALF})x2",
        "cvt_packed<{upper}, {f_upper}, {mode}, {flags}>",
        ("{packed_t}", "b32"),
    ),
    Row(
        rf"cvt\.rn(?:\.(?P<relu>relu))?\.(?P<t>{_HALF})x2\.(?P<f>{_NARROW})x2",
        "cvt_packed<{upper}, {f_upper}, {mode}, {flags}>",
        ("b32", "{packed_f}"),
    ),
    Row(
        rf"cvt\.rs{_FINITE}\.bf16x2\.f32",
        "PairAtRandom<BF16, {flags}, 16>{{End::nearest}}",
        ("b32", "f32", "f32", "b32"),
    ),
    Row(
        rf"cvt\.rs{_FINITE}\.f16x2\.f32",
        "PairAtRandom<F16, {flags}, 13>{{END}}",
        ("b32", "f32", "f32", "b32"),
        _OPEN_RS,
    ),
    *(
        Row(
            rf"cvt\.rs{_SATURATING}\.(?P<t>{narrow})x4\.f32",
            "FourAtRandom<{upper}, {flags}>{{END}}",
            (packed, "f32", "f32", "f32", "f32", "b32"),
            _OPEN_RS,
        )
        for narrow, packed in ((_BYTES, "b32"), ("e2m1", "b16"))
    ),
    Row(
        r"cvt\.r(?P<up>[zp])(?:\.(?P<satfinite>satfinite))?\.ue8m0x2\.f32",
        "ue8m0_pair<'{up}' == 'p', {flags}>",
        ("b16", "f32", "f32"),
    ),
    Row(
        r"cvt\.r(?P<up>[zp])(?:\.(?P<satfinite>satfinite))?\.ue8m0x2\.bf16x2",
        "ue8m0_packed<'{up}' == 'p', {flags}>",
        ("b16", "b32"),
    ),
    Row(r"cvt\.rn\.bf16x2\.ue8m0x2", "of_ue8m0_packed", ("b32", "b16")),
    Row(r"cvt\.pack\.sat\.(?P<t>[us]16)\.s32", "pack<{t}, 16>", ("b32", "s32", "s32")),
    Row(
        r"cvt\.pack\.sat\.(?P<sign>[us])(?P<n>[248])\.s32\.b32",
        "pack<{sign}8, {n}>",
        ("b32", "s32", "s32", "b32"),
    ),
    *(
        Row(
            rf"cvt\.(?P<how>{how}){_FINITE}\.tf32\.f32",
            f"OpenNan<F32, tf32_{{how}}<{{flags}}>, {nan}>{{{{m, LINE}}}}",
            ("b32", "f32"),
        )
        for how, nan in (("rn|rz", "nan_tf32"), ("rna", "nan_tf32_rna<{flags}>"))
    ),
)
