"""MX with each of its scale rules: single blocks, tensors and large tensors."""

import itertools
from collections.abc import Iterator

import numpy as np

from mor_ref.definitions.formats import formats
from mor_ref.definitions.mx import SCALE_RULES
from mor_ref.exact.arithmetic import rn32
from mor_ref.golden.inputs.amaxes_at_thresholds import around
from mor_ref.golden.inputs.beyond_tiles import beyond_tiles
from mor_ref.golden.inputs.edges import amaxes, narrowed, values_of
from mor_ref.golden.inputs.every_code import every_code
from mor_ref.golden.inputs.found_narrow import found_cases
from mor_ref.golden.inputs.late_blocks import INFINITIES, at_ends_of_rows, numbers_of_mx
from mor_ref.golden.inputs.mx_blocks import (
    below_powers_of_two,
    divides,
    long_block,
    rounds,
    turning_blocks,
    turning_by_logarithms,
    turning_in_source,
    turning_tensor,
    underflowing,
)
from mor_ref.golden.inputs.placed import End, Entry
from mor_ref.golden.inputs.single_blocks import filled, repeats, with_specials
from mor_ref.golden.inputs.tensors import Tensor, ladders, tensors
from mor_ref.golden.model.suite import Case, Size, suite
from mor_ref.golden.suites.large import (
    TALLER,
    WIDER,
    LargeCase,
    digested,
    in_each_source,
    large_beyond_tiles,
    large_suite,
)
from mor_ref.golden.suites.tensor_cases import tensor_case
from mor_ref.operations.bits import f32_bits
from mor_ref.operations.mx import random_codes
from mor_ref.operations.random_numbers import Draws

ELEMENTS = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "int8_mx")
_WIDTH = 32  # numbers of a block
_USUAL = 10  # blocks whose amaxes are spread over the edges of all formats
_NEXT_TO_AMAX = slice(2, 10)  # some columns of the ladders, that of the amaxes among them
_OF_EVERY_PAIR = ("ladder", "nan.f16", "5x37.f16")  # tensors for each format and rule, by name

_LARGE_ONES = "24x48"  # for every sixth format and rule, and others for every second


def _block_cases(size: Size) -> Iterator[Case]:
    edges = amaxes()
    blocks = edges[np.linspace(0, edges.size - 1, _USUAL * (2 * repeats(size) - 1)).astype(int)]
    halves = [f32_bits(rn32(v)) for v in values_of(formats["e2m3"])[1:24:2]]
    blocks = np.concatenate([blocks, np.array(halves, np.uint32) + np.uint32(60 << 23)])
    for k, name in enumerate(ELEMENTS):
        fmt = formats[name]
        usual = with_specials(filled(fmt, blocks, _WIDTH, size, 140 + k), every=3)
        for n, rule in enumerate(SCALE_RULES.specified):
            parameters = {"format": name, "scale_rule": rule, "source": "f32"}
            near = np.array(around(SCALE_RULES[rule].turn_of(fmt)), np.uint32)
            turning = filled(fmt, near, _WIDTH, size, 180 + 4 * k + n)
            x = np.concatenate([usual, turning_blocks(fmt), turning])
            x = np.concatenate([x, underflowing(fmt)]) if divides(rule) else x
            yield Case(f"{name}.{rule}", parameters, {"x": x})
            pairs = [every_code(fmt, rule, "f32").x, turning_by_logarithms(fmt, rule)]
            yield Case(f"{name}.{rule}.2", parameters, {"x": np.concatenate(pairs)})
            long = long_block(fmt, size, 240 + 4 * k + n)
            yield Case(f"{name}.{rule}.128", parameters, {"x": long})


def _tensor_cases(size: Size) -> Iterator[Case]:
    odd = {tensor.name: tensor for tensor in tensors(size)}
    steps = [tensor._replace(x=tensor.x[:, _NEXT_TO_AMAX]) for tensor in ladders(size)]
    for tensor in (*odd.values(), *steps, below_powers_of_two()):
        for (k, name), (n, rule) in itertools.product(
            enumerate(ELEMENTS), enumerate(SCALE_RULES.specified)
        ):
            of_many = 6 if tensor.name.startswith(_LARGE_ONES) else 2
            if tensor.name.startswith(_OF_EVERY_PAIR) or (k + n) % of_many == 0:
                yield tensor_case(tensor, format=name, scale_rule=rule, block=_WIDTH)
    for name, rule in itertools.product(ELEMENTS, SCALE_RULES.specified):
        own = [every_code(formats[name], rule, source) for source in ("bf16", "f16", "f32")]
        for tensor in (turning_tensor(formats[name], rule), *own):
            yield tensor_case(tensor, format=name, scale_rule=rule, block=_WIDTH)
    yield tensor_case(steps[0], format="e4m3", scale_rule="rceil", block=16)
    for name, rule, block in (
        ("e4m3", "floor", 16), ("e5m2", "even", 8), ("e2m1", "ceil", 64), ("e3m2", "rceil", 5),
    ):  # fmt: skip
        yield tensor_case(odd["5x37.f32"], format=name, scale_rule=rule, block=block)
    yield tensor_case(odd["tiny.f32"], format="e4m3", scale_rule="rceil", block=_WIDTH)
    for name, rule in itertools.product(ELEMENTS, filter(divides, SCALE_RULES.specified)):
        blocks = underflowing(formats[name])
        if blocks.size:
            small = Tensor("underflowing.f32", "f32", blocks)
            yield tensor_case(small, format=name, scale_rule=rule, block=_WIDTH)
    yield from _turning_cases()
    yield from found_cases("mx")
    for tensor in beyond_tiles(size):
        yield tensor_case(tensor, format="e2m1", scale_rule="rceil", block=_WIDTH)


def _turning_cases() -> Iterator[Case]:
    """Yield pairs of an amax next to a threshold, and its half."""
    for name in ELEMENTS:
        pairs = narrowed(turning_by_logarithms(formats[name], "floor"), "bf16")
        tensor = Tensor("logarithms.bf16", "bf16", pairs)
        yield tensor_case(tensor, format=name, scale_rule="floor", block=_WIDTH)
    for name, source, rule in itertools.product(ELEMENTS, ("bf16", "f16"), SCALE_RULES.specified):
        if rounds(formats[name], rule):
            narrow = turning_in_source(formats[name], source, rule)
            yield tensor_case(narrow, format=name, scale_rule=rule, block=_WIDTH)


_LARGE = (
    LargeCase("e4m3.floor", "bf16", (260, 330), 230,
              {"format": "e4m3", "scale_rule": "floor", "block": 32}),
    LargeCase("e2m1.rceil", "f32", (130, 140), 231,
              {"format": "e2m1", "scale_rule": "rceil", "block": 32}),
    LargeCase("wider.e5m2.ceil", "bf16", WIDER, 11,
              {"format": "e5m2", "scale_rule": "ceil", "block": 32}),
    LargeCase("taller.e2m1.even", "bf16", TALLER, 12,
              {"format": "e2m1", "scale_rule": "even", "block": 32}),
)  # fmt: skip


_TALL = (2100, 34)
# A stream whose blocks of 1,100 numbers have an amax behind 1,024 that is twice what is before.
_LARGEST_AT_THE_END = 112


def _every_format_and_rule() -> Iterator[LargeCase]:
    """Yield each format and rule, with blocks larger than a warp and than a thread block."""
    for n, (fmt, rule) in enumerate(itertools.product(ELEMENTS, SCALE_RULES.specified)):
        pair = {"format": fmt, "scale_rule": rule}
        for word, shape in (("wide", (2, 2112)), ("tall", _TALL)):
            name, usual = f"{word}.{fmt}.{rule}", {**pair, "block": 32}
            yield from in_each_source(name, shape, 80 + n, usual, (End.NAN, End.INFINITY))
        for block, columns, stream in ((100, 2101, 110 + n), (1100, 2100, _LARGEST_AT_THE_END)):
            name, blocks = f"{fmt}.{rule}.{block}", {**pair, "block": block}
            yield from in_each_source(name, (5, columns), stream, blocks)


def _last_blocks(case: LargeCase) -> tuple[Entry, ...]:
    """Return entries for the last blocks of rows, if these blocks have one or two numbers."""
    of, columns = case.parameters, case.shape[1]
    if columns % of["block"] == 1:
        numbers = numbers_of_mx(formats[of["format"]], of["scale_rule"], case.source)
        return tuple(at_ends_of_rows(numbers, columns - 1))
    return INFINITIES if case.shape == _TALL and case.source == "f32" else ()


# Scales at both ends of e8m0, and those at which products of the formats leave binary32.
_DECODED_SCALES = (0, 1, 2, 3, 21, 126, 127, 128, 237, 239, 246, 247, 252, 253, 254, 255)


def _decoding_cases(size: Size) -> Iterator[Case]:
    """Yield each code under each of some scales, and codes and scales that are drawn."""
    for name in ELEMENTS:
        count = formats[name].code_count
        every = np.arange(count, dtype=np.uint8).reshape(-1, min(count, _WIDTH))
        code = np.tile(every, (len(_DECODED_SCALES), 1))
        scale = np.repeat(np.array(_DECODED_SCALES, np.uint8), len(every))
        yield Case(name, {"format": name}, {"code": code, "scale": scale})
        for width in (1, 33):
            drawn = random_codes({"format": name}, Draws(0, 8 * size.factor, size.seed, width))
            arrays = {field: array.astype(np.uint8) for field, array in drawn.items()}
            yield Case(f"{name}.{width}", {"format": name}, arrays)


BLOCKS = suite("mx_blocks", "Single blocks in MX", "mx_block", ("MXS-001",), _block_cases)
TENSORS = suite(
    "mx", "Tensors in MX formats under four scale rules", "mx", ("MXS-001",), _tensor_cases
)
DECODED = suite(
    "mx_decoding", "Codes and scales of MX to numbers", "mx_decode", ("MXS-001",), _decoding_cases
)
LARGE = large_suite(
    "mx_large",
    "Larger tensors in MX",
    "mx",
    (
        *_LARGE,
        *(case._replace(placed=_last_blocks(case)) for case in _every_format_and_rule()),
        *large_beyond_tiles("e4m3.floor", {"format": "e4m3", "scale_rule": "floor", "block": 32}),
    ),
    digested("scale", "code", "y"),
)
