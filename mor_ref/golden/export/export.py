"""Suites for users without Python: JSON Lines, TestFloat's text, memory files, C, and npz.

Every export explains its columns. Numbers are bit patterns, in text as hexadecimal digits.
"""

import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from mor_ref.argument_checks import known_name
from mor_ref.golden.model.suite import Case, chosen
from mor_ref.golden.model.views import SEPARATOR, VIEWS, seen, split, unsuited
from mor_ref.golden.store.manifest import GoldenError, read_manifest
from mor_ref.golden.store.suite_files import read_suite
from mor_ref.operations import OPERATIONS
from mor_ref.operations.call import Parameters
from mor_ref.operations.fields import format_meant
from mor_ref.whole_files import write_inside

Entry = Mapping[str, Any]
Files = Iterator[tuple[str, bytes]]


def _hexadecimal(array: np.ndarray[Any, Any]) -> list[str]:
    width = 2 * array.itemsize
    digits = array.astype(array.dtype.newbyteorder(">")).tobytes().hex()
    return [digits[k : k + width] for k in range(0, len(digits), width)]


def _meanings(entry: Entry, case: Case) -> list[str]:
    """Return a line for each field of the case."""
    fields = {field["name"]: field for field in entry["fields"]}
    lines = []
    for name, array in case.arrays.items():
        base, *views = name.split(SEPARATOR)
        field = fields[name] if name in fields else fields[base]
        layout = "".join(f"; {view}: {VIEWS[view].meaning}" for view in views)
        axes = f", {' x '.join(field['shape'])}, {field['layout']}" if field["name"] == name else ""
        lines.append(
            f"{name} ({field['role']}, {format_meant(field['format'], case.parameters)}, "
            f"shape {'x'.join(map(str, array.shape))}{axes}): {field['meaning']}{layout}"
        )
    return lines


def _about(entry: Entry, case: Case) -> list[str]:
    return [json.dumps(case.parameters), *_meanings(entry, case)]


def _is_of_rows(entry: Entry) -> bool:
    """Return whether the rows of the fields are numbers or blocks, not rows of tensors."""
    return OPERATIONS[entry["operation"]].is_by_row


def _rows(case: Case, *, between: str) -> list[str]:
    """Return a line for each row: all entries of all fields in turn, in hexadecimal."""
    columns = []
    for array in case.arrays.values():
        entries, in_row = iter(_hexadecimal(array)), array.size // max(1, len(array))
        columns.append([between.join(islice(entries, in_row)) for _ in array])
    return [between.join(row) for row in zip(*columns, strict=True)]


def to_jsonl(name: str, entry: Entry, cases: list[Case]) -> Files:
    """Write a line for each case: parameters, and the rows of each field in hexadecimal."""
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
    """Write a file for each case of rows, with the fields of each row in hexadecimal."""
    for case in cases:
        heading = [f"# {line}" for line in _about(entry, case)]
        lines = [*heading, *_rows(case, between=" ")]
        yield f"{name}/{case.name}.txt", ("\n".join(lines) + "\n").encode("ascii")


def to_readmemh(name: str, entry: Entry, cases: list[Case]) -> Files:
    """Write a memory file, a line for each row with all fields in a word, and a packed struct."""
    for case in cases:
        heading = [f"// {line}" for line in _about(entry, case)]
        memory = "\n".join([*heading, *_rows(case, between="")]) + "\n"
        yield f"{name}/{case.name}.mem", memory.encode("ascii")
        yield f"{name}/{case.name}.svh", _struct(case, heading).encode("ascii")


def _struct(case: Case, heading: list[str]) -> str:
    kind = _identifier(case.name)
    fields = []
    sizes = {field: _bits_of_a_row(array) for field, array in case.arrays.items()}
    top = sum(sizes.values()) - 1
    for field, bits in sizes.items():
        place = f"// bits {top}:{top - bits + 1} of a word"
        each = 8 * case.arrays[field].itemsize
        if bits > each:
            place += f": {bits // each} of {each} bits, the first in the upper ones"
        fields.append(f"  logic [{bits - 1}:0] {_member(field)};  {place}")
        top -= bits
    size = len(next(iter(case.arrays.values())))
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


_RESERVED = ("inside", "packed")


def _member(field: str) -> str:
    """Return the name of a field in SystemVerilog, some of whose words are names of fields."""
    return f"{field}_" if field in _RESERVED else _identifier(field)


def _bits_of_a_row(array: np.ndarray[Any, Any]) -> int:
    entries = array[0].size if array.ndim > 1 else 1
    return int(8 * array.itemsize * entries)


def to_c(name: str, entry: Entry, cases: list[Case]) -> Files:
    """Write a header with an array for each field of each case; it needs only stdint.h."""
    guard = f"MOR_REF_{_identifier(name).upper()}_H"
    lines = [f"#ifndef {guard}", f"#define {guard}", "#include <stdint.h>", ""]
    _check_symbols(name, cases)
    for case in cases:
        lines.append(f"/* {case.name}: {json.dumps(case.parameters)}")
        lines += [f"   {line}" for line in _meanings(entry, case)]
        lines[-1] += " */"
        for field, array in case.arrays.items():
            is_signed = _is_signed(entry, field)
            values = (_decimal(array) if is_signed else _constants(array)) or ["0"]
            symbol = _symbol(name, case.name, field)
            kind = f"{'' if is_signed else 'u'}int{8 * array.itemsize}_t"
            lines.append(f"static const {kind} {symbol}[{max(array.size, 1)}] = {{")
            for start in range(0, len(values), 12):
                lines.append("  " + "".join(f"{value}, " for value in values[start : start + 12]))
            lines.append("};")
        lines.append("")
    lines += [f"#endif /* {guard} */", ""]
    yield f"{name}.h", "\n".join(line.rstrip() for line in lines).encode("ascii")


def _is_signed(entry: Entry, field: str) -> bool:
    """Return whether a field has integers in two's complement; its views have words."""
    base, views = split(field)
    return not views and OPERATIONS[entry["operation"]].field(base).signed


def _constants(array: np.ndarray[Any, Any]) -> list[str]:
    suffix = "u" if array.itemsize < 8 else "ull"
    return [f"0x{value}{suffix}" for value in _hexadecimal(array)]


def _decimal(array: np.ndarray[Any, Any]) -> list[str]:
    """Return integers in two's complement; C has no literal of the lowest one of 64 bits."""
    suffix = "" if array.itemsize < 8 else "ll"
    lowest = -(1 << 8 * array.itemsize - 1)
    integers = array.view(f"i{array.itemsize}").ravel().tolist()
    return [f"{n}{suffix}" if n != lowest else f"({lowest + 1}{suffix} - 1)" for n in integers]


def _symbol(name: str, case: str, field: str) -> str:
    return f"{_identifier(name)}_{_identifier(case)}_{_identifier(field)}"


def _check_symbols(name: str, cases: list[Case]) -> None:
    """Refuse two arrays of one name: a_b and c would have the names of a and b_c."""
    symbols = Counter(_symbol(name, case.name, field) for case in cases for field in case.arrays)
    if symbols and symbols.most_common(1)[0][1] > 1:
        raise GoldenError(
            f"suite {name!r} has two arrays that C would call {symbols.most_common(1)[0][0]}; "
            "give its cases other names"
        )


def to_npz(name: str, entry: Entry, cases: list[Case]) -> Files:
    """Write an array for each field of each case, and a text that describes them."""
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
_OF_ROWS = ("testfloat", "readmemh")


class Exported(NamedTuple):
    """How many files were written, and the suites that such files cannot hold."""

    files: int
    left_out: tuple[str, ...]


def export(
    directory: Path, kind: str, out: Path, names: list[str], views: Sequence[str] = ()
) -> Exported:
    """Write suites of a directory in another form; without names, all that the form can hold.

    `views` are fields in other layouts (FIELD@VIEW) to be written as well, where a suite has them.
    """
    write = EXPORTS[known_name("to", kind, EXPORTS)]
    there = read_manifest(directory)["suites"]
    wanted = chosen(there, names)
    suites = [name for name in wanted if kind not in _OF_ROWS or _is_of_rows(there[name])]
    left_out = tuple(name for name in wanted if name not in suites)
    if left_out and (names or not suites):
        _refuse(kind, left_out, there)
    _check_views(views, [there[name] for name in suites])
    count = 0
    for name in suites:
        cases = [
            _with_views(case, views, there[name])
            for case in read_suite(directory, name, there[name])
        ]
        for path, content in write(name, there[name], cases):
            write_inside(out, path, content)
            count += 1
    if not count:
        what = "suites that are asked for have no cases" if suites else "directory has no suites"
        raise ValueError(
            f"DIR is {directory}, and no file would be written, as the {what}; give a directory "
            "that mor-ref golden make has made"
        )
    return Exported(count, left_out)


def _refuse(kind: str, left_out: Sequence[str], there: Mapping[str, Entry]) -> NoReturn:
    """Say which suites can be exported as rows, and how the others can be."""
    of_rows = ", ".join(name for name, entry in there.items() if _is_of_rows(entry))
    others = ", ".join(other for other in EXPORTS if other not in _OF_ROWS)
    wrong = ", ".join(map(repr, left_out))
    raise ValueError(
        f"suite is {wrong}, whose cases are tensors, and {kind} is of rows of numbers; give "
        f"suites of {of_rows or '(none is in this directory)'}, or export to one of {others}"
    )


def _check_views(views: Sequence[str], entries: list[Entry]) -> None:
    """Refuse a view that no case of the suites has."""
    known = sorted({view for entry in entries for view in _views_of(entry)})
    for name in views:
        field, *others = name.split(SEPARATOR)
        if not others or any(f"{field}{SEPARATOR}{other}" not in known for other in others):
            raise ValueError(
                f"view is {name!r}, which these suites do not have; they have "
                f"{', '.join(known) or 'none'}"
            )
        if len(set(others)) < len(others):
            raise ValueError(f"view is {name!r}; give each view of {field} once")
        if not any(
            _has(entry, name, parameters)
            for entry in entries
            for parameters in entry["cases"].values()
        ):
            raise ValueError(
                f"view is {name!r}, which no case of these suites has; give a suite whose formats "
                "suit it"
            )


def _has(entry: Entry, name: str, parameters: Parameters) -> bool:
    """Return whether a case of a suite with these parameters has a view."""
    field, chain = split(name)
    known = _views_of(entry)
    is_known = all(f"{field}{SEPARATOR}{view}" in known for view in chain)
    return is_known and unsuited(chain, parameters) is None


def _views_of(entry: Entry) -> list[str]:
    return [f"{f['name']}{SEPARATOR}{view}" for f in entry["fields"] for view in f["views"]]


def _with_views(case: Case, views: Sequence[str], entry: Entry) -> Case:
    """Return a case that also has its fields in these layouts, if its suite has them."""
    arrays = dict(case.arrays)
    for name in views:
        field, chain = split(name)
        if field in arrays and _has(entry, name, case.parameters):
            arrays[name] = seen(arrays[field], chain, case.parameters)
    return Case(case.name, case.parameters, arrays)
