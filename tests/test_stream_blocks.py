"""Streams of blocks: lines with all numbers of a block, and the mistakes that they find."""

import numpy as np
import pytest
from streaming import ENTRIES, arrays_of, run

from mor_ref.deviations import applied
from mor_ref.golden.streams.lines import Line
from mor_ref.golden.streams.stream import inputs_of, random_inputs, stream_named, with_results
from mor_ref.mistakes.catalogue import CAUSES
from mor_ref.operations import OPERATIONS
from mor_ref.operations.random_numbers import Draws
from mor_ref.verify.running.check_lines import LineError, Sent, checked, computed

MX, NVFP4, SCALED = "mx_blocks/e4m3.floor", "nvfp4_blocks/te", "quantize_blocks/e4m3.gam"
FIRST = [MX, NVFP4, SCALED, "nvfp4_blocks/te_4over6_mse", "mx_blocks/int8_mx.even.2"]
ALL = [
    f"{suite}/{case}"
    for suite in ("mx_blocks", "nvfp4_blocks", "quantize_blocks")
    for case in ENTRIES[suite]["cases"]
]


def drawn(stream, count, seed=0, first=0):
    return random_inputs(stream, Draws(first, count, seed, stream.width))


def asked(stream, inputs, by="exact"):
    """Return inputs with the results of an implementation."""
    found = getattr(OPERATIONS[stream.operation], by)(stream.parameters, inputs)
    return {**inputs, **{column.name: found[column.name] for column in stream.results}}


def check(stream, lines, piece=1 << 16, sent=None):
    """Return how many lines were checked, and the words on the wrong ones."""
    pieces = iter([lines[at : at + piece] for at in range(0, len(lines), piece)])
    count, said = 0, []
    for part in checked(stream, lambda: next(pieces, b""), None, sent):
        count += part.count
        said += [part.describe(place) for place in part.wrong.tolist()]
    return count, said


@pytest.mark.tier("full", but=["[mx_blocks/int8_mx.even.2]"])
@pytest.mark.parametrize("name", FIRST)
def test_the_bundled_blocks_come_first_and_then_random_ones(name):
    stream = stream_named(name)
    inputs = [column.name for column in stream.inputs]
    rows = len(stream.bundled["x"])
    status, out, err = run("gen", name, "--count", rows + 40, "--seed", 3)
    assert (status, err) == (0, "")
    random = drawn(stream, 40, seed=3)
    for k, line in enumerate(out.splitlines()):
        words = [int(word, 16) for word in line.split(" ")]
        arrays = ({c: arrays_of(name)[c] for c in inputs}, random)[k >= rows]
        place = k - rows * (k >= rows)
        assert words == [v for c in inputs for v in np.atleast_1d(arrays[c][place]).tolist()]
    assert len(out.splitlines()) == rows + 40


@pytest.mark.parametrize("name", FIRST)
def test_the_same_blocks_in_chunks_of_any_size(name):
    stream = stream_named(name)
    some, others = (
        b"".join(stream.question.written(a) for a in inputs_of(stream, 3, 1500, chunk=chunk))
        for chunk in (None, 77)
    )
    assert some == others
    assert some.count(b"\n") == 1500


@pytest.mark.tier("full", but=["[mx_blocks/e4m3.floor]"])
@pytest.mark.parametrize("name", FIRST)
def test_the_exact_model_is_a_right_device_for_blocks(name):
    stream = stream_named(name)
    answers = asked(stream, drawn(stream, 60, seed=1))
    lines = stream.answer.written(answers)
    for text in (lines, lines.upper(), lines.replace(b"\n", b"\r\n")):
        assert check(stream, text, 997) == (60, [])


@pytest.mark.tier("full", but=[f"[{name}]" for name in FIRST])
@pytest.mark.parametrize("name", ALL)
def test_random_blocks_are_in_the_domain_and_match(name):
    stream = stream_named(name)
    arrays = drawn(stream, 4000, seed=2)
    assert stream.domain.inside(stream.parameters, arrays).all()
    assert stream.domain.inside(stream.parameters, stream.bundled).all()
    some = drawn(stream, max(1, 200 // stream.width), seed=4)
    assert check(stream, stream.answer.written(asked(stream, some)))[1] == []


@pytest.mark.tier("full", but_one_in=2)
@pytest.mark.parametrize("name", ALL[::7])
def test_blocks_have_every_kind_of_number(name):
    stream = stream_named(name)
    x = drawn(stream, 4000)["x"]
    magnitudes = x & 0x7FFFFFFF
    counts = {
        "zeros alone": (magnitudes == 0).all(axis=1),
        "a subnormal number": ((magnitudes > 0) & (magnitudes < 0x00800000)).any(axis=1),
        "an infinity": (magnitudes == 0x7F800000).any(axis=1),
        "a negative zero": (x == 0x80000000).any(axis=1),
        "a NaN": (magnitudes > 0x7F800000).any(axis=1),
    }
    some = {word: int(rows.sum()) for word, rows in counts.items()}
    if stream.parameters.get("profile") in ("torchao", "modelopt", "compressed_tensors"):
        assert some.pop("a NaN") == 0
    assert all(40 <= count <= 2400 for count in some.values()), some
    assert ((magnitudes >= 0x7F800000).sum(axis=1) <= 1).all()


PLANTED = {
    (MX, "MXS-004/always"),
    (MX, "MXS-003/log2-in-binary32"),
    ("mx_blocks/e2m1.rceil", "ENC-002/inputs-flushed"),
    ("mx_blocks/e4m3.even", "MXS-003/always"),
    (NVFP4, "nvfp4_as_te_2_13"),
    (NVFP4, "ENC-006/not-saturated"),
    (SCALED, "GAM-003/comparison-never"),
    (SCALED, "infinity_propagates_into_amax"),
}


def lines_of_a_deviation(name, deviation, count):
    """Return the words on the wrong lines of a device with a deviation."""
    stream = stream_named(name)
    inputs = drawn(stream, count, seed=1)
    with applied(CAUSES[deviation]):
        answers = asked(stream, inputs)
    return check(stream, stream.answer.written(answers))[1]


@pytest.mark.tier("full", but_one_in=4)
@pytest.mark.parametrize(("name", "deviation"), sorted(PLANTED))
def test_random_blocks_find_a_planted_mistake(name, deviation):
    """More than once, or a seed would decide."""
    assert len(lines_of_a_deviation(name, deviation, 600)) >= 2


def without_the_last(x):
    return np.concatenate([x[:, :-1], np.zeros_like(x[:, -1:])], axis=1)


def without_negative_ones(x):
    return np.where(x >> 31, 0, x).astype(x.dtype)


def without_nan(x):
    return np.where((x & 0x7FFFFFFF) > 0x7F800000, 0, x).astype(x.dtype)


def rounded_to_bf16(x):
    return x & np.uint32(0xFFFF0000)


@pytest.mark.tier("full", but_one_in=4)
@pytest.mark.parametrize("name", [MX, NVFP4])
@pytest.mark.parametrize(
    "seen", [without_the_last, without_negative_ones, without_nan, rounded_to_bf16]
)
def test_random_blocks_find_a_scale_of_other_numbers(name, seen):
    """A device whose scale does not see all numbers as they are."""
    stream = stream_named(name)
    inputs = drawn(stream, 1000, seed=1)
    answers = asked(stream, inputs, by="engine")
    scale = stream.results[0].name
    answers[scale] = asked(stream, {**inputs, "x": seen(inputs["x"])}, by="engine")[scale]
    wrong = check(stream, stream.answer.written(answers))[1]
    if (name, seen) == (NVFP4, without_nan):
        assert not wrong  # NaN is ignored there
    else:
        assert len(wrong) >= 4


def test_a_wrong_line_of_a_block_has_its_largest_number_and_the_first_wrong_entry():
    stream = stream_named(MX)
    x = np.zeros((3, 32), np.uint32)
    x[:, 5], x[:, 7] = 0x3F800000, 0xC0400000
    answers = dict(asked(stream, {"x": x}))
    answers["code"] = answers["code"].copy()
    answers["code"][1, [5, 9]] ^= 1
    answers["scale"] = answers["scale"] + np.array([0, 0, 1], np.uint8)
    code = (
        "code[5] is 0x71 (144), but 0x70 (128) is expected, 1 ulp above, of x[5] 0x3F800000 (1); "
        "code differs at 1 more place"
    )
    scale = "scale is 0x79 (0.015625), but 0x78 (0.0078125) is expected, 1 ulp above"
    largest = "the largest of x is 0xC0400000 (-3)"
    assert check(stream, stream.answer.written(answers)) == (
        3,
        [
            f"line 2: {largest}: {code}",
            f"line 3: {largest}: {scale}",
        ],
    )


def test_a_line_of_a_block_that_is_not_understood_or_not_taken():
    stream = stream_named(NVFP4)
    (line,) = stream.answer.written(asked(stream, drawn(stream, 1))).splitlines()
    with pytest.raises(
        LineError, match="line 1 is .* give x of 16 times 8, amax of 8, block_scale"
    ):
        check(stream, line[:-1] + b"\n")
    words = line.split(b" ")
    words[3], words[16] = b"40000000", b"3f800000"
    said = "line 1 has the largest .* which nvfp4_blocks does not take: amax is not negative and"
    with pytest.raises(LineError, match=said):
        check(stream, b" ".join(words) + b"\n")


def test_another_block_than_the_one_that_was_sent():
    stream = stream_named(NVFP4)
    inputs = next(inputs_of(stream, 5, 20))
    lines = stream.answer.written(asked(stream, inputs))
    assert check(stream, lines, 100, Sent(inputs_of(stream, 5)))[0] == 20
    changed = {name: array.copy() for name, array in inputs.items()}
    changed["x"][11, 4] = 0x3E000000
    wrong = stream.answer.written(asked(stream, changed))
    message = r"^line 12 has x\[4\] 0x3E000000 \(0.125\), amax .*, where mor-ref gen sent x\[4\] 0x"
    with pytest.raises(LineError, match=message):
        check(stream, wrong, 100, Sent(inputs_of(stream, 5)))


@pytest.mark.tier("full")
def test_the_results_of_a_line_are_chosen():
    stream = with_results(stream_named(MX), ["y", "scale"])
    lines = stream.answer.written(asked(stream, drawn(stream, 9)))
    assert check(computed(stream), lines) == (9, [])
    status, out, err = run("ver", MX, "--fields", "y,scale", text=lines)
    assert (status, out, err) == (0, f"{MX}: match, 9 lines, 0 of them wrong\n", "")
    for fields, message in (
        ("code,xs", "field is 'xs', which only the exact model computes; take one of "),
        ("scale,y,scale", "field scale is given twice; give it once"),
        ("scal", "field is 'scal', which is not known; did you mean 'scale'? take one of scale,"),
    ):
        status, out, err = run("ver", MX, "--fields", fields, text=lines)
        assert (status, out) == (2, "")
        assert message in err
    assert isinstance(stream.answer, Line)


@pytest.mark.parametrize("case", ["te", "te_4over6_mse"])
def test_tiles_of_16_rows_have_the_bits_of_the_exact_model(case):
    """NVF-001. A tile follows one that has the amax of the tensor alone."""
    stream = stream_named(f"nvfp4_blocks/{case}:16x16")
    inputs = drawn(stream, 4, seed=5)
    found = OPERATIONS["nvfp4_block"].engine(stream.parameters, inputs)
    parameters = {"profile": case, "tile": [16, 16], "source": "f32"}
    for k in range(4):
        x = np.zeros((16, 32), np.uint32)
        x[0, 0], x[:, 16:] = inputs["amax"][k], inputs["x"][k].reshape(16, 16)
        right = OPERATIONS["nvfp4"].exact(parameters, {"x": x})
        assert np.array_equal(found["code"][k], right["code"][:, 16:].ravel())
        assert np.array_equal(found["y"][k], right["y"][:, 16:].ravel())
        assert found["block_scale"][k] == right["block_scale"][0, 1]


@pytest.mark.tier("full")
def test_a_stream_of_tiles_and_zeros_of_the_other_sign():
    """The command lists what it takes, and counts what it allows."""
    name = "nvfp4_blocks/te:16x16"
    status, out, err = run("gen", name, "--count", 30, "--seed", 1)
    assert (status, err) == (0, "")
    stream = stream_named(name)
    inputs = Line(stream.inputs).read(out.encode())
    answers = asked(stream, inputs, by="engine")
    zeros = answers["code"] == 8
    answers["code"] = np.where(zeros, np.uint8(0), answers["code"])
    lines = stream.answer.written(answers)
    status, said, _ = run("ver", name, "--seed", 1, "--errors", 1, text=lines)
    assert (status, "expected, the sign of zero, of x[" in said) == (1, True)
    status, said, _ = run("ver", name, "--seed", 1, "--zero-sign", "any", text=lines)
    assert status == 0
    right = f"{name}: match, 30 lines, 0 of them wrong, {zeros.sum():,} entries with other bits"
    assert said == f"{right} allowed\n"
    for wrong, reason in {
        "nvfp4_blocks/torchao:16x16": "tile is '16x16', which is not known; ",
        "mx_blocks/e4m3.floor:2x2": "and only NVFP4 has tiles; leave out :2x2",
    }.items():
        status, _, err = run("gen", wrong)
        assert (status, reason in err) == (2, True)


STREAMS = [
    f"{suite}/{next(iter(entry['cases']))}"
    for suite, entry in ENTRIES.items()
    if OPERATIONS[entry["operation"]].random
]


@pytest.mark.tier("full", but_one_in=4)
@pytest.mark.parametrize("name", STREAMS)
def test_every_stream_describes_a_wrong_line(name):
    """The first line has a bit flipped in its last result."""
    stream = stream_named(name)
    rows = asked(stream, next(inputs_of(stream, 3, 1)))
    last = stream.results[-1].name
    rows[last] = rows[last] ^ rows[last].dtype.type(1)
    count, said = check(stream, stream.answer.written(rows))
    assert count == 1
    assert len(said) == 1
    assert stream.results[-1].name in said[0]


@pytest.mark.tier("full", but=["[dot_integers/few]"])
@pytest.mark.parametrize("name", ["matmul/exact.mx.32.e4m3.e2m1", "dot_integers/few"])
def test_a_wrong_line_of_codes_is_a_mismatch(name):
    status, out, _ = run("gen", name, "--count", 1, "--seed", 3)
    assert status == 0
    results = " ".join("0" * (one.digits - 1) + "7" for one in stream_named(name).results)
    status, out, err = run("ver", name, text=f"{out.rstrip()} {results}\n".encode())
    assert (status, err) == (1, "")
    assert "1" in out
