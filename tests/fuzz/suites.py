"""Fuzzes manifests and the files that they list: these give cases, or are refused.

The SHA-256 of a file would stop every change of it, so files are read below that check.
"""

import contextlib
import json
import tempfile
from pathlib import Path

from fuzz.harness import changed, run

HEADER = {
    "a/x": {"dtype": "U32", "shape": [2], "data_offsets": [0, 8]},
    "a/code": {"dtype": "U8", "shape": [1, 2], "data_offsets": [8, 10]},
}
ENTRY = {
    "title": "t",
    "operation": "encode",
    "rules": ["ENC-001"],
    "normative": True,
    "fields": [
        {"name": "x", "role": "input", "format": "source", "meaning": "m"},
        {"name": "code", "role": "expected", "format": "format", "meaning": "m"},
    ],
    "cases": {"a": {"format": "e4m3", "source": "f32"}},
    "elements": 2,
    "sha256": "0" * 64,
}
MANIFEST = {"version": 1, "made_with": {"size": 1, "seed": 0}, "suites": {"encode": ENTRY}}
PAYLOAD = bytes(range(10))


def safetensors(header, payload=PAYLOAD):
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + payload


SEEDS = [
    b"\0" + json.dumps(MANIFEST).encode(),
    b"\1" + safetensors(HEADER),
    *(
        bytes([kind, 0, a, 1, b, 1, c])
        for kind in (2, 3)
        for a in range(3)
        for b in range(9)
        for c in (0, 2)
    ),
]
PLACE = Path(tempfile.mkdtemp(prefix="fuzz"))


def texts(data):
    """The bytes of a manifest and of a file, one of them right and one not."""
    kind, rest = (data[0] if data else 0) % 4, data[1:]
    manifest, file = json.dumps(MANIFEST).encode(), safetensors(HEADER)
    if kind == 0:
        return rest, file
    if kind == 1:
        return manifest, rest
    if kind == 2:
        return json.dumps(changed(MANIFEST, rest)).encode(), file
    return manifest, safetensors(changed(HEADER, rest))


def one_input(data):
    from mor_ref.golden.container import MANIFEST as NAME
    from mor_ref.golden.container import GoldenError, _cases, read_manifest, read_suite

    manifest, file = texts(data)
    (PLACE / NAME).write_bytes(manifest)
    try:
        suites = read_manifest(PLACE)["suites"]
    except GoldenError:
        return
    for name, entry in suites.items():
        with contextlib.suppress(GoldenError):
            read_suite(PLACE, name, entry)
        with contextlib.suppress(GoldenError):
            list(_cases(PLACE / "file", file, entry))


if __name__ == "__main__":
    run(one_input, "mor_ref.golden.container")
