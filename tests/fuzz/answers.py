"""Fuzzes the answers of programs: any bytes are an answer, or are refused."""

from fuzz.harness import run

SEEDS = [
    b"skip\n",
    b"out code 3\n2a fe 7f\ndone\n",
    b"out y 2x1\n3f800000 0\nout code 0x2\ndone\n",
    b"out sum 1 ffffffffffffffff\r\n\tdone\n",
    b"\n mor-ref-protocol 1\ncase decode decode e4m3\n",
]


def one_input(data):
    from mor_ref.verify.candidates.candidate import CandidateError
    from mor_ref.verify.candidates.protocol import Received

    received, whole = Received(4096), Received(1 << 30)
    is_refused = [False, False]
    for k, (one, size) in enumerate(((received, 7), (whole, len(data) or 1))):
        try:
            for start in range(0, len(data), size):
                one.add(data[start : start + size])
        except CandidateError:
            is_refused[k] = True
    if len(data) <= 4096:
        assert is_refused[0] == is_refused[1]
        assert whole.end == received.end or is_refused[0]
    for text in (data, data[: whole.end], data + b" done"):
        check(text)


def check(text):
    from mor_ref.verify.candidates.candidate import CandidateError
    from mor_ref.verify.candidates.protocol import parse_answer

    sentence, found = "", None
    try:
        found = parse_answer(text)
    except CandidateError as error:
        sentence = str(error)
    assert "\n" not in sentence
    assert len(sentence) < 600
    for array in (found or {}).values():
        assert 2 * array.size <= len(text)


if __name__ == "__main__":
    run(one_input, "mor_ref.verify.candidates.protocol")
