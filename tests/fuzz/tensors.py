"""Fuzzes files of tensors, and of codes and scales: a fault is one sentence with the file."""

import io
import json
import struct
import tempfile
import zipfile
from pathlib import Path

import numpy as np
from fuzz.harness import run

PLACE = Path(tempfile.mkdtemp(prefix="fuzzing-"))
ENDINGS = [".safetensors", ".npz", ".npy", ".gguf", ".index.json", ".pt"]
RECIPE = "mxfp8_e4m3:floor:32"
FIELDS = {
    "a/code": {"dtype": "U8", "shape": [2, 32], "data_offsets": [0, 64]},
    "a/scale": {"dtype": "U8", "shape": [2, 1], "data_offsets": [64, 66]},
}
DEEP = 10_000


def safetensors(header, data=bytes(66)):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return b"\0" + struct.pack("<Q", len(text)) + text + data


def said(sources, recipe=RECIPE):
    return safetensors({"__metadata__": {"recipe": recipe, "sources": sources}, **FIELDS})


def npz(comment=b"", **arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    with zipfile.ZipFile(stream, "a") as archive:
        archive.comment = comment
    return b"\1" + stream.getvalue()


def npy(header):
    text = header.encode() + b"\n"
    return b"\2\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + bytes(8)


def gguf(kind, value, sides=(2,)):
    """Return a file with a value of metadata and a tensor."""
    key = struct.pack("<Q", 1) + b"k" + struct.pack("<I", kind) + value
    tensor = struct.pack("<Q", 1) + b"t" + struct.pack("<I", len(sides))
    tensor += struct.pack(f"<{len(sides)}Q", *sides) + struct.pack("<IQ", 0, 0)
    return b"\3GGUF" + struct.pack("<IQQ", 3, 1, 1) + key + tensor + bytes(40)


ARRAY = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }"
SEEDS = [
    said("{}"),
    said('{"a": "bf16"}'),
    *(said(text) for text in ("[" * DEEP, '{"a": []}', "1" * 5000, '{"a": "f33"}', "\ud800")),
    said("{}", "m" * 900),
    said("{}", "\33[31m\n"),
    safetensors(b'{"a":' + b"[" * DEEP + b"]" * DEEP + b"}"),
    safetensors({"a\33\n/code": FIELDS["a/code"], "b": FIELDS["a/scale"]}),
    safetensors({"a": {"dtype": "F32", "shape": [0, 1 << 62], "data_offsets": [0, 0]}}, b""),
    safetensors({"a": {"dtype": "F32", "shape": [1] * 99, "data_offsets": [0, 4]}}, bytes(4)),
    npz(**{"a/code": np.zeros((2, 32), np.uint8), "a/scale": np.zeros((2, 1), np.uint8)}),
    npz(json.dumps({"recipe": RECIPE, "sources": "[" * 999}).encode(), a=np.ones(3, np.float32)),
    npz(b"[" * DEEP, a=np.zeros(2, "V2"), b=np.zeros(2, "V7")),
    npz(a=np.zeros(2, [("x", "<f4")]), b=np.zeros(2, "M8[s]"), c=np.zeros(2, "U3"), d=np.bool_(1)),
    *(npy(ARRAY % shape) for shape in ("(2,)", "(0, 4611686018427387904)", f"({'1,' * 99})")),
    npy("(" * 900 + ")" * 900),
    npy("{'descr': " + "[" * 200 + "]" * 200 + ", 'fortran_order': False, 'shape': (2,), }"),
    npy("{'descr': [('x', [('y', '<f4')])], 'fortran_order': False, 'shape': (-2,), }"),
    gguf(4, struct.pack("<I", 7)),
    gguf(8, struct.pack("<Q", 1 << 60)),
    gguf(9, struct.pack("<IQ", 9, 1) * DEEP + struct.pack("<IQ", 0, 0)),
    gguf(9, struct.pack("<IQ", 9, 0)),
    gguf(4, bytes(4), (0, 1 << 62)),
    b"\4" + b'{"weight_map":' + b"[" * DEEP,
    b"\4" + b'{"weight_map": {"a": "no.safetensors"}}',
    b"\4" + b'{"weight_map": {"a": "\\u0000"}}',
]


def one_input(data):
    ending = ENDINGS[(data[0] if data else 0) % len(ENDINGS)]
    file = PLACE / f"own{ending}"
    file.write_bytes(data[1:])
    _check(lambda: _tensors(str(file)), file)
    if ending in ENDINGS[:3]:
        _check(lambda: _arrays(str(file)), file)
        _check(lambda: _dequantized(str(file)), file)


def _check(read, file):
    try:
        read()
    except (ValueError, FileNotFoundError) as error:
        text = str(error)
        assert any(one in text for one in (str(file.parent), "tensor '")), text
        assert 20 < len(text) < 1500, text


def _tensors(file):
    from mor_ref.analysis.stored_tensors import SkippedTensor
    from mor_ref.analysis.tensor_files import tensors_in

    for one in tensors_in(file):
        if isinstance(one, SkippedTensor):
            assert str(one).isprintable()
        else:
            assert one.load().shape == one.shape


def _arrays(file):
    from mor_ref.analysis.bit_files import bits_in

    for _, fields in bits_in(file):
        for one in fields.values():
            if one.itemsize:
                assert one.load().shape == one.shape


def _dequantized(file):
    from mor_ref.cli.dequantize import run as dequantize

    dequantize(file, RECIPE, str(PLACE / "y.npz"))


if __name__ == "__main__":
    run(
        one_input,
        "mor_ref.analysis.bit_files",
        "mor_ref.analysis.gguf_files",
        "mor_ref.analysis.numpy_files",
        "mor_ref.analysis.safetensors_files",
        "mor_ref.analysis.tensor_files",
        "mor_ref.verify.way_back",
    )
