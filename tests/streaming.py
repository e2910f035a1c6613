"""A device for the tests of gen and ver, its lines, and the commands."""

import functools
import struct
from fractions import Fraction

import forking
import numpy as np

from mor_ref import exact, formats, golden
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.definitions.formats import encoding_profiles
from mor_ref.exact import errors, quantization
from mor_ref.exact import scales as scaling
from mor_ref.golden import bundled_files
from mor_ref.golden.store import suite_files
from mor_ref.golden.streams.stream import random_inputs, stream_named
from mor_ref.metrics import FitsRange, MeanRelativeError, NotWorseThan
from mor_ref.operations import OPERATIONS
from mor_ref.operations.random_numbers import Draws
from mor_ref.verify.running.check_lines import checked

E4M3 = "encode/e4m3.f32.rne.satfinite.canonical"
ENTRIES = suite_files.read_manifest(bundled_files())["suites"]
AXES = {name: OPERATIONS[entry["operation"]].first_axes for name, entry in ENTRIES.items()}
# Those of blocks are in test_stream_blocks.
STREAMED = [
    name
    for name, axes in AXES.items()
    if axes == "n" and OPERATIONS[ENTRIES[name]["operation"]].random
]
ALL = [f"{suite}/{case}" for suite in STREAMED for case in ENTRIES[suite]["cases"]]
FIRST = [f"{suite}/{next(iter(ENTRIES[suite]['cases']))}" for suite in STREAMED]
FIRST += [
    "decisions/not_worse_than",
    "decisions/fits_range.e5m2",
    "encode/e4m3.f64.rne.satfinite.canonical",
]
MAIN = "import sys; sys.argv[0] = 'mor-ref'; from mor_ref.cli import main; main()"


def number(bits, source="f32"):
    if source == "bf16":
        bits, source = bits << 16, "f32"
    pair = {"f64": "<Qd", "f32": "<If", "f16": "<He"}[source]
    return struct.unpack("<" + pair[2], struct.pack(pair[:2], bits))[0]


def bits32(value):
    return exact.encode(value, formats["f32"], "rne", SpecialCases(overflow="ieee"))


def encode(p, x):
    special = SpecialCases(overflow=p["overflow"], nan=p["nan"])
    return (exact.encode(number(x, p["source"]), formats[p["format"]], p["rounding"], special),)


def encode_preset(p, x):
    special = encoding_profiles[p["preset"]][p["format"]]
    return (exact.encode(number(x), formats[p["format"]], special=special),)


def encode_stochastic(p, x, word):
    n, special = p["n_random_bits"], SpecialCases(overflow=p["overflow"])
    fmt = formats[p["format"]]
    return (exact.encode(number(x), fmt, "sr", special, random_word=word, n_random_bits=n),)


def decode(p, code):
    return (exact.decode(code, formats[p["format"]]),)


def scale(p, group, block):
    largest = formats[p["format"]].largest
    shared = scaling.group_mantissa(largest, number(group)) if p["scaling"] == "gam" else 0
    found = scaling.scale_of_block(p["scaling"], largest, number(block), shared)
    return shared, found.exponent_code or 0, bits32(found.value)


def quantize_element(p, x, factor):
    found = quantization.quantize_element(number(x), number(factor), formats[p["format"]])
    return bits32(found.xs), found.code, bits32(found.y)


def error_term(_, x, y):
    found = errors.error_term(number(x), number(y))
    return bits32(found.d), bits32(found.r), found.u


def decide(p, total, nonzero, nonfinite, limit, yardstick, amax, amin):
    own, errors = quantization.ErrorSum(total, nonzero, nonfinite), {}
    if p["metric"] == "mean_relative_error":
        metric = MeanRelativeError(Fraction(limit, 1 << 23))
        assert metric.limit == limit
    elif p["metric"] == "not_worse_than":
        metric, errors = NotWorseThan("e5m2"), {"e5m2": quantization.ErrorSum(yardstick, 1, 0)}
    else:
        metric = FitsRange(p["format"])
    return (nonfinite == 0 and metric.accepts(own, errors, number(amax), number(amin)),)


DEVICE = {
    "encode": encode,
    "encode_preset": encode_preset,
    "encode_stochastic": encode_stochastic,
    "decode": decode,
    "scale": scale,
    "quantize_element": quantize_element,
    "error_term": error_term,
    "decide": decide,
}


@functools.cache
def kept(suite):
    """Return the arrays of the cases of a suite."""
    return {case.name: case.arrays for case in golden.load(suite)}


def arrays_of(name):
    suite, case = name.split("/")
    return kept(suite)[case]


def widths(name):
    """Return the digits of the columns of a stream."""
    stream, arrays = stream_named(name), arrays_of(name)
    return [2 * arrays[one.name].itemsize for one in (*stream.inputs, *stream.results)]


def answered(name, lines, device=None):
    """Return each line with the results of a device appended."""
    stream, digits = stream_named(name), widths(name)
    device = device or DEVICE.get(stream.operation) or by_exact_model(name)
    out = []
    for line in lines:
        results = device(stream.parameters, *(int(word, 16) for word in line.split(" ")))
        places = digits[len(line.split(" ")) :]
        words = [f"{result:0{width}x}" for result, width in zip(results, places, strict=True)]
        out.append(" ".join([line, *words]))
    return out


def by_exact_model(name):
    """Return a device that asks the exact model as suites do, for one line at a time."""
    stream, arrays = stream_named(name), arrays_of(name)
    columns = [(one.name, arrays[one.name].dtype) for one in stream.inputs]

    def device(parameters, *words):
        given = {n: np.array([w], dtype) for (n, dtype), w in zip(columns, words, strict=True)}
        found = OPERATIONS[stream.operation].exact(parameters, given)
        return [int(found[one.name][0]) for one in stream.results]

    return device


def random_lines(name, count, seed=0, first=0):
    """Return lines of the random part alone."""
    stream = stream_named(name)
    text = stream.question.written(random_inputs(stream, Draws(first, count, seed)))
    return text.decode("ascii").splitlines()


def check(name, text, piece=1 << 16, count=None):
    """Return how many lines were checked, and the words on the wrong ones."""
    pieces = iter([text[i : i + piece] for i in range(0, len(text), piece)])
    lines, wrong = 0, []
    for part in checked(stream_named(name), lambda: next(pieces, b""), count):
        assert part.first == lines + 1
        lines += part.count
        wrong += [part.describe(place) for place in part.wrong.tolist()]
    return lines, wrong


def joined(lines, newline="\n"):
    return "".join(f"{line}{newline}" for line in lines).encode("ascii")


def run(*arguments, text=b""):
    done = forking.mor_ref(*arguments, input=text, text=False)
    assert b"Traceback" not in done.stderr
    return done.returncode, done.stdout.decode(), done.stderr.decode()
