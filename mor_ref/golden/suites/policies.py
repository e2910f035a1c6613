"""Policies: decisions from the sums of a unit, and tensors."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from mor_ref.definitions.blocks import Cut
from mor_ref.definitions.formats import formats
from mor_ref.definitions.scales import SCALINGS
from mor_ref.exact.arithmetic import rn32
from mor_ref.golden.inputs.beyond_tiles import beyond_tiles
from mor_ref.golden.inputs.edges import amaxes
from mor_ref.golden.inputs.extremes import (
    beyond_bf16,
    beyond_scales,
    in_binary32,
    largest_at_the_end,
    lost_by_e5m2,
    many_elements,
    many_lost,
    nearly_tied,
    one_unit_of_four,
    overflowing_y,
    signalling,
    specials,
    sums_beyond_32_bits,
    ties_of_bf16,
    tops,
)
from mor_ref.golden.inputs.found_narrow import found_cases
from mor_ref.golden.inputs.hard_numbers import accepted
from mor_ref.golden.inputs.nvfp4_tiles import infinite_amax, scales_near_ties, tied_by_one_scale
from mor_ref.golden.inputs.tensors import Tensor, tensors
from mor_ref.golden.inputs.tensors_at_thresholds import turning_points
from mor_ref.golden.model.suite import Case, Size, suite
from mor_ref.golden.suites.tensor_cases import each_once, tensor_case
from mor_ref.metrics import METRICS, MeanRelativeError
from mor_ref.operations.bits import f32_bits, numbers_of
from mor_ref.operations.policies import MOR, random_decision
from mor_ref.operations.random_numbers import Draws
from mor_ref.policies import POLICIES
from mor_ref.representations import uses_blocks

# Policies with tensors at the threshold of one of their metrics: names of these begin so.
_TURNS = {"tensor": ("e4m3",), "two_way": (), "three_way": ("range",), "nvfp4": ("nvfp4", "e4m3")}
_COLUMNS = {
    "sum": "u8", "nonzero": "u8", "nonfinite": "u8", "limit": "u4", "yardstick_sum": "u8",
    "amax": "u4", "amin": "u4",
}  # fmt: skip
_LOST = (1, 1 << 8, 1 << 16, 1 << 32)  # counts that are 0 in fewer bits


def _decision_cases(_: Size) -> Iterator[Case]:
    written = {
        "mean_relative_error": (_mean_case(),),
        "not_worse_than": (_tie_case(),),
        "fits_range": tuple(map(_range_case, ("e5m2", "e4m3", "bf16"))),
    }
    for name in METRICS.specified:
        yield from written.get(name, ()) or (drawn_case(name),)


def drawn_case(name: str) -> Case:
    """Return random units for a metric that no case is written for."""
    parameters = {"metric": name}
    if "format" in METRICS[name].reads:
        parameters["format"] = "e5m2"
    drawn = random_decision(parameters, Draws(0, 512, 0))
    arrays = {field: drawn[field].astype(kind) for field, kind in _COLUMNS.items()}
    return Case(name, parameters, arrays)


def _mean_case() -> Case:
    rows = []
    for written in ("0.045", "0.05", "0.2", "1", "0.00000012"):
        limit = MeanRelativeError(written).limit
        for nonzero in (0, 1, 2, 255, 1 << 14, (1 << 32) + 1, 1 << 40):
            at = limit * nonzero
            for total in sorted({0, max(at - 1, 0), at, at + 1, nonzero << 23}):
                rows += [(total, nonzero, lost, limit, 0, 0, 0) for lost in (0, 1)]
            rows += [(0, nonzero, lost, limit, 0, 0, 0) for lost in _LOST]
    return _decided("mean_relative_error", {"metric": "mean_relative_error"}, rows)


def _tie_case() -> Case:
    rows = []
    for yardstick in (0, 1, 1 << 23, (1 << 32) + 5, (1 << 63) - 1):
        for total in sorted({0, max(yardstick - 1, 0), yardstick, yardstick + 1, 1 << 63}):
            rows += [(total, 1, lost, 0, yardstick, 0, 0) for lost in (0, *_LOST)]
    return _decided("not_worse_than", {"metric": "not_worse_than"}, rows)


def _range_case(name: str) -> Case:
    fmt = formats[name]
    ratio = Fraction(fmt.largest) / Fraction(fmt.smallest_normal or 1)
    rows = [(0, 0, 0, 0, 0, 0, 0), *((0, 2, lost, 0, 0, 1 << 30, 1 << 30) for lost in _LOST)]
    for k, low in enumerate(amaxes().tolist()):
        amin = numbers_of(np.array([low], np.uint32), "f32")[0]
        at = f32_bits(rn32(Fraction(amin) * ratio))
        for high in sorted({low, max(low, at - 1), max(low, at), max(low, at + 1)}):
            if low and high < 0x7F800000:
                counts = (0, 1) if k % 8 == 0 else (0,)
                rows += [(0, 2, lost, 0, 0, high, low) for lost in counts]
    return _decided(f"fits_range.{name}", {"metric": "fits_range", "format": name}, rows)


def _decided(name: str, parameters: dict[str, str], rows: Sequence[tuple[int, ...]]) -> Case:
    columns = zip(_COLUMNS.items(), zip(*rows, strict=True), strict=True)
    arrays = {field: np.array(column, kind) for (field, kind), column in columns}
    return Case(name, parameters, arrays)


def _tensor_cases(size: Size) -> Iterator[Case]:
    blocks: list[Cut] = [(128, 128), (8, 16), "row"]
    for tensor in tensors(size):
        for k, policy in enumerate(POLICIES.specified):
            for block in blocks:
                scaling = SCALINGS[k % 3] if block == "row" else "gam"
                yield tensor_case(tensor, policy=policy, scaling=scaling, block=block)
    yield from _with_gam(turning_points(), POLICIES.specified, (128, 128))
    yield from _with_gam((beyond_bf16(size), beyond_scales(size)), POLICIES.specified, (8, 16))
    yield tensor_case(beyond_bf16(size), policy="two_way", scaling="e8m0", block="row")
    yield from _with_gam([many_elements(size)], ["tensor"], (128, 128))
    tiles = (*scales_near_ties(size), infinite_amax(size), tied_by_one_scale())
    yield from _with_gam(tiles, ["nvfp4"], (8, 16))
    yield from _with_gam(tops(), POLICIES.specified, (8, 16))
    yield from _with_gam(nearly_tied(), ("two_way", "three_way"), (8, 16))
    narrow = (many_lost(), signalling())
    yield from _with_gam((*narrow, *map(in_binary32, narrow)), POLICIES.specified, (128, 128))
    kept = (specials("bf16"), specials("f16"), ties_of_bf16())
    yield from _with_gam(kept, POLICIES.specified, "row")
    yield from _with_gam([largest_at_the_end(size)], ["tensor"], "tensor")
    yield from _with_gam([sums_beyond_32_bits()], ("two_way", "three_way"), "row")
    for tensor in tensors(size):  # tiles of NVFP4 continue from one unit to the next
        if tensor.name in ("5x37.f32", "24x48.f32", "zeros.f32"):
            yield from _with_gam([tensor], ["nvfp4"], (8, 24))
            yield from _with_gam([tensor], ["nvfp4"], (4, 10))
        if tensor.name == "zeros.f32":
            yield from _with_gam([tensor], ["two_way", "three_way"], (4, 10))
    yield from _with_other_scales(size)
    yield from _with_every_scaling()
    yield from found_cases("mor")
    yield from _with_gam(beyond_tiles(size), ["three_way"], (8, 16))


def _with_every_scaling() -> Iterator[Case]:
    """Yield some tensors under every policy with scales of every kind."""
    zero = Tensor("zero.bf16", "bf16", np.zeros((1, 1), np.uint16))
    of_e4m3 = [accepted(source) for source in ("bf16", "f16", "f32")]
    for policy, scaling in itertools.product(POLICIES.specified, SCALINGS):
        pair = {"policy": policy, "scaling": scaling}
        yield tensor_case(zero, **pair, block=(128, 128))
        if policy == "tensor":
            yield tensor_case(overflowing_y(), **pair, block=(128, 128))
        for tensor in of_e4m3:
            yield tensor_case(tensor, **pair, block="row")
        if policy != "tensor":
            yield tensor_case(one_unit_of_four(), **pair, block=(8, 16))


def _with_other_scales(size: Size) -> Iterator[Case]:
    """Yield some tensors under every policy with scales other than those of GAM."""
    usual = {tensor.name: tensor for tensor in tensors(size)}
    first, second, third, *_, last = tops()
    names = ("1x1.bf16", "nan.f16", "infinity.f16", "extremes.f16", "subnormal.f32")
    small = [*(usual[name] for name in names), infinite_amax(size)]
    near = [*small, beyond_bf16(size), beyond_scales(size), first, second, third, last]
    lost = lost_by_e5m2()
    turns, pairs = [*turning_points()], [*nearly_tied(), lost, in_binary32(lost)]
    for policy, scaling in itertools.product(POLICIES.specified, ("fp32", "e8m0")):
        tied = pairs if policy in ("two_way", "three_way") else []
        turning = [one for one in turns if one.name.startswith(_TURNS.get(policy, ()))]
        counted = [many_lost(), signalling(), usual["infinity.f16"], *turning]
        cut = [usual["5x37.f32"], usual["zeros.f32"]]
        beyond = [sums_beyond_32_bits()] if tied and scaling == "fp32" else []
        blocks: dict[Cut, list[Tensor]] = {
            (8, 16): [*near, *tied], (128, 128): counted, (4, 10): cut,
            "row": [usual["33x1.f32"], *beyond],
        }  # fmt: skip
        for block, chosen in blocks.items():
            for tensor in chosen:
                yield tensor_case(tensor, policy=policy, scaling=scaling, block=block)
    for case, scaling in itertools.product(found_cases("mor"), ("fp32", "e8m0")):
        if not all(map(uses_blocks, POLICIES[case.parameters["policy"]].tried)):  # own scales
            changed = {**case.parameters, "scaling": scaling}
            yield replace(case, name=case.name.replace("gam", scaling), parameters=changed)


def _with_gam(tensors: Iterable[Tensor], policies: Iterable[str], block: Cut) -> Iterator[Case]:
    for tensor, policy in itertools.product(tensors, policies):
        yield tensor_case(tensor, policy=policy, scaling="gam", block=block)


FIELDS = tuple(MOR.outputs_with(("e4m3", "e5m2", "nvfp4")))
STEPS = suite(
    "decisions", "Acceptance from the sums of a unit", "decide", ("ERR-005",), _decision_cases
)
TENSORS = suite(
    "policies",
    "Tensors under the four policies",
    "mor",
    ("MOR-005",),
    lambda size: each_once(_tensor_cases(size)),
    FIELDS,
)
