"""Fuzzes the files of suites below the check of their SHA-256, which would stop every change."""

import json
from functools import cache
from pathlib import Path

from fuzz.harness import changed, check_sentence, run

U32, U8 = "U32", "U8"
HEADER = {
    "a/x": {"dtype": "U32", "shape": [2], "data_offsets": [0, 8]},
    "a/code": {"dtype": "U8", "shape": [2], "data_offsets": [8, 10]},
}


def field(name, role, fmt, shape, **more):
    rules = ["ENC-001"] if role == "expected" else []
    layout = {"shape": shape, "layout": "row-major"}
    about = {"name": name, "role": role, "format": fmt, "meaning": "m", "rules": rules}
    return {**about, "views": [], **layout, **more}


FIELDS = [
    field("x", "input", "source", ["rows"]),
    field("code", "expected", "format", ["rows"]),
]
PARAMETERS = {
    "format": "e4m3",
    "source": "f32",
    "rounding": "rne",
    "overflow": "satfinite",
    "nan": "canonical",
}
ENTRY = {
    "title": "t",
    "operation": "encode",
    "rules": ["ENC-001"],
    "normative": True,
    "fields": FIELDS,
    "cases": {"a": PARAMETERS},
    "elements": 2,
    "sha256": "0" * 64,
    "kills": {"ties_away": {"case": "a", "field": "code", "index": [1]}},
    "negative": {
        "sha256": "0" * 64,
        "planted": [
            {"case": "a", "field": "code", "right": 1, "wrong": 0, "what": "w", "index": [1]}
        ],
    },
}
TENSOR = ENTRY | {
    "operation": "nvfp4",
    "fields": [
        field("x", "input", "source", ["rows", "columns"]),
        field(
            "block_scale",
            "expected",
            "e4m3",
            ["block rows", "block columns"],
            views=["replicated"],
        ),
        field("code@sha256_128x128", "expected", "u8", ["digest rows", "digest columns", "bytes"]),
        field(
            "packed",
            "expected",
            "u8",
            ["rows", "pairs"],
            layout="row-major, the even code of a pair in the low nibble",
        ),
    ],
    "cases": {
        "a": {"profile": "te", "tile": [1, 16], "source": "f32"},
        "b": {
            "profile": "te",
            "tile": [16, 16],
            "source": "bf16",
            "recipe": {"shape": [3, 17], "seed": 0, "stream": 1},
        },
    },
    "kills": {},
}
del TENSOR["negative"]
TENSOR_HEADER = {
    "a/x": {"dtype": "U32", "shape": [1, 2], "data_offsets": [0, 8]},
    "a/block_scale": {"dtype": "U8", "shape": [1, 1], "data_offsets": [8, 9]},
    "b/packed": {"dtype": "U8", "shape": [3, 9], "data_offsets": [9, 36]},
    "b/code@sha256_128x128": {"dtype": "U8", "shape": [1, 1, 32], "data_offsets": [36, 68]},
}
RIGHT = ((ENTRY, HEADER, 10), (TENSOR, TENSOR_HEADER, 68))


@cache
def payload(size):
    return bytes(range(size))


def safetensors(header, content):
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + content


SEEDS = [
    *(bytes([k]) + safetensors(header, payload(n)) for k, (_, header, n) in enumerate(RIGHT)),
    *(
        bytes([kind, 0, a, 1, b, 1, c])
        for kind in (2, 3)
        for a in range(4)
        for b in range(9)
        for c in (0, 2)
    ),
    b"\1" + safetensors({"a/x": {"dtype": "F8_E4M3", "shape": [1], "data_offsets": [0, 1]}}, b"a"),
    b"\1"
    + safetensors({"a/x": {"dtype": "U8", "shape": [0, 1 << 62], "data_offsets": [0, 0]}}, b""),
]


def one_input(data):
    from mor_ref.golden.store.manifest import GoldenError
    from mor_ref.golden.store.suite_files import _cases

    kind, rest = (data[0] if data else 0) % 4, data[1:]
    entry, header, size = RIGHT[kind % 2]
    file = rest if kind < 2 else safetensors(changed(header, rest), payload(size))
    try:
        cases = list(_cases(Path("a.safetensors"), file, entry))
    except GoldenError as error:
        check_sentence(error)
        return
    assert [case.name for case in cases] == list(entry["cases"])


if __name__ == "__main__":
    run(
        one_input,
        "mor_ref.golden.model.checks",
        "mor_ref.golden.store.suite_files",
        "mor_ref.whole_files",
    )
