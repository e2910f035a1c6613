"""Floating-point instructions that PTX defines to the bit."""

from mor_ref.ptx.rows import Row

_FTZ, _SAT = r"(?:\.(?P<ftz>ftz))?", r"(?:\.(?P<sat>sat))?"
_ANY = r"(?:\.(?P<mode>rn|rz|rm|rp))?"
_MODE = r"\.(?P<mode>rn|rz|rm|rp)"
_DIRECTED = r"\.(?P<mode>rz|rm|rp)"
_MINMAX = rf"{_FTZ}(?:\.(?P<NaN>NaN))?(?:\.xorsign\.(?P<abs>abs))?"
_F32, _F64 = "f32", "f64"

ROWS = (
    Row(r"mul\.f32", "Multiplied{{m, LINE}}", (_F32,) * 3),
    Row(r"(?P<op>min|max)\.f32", "OfEqual<F32, {op}_f32<0>>{{m, LINE}}", (_F32,) * 3),
    Row(
        rf"(?P<op>add|sub|mul){_ANY}{_FTZ}{_SAT}\.f32",
        "{op}_f32<{mode}, {flags}>",
        (_F32, _F32, _F32),
    ),
    Row(rf"(?:fma|mad){_MODE}{_FTZ}{_SAT}\.f32", "fma_f32<{mode}, {flags}>", (_F32,) * 4),
    Row(rf"div{_MODE}{_FTZ}\.f32", "div_f32<{mode}, {flags}>", (_F32, _F32, _F32)),
    Row(rf"rcp{_MODE}{_FTZ}\.f32", "rcp_f32<{mode}, {flags}>", (_F32, _F32)),
    Row(rf"sqrt\.rn{_FTZ}\.f32", "sqrt_f32<{flags}>", (_F32, _F32)),
    Row(
        rf"sqrt\.(?P<mode>rz|rm|rp){_FTZ}\.f32",
        "sqrt_directed_f32<{mode}, {flags}>",
        (_F32, _F32),
    ),
    Row(
        rf"(?P<op>min|max){_FTZ}(?:\.(?P<NaN>NaN))?\.f32",
        "of_three<{flags}, false, {op}_f32<{flags}>>",
        (_F32,) * 4,
    ),
    Row(
        rf"(?P<op>min|max){_FTZ}(?:\.(?P<NaN>NaN))?\.abs\.f32",
        "of_three<{flags}, true, {op}_f32<{flags}>>",
        (_F32,) * 4,
    ),
    Row(r"(?P<op>neg|abs)\.f32", "OfNan<F32, 1, {op}_f32>{{m, LINE}}", (_F32, _F32)),
    Row(
        r"(?P<op>neg|abs)\.ftz\.f32",
        "OfNan<F32, 1, flushed_{op}_f32>{{m, LINE}}",
        (_F32, _F32),
    ),
    Row(r"copysign\.(?P<t>f32|f64)", "copysign_{t}", ("{t}", "{t}", "{t}")),
    Row(rf"(?P<op>min|max){_MINMAX}\.f32", "{op}_f32<{flags}>", (_F32, _F32, _F32)),
    Row(r"add(?:\.rn)?\.f64", "ToNan<add_f64>{{m, LINE}}", (_F64,) * 3),
    Row(r"(?P<op>sub|mul)(?:\.rn)?\.f64", "ToNan<{op}_f64, true>{{m, LINE}}", (_F64,) * 3),
    Row(r"(?:fma|mad)\.rn\.f64", "ToNan<fma_f64, true>{{m, LINE}}", (_F64,) * 4),
    Row(rf"add{_DIRECTED}\.f64", "ToNan<add_directed<{mode}>>{{m, LINE}}", (_F64,) * 3),
    Row(
        rf"(?P<op>sub|mul|div){_DIRECTED}\.f64",
        "ToNan<{op}_directed<{mode}>, true>{{m, LINE}}",
        (_F64,) * 3,
    ),
    Row(
        rf"(?:fma|mad){_DIRECTED}\.f64",
        "ToNan<fma_directed<{mode}>, true>{{m, LINE}}",
        (_F64,) * 4,
    ),
    Row(
        rf"(?P<op>rcp|sqrt){_DIRECTED}\.f64", "ToNan<{op}_directed<{mode}>>{{m, LINE}}", (_F64,) * 2
    ),
    Row(r"(?P<op>min|max)\.f64", "ToNan<{op}_f64>{{m, LINE}}", (_F64, _F64, _F64)),
    Row(r"div\.rn\.f64", "ToNan<div_f64, true>{{m, LINE}}", (_F64, _F64, _F64)),
    Row(r"(?P<op>rcp|sqrt)\.rn\.f64", "ToNan<{op}_f64>{{m, LINE}}", (_F64, _F64)),
    Row(
        r"testp\.(?P<kind>finite|infinite|number|notanumber|normal|subnormal)\.(?P<t>f32|f64)",
        "testp_{t}<Kind::{kind}>",
        ("pred", "{t}"),
    ),
    Row(r"(?P<op>neg|abs)\.f64", "OfNan<F64, 1, {op}_f64>{{m, LINE}}", (_F64, _F64)),
)
