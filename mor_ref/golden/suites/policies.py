"""Whole tensors under the policies."""

import itertools
from collections.abc import Iterator

import numpy as np

from mor_ref.golden.inputs import bell, to_bf16
from mor_ref.golden.suite import Case, Size, Suite, expected, given
from mor_ref.golden.suites.blocks import boundaries, infinite_amax
from mor_ref.golden.suites.extremes import (
    largest_at_the_end,
    many_lost,
    nearly_tied,
    signalling,
    tops,
)
from mor_ref.golden.suites.found_narrow import found_cases
from mor_ref.golden.suites.tensors import Tensor, joined, listed, sum_fields, tensors
from mor_ref.golden.suites.turning_points import turning_points
from mor_ref.partition import Cut
from mor_ref.recipes import POLICIES, SCALINGS, Scaling


def _policy_cases(size: Size) -> Iterator[Case]:
    blocks: list[Cut] = [(128, 128), (8, 16), "row"]
    for tensor in tensors(size):
        for k, policy in enumerate(POLICIES):
            for block in blocks:
                yield _mixed(tensor, policy, block, SCALINGS[k % 3] if block == "row" else "gam")
    for tensor in turning_points():
        for policy in POLICIES:
            yield _mixed(tensor, policy, (128, 128), "gam")
    for tensor in (_beyond_bf16(size), _beyond_scales(size)):
        for policy in POLICIES:
            yield _mixed(tensor, policy, (8, 16), "gam")
    yield _mixed(_beyond_bf16(size), "two_way", "row", "e8m0")
    yield _mixed(_of_many_elements(size), "tensor", (128, 128), "gam")
    for tensor in (*boundaries(size), infinite_amax(size), _tie_of_a_tile()):
        yield _mixed(tensor, "nvfp4", (8, 16), "gam")
    yield from _at_extremes(size)
    yield from found_cases("mor")


def _at_extremes(size: Size) -> Iterator[Case]:
    for tensor in tops():
        for policy in ("tensor", "two_way"):
            yield _mixed(tensor, policy, (8, 16), "gam")
    for tensor in nearly_tied():
        for policy in ("two_way", "three_way"):
            yield _mixed(tensor, policy, (8, 16), "gam")
    for tensor, policy in itertools.product((many_lost(), signalling()), ("tensor", "two_way")):
        yield _mixed(tensor, policy, (128, 128), "gam")
    yield _mixed(largest_at_the_end(size), "tensor", "tensor", "gam")
    for tensor in tensors(size):  # tiles of NVFP4 go on from one unit to the next
        if tensor.name in ("5x37.f32", "24x48.f32", "zeros.f32"):
            yield _mixed(tensor, "nvfp4", (8, 24), "gam")
            yield _mixed(tensor, "nvfp4", (4, 10), "gam")


def _beyond_bf16(size: Size) -> Tensor:
    """Units that stay bfloat16, with numbers that bfloat16 rounds to infinity, or that are none."""
    x = bell(9 * 40, size.seed, 170).reshape(9, 40) & np.uint32(0x80FFFFFF) | np.uint32(0x7E000000)
    for place, bits in (
        ((0, 0), 0x7F7F4000), ((0, 20), 0xFF7FFFFF), ((8, 1), 0x7F800000), ((8, 20), 0xFFC12345),
    ):  # fmt: skip
        x[place] = bits
    return Tensor("beyond_bf16.f32", "f32", x)


def _of_many_elements(size: Size) -> Tensor:
    """So many numbers that T times their count is beyond 32 bits."""
    x = to_bf16(bell(107 * 107, size.seed, 173).reshape(107, 107))
    return Tensor("many.bf16", "bf16", np.maximum(x, np.uint16(0x0080)))


def _beyond_scales(size: Size) -> Tensor:
    """Numbers down to the smallest, of blocks whose ideal scales are beyond 2^127."""
    bits = bell(9 * 40, size.seed, 171).reshape(9, 40)
    smaller = (np.arange(bits.size, dtype=np.uint32) % 24).reshape(bits.shape)
    significands = bits & np.uint32(0x7FFFFF) | np.uint32(0x800000)
    x = significands >> smaller | bits & np.uint32(0x80000000)
    return Tensor("beyond_scales.f32", "f32", x)


def _tie_of_a_tile() -> Tensor:
    """Numbers that are ties of e2m1 or none, by how a tile's two scales become one."""
    x = np.zeros((8, 16), np.uint32)
    x[0, 0], x[1, 0] = 0x3F9E3779, 0x3E000000
    x[1, 1:] = 0x3C78A04F
    return Tensor("tie_of_a_tile.f32", "f32", x)


def _mixed(tensor: Tensor, policy: str, block: Cut, scaling: Scaling) -> Case:
    parameters = {
        "policy": policy, "scaling": scaling, "block": listed(block), "source": tensor.source,
    }  # fmt: skip
    name = f"{tensor.name}.{policy}.{scaling}.{joined(block)}"
    return Case(name, parameters, {"x": tensor.x})


SUITES = (
    Suite(
        "policies",
        "Tensors under the four policies",
        "mor",
        ("MOR-005",),
        (
            given("x", "source", "the tensor"),
            expected("amax", "f32", "for each unit", "SCL-001"),
            expected("amin", "f32", "for each unit", "MOR-004"),
            *(
                field
                for name in ("e4m3", "e5m2", "nvfp4")
                for field in sum_fields(f"{name}.", f", under {name}")
            ),
            expected("choice", "u8", "for each unit, the rung that it takes", "MOR-001"),
            expected("output", "bf16", "the tensor that comes out", "MOR-006", "QNT-003"),
        ),
        _policy_cases,
    ),
)
