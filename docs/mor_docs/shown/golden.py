"""Suites, deviations, layouts of scales, and the talk of mor-ref with a program."""

from dataclasses import replace

import numpy as np

from mor_docs.addresses import anchor_of
from mor_docs.shown.markup import binary32, code_hex, f32_hex, links_to_suites, number, table
from mor_ref import encode, formats
from mor_ref.definitions.blocks import partition
from mor_ref.deviations import applied
from mor_ref.exact.quantization import quantize
from mor_ref.golden import load
from mor_ref.golden.generation.witnesses import bundled_witnesses
from mor_ref.golden.inputs.generated import generated
from mor_ref.golden.model.suite import question as without_answers
from mor_ref.golden.model.views import swizzled_128x4
from mor_ref.golden.suites import SUITES
from mor_ref.mistakes.catalogue import CAUSES, MODELLED, id_of
from mor_ref.verify.candidates.protocol import GREETING, question_text


def suites() -> str:
    """Show every suite: its fields, its rules, and the deviations that it exposes."""
    parts = []
    for suite in SUITES.values():
        told = [id_of(name) for name in bundled_witnesses(suite.name)]
        fields = [
            [f"`{f.name}`", f.role, f.format, f.words, ", ".join(f.rules), ", ".join(f.views)]
            for f in suite.fields
        ]
        kind = "normative" if suite.normative else "a foreign profile"
        parts.append(f"(suite-{suite.name.replace('_', '-')})=\n## {suite.name}\n")
        parts.append(f"{suite.title}. Operation `{suite.operation}`; {kind}.\n")
        parts.append(f"Rules: {', '.join(suite.rules)}.\n")
        parts.append(table(["field", "role", "format", "meaning", "rules", "views"], fields))
        if told:
            links = ", ".join(f"[{name}](#{anchor_of(name)})" for name in told)
            parts.append(f":::{{dropdown}} Exposes {len(told)} deviations\n{links}\n:::\n")
    return "\n".join(parts)


def deviations() -> str:
    """Show every deviation: its summary, its rules, and the suites that expose it."""
    parts = []
    for found in CAUSES.values():
        parts.append(f"({anchor_of(found.name)})=\n### {found.name}\n")
        parts.append(f"{found.summary} Rules: {', '.join(found.rules)}.\n")
        seen = "Reached" if found.name in MODELLED else "Exposed"
        parts.append(f"{{.fine}}\n{seen} by {links_to_suites(found.suites)}.\n")
        if found.exemptions:
            reasons: dict[str, list[str]] = {}
            for suite, reason in found.exemptions.items():
                reasons.setdefault(reason, []).append(suite)
            lines = [f"* Not by {', '.join(names)}: {reason}" for reason, names in reasons.items()]
            parts.append("{.fine}\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def deviation_count() -> str:
    """Return the number of deviations."""
    return f"There are {len(CAUSES)} of them.\n"


def deviating(name: str, fmt: str, *given: str) -> str:
    """Show a block with gam scaling, by the reference and with a deviation."""
    target, row = formats[fmt], binary32(given)
    parts = partition((1, len(row)), block="tensor")
    right = quantize([row], target, "gam", parts)
    with applied(CAUSES[name]):
        wrong = quantize([row], target, "gam", parts)
    scales = [
        f"{number(s.value)} {f32_hex(s.value)}" for s in (right.scale[0, 0], wrong.scale[0, 0])
    ]
    said = f"The scale is {scales[0]}; with {name} it is {scales[1]}.\n\n"
    rows = []
    for x, *both in zip(row, right.elements[0], wrong.elements[0], strict=True):
        cells = [[code_hex(e.code, target), f32_hex(e.y)] for e in both]
        differs = "yes" if both[0].code != both[1].code else "no"
        rows.append([number(x), *cells[0], *cells[1], differs])
    head = ["x", "code", "bits of y", "code with it", "bits of y with it", "code differs"]
    return said + table(head, rows)


def swizzle(rows: str, columns: str) -> str:
    """Show the places of the scales of a small array (VEC-008)."""
    plain = np.arange(int(rows) * int(columns), dtype=np.uint32).reshape(int(rows), int(columns))
    flat = swizzled_128x4(plain + 1, {})
    shown = []
    for r, c in ((0, 0), (0, 1), (1, 0), (31, 0), (32, 0), (64, 3), (127, 3), (0, 4), (128, 0)):
        if r < int(rows) and c < int(columns):
            shown.append([f"({r}, {c})", int(np.flatnonzero(flat == plain[r, c] + 1)[0])])
    said = f"Scales of {rows} rows and {columns} columns, {flat.size} entries with padding:\n\n"
    return said + table(["(r, c)", "place in the flat array"], shown)


def question(suite: str, case: str) -> str:
    """Return a question to a program, its first numbers only (PRO-001, PRO-003, PRO-005)."""
    chosen = SUITES[suite]
    found = next(one for one in load(suite) if one.name == case)
    asked = question_text(suite, chosen.operation, without_answers(chosen.fields, found))
    shown, left_out = [], 0
    for line in (GREETING + asked).decode().splitlines():
        is_numbers = set(line) <= set("0123456789abcdef ")
        left_out = left_out + 1 if is_numbers else 0
        if left_out <= 2:
            shown.append(line)
        elif left_out == 3:
            shown.append("...")
    return "```text\n" + "\n".join(shown) + "\n```\n"


def exchange(suite: str, case: str, *given: str) -> str:
    """Return a question with these numbers, and the reference's answer (PRO-001 to PRO-006)."""
    chosen = next(one for one in load(suite) if one.name == case)
    x = np.array(binary32(given), np.float32)
    asked = replace(chosen, arrays={"x": x.view(np.uint32)})
    known = {name: chosen.parameters[name] for name in ("rounding", "overflow", "nan")}
    codes = encode(x, chosen.parameters["format"], **known)
    question_lines = (GREETING + question_text(suite, SUITES[suite].operation, asked)).decode()
    answer = f"out code {len(x)}\n{codes.tobytes().hex(' ')}\ndone\n"
    return (
        f"mor-ref writes:\n\n```text\n{question_lines}```\n\n"
        f"The program answers:\n\n```text\n{answer}```\n"
    )


def made(stream: str, *places: str) -> str:
    """Show elements of a generated tensor of one row (VEC-009)."""
    columns = 1 + max(map(int, places))
    bits = generated({"shape": [1, columns], "seed": 0, "stream": int(stream)}, "f32").ravel()
    numbers = bits.view(np.float32)
    rows = [
        [place, f"`0x{int(bits[int(place)]):08X}`", number(float(numbers[int(place)]))]
        for place in places
    ]
    said = f"A tensor of one row and {columns} columns, seed 0, stream {stream}:\n\n"
    return said + table(["column", "bits", "x"], rows)
