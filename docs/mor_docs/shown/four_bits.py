"""NVFP4 and MX: worked tiles, and where profiles part."""

import json
import math
from pathlib import Path

from mor_docs.shown.markup import binary32, code_hex, f32_hex, number, table
from mor_ref import formats
from mor_ref.block_recipes import PROFILES, SCALE_RULES, ScaleRule
from mor_ref.exact.mx import quantize_element, scale_code
from mor_ref.exact.nvfp4 import nvfp4, packed

_E4M3, _E2M1 = formats["e4m3"], formats["e2m1"]
_WITNESSES = Path(__file__).resolve().parents[3] / "tests" / "witnesses.json"


def tile(profile: str, *given: str) -> str:
    """A tensor of one tile under a profile: scales, then elements (NVF-003, NVF-004, NVF-010)."""
    row = binary32(given)
    found = nvfp4([row], PROFILES[profile], (1, 16))
    scale, whole = found.scale[0, 0], found.global_scale[0]
    amax = max(map(abs, row))
    facts = [
        ["amax = bamax", number(amax), f32_hex(amax)],
        ["S_enc", number(whole.encode), f32_hex(whole.encode)],
        ["S_dec", number(whole.decode), f32_hex(whole.decode)],
        ["s", code_hex(scale.code, _E4M3), f"v = {number(_E4M3.value(scale.code))}"],
        ["decode", number(scale.decode), f32_hex(scale.decode)],
        ["encode", number(scale.encode or math.nan), f32_hex(scale.encode or math.nan)],
    ]
    rows = [
        [number(x), number(e.xs), code_hex(e.code, _E2M1), number(_E2M1.value(e.code)), number(e.y)]
        for x, e in zip(row, found.elements[0], strict=True)
    ]
    codes = [e.code for e in found.elements[0]] + [0] * (len(row) % 2)
    joined = [packed(*codes[i : i + 2]) for i in range(0, len(codes), 2)]
    return (
        table(["step", f"under {profile}", "bits"], facts)
        + "\n"
        + table(["x", "xs", "code", "v", "y"], rows)
        + f"\nPacked (NVF-011): {' '.join(f'`{byte:02X}`' for byte in joined)}\n"
    )


def disagreement(heading: str) -> str:
    """How many scales and codes differ between profiles: those above the diagonal, these below."""
    counted = json.loads(_WITNESSES.read_text())["differing scales and codes"]
    counted = counted[heading.replace("_", " ")]
    names = list(dict.fromkeys(name for pair in counted for name in pair.split()))
    rows = []
    for i, a in enumerate(names):
        codes = [counted[f"{b} {a}"][1] for b in names[:i]]
        scales = [counted[f"{a} {b}"][0] for b in names[i + 1 :]]
        rows.append([f"**{i + 1}** {a}", *codes, "·", *scales])
    head = ["", *(f"**{i + 1}**" for i in range(len(names)))]
    return f":::{{div}} codes\n{table(head, rows)}:::\n"


def witness(heading: str) -> str:
    """The second row of a tensor that tells profiles apart: their scales and codes."""
    first = json.loads(_WITNESSES.read_text())["witnesses"]
    first = first[heading.replace("_", " ")][0]
    rows = []
    for name, made in first["expected"].items():
        whole = made["global"].split()[-1]
        codes = "".join(code[-1] for code in made["codes"][1].split())
        rows.append([name, f"`{whole}`", f"`{made['scale'][1]}`", f"`{codes}`"])
    return table(["profile", "global scale", "scales of tiles", "codes, a digit each"], rows)


def mx_scales(element: str, *amaxes: str) -> str:
    """The scale codes of blocks under all four rules (MXS-002 to MXS-006)."""
    fmt = formats[element]
    rows = [
        [number(amax), *(f"`0x{scale_code([amax], fmt, rule):02X}`" for rule in SCALE_RULES)]
        for amax in binary32(amaxes)
    ]
    return table([f"amax of a block of {element}", *SCALE_RULES], rows)


def mx_block(element: str, rule: ScaleRule, *given: str) -> str:
    """A short block in MX (MXS-007, MXS-008)."""
    fmt, row = formats[element], binary32(given)
    c = scale_code(row, fmt, rule)
    rows = []
    for x in row:
        found = quantize_element(x, c, fmt)
        rows.append([number(x), number(found.xs), code_hex(found.code, fmt), number(found.y)])
    said = f"Under {rule}, c = `0x{c:02X}`, a decode scale of 2^{c - 127}.\n\n".replace("-", "−")
    return said + table([f"x, as {element}", "RN32(x · 2^(127 − c))", "code", "y"], rows)
