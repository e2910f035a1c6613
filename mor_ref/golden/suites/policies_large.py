"""Policies: large tensors, and tensors of few numbers."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from mor_ref.definitions.scales import SCALINGS
from mor_ref.golden.inputs.found_few import found_few
from mor_ref.golden.inputs.placed import End
from mor_ref.golden.suites.large import (
    LARGEST_LATE,
    LAST_IN_TALLER,
    LAST_IN_WIDER,
    TALLER,
    WIDER,
    LargeCase,
    digested,
    large_beyond_tiles,
    large_suite,
    name_with,
    of_each_cut,
    of_few,
)
from mor_ref.golden.suites.policies import FIELDS
from mor_ref.operations.parameters import DOUBLINGS
from mor_ref.policies import POLICIES

_GAM = {"scaling": "gam"}
_MANY = (4100, 4100)  # binary32 counts no further than 2^24; the largest number is behind so many
_LARGE = (
    LargeCase("three_way.bf16", "bf16", (260, 330), 4481,
              {"policy": "three_way", **_GAM, "block": [128, 128]}),
    LargeCase("tensor", "bf16", (150, 170), 1302,
              {"policy": "tensor", **_GAM, "block": [32, 32]}),
    LargeCase("two_way", "bf16", (150, 170), 1002,
              {"policy": "two_way", **_GAM, "block": [128, 128]}),
    LargeCase("three_way.f32", "f32", (130, 140), 1112,
              {"policy": "three_way", **_GAM, "block": [128, 128]}),
    LargeCase("nvfp4", "bf16", (260, 330), 5559, {"policy": "nvfp4", **_GAM, "block": [64, 72]}),
    LargeCase("wider.tensor", "bf16", WIDER, LAST_IN_WIDER,
              {"policy": "tensor", "scaling": "fp32", "block": "tensor"}),
    LargeCase("taller.three_way", "bf16", TALLER, LAST_IN_TALLER,
              {"policy": "three_way", "scaling": "e8m0", "block": "column"}),
    LargeCase("units.two_way", "bf16", (1100, 12), 1002,
              {"policy": "two_way", **_GAM, "block": [1, 3]}),
    LargeCase("units.three_way", "bf16", (12, 3300), 4481,
              {"policy": "three_way", **_GAM, "block": [3, 3]}),
    LargeCase("many.tensor", "bf16", _MANY, 14, {"policy": "tensor", **_GAM, "block": "tensor"},
              ends=(End.LARGEST, End.SMALLEST)),
)  # fmt: skip

# Units that take another rung than the first: their rows of larger numbers are so much larger that
# the other numbers lose their bits. All numbers are one unit, or some units of a few take e4m3.
_OTHER_RUNGS: tuple[tuple[str, Sequence[str], str, tuple[int, int], int, Any], ...] = (
    ("kept.wide", POLICIES.specified, "f32", (34, 2100), 16, "tensor"),
    ("kept.tall", POLICIES.specified, "bf16", (2100, 2), 16, "tensor"),
    ("e5m2.wide", ("three_way",), "f32", (34, 2100), 10, "tensor"),
    ("e5m2.tall", ("three_way",), "bf16", (2100, 2), 12, "tensor"),
    ("e4m3.wide", ("nvfp4",), "f32", (2, 2100), 4, [2, 5]),
    ("e4m3.tall", ("nvfp4",), "bf16", (2100, 4), 16, [5, 4]),
)


def _every_policy_and_scaling() -> Iterator[LargeCase]:
    for policy, scaling in itertools.product(POLICIES.specified, SCALINGS):
        pair = {"policy": policy, "scaling": scaling}
        yield from of_each_cut(f"{policy}.{scaling}", (End.LARGEST, End.SMALLEST), **pair)
        for word, source, shape in (("wide", "f32", (2, 2100)), ("tall", "bf16", (2100, 2))):
            name = name_with(f"lost.{word}.{policy}.{scaling}", source)
            whole = {**pair, "block": "tensor"}
            yield LargeCase(name, source, shape, LARGEST_LATE, whole, ends=(End.INFINITY,))
        for word, policies, source, shape, doublings, block in _OTHER_RUNGS:
            if policy in policies:
                name = name_with(f"{word}.{policy}.{scaling}", source)
                more = {DOUBLINGS: doublings}
                yield LargeCase(name, source, shape, LARGEST_LATE, {**pair, "block": block}, more)


LARGE = large_suite(
    "policies_large",
    "Larger tensors under policies, and tensors of few numbers",
    "mor",
    (
        *_LARGE,
        *_every_policy_and_scaling(),
        *(of_few(*few) for few in found_few("mor")),
        *large_beyond_tiles("three_way.gam", {"policy": "three_way", **_GAM, "block": [8, 16]}),
    ),
    digested(*FIELDS),
)
