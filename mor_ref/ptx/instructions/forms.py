"""Forms of opcodes that the patterns of the tables match, and that neither PTX nor ptxas has."""

import re

_NO_CONVERSION = (
    r".*\.ftz\.(?!.*\bf32\b).*",  # only binary32 is flushed
    r".*\.sat\.(?:\w+\.)?bf16(?:\.\w+)?",
    r".*\.(?:[us]8\.bf16|bf16\.[us]8)",
    r"cvt\.rna\.(?:\w+\.)*relu\..*",
    # A conversion rounds if and only if the result may have fewer bits.
    r"cvt\.(?:ftz\.)?(?:sat\.)?(?:b?f16\.f(?:32|64)|f32\.f64)",
    r"cvt\.r[nzmp]\.(?:ftz\.)?(?:sat\.)?(?:f(?:32|64)\.f16|f(?:32|64)\.f32|f64\.f64|(?P<t>b?f16)\.(?P=t))",
)
_NO_FORM = re.compile(
    "|".join(
        (
            rf"(?=cvt\.)(?:{'|'.join(_NO_CONVERSION)})",
            r"(?!cvt\.)\w+\.(?:\w+\.)*(?:ftz|sat)\.(?:\w+\.)*(?<!f32\.)bf16(?:x2)?",
            r"(?:slct|selp)\..*\bb?f16\b.*|tanh\.approx\.ftz\.f32",
        )
    )
)
_SATURATING = re.compile(r"cvt\.sat\.([us])(\d+)\.([us])(\d+)")


def is_form(opcode: str) -> bool:
    """Return whether PTX has an opcode that a pattern of a table matches."""
    found = _SATURATING.fullmatch(opcode)
    if found:  # some integer is beyond the type of the result
        to, bits, of, own = found[1], int(found[2]), found[3], int(found[4])
        return (to, of) == ("u", "s") or own > bits or (own == bits and to != of)
    return _NO_FORM.fullmatch(opcode) is None
