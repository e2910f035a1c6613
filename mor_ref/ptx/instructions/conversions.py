"""Conversions between types of numbers."""

from mor_ref.ptx.rows import Row

_INTEGERS = r"[us](?:8|16|32|64)"

_FLOATS = r"f16|bf16|f32|f64"
_MODE = r"\.(?P<mode>rn|rz|rm|rp)"
_TO_INTEGER = r"\.(?P<mode>rni|rzi|rmi|rpi)"
_FTZ, _SAT = r"(?:\.(?P<ftz>ftz))?", r"(?:\.(?P<sat>sat))?"

ROWS = (
    Row(rf"cvt\.(?P<t>{_INTEGERS})\.(?P<f>{_INTEGERS})", "cvt<{t}, {f}>", ("{t}", "{f}")),
    Row(
        rf"cvt\.sat\.(?P<t>{_INTEGERS})\.(?P<f>{_INTEGERS})",
        "cvt_sat<{t}, {f}>",
        ("{t}", "{f}"),
    ),
    Row(
        rf"cvt{_TO_INTEGER}{_FTZ}(?:\.sat)?\.(?P<t>{_INTEGERS})\.(?P<f>{_FLOATS})",
        "cvt_to_integer<{t}, {f_upper}, {mode}, {flags}>",
        ("{t}", "{f}"),
    ),
    Row(
        rf"cvt{_MODE}{_SAT}\.(?P<t>{_FLOATS})\.(?P<f>{_INTEGERS})",
        "cvt_from_integer<{upper}, {f}, {mode}, {flags}>",
        ("{t}", "{f}"),
    ),
    Row(
        rf"cvt{_TO_INTEGER}{_FTZ}{_SAT}\.(?P<t>{_FLOATS})\.(?P=t)",
        "cvt_integral<{upper}, {mode}, {flags}>",
        ("{t}", "{t}"),
    ),
    Row(
        rf"cvt(?:{_MODE})?{_FTZ}{_SAT}\.(?P<t>{_FLOATS})\.(?P<f>{_FLOATS})",
        "cvt_float<{upper}, {f_upper}, {mode}, {flags}>",
        ("{t}", "{f}"),
    ),
)
