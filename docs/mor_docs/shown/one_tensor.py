"""One tensor of 2 x 4 through MoR, with every number: the tables of the page that explains it."""

from collections.abc import Sequence
from urllib.parse import urlencode

from mor_docs.shown.markup import binary32, code_hex, f32_hex, number, table
from mor_docs.shown.units import asked
from mor_ref import formats
from mor_ref.definitions.blocks import partition
from mor_ref.exact.blocks import cells
from mor_ref.exact.errors import error_sum, error_term
from mor_ref.exact.policies import Decision, MorTensor, mix
from mor_ref.exact.quantization import quantize
from mor_ref.exact.scales import ideal_scale
from mor_ref.policies import POLICIES, Rung

# Numbers of bfloat16. The second block has one that is too small for its scale in e4m3.
ROWS = [
    binary32(row.split()) for row in ("2.5 -1 0.75 0", "0.125 -0.3125 -0.4375 3.814697265625e-06")
]
PARTS = partition((2, 4), block=(2, 2))
_BLOCKS = cells(2, 4, PARTS.block)
_GRID = ("left", "right")


def tensor() -> str:
    """Show the tensor, with a name for each of its blocks."""
    rows = [[*map(number, row)] for row in ROWS]
    return table(["left block", "", "right block", ""], rows)


def scales(name: str) -> str:
    """Show the scales of both blocks with gam scaling (SCL-001 to GAM-005)."""
    fmt = formats[name]
    found = quantize(ROWS, fmt, "gam", PARTS)
    shared = found.mantissa[0, 0]
    rows = []
    for place, side in zip(_BLOCKS, _GRID, strict=True):
        amax, scale = found.amax[place], found.scale[place]
        own = ideal_scale(fmt.largest, amax)
        e = (scale.exponent_code or 0) - 127
        is_lower = shared > own.mantissa
        rows.append([side, number(amax), f"{number(fmt.largest)} / {number(amax)}"])
        rows[-1] += [f"`0x{own.mantissa:06X}`", str(own.exponent)]
        rows[-1] += ["yes: e − 1" if is_lower else "no", str(e), f"`0x{scale.exponent_code:02X}`"]
        rows[-1] += [f"{number(scale.value)} {f32_hex(scale.value)}"]
    whole = max(found.amax.values())
    ideal = number(ideal_scale(fmt.largest, whole).value)
    said = (
        f"The group is the tensor. Its amax is {number(whole)}, and its ideal scale in {name} is "
        f"{number(fmt.largest)} / {number(whole)} = {ideal}. The mantissa m = `0x{shared:06X}` of "
        "that scale is stored once, in 23 bits.\n\n"
    )
    head = ["block", "amax", "ideal scale", "m_block", "its e", "m > m_block", "e", "stored"]
    return said + table([*head, "scale (1 + m / 2^23) · 2^e"], rows)


def elements(name: str) -> str:
    """Show each element: xs, code, y, and its error (QNT-001, QNT-002, ERR-001)."""
    fmt = formats[name]
    found = quantize(ROWS, fmt, "gam", PARTS)
    rows = []
    for place, side in zip(_BLOCKS, _GRID, strict=True):
        for i, j in _BLOCKS[place]:
            x, one = ROWS[i][j], found.elements[i][j]
            rows.append([side, number(x), number(one.xs), code_hex(one.code, fmt)])
            rows[-1] += [number(fmt.value(one.code)), number(one.y)]
            term = error_term(x, one.y) if x else None
            rows[-1] += [number(term.d), number(term.r), str(term.u)] if term else ["—", "—", "—"]
    head = ["block", "x", "xs = x · scale", "code", "v, its number", "y = v / scale"]
    shown = table([*head, "d = |x − y|", "r = d / |x|", "u = r · 2^23"], rows)
    return f":::{{div}} codes\n{shown}:::\n"


def sums(*names: str) -> str:
    """Show the error sums of both blocks and of the tensor in each format (ERR-002 to ERR-004)."""
    head, rows = ["unit"], [[f"{side} block"] for side in _GRID] + [["the tensor"]]
    for name in names:
        head += [f"{name}: sum", "nonzero", "nonfinite", "mean, sum / nonzero / 2^23"]
        made = quantize(ROWS, formats[name], "gam", PARTS).elements
        units = [*_BLOCKS.values(), [place for block in _BLOCKS.values() for place in block]]
        for row, places in zip(rows, units, strict=True):
            one = error_sum((ROWS[i][j], made[i][j].y) for i, j in places)
            mean = one.sum / one.nonzero / 2**23
            row += [str(one.sum), str(one.nonzero), str(one.nonfinite), f"{100 * mean:.3g} %"]
    return table(head, rows)


def decisions(*names: str) -> str:
    """Show the decision of each unit under policies, with the numbers compared (MOR-001)."""
    rows = []
    for name in names:
        policy, found = POLICIES[name], _mixed(name)
        for said, decision in zip(_names_of(found), found.decisions.values(), strict=True):
            answers = [asked(rung, decision) for rung in _rungs_asked(name, decision)]
            rows.append([name, said, "<br/>".join(answers), f"**{policy.names[decision.choice]}**"])
    return table(["policy", "unit", "each rung that is asked, in numbers", "takes"], rows)


def _rungs_asked(name: str, decision: Decision) -> Sequence[Rung]:
    """Return the rungs of a policy down to the one that was taken."""
    return POLICIES[name].ladder[: decision.choice + 1]


def _mixed(name: str) -> MorTensor:
    return mix(ROWS, POLICIES[name], "gam", PARTS)


def _names_of(found: MorTensor) -> list[str]:
    return [f"{side} block" for side in _GRID] if len(found.decisions) > 1 else ["the tensor"]


def output(*names: str) -> str:
    """Show the output of policies in bfloat16, bits and numbers (MOR-006)."""
    bf16 = formats["bf16"]
    head, rows = ["x"], [[number(x)] for row in ROWS for x in row]
    for name in names:
        head.append(f"output under {name}")
        codes = [code for row in _mixed(name).output for code in row]
        for row, code in zip(rows, codes, strict=True):
            row.append(f"{code_hex(code, bf16)} {number(bf16.value(code))}")
    return table(head, rows)


def links() -> str:
    """Link to the explorer with this tensor."""
    numbers = [[ROWS[i][j] for i, j in places] for places in _BLOCKS.values()]
    left, right = (" ".join(f"{x:.9g}" for x in block) for block in numbers)
    both = {"view": "row", "row": f"{left} {right}", "length": "4"}
    whole = str(max(x for row in ROWS for x in row))
    given = (
        ("both blocks in e4m3 with gam scaling", both),
        ("the same in e5m2", both | {"element": "e5m2"}),
        (
            "the right block alone, with the amax of the group",
            both | {"row": right, "group": whole},
        ),
        ("the decision on the left block", {"view": "row", "recipe": "mor", "row": left}),
    )
    shown = [
        f'<a href="../explorer/index.html#{_address(state)}">{said}</a>' for said, state in given
    ]
    return f"In the explorer: {'; '.join(shown)}.\n"


def _address(state: dict[str, str]) -> str:
    return urlencode(state).replace("&", "&amp;")
