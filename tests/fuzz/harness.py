"""Running the fuzz targets, and making JSON that is nearly right of bytes."""

import copy
import importlib
import json
import sys

VALUES = [
    *(None, True, 0, 1, -1, 2**64, 0.5, "", "a", "u8", "x/y", "..", [], [1], {}, {"a": 1}),
    *(2**31, [1, 16], [2**20, 1], "a\0b", "\ud800", "input", "e4m3", "code@packed", "row", 10**30),
    *("sha256_128x128", "transposed", {"shape": [3, 2], "seed": 0, "stream": 0}, "*/", "x" * 300),
]
DTYPES = [
    *("U8", "U16", "U32", "U64", "I8", "F16", "F32", "F64", "BF16", "BOOL", "F8_E4M3", "F4"),
    *("C64", "I64", "F8_E8M0"),
]
CHOICES = VALUES + DTYPES


def run(one_input, *modules):
    """Fuzz a target, guided by its lines of these modules; arguments are libFuzzer's.

    No other is instrumented: Numba could not compile it.
    """
    try:
        import atheris
    except ImportError:
        sys.exit("fuzzing needs atheris, and it is not installed; pip install atheris")
    with atheris.instrument_imports(include=list(modules)):
        for name in modules:
            importlib.import_module(name)
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


def changed(right, data):
    """Return a copy of a JSON value with a few places changed, as the bytes say."""
    found = {"": copy.deepcopy(right)}
    choices = iter(data)
    for _ in range(1 + next(choices, 0) % 3):
        parent, key = _place(found, choices)
        what = next(choices, 0)
        if what % 4 == 0 and key != "":
            del parent[key]
        elif what % 4 == 1 and isinstance(parent, dict) and key != "":
            value = CHOICES[next(choices, 0) % len(CHOICES)]
            parent[value if isinstance(value, str) else json.dumps(value)] = parent.pop(key)
        else:
            parent[key] = copy.deepcopy(CHOICES[next(choices, 0) % len(CHOICES)])
    return found[""]


def _place(value, choices):
    """Return some container inside of a value, and one of its keys."""
    parent, key = value, ""
    while isinstance(parent[key], dict | list) and parent[key]:
        inside = parent[key]
        keys = list(inside) if isinstance(inside, dict) else range(len(inside))
        parent, key = inside, keys[next(choices, 0) % len(keys)]
        if next(choices, 0) % 3 == 0:
            break
    return parent, key


def check_sentence(error):
    """Check that an error names the fault in a line."""
    text = str(error)
    assert text.isprintable(), text
    assert text.isascii(), text
    assert 20 < len(text) < 1500, text
