"""Suites for those who do not speak Python: JSON Lines, TestFloat's text, memory files, C, and npz.

Every export says what its columns mean. Numbers are bit patterns, in text as hexadecimal digits.
"""

import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mor_ref.arguments import known_name
from mor_ref.golden.container import read_manifest, read_suite, write_whole
from mor_ref.golden.suite import Case, chosen

Entry = Mapping[str, Any]
Files = Iterator[tuple[str, bytes]]


def _hexadecimal(array: np.ndarray[Any, Any]) -> list[str]:
    width = 2 * array.itemsize
    return [f"{value:0{width}x}" for value in array.ravel().tolist()]


def _meanings(entry: Entry, case: Case) -> list[str]:
    """A line for each field that the case has."""
    there = [field for field in entry["fields"] if field["name"] in case.arrays]
    return [
        f"{f['name']} ({f['role']}, {case.parameters.get(f['format'], f['format'])}, "
        f"shape {'x'.join(map(str, case.arrays[f['name']].shape))}): {f['meaning']}"
        for f in there
    ]


def _about(entry: Entry, case: Case) -> list[str]:
    return [json.dumps(case.parameters), *_meanings(entry, case)]


def _is_of_columns(case: Case) -> bool:
    """Whether all fields are columns with an entry for each element, and not tensors."""
    shapes = {array.shape for array in case.arrays.values()}
    return len(shapes) == 1 and len(next(iter(shapes))) == 1


def to_jsonl(name: str, entry: Entry, cases: list[Case]) -> Files:
    """A line for each case: parameters, and each field as hexadecimal strings, row by row."""
    lines = [
        json.dumps(
            {
                "suite": name,
                "case": case.name,
                "parameters": case.parameters,
                "shapes": {field: array.shape for field, array in case.arrays.items()},
                "meaning": _meanings(entry, case),
                "hex": {field: _hexadecimal(array) for field, array in case.arrays.items()},
            }
        )
        for case in cases
    ]
    yield f"{name}.jsonl", ("\n".join(lines) + "\n").encode("ascii")


def to_testfloat(name: str, entry: Entry, cases: list[Case]) -> Files:
    """A file for each case of columns, and a line for each element: the fields in hexadecimal."""
    for case in cases:
        if _is_of_columns(case):
            columns = [_hexadecimal(array) for array in case.arrays.values()]
            rows = [" ".join(row) for row in zip(*columns, strict=True)]
            heading = [
                f"# {line}" for line in (json.dumps(case.parameters), *_meanings(entry, case))
            ]
            yield f"{name}/{case.name}.txt", ("\n".join([*heading, *rows]) + "\n").encode("ascii")


def to_readmemh(name: str, entry: Entry, cases: list[Case]) -> Files:
    """A memory file for each case of columns, a word of all fields a line, and a packed struct."""
    for case in cases:
        if not _is_of_columns(case):
            continue
        columns = [_hexadecimal(array) for array in case.arrays.values()]
        words = ["".join(row) for row in zip(*columns, strict=True)]
        heading = [f"// {line}" for line in _about(entry, case)]
        memory = "\n".join([*heading, *words]) + "\n"
        yield f"{name}/{case.name}.mem", memory.encode("ascii")
        yield f"{name}/{case.name}.svh", _struct(case, heading).encode("ascii")


def _struct(case: Case, heading: list[str]) -> str:
    kind = _identifier(case.name)
    fields = []
    top = 8 * sum(array.itemsize for array in case.arrays.values()) - 1
    for field, array in case.arrays.items():
        bits = 8 * array.itemsize
        place = f"// bits {top}:{top - bits + 1} of a word"
        fields.append(f"  logic [{bits - 1}:0] {_identifier(field)};  {place}")
        top -= bits
    size = next(iter(case.arrays.values())).size
    return "\n".join(
        [
            *heading,
            "typedef struct packed {",
            *fields,
            f"}} {kind}_t;",
            f"localparam int {kind}_count = {size};",
            "",
        ]
    )


def to_c(name: str, entry: Entry, cases: list[Case]) -> Files:
    """A header with an array for each field of each case; it needs only stdint.h."""
    guard = f"MOR_REF_{_identifier(name).upper()}_H"
    lines = [f"#ifndef {guard}", f"#define {guard}", "#include <stdint.h>", ""]
    for case in cases:
        lines.append(f"/* {case.name}: {json.dumps(case.parameters)}")
        lines += [f"   {line}" for line in _meanings(entry, case)]
        lines[-1] += " */"
        for field, array in case.arrays.items():
            values = [f"0x{value}" for value in _hexadecimal(array)] or ["0"]
            suffix = "u" if array.itemsize < 8 else "ull"
            symbol = f"{_identifier(name)}_{_identifier(case.name)}_{_identifier(field)}"
            kind = f"uint{8 * array.itemsize}_t"
            lines.append(f"static const {kind} {symbol}[{max(array.size, 1)}] = {{")
            for start in range(0, len(values), 12):
                lines.append("  " + "".join(f"{v}{suffix}, " for v in values[start : start + 12]))
            lines.append("};")
        lines.append("")
    lines += [f"#endif /* {guard} */", ""]
    yield f"{name}.h", "\n".join(line.rstrip() for line in lines).encode("ascii")


def to_npz(name: str, entry: Entry, cases: list[Case]) -> Files:
    """An array for each field of each case, and a text that says what they are."""
    arrays: dict[str, Any] = {
        f"{case.name}/{field}": a for case in cases for field, a in case.arrays.items()
    }
    about = {case.name: [case.parameters, _meanings(entry, case)] for case in cases}
    content = io.BytesIO()
    arrays["about"] = np.array(json.dumps(about))
    np.savez_compressed(content, **arrays)
    yield f"{name}.npz", content.getvalue()


def _identifier(text: str) -> str:
    return re.sub(r"\W", "_", text) if not text[0].isdigit() else "_" + re.sub(r"\W", "_", text)


EXPORTS: dict[str, Callable[[str, Entry, list[Case]], Files]] = {
    "jsonl": to_jsonl,
    "testfloat": to_testfloat,
    "readmemh": to_readmemh,
    "c": to_c,
    "npz": to_npz,
}


def export(folder: Path, kind: str, out: Path, names: list[str]) -> int:
    """Write suites of a folder in another form; how many files were written."""
    write = EXPORTS[known_name("to", kind, EXPORTS)]
    there = read_manifest(folder)["suites"]
    count = 0
    for name in chosen(there, names):
        cases = read_suite(folder, name, there[name])
        for path, content in write(name, there[name], cases):
            write_whole(out / path, content)
            count += 1
    return count
