"""Arithmetic in half precision, and on two numbers in a register."""

from mor_ref.ptx.rows import Row

_TYPE = r"(?P<t>f16|bf16)"
_FTZ, _SAT = r"(?:\.(?P<ftz>ftz))?", r"(?:\.(?P<sat>sat))?"
_MINMAX = rf"{_FTZ}(?:\.(?P<NaN>NaN))?(?:\.xorsign\.(?P<abs>abs))?"
_CALL = "{op}_half<{upper}, {mode}, {flags}>"
_FORMS = (
    (r"(?P<op>add|sub|mul)(?:\.rn)?" + _FTZ + _SAT, 3),
    (rf"(?P<op>fma)\.rn{_FTZ}(?:{_SAT}|\.(?P<relu>relu))", 4),
    (rf"(?P<op>min|max){_MINMAX}", 3),
)
_WORDS = (
    (rf"(?P<op>add|sub|mul)(?:\.(?P<mode>rn|rz|rm|rp))?{_FTZ}", 3),
    (rf"(?P<op>fma)\.(?P<mode>rn|rz|rm|rp){_FTZ}", 4),
)

_SIGNS = rf"(?P<op>neg|abs){_FTZ}\.{_TYPE}"
_SOME = (
    (rf"(?P<op>add|sub)(?:\.(?P<mode>rn|rz|rm|rp))?{_SAT}", 1),
    (rf"(?P<op>fma)\.(?P<mode>rn|rz|rm|rp){_SAT}", 2),
)

ROWS = (
    Row(_SIGNS, f"OfNan<{{upper}}, 1, {_CALL}>{{{{m, LINE}}}}", ("b16",) * 2),
    Row(
        f"{_SIGNS}x2", f"OfNan<{{upper}}, 2, in_halves<{_CALL}, u32>>{{{{m, LINE}}}}", ("b32",) * 2
    ),
    *(
        Row(
            rf"{form}\.f32\.{_TYPE}",
            "{op}_wide<{upper}, {mode}, {flags}>",
            ("f32", *("b16",) * count, "f32"),
        )
        for form, count in _SOME
    ),
    Row(rf"(?P<op>min|max)\.{_TYPE}", f"OfEqual<{{upper}}, {_CALL}>{{{{m, LINE}}}}", ("b16",) * 3),
    *(Row(rf"{form}\.{_TYPE}", _CALL, ("b16",) * count) for form, count in _FORMS),
    *(
        Row(rf"{form}\.{_TYPE}x2", f"in_halves<{_CALL}>", ("b32",) * count)
        for form, count in _FORMS
    ),
    *(
        Row(rf"{form}\.f32x2", "in_words<{op}_f32<{mode}, {flags}>>", ("b64",) * count)
        for form, count in _WORDS
    ),
)
