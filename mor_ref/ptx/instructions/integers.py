"""Integer, logic and selecting instructions."""

from mor_ref.ptx.rows import Row

_INTEGER = r"(?P<t>[us](?:16|32|64))"
_BITS = r"(?P<t>b(?:16|32|64))"
_T = "{t}"

ROWS = (
    Row(rf"(?P<op>add|sub|min|max|div|rem)\.{_INTEGER}", "{op}<{t}>", (_T, _T, _T)),
    Row(r"(?P<op>add|sub)\.sat\.s32", "{op}_sat<s32>", ("s32", "s32", "s32")),
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
    Row(r"lop3\.b32", "lop3", ("b32",) * 5),
    Row(r"(?P<op>popc|clz)\.(?P<t>b32|b64)", "{op}", ("u32", _T)),
    Row(r"bfind\.(?P<t>[us](?:32|64))", "bfind<{t}>", ("u32", _T)),
    Row(r"brev\.b(?P<n>32|64)", "brev<u{n}>", ("b{n}", "b{n}")),
    Row(r"bfe\.(?P<t>[us](?:32|64))", "bfe<{t}>", (_T, _T, "u32", "u32")),
    Row(r"bfi\.b(?P<n>32|64)", "bfi<u{n}>", ("b{n}", "b{n}", "b{n}", "u32", "u32")),
    Row(r"prmt\.b32", "prmt", ("b32",) * 4),
    Row(r"selp\.(?P<t>[busf](?:16|32|64))", "selp", (_T, _T, _T, "pred")),
)
