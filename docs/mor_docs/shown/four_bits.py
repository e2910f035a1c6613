"""NVFP4 and MX: worked tiles, and where profiles differ."""

import json
import struct
from itertools import combinations
from pathlib import Path
from typing import Any

from mor_docs.shown.markup import binary32, code_hex, f32_hex, number, table
from mor_ref import formats
from mor_ref.definitions.mx import SCALE_RULES
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.exact.encoding import floor_log2
from mor_ref.exact.mx import quantize_element, scale_code, shared_exponent
from mor_ref.exact.nvfp4 import nvfp4, packed

_E4M3, _E2M1 = formats["e4m3"], formats["e2m1"]
_WITNESSES = Path(__file__).resolve().parents[3] / "tests" / "witnesses.json"


def tile(profile: str, *given: str) -> str:
    """Show one tile with a profile: scales, then elements (NVF-003, NVF-004, NVF-010)."""
    row = binary32(given)
    found = nvfp4([row], PROFILES[profile], (1, 16))
    scale, whole = found.scale[0, 0], found.global_scale[0]
    amax = max(map(abs, row))
    facts = [
        ["amax = block_amax", number(amax), f32_hex(amax)],
        ["global_encode_scale", number(whole.encode), f32_hex(whole.encode)],
        ["global_decode_scale", number(whole.decode), f32_hex(whole.decode)],
        ["s", code_hex(scale.code, _E4M3), f"w = {number(_E4M3.value(scale.code))}"],
        ["decode", number(scale.decode), f32_hex(scale.decode)],
    ]
    if scale.encode is not None:
        facts.append(["encode", number(scale.encode), f32_hex(scale.encode)])
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


def witness(heading: str) -> str:
    """Return tables of rows in which profiles differ, the second row of the first tensor first.

    A further table has the profiles that are equal in all tables before it, and differ in it.
    """
    tensors = json.loads(_WITNESSES.read_text())["witnesses"][heading.replace("_", " ")]
    names = list(tensors[0]["expected"])
    alike = set(combinations(names, 2))
    places = [(i, row) for i, tensor in enumerate(tensors) for row in range(len(tensor["x"]))]
    parts: list[str] = []
    for i, row in sorted(places, key=lambda place: place != (0, 1)):
        stored = {name: _stored(tensors[i]["expected"][name], row) for name in names}
        parted = {(a, b) for a, b in alike if stored[a][1:] != stored[b][1:]}
        shown = [name for name in names if any(name in pair for pair in parted)]
        if parts and not shown:
            continue
        if parts:
            pairs = "; ".join(f"{a} from {b}" for a, b in sorted(parted))
            parts.append(f"Row {row + 1} of tensor {i + 1} distinguishes {pairs}:\n")
        head = ["profile", "global scale", "scales of tiles", "codes, a digit each"]
        parts.append(table(head, [[name, *stored[name]] for name in shown if parted]))
        alike -= parted
    return "\n".join(parts) + _words(tensors)


def _stored(made: dict[str, Any], row: int) -> list[str]:
    """Return the global scale of a row, the scales of its tiles, and its codes."""
    whole = made["global"].split()
    codes = "".join(code[-1] for code in made["codes"][row].split())
    return [f"`{text}`" for text in (whole[row % len(whole)], made["scale"][row], codes)]


def _words(tensors: list[dict[str, Any]]) -> str:
    """Return the numbers of the tensors that the profiles take."""
    lines = []
    for i, tensor in enumerate(tensors, 1):
        for j, row in enumerate(tensor["x"], 1):
            words = row.split()
            lines.append(f"# tensor {i}, row {j}")
            lines += [" ".join(words[k : k + 8]) for k in range(0, len(words), 8)]
    return "\nThe numbers of the tensors, as binary32:\n\n```text\n" + "\n".join(lines) + "\n```\n"


def mx_scales(element: str, *amaxes: str) -> str:
    """Show the scale codes of blocks with all four rules (MXS-002 to MXS-006)."""
    fmt = formats[element]
    rows = [
        [number(amax), *(f"`0x{scale_code([amax], fmt, rule):02X}`" for rule in SCALE_RULES)]
        for amax in binary32(amaxes)
    ]
    return table([f"block_amax of a block of {element}", *SCALE_RULES], rows)


def even_of_subnormals(element: str, *words: str) -> str:
    """Show the scale codes of subnormal amaxes with even, normalised or not (MXS-005)."""
    fmt = formats[element]
    half = 1 << (22 - fmt.mantissa_bits + (fmt.sign == "twos-complement"))
    rows = []
    for word in words:
        bits = int(word, 16)
        (amax,) = struct.unpack("<f", bits.to_bytes(4, "little"))
        added = max(((bits + half) >> 23) - floor_log2(fmt.largest), 0)
        p = f"{shared_exponent(amax, fmt, 'even')}".replace("-", "−")
        codes = [scale_code([amax], fmt, "even"), added]
        rows.append([f32_hex(amax), p, *(f"`0x{code:02X}`" for code in codes)])
    return table([f"block_amax of a block of {element}", "p", "c", "c if not normalised"], rows)


def mx_block(element: str, rule: str, *given: str) -> str:
    """Show a short block in MX (MXS-007, MXS-008)."""
    fmt, row = formats[element], binary32(given)
    c = scale_code(row, fmt, rule)
    rows = []
    for x in row:
        found = quantize_element(x, c, fmt, rule)
        rows.append([number(x), number(found.xs), code_hex(found.code, fmt), number(found.y)])
    said = f"Under {rule}, c = `0x{c:02X}`, a decode scale of 2^{c - 127}.\n\n".replace("-", "−")
    return said + table([f"x, as {element}", "RN32(x · 2^(127 − c))", "code", "y"], rows)
