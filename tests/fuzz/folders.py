"""Fuzzes the files of a folder of results: they give fields, or are refused."""

import numpy as np
from fuzz.harness import changed, run
from fuzz.suites import HEADER, PLACE, safetensors

SEEDS = [
    b"\1" + safetensors(HEADER),
    b"\1" + safetensors(HEADER | {"a/code": HEADER["a/code"] | {"dtype": "F8_E4M3"}}),
    *(bytes([0, 0, a, 1, b, 1, c]) for a in range(3) for b in range(9) for c in (0, 2)),
]


def one_input(data):
    from mor_ref.golden.suite import Case
    from mor_ref.verify.candidates import CandidateError, Folder
    from mor_ref.verify.compare import differences

    is_raw = bool(data) and data[0] % 2 == 1
    file = data[1:] if is_raw else safetensors(changed(HEADER, data[1:]))
    (PLACE / "encode.safetensors").write_bytes(file)
    inputs = {"x": np.zeros(2, np.uint32)}
    case = Case("a", {"format": "e4m3"}, inputs | {"code": np.array([[8, 9]], np.uint8)})
    try:
        found = Folder(PLACE).answer("encode", "encode", Case("a", {}, inputs))
    except CandidateError:
        return
    for difference in differences(case, {"code": "format"}, inputs, found or {}):
        assert str(difference)


if __name__ == "__main__":
    run(one_input, "mor_ref.verify.candidates", "mor_ref.verify.compare")
