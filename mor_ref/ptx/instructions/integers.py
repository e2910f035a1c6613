"""Integer, logic and selecting instructions."""

from collections.abc import Iterator

from mor_ref.ptx.rows import Row

_INTEGER = r"(?P<t>[us](?:16|32|64))"
_BITS = r"(?P<t>b(?:16|32|64))"
_T = "{t}"
_CARRIES = (("", "\\.cc"), ("c", ""), ("c", "\\.cc"))  # the flag that is read, and written
_WORD = r"(?P<t>[us](?:32|64))"


def _with_carry(pattern: str, call: str, count: int) -> Iterator[Row]:
    """Yield rows of instructions that read or write the carry of their thread."""
    for reads, writes in _CARRIES:
        flags = f"{str(bool(reads)).lower()}, {str(bool(writes)).lower()}"
        text = f"Carry<{{t}}, {flags}>{{{{m}}}}.{call}"
        yield Row(rf"{pattern.format(reads)}{writes}\.{_WORD}", text, (_T,) * count)


ROWS = (
    Row(rf"(?P<op>add|sub|min|max)\.{_INTEGER}", "{op}<{t}>", (_T, _T, _T)),
    Row(rf"(?P<op>div|rem)\.{_INTEGER}", "Quotient<{t}>{{m, LINE}}.{op}", (_T, _T, _T)),
    Row(r"(?P<op>add|sub)\.sat\.s32", "{op}_sat<s32>", ("s32", "s32", "s32")),
    # The manual has .relu before the type, and the header of CUDA after it; ptxas takes both.
    Row(r"(?P<op>min|max)\.(?:relu\.s32|s32\.relu)", "{op}_relu<s32>", ("s32", "s32", "s32")),
    Row(r"(?P<op>add|min|max)\.(?P<t>[us]16)x2", "in_halves<{op}<{t}>>", ("b32",) * 3),
    Row(r"(?P<op>min|max)\.(?:relu\.s16x2|s16x2\.relu)", "in_halves<{op}_relu<s16>>", ("b32",) * 3),
    Row(rf"sad\.{_INTEGER}", "sad<{t}>", (_T, _T, _T, _T)),
    # CUDA's functions of bytes and of halves of words have these of all video instructions.
    Row(r"vabsdiff(?P<n>[24])\.u32\.u32\.u32", "differences<{n}>", ("b32",) * 4),
    Row(r"vabsdiff(?P<n>[24])\.u32\.u32\.u32\.add", "differences_sum<{n}>", ("b32",) * 4),
    *_with_carry("(?P<op>add|sub){}", "{op}", 3),
    *_with_carry(r"mad{}\.(?P<half>lo|hi)", "mad_{half}", 4),
    Row(r"mul24\.(?P<half>lo|hi)\.(?P<t>[us]32)", "mul24_{half}<{t}>", (_T, _T, _T)),
    Row(r"mad24\.(?P<half>lo|hi)\.(?P<t>[us]32)", "mad24_{half}<{t}>", (_T,) * 4),
    Row(r"(?P<op>mad|mad24)\.hi\.sat\.s32", "{op}_hi_sat", ("s32",) * 4),
    Row(r"dp4a\.(?P<a>[us]32)\.(?P<b>[us]32)", "dp4a<{a}, {b}>", ("b32",) * 4),
    Row(
        r"dp2a\.(?P<half>lo|hi)\.(?P<a>[us]32)\.(?P<b>[us]32)",
        "dp2a_{half}<{a}, {b}>",
        ("b32",) * 4,
    ),
    Row(rf"mul\.(?P<half>lo|hi)\.{_INTEGER}", "mul_{half}<{t}>", (_T, _T, _T)),
    Row(r"mul\.wide\.(?P<t>[us](?:16|32))", "mul_wide<{t}>", ("{wide}", _T, _T)),
    Row(rf"mad\.(?P<half>lo|hi)\.{_INTEGER}", "mad_{half}<{t}>", (_T, _T, _T, _T)),
    Row(r"mad\.wide\.(?P<t>[us](?:16|32))", "mad_wide<{t}>", ("{wide}", _T, _T, "{wide}")),
    Row(r"(?P<op>abs|neg)\.(?P<t>s(?:16|32|64))", "{op}<{t}>", (_T, _T)),
    Row(r"(?P<op>and|or|xor)\.b(?P<n>16|32|64)", "{op}_<u{n}>", ("b{n}", "b{n}", "b{n}")),
    Row(r"(?P<op>and|or|xor)\.pred", "{op}_<bool>", ("pred", "pred", "pred")),
    Row(r"(?P<op>not|cnot)\.b(?P<n>16|32|64)", "{op}_<u{n}>", ("b{n}", "b{n}")),
    Row(r"not\.pred", "not_<bool>", ("pred", "pred")),
    Row(r"shl\.b(?P<n>16|32|64)", "shl<u{n}>", ("b{n}", "b{n}", "u32")),
    Row(r"shr\.b(?P<n>16|32|64)", "shr<u{n}>", ("b{n}", "b{n}", "u32")),
    Row(rf"shr\.{_INTEGER}", "shr<{t}>", (_T, _T, "u32")),
    Row(r"shf\.(?P<to>[lr])\.(?P<how>clamp|wrap)\.b32", "shf_{to}_{how}", ("b32",) * 4),
    Row(r"(?P<op>popc|clz)\.(?P<t>b32|b64)", "{op}", ("u32", _T)),
    Row(r"bfind\.(?P<t>[us](?:32|64))", "bfind<{t}>", ("u32", _T)),
    Row(r"bfind\.shiftamt\.(?P<t>[us](?:32|64))", "bfind_shift<{t}>", ("u32", _T)),
    Row(r"bmsk\.(?P<how>clamp|wrap)\.b32", "bmsk_{how}", ("b32",) * 3),
    Row(r"szext\.(?P<how>clamp|wrap)\.(?P<t>[us]32)", "szext_{how}<{t}>", (_T, _T, "u32")),
    Row(r"fns\.b32", "fns", ("b32",) * 4),
    Row(r"brev\.b(?P<n>32|64)", "brev<u{n}>", ("b{n}", "b{n}")),
    Row(r"bfe\.(?P<t>[us](?:32|64))", "bfe<{t}>", (_T, _T, "u32", "u32")),
    Row(r"bfi\.b(?P<n>32|64)", "bfi<u{n}>", ("b{n}", "b{n}", "b{n}", "u32", "u32")),
    Row(r"prmt\.b32", "prmt", ("b32",) * 4),
    Row(r"prmt\.b32\.(?P<how>f4e|b4e|rc8|ecl|ecr|rc16)", "prmt_{how}", ("b32",) * 4),
    Row(r"slct\.(?P<t>[busf](?:16|32|64))\.s32", "slct<s32>", (_T, _T, _T, "s32")),
    Row(
        r"slct(?:\.(?P<ftz>ftz))?\.(?P<t>[busf](?:16|32|64))\.f32",
        "slct_f32<{flags}>",
        (_T, _T, _T, "f32"),
    ),
    Row(r"selp\.(?P<t>[busf](?:16|32|64))", "selp", (_T, _T, _T, "pred")),
)
