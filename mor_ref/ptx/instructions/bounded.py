"""Floating-point instructions whose error PTX bounds, and whose bits it leaves open."""

from mor_ref.ptx.rows import Row

_FTZ = r"(?:\.(?P<ftz>ftz))?"
_F32 = "f32"
_NO_OTHER = "PTX has no form that is defined to the bit"


def _row(pattern: str, types: int, bound: str, instead: str) -> Row:
    name = pattern.replace(r"\.", "_")
    call = f"Bounded{{{{END}}}}.{name}<{{flags}}>"
    opened = f"PTX bounds its error by {bound} and leaves its bits open; {instead}"
    return Row(rf"{pattern}{_FTZ}\.f32", call, (_F32,) * types, opened)


_DIV = "use div.rn (in Triton: tl.div_rn(x, y) or tl.fdiv(x, y, ieee_rounding=True))"
_SQRT = "use sqrt.rn (in Triton: tl.sqrt_rn(x))"
_OF_ANGLES = "2^-20.5 from -2 pi to 2 pi, and by 2^-14.7 from -100 pi to 100 pi,"

ROWS = (
    _row(r"div\.full", 3, "2 ulp", _DIV),
    _row(r"div\.approx", 3, "2 ulp", _DIV),
    _row(r"rcp\.approx", 2, "1 ulp", "use rcp.rn (in Triton: tl.div_rn(1.0, x))"),
    _row(r"sqrt\.approx", 2, "2^-23 of its value", _SQRT),
    _row(r"rsqrt\.approx", 2, "2^-22.9 of its value", "use sqrt.rn and rcp.rn"),
    _row(r"tanh\.approx", 2, "2^-11 of its value", _NO_OTHER),
    *(_row(rf"{name}\.approx", 2, _OF_ANGLES, _NO_OTHER) for name in ("sin", "cos")),
    _row(r"ex2\.approx", 2, "2 ulp", _NO_OTHER),
    _row(r"lg2\.approx", 2, "2^-22, of its value if its operand is not near 1", _NO_OTHER),
)
