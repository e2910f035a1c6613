"""Fuzzes the lines that `mor-ref ver` reads: any bytes are checked, or are refused."""

from functools import cache

from fuzz.harness import run

NAMES = ["decode/e4m3", "encode_stochastic/e4m3.3", "decisions/fits_range.e5m2", "error_steps/all"]
NAMES += ["nvfp4_blocks/te"]
LINES = [
    b"38 3f800000\n7f 7fffffff\n",
    b"3f800000 00000003 38\n3F800000 00000008 39\n",
    b" ".join([b"%016x" % 1, b"%016x" % 1, b"0" * 16, b"%08x" % 1, b"0" * 16, *[b"3f800000"] * 2])
    + b" 01\n",
    b"3f800000 3f800000 00000000 00000000 00000000\n3f800000 40000000 3f800000 3f800000 00800000",
    b" ".join([b"3f800000"] * 17 + [b"7e"] + [b"07"] * 16) + b"\n",
]
SEEDS = [
    *(bytes([k, 0]) + line for k, line in enumerate(LINES)),
    *(bytes([k, 9]) + line.replace(b"\n", b"\r\n") for k, line in enumerate(LINES)),
    *(bytes([k, 2]) + b"\n" + line for k, line in enumerate(LINES)),
    b"\0\1" + b"38  3f80000\n",
    b"\0\3" + b"38 3f800000" * 20,
    b"\0\4" + b"\xff\0",
]


@cache
def stream(name):
    from mor_ref.golden.streams.stream import stream_named

    return stream_named(name)


def outcome(name, data, size, count):
    """Return how many lines were checked, the words on the wrong ones, and those on the end."""
    from mor_ref.verify.running.check_lines import LineError, checked

    pieces = iter([data[at : at + size] for at in range(0, len(data), size)])
    done, said = 0, []
    try:
        for part in checked(stream(name), lambda: next(pieces, b""), count):
            assert part.first == done + 1
            done += part.count
            said += [part.describe(place) for place in part.wrong.tolist()]
    except LineError as error:
        return done, said, str(error)
    return done, said, ""


def one_input(data):
    name, how, text = (
        NAMES[(data[0] if data else 0) % len(NAMES)],
        (data[1] if len(data) > 1 else 0),
        data[2:],
    )
    count = None if how % 4 else 1 + how // 4 % 4
    whole = outcome(name, text, max(1, len(text)), count)
    assert whole == outcome(name, text, 1 + how % 37, count)
    done, said, end = whole
    assert done <= len(text)
    assert all(line.isprintable() and line.isascii() and len(line) < 600 for line in [*said, end])
    assert done or end


if __name__ == "__main__":
    run(
        one_input,
        "mor_ref.golden.streams.lines",
        "mor_ref.verify.running.check_lines",
        "mor_ref.operations.random_numbers",
    )
