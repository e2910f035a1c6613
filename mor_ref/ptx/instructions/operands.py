"""How many operands instructions have that no row of a table describes."""

import re

from mor_ref.ptx.constants import number_of
from mor_ref.ptx.errors import refusal
from mor_ref.ptx.program import Instruction

_HINT = r"(?=.*L2::cache_hint)"
# The first pattern that an opcode matches has the counts.
_COUNTS: tuple[tuple[str, tuple[int, ...]], ...] = (
    (rf"(?:ld|st)(?!\.async|\.bulk){_HINT}\..*", (3,)),
    (r"(?:ld|ldu|st(?!\.async|\.bulk)|mov|cvta|isspacep)\..*", (2,)),
    (rf"atom\.(?=.*\bcas\b){_HINT}.*", (5,)),
    (rf"atom\.(?:(?=.*\bcas\b)|{_HINT}).*", (4,)),
    (r"atom\..*", (3,)),
    (rf"red{_HINT}\..*", (3,)),
    (r"red\..*", (2,)),
    (r"createpolicy\.(?:fractional|range|cvt)\..*", (1, 2, 3, 4)),
    (r"setp?\.\w+\.(?:and|or|xor)\..*", (4,)),
    (r"setp?\..*", (3,)),
    (r"lop3\.b32", (5,)),
    (r"lop3\.(?:and|or)\.b32", (6,)),
    (r"bra(?:\.uni)?", (1,)),
    (r"brx\.idx(?:\.uni)?", (2, 3)),
    (r"call(?:\.uni)?", (1, 2, 3)),
    (r"(?:ret|exit|trap|brkpt)(?:\.uni)?", (0,)),
    (r"bar\.warp\.sync", (1,)),
    (r"bar(?:rier)?(?:\.cta)?\.red\..*", (3, 4)),
    (r"bar(?:rier)?\.(?!cluster).*", (1, 2)),
    (r"shfl\.sync\..*", (5,)),
    (r"(?:vote|match\.\w+|redux)\.sync\..*", (3,)),
    (r"(?:activemask|nanosleep)\..*", (1,)),
    (r"elect\.sync", (2,)),
    (r"mma\.sync\..*block_scale.*", (8,)),
    (r"mma\.sync\..*", (4,)),
    (r"(?:ldmatrix|stmatrix|movmatrix)\..*", (2,)),
    (r"wgmma\.mma_async\..*", (4, 6, 7, 8)),
    (r"wgmma\.wait_group\..*|cp\.async\.wait_group", (1,)),
    (r"wgmma\..*|cp\.async\.(?:commit_group|wait_all)", (0,)),
    (rf"cp\.async\.c[ag]{_HINT}\..*", (4, 5)),
    (r"cp\.async\.c[ag]\..*", (3, 4)),
)
# Other forms of these are refused.
_KNOWN = re.compile(
    r"ldu?|st|mov|cvta|isspacep|atom|red|createpolicy|setp?|bra|brx|call|ret|exit|trap|brkpt|elect"
    r"|(?:ld|st)matrix|lop3"
)
_COMPILED = tuple((re.compile(pattern), counts) for pattern, counts in _COUNTS)
_LARGEST_TABLE = 255
_LENGTHS = (1, 2, 4, 8)  # of vectors; matrix instructions check their own


def check_operands(of: Instruction) -> None:
    """Refuse an instruction with more or fewer operands than it has, or a vector without end."""
    counts = next((counts for form, counts in _COMPILED if form.fullmatch(of.opcode)), None)
    if counts is None and _KNOWN.fullmatch(of.opcode.split(".", maxsplit=1)[0]):
        raise refusal(of.line, of.text, "this form is not supported")
    if counts is not None and len(of.operands) not in counts:
        wanted = " or ".join(map(str, counts))
        raise refusal(of.line, of.text, f"it has {len(of.operands)} operands; give {wanted}")
    for operand in of.operands:
        brackets = [operand.count(one) for one in "{}[]()"]
        if brackets[::2] != brackets[1::2] or not operand:
            raise refusal(of.line, of.text, f"operand {operand!r} is not understood")
    if of.opcode.startswith("lop3."):
        table = number_of(of.operands[4], "b64")
        if table is None or table > _LARGEST_TABLE:
            raise refusal(of.line, of.text, f"the table is a constant from 0 to {_LARGEST_TABLE}")
    if of.opcode.startswith("mov."):
        for operand in of.operands:
            if operand.startswith("{") and operand.count(",") + 1 not in _LENGTHS[1:]:
                raise refusal(of.line, of.text, "a vector has 2, 4 or 8 registers")
