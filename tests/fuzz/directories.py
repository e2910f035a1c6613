"""Fuzzes directories of results, compared with small suites from end to end."""

import hashlib
import json
import tempfile
from functools import cache
from pathlib import Path
from unittest import mock

import numpy as np
from fuzz.harness import CHOICES, changed, check_sentence, run
from fuzz.suites import HEADER, payload, safetensors

PLACE, VECTORS = (Path(tempfile.mkdtemp(prefix="fuzzing-")) for _ in range(2))
# A few small cases of suites of every kind: columns, tensors, decisions, digests, blocks.
KEPT = {
    "decode": ["e2m1"],
    "decisions": ["mean_relative_error", "not_worse_than"],
    "quantize": ["1x37.bf16.e2m1.gam.4x8.8x16", "5x37.f32.e4m3.gam.row.row"],
    "policies": ["1x37.f32.three_way.gam.8x16", "33x1.f32.tensor.gam.row"],
    "nvfp4_te": ["5x37.f32.16x16", "1x37.bf16.1x16"],
    "nvfp4_blocks": ["te_4over6_mse"],
    "mx": ["33x1.bf16.e4m3.floor.32", "1x37.f32.e2m1.even.32"],
    "mx_large": ["e4m3.floor"],
}
VIEWS = ["", "@transposed", "@packed", "@replicated", "@replicated@replicated", "@no", "\n", "@"]
SEEDS = [
    b"\1" + safetensors(HEADER, payload(10)),
    b"\1" + safetensors(HEADER | {"e2m1/code": HEADER["a/code"] | {"dtype": "F8_E4M3"}}, b"ab" * 5),
    *(bytes([0, k, 1, 0, what, how]) for k in range(8) for what in range(6) for how in range(4)),
    *(bytes([16, k, 1, 0, 2, 3]) for k in (0, 1)),
    b"\0\3\0\4\5\5",
    b"\x24\0\4\1\0\x34\2\x08\xff",
]


@cache
def answers():
    """Make the small suites, and return their expected fields."""
    from mor_ref.golden import bundled_files
    from mor_ref.golden.store.manifest import read_manifest
    from mor_ref.golden.store.suite_files import read_suite, suite_bytes, write_manifest

    manifest, entries, found = read_manifest(bundled_files()), {}, {}
    for suite, names in KEPT.items():
        entry = manifest["suites"][suite]
        cases = [case for case in read_suite(bundled_files(), suite, entry) if case.name in names]
        assert len(cases) == len(names), suite
        content = suite_bytes(cases)
        (VECTORS / f"{suite}.safetensors").write_bytes(content)
        listed = {case.name: case.parameters for case in cases}
        digest = hashlib.sha256(content).hexdigest()
        entries[suite] = entry | {"cases": listed, "sha256": digest, "kills": {}}
        entries[suite].pop("negative", None)
        results = {f["name"] for f in entry["fields"] if f["role"] == "expected"}
        found[suite] = {
            f"{case.name}/{name}": array
            for case in cases
            for name, array in case.arrays.items()
            if name in results
        }
    write_manifest(VECTORS, entries, manifest["made_with"])
    return found


def spoilt(right, data):
    """Return the right arrays with a few of them changed, as the bytes say."""
    from safetensors.numpy import save

    choices = iter(data)
    found = dict(right)
    for _ in range(1 + next(choices, 0) % 3):
        keys = list(found) or ["a/b"]
        key = keys[next(choices, 0) % len(keys)]
        array = found.pop(key, np.zeros(3, np.uint8))
        what, how = next(choices, 0) % 6, next(choices, 0)
        if what == 0:
            array = array.astype([np.int64, np.int8, np.float32, np.uint64, bool][how % 5])
        elif what == 1:
            shapes = [(0,), (1 << 40, 0), (-1,), (1, *array.shape), (-1, 1), (0, 1 << 40)]
            shape = shapes[how % 6]
            array = (array if np.prod(shape) else array[:0]).reshape(shape)
        elif what == 2 and array.dtype.kind in "ui":
            array = array.copy()
            array.reshape(-1)[how % array.size if array.size else 0 :][:1] ^= array.dtype.type(1)
        elif what == 3:
            key += VIEWS[how % len(VIEWS)]
        elif what == 4:
            key = str(CHOICES[how % len(CHOICES)])
        elif what == 5:
            array = array.astype(np.int64) - how
        found[key.encode("ascii", "replace").decode("ascii")] = array
    found = {key: array for key, array in found.items() if next(choices, 1) % 4}
    return save({key: np.ascontiguousarray(array) for key, array in found.items()})


def one_input(data):
    from mor_ref.verify.candidates.candidate import CandidateError
    from mor_ref.verify.candidates.results_directory import ResultsDirectory
    from mor_ref.verify.diagnosing.diagnosis_records import Diagnosis
    from mor_ref.verify.reporting.junit import as_junit
    from mor_ref.verify.reporting.report_files import as_json
    from mor_ref.verify.reporting.text import lines
    from mor_ref.verify.running import diagnosed_cases
    from mor_ref.verify.running.run import verify
    from mor_ref.verify.running.suites import suites_in

    first, rest = (data[0] if data else 0), data[1:]
    names = list(answers())
    suite = names[(rest[0] if rest else 0) % len(names)]
    if first % 4 == 1:
        file = rest[1:]
    elif first % 4 == 2:
        file = safetensors(changed(HEADER, rest[1:]), payload(10))
    else:
        file = spoilt(answers()[suite], rest[1:])
    (PLACE / f"{suite}.safetensors").write_bytes(file)
    # To look for an explanation of mismatches takes a thousand times as long as all the rest.
    is_looked_for = data[:2] == bytes([16, 1])
    diagnose = diagnosed_cases.diagnose if is_looked_for else lambda *_: Diagnosis()
    try:
        with mock.patch.object(diagnosed_cases, "diagnose", diagnose):
            found = verify(ResultsDirectory(PLACE), suites_in(VECTORS, [suite]))
    except CandidateError as error:
        check_sentence(error)
        return
    assert all(line.isprintable() and line.isascii() for line in lines(found))
    assert json.loads(as_json(found))["verdict"] == found.verdict
    assert as_junit(found).isascii()


if __name__ == "__main__":
    run(
        one_input,
        "mor_ref.verify.candidates.results_directory",
        "mor_ref.verify.comparing.compare",
        "mor_ref.verify.comparing.conformance",
        "mor_ref.verify.comparing.evidence",
        "mor_ref.verify.running.run",
    )
