"""Fuzzes manifests: one that is read can be relied on, or it is refused."""

import json
import tempfile
from pathlib import Path

from fuzz.harness import changed, check_sentence, run
from fuzz.suites import ENTRY, TENSOR

MANIFEST = {
    "version": 1,
    "made_with": {"size": 1, "seed": 0},
    "views": {"packed": "m"},
    "suites": {"encode": ENTRY, "nvfp4": TENSOR},
    "all_inputs": {"sha256": "0" * 64},
}
TEXT = json.dumps(MANIFEST).encode()
SEEDS = [
    b"\0" + TEXT,
    b"\0" + TEXT.replace(b'"version": 1', b'"version": true'),
    b"\0" + TEXT.replace(b'"elements": 2', b'"elements": NaN'),
    b"\0" + b"[" * 100_000,
    *(
        bytes([1, 0, a, 1, b, 1, c, 1, d, 1, what, e])
        for a in (2, 3)
        for b in range(2)
        for c in range(10)
        for d in (0, 1)
        for what in range(3)
        for e in (3 * c + d,)
    ),
]
PLACE = Path(tempfile.mkdtemp(prefix="fuzzing-"))


def one_input(data):
    from mor_ref.golden.store.manifest import MANIFEST as NAME
    from mor_ref.golden.store.manifest import GoldenError, read_manifest
    from mor_ref.verify.comparing.names_given import fields_of

    is_raw, rest = bool(data) and data[0] % 2 == 0, data[1:]
    (PLACE / NAME).write_bytes(rest if is_raw else json.dumps(changed(MANIFEST, rest)).encode())
    try:
        suites = read_manifest(PLACE)["suites"]
    except GoldenError as error:
        check_sentence(error)
        return
    for name, entry in suites.items():
        assert (PLACE / name).parent == PLACE
        assert (PLACE / name).name == name
        assert all((PLACE / case).name == case for case in entry["cases"])
        assert {field.role for field in fields_of(entry)} == {"input", "expected"}
        assert entry["title"].isprintable()


if __name__ == "__main__":
    run(
        one_input,
        "mor_ref.operations.parameters",
        "mor_ref.golden.model.checks",
        "mor_ref.golden.store.manifest",
    )
