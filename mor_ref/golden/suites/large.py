"""Large tensors: generated, with a digest for each tile of what comes out."""

import functools
import itertools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from mor_ref.definitions.mx import SCALE_RULES
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.definitions.policies import POLICIES
from mor_ref.definitions.scales import SCALINGS
from mor_ref.golden.inputs.generated import generated
from mor_ref.golden.model.suite import Case, Field, Size, Suite, expected, given
from mor_ref.golden.model.views import DIGEST
from mor_ref.golden.suites.nvfp4 import ELEMENTS
from mor_ref.golden.suites.scales import SCALED
from mor_ref.operations.parameters import LARGEST_TENSOR, LONGEST


class _Large(NamedTuple):
    """A case: a name, what its numbers are, its recipe, and the other parameters.

    The streams are those of which the tensors have what few have: zeros, an amax that makes scales
    powers of two, so that numbers fall on ties, or one at which orders of operations part.
    """

    name: str
    source: str
    shape: tuple[int, int]
    stream: int
    parameters: Mapping[str, Any]


# Beyond the rows, columns, threads and 16-bit counts that a launch can have. The largest number is
# behind the first 1,024 rows or columns.
_WIDER, _TALLER = (2, 65600), (65600, 2)
_MANY = (4100, 4100)  # binary32 counts no further than 2^24
_GAM = {"scaling": "gam"}
_QUANTIZE = (
    _Large("e4m3.128x128", "bf16", (260, 330), 4481,
           {"format": "e4m3", **_GAM, "block": [128, 128], "group": "tensor"}),
    _Large("e5m2.row", "f32", (130, 140), 323,
           {"format": "e5m2", **_GAM, "block": "row", "group": "tensor"}),
    _Large("e4m3.tensor", "bf16", (150, 170), 1002,
           {"format": "e4m3", **_GAM, "block": "tensor", "group": "tensor"}),
    _Large("e4m3.32x32", "bf16", (150, 170), 1302,
           {"format": "e4m3", **_GAM, "block": [32, 32], "group": "tensor"}),
    _Large("wider.groups", "bf16", _WIDER, 4,
           {"format": "e5m2", **_GAM, "block": [1, 1025], "group": [2, 16400]}),
    _Large("taller.row", "bf16", _TALLER, 6,
           {"format": "e4m3", **_GAM, "block": "row", "group": "tensor"}),
)  # fmt: skip
_MOR = (
    _Large("three_way.bf16", "bf16", (260, 330), 4481,
           {"policy": "three_way", **_GAM, "block": [64, 64]}),
    _Large("tensor", "bf16", (150, 170), 1302, {"policy": "tensor", **_GAM, "block": [32, 32]}),
    _Large("two_way", "bf16", (150, 170), 1002, {"policy": "two_way", **_GAM, "block": [32, 32]}),
    _Large("three_way.f32", "f32", (130, 140), 1112,
           {"policy": "three_way", **_GAM, "block": [32, 32]}),
    _Large("nvfp4", "bf16", (260, 330), 5559, {"policy": "nvfp4", **_GAM, "block": [64, 72]}),
    _Large("wider.tensor", "bf16", _WIDER, 7,
           {"policy": "tensor", "scaling": "fp32", "block": "tensor"}),
    _Large("taller.three_way", "bf16", _TALLER, 8,
           {"policy": "three_way", "scaling": "e8m0", "block": "column"}),
    _Large("many.tensor", "bf16", _MANY, 13, {"policy": "tensor", **_GAM, "block": "tensor"}),
)  # fmt: skip
_NVFP4 = (
    _Large("te.1x16", "bf16", (150, 170), 246, {"profile": "te", "tile": [1, 16]}),
    _Large("te_4over6_mse.16x16", "f32", (130, 140), 225,
           {"profile": "te_4over6_mse", "tile": [16, 16]}),
    _Large("wider.te.1x16", "bf16", _WIDER, 9, {"profile": "te", "tile": [1, 16]}),
    _Large("taller.te.1x16", "bf16", _TALLER, 10, {"profile": "te", "tile": [1, 16]}),
)  # fmt: skip
_MX = (
    _Large("e4m3.floor", "bf16", (260, 330), 230,
           {"format": "e4m3", "scale_rule": "floor", "block": 32}),
    _Large("e2m1.rceil", "f32", (130, 140), 231,
           {"format": "e2m1", "scale_rule": "rceil", "block": 32}),
    _Large("wider.e5m2.ceil", "bf16", _WIDER, 11,
           {"format": "e5m2", "scale_rule": "ceil", "block": 16}),
    _Large("taller.e2m1.even", "bf16", _TALLER, 12,
           {"format": "e2m1", "scale_rule": "even", "block": 32}),
)  # fmt: skip


# Beyond 2,048 threads, and 2^16 numbers.
_SIDES = {"wide": (34, 2100), "tall": (2100, 2)}
_LARGEST_LATE = 20  # a stream whose largest number is behind 1,100 rows or columns, in both


def _every_quantize() -> Iterator[_Large]:
    """Each format and kind of scale, as one block."""
    for (fmt, scaling), (word, shape) in itertools.product(
        itertools.product(SCALED, SCALINGS), _SIDES.items()
    ):
        parameters = {"format": fmt, "scaling": scaling, "block": "tensor", "group": "tensor"}
        yield _Large(f"{word}.{fmt}.{scaling}", "bf16", shape, _LARGEST_LATE, parameters)


def _every_policy() -> Iterator[_Large]:
    """Each policy and kind of scale, as one unit."""
    for (policy, scaling), (word, shape) in itertools.product(
        itertools.product(POLICIES, SCALINGS), _SIDES.items()
    ):
        parameters = {"policy": policy, "scaling": scaling, "block": "tensor"}
        yield _Large(f"{word}.{policy}.{scaling}", "bf16", shape, _LARGEST_LATE, parameters)


def _every_profile() -> Iterator[_Large]:
    """Each profile and tile; one of the tall tiles has its largest number in the last corner."""
    for profile in PROFILES.values():
        for rows, columns in profile.tiles:
            tall = ((2100, 17), 228) if rows > 1 else ((2100, 2), _LARGEST_LATE)
            sides = {"wide": ((rows + 1, 2100), _LARGEST_LATE), "tall": tall}
            for word, (shape, stream) in sides.items():
                name = f"{word}.{profile.name}.{rows}x{columns}"
                parameters = {"profile": profile.name, "tile": [rows, columns]}
                yield _Large(name, "bf16", shape, stream, parameters)


def _every_rule() -> Iterator[_Large]:
    """Each element format and rule, and blocks beyond a warp and beyond a thread block."""
    for n, (fmt, rule) in enumerate(itertools.product(ELEMENTS, SCALE_RULES)):
        for word, shape in (("wide", (2, 2100)), ("tall", (2100, 2))):
            parameters = {"format": fmt, "scale_rule": rule, "block": 32}
            yield _Large(f"{word}.{fmt}.{rule}", "bf16", shape, 80 + n, parameters)
        for block in (100, 1100):
            parameters = {"format": fmt, "scale_rule": rule, "block": block}
            yield _Large(f"{fmt}.{rule}.{block}", "bf16", (5, 2100), 110 + n, parameters)


def _cases(rows: tuple[_Large, ...], size: Size) -> Iterator[Case]:
    for row in rows:
        longest = min(LONGEST, LARGEST_TENSOR // row.shape[1])
        shape = [min(row.shape[0] * size.factor, longest), row.shape[1]]
        recipe = {"shape": shape, "seed": size.seed, "stream": row.stream}
        parameters = {**row.parameters, "source": row.source, "recipe": recipe}
        yield Case(row.name, parameters, {"x": generated(recipe, row.source)})


def _digests(*fields: tuple[str, str, tuple[str, ...]]) -> tuple[Field, ...]:
    return (
        given("x", "source", "the tensor, generated by the recipe of the case"),
        *(
            expected(f"{name}@{DIGEST}", "u8", f"of each tile of {meaning}", "VEC-010", *rules)
            for name, meaning, rules in fields
        ),
    )


_ABOUT = ("VEC-009",)
_SUMS = tuple(
    (f"{name}.{field}", "the error sums", (rule,))
    for name in ("e4m3", "e5m2", "nvfp4")
    for field, rule in (("sum", "ERR-002"), ("nonzero", "ERR-002"), ("nonfinite", "ERR-003"))
)
SUITES = (
    Suite(
        "quantize_large",
        "Larger tensors quantized under GAM",
        "quantize",
        _ABOUT,
        _digests(
            ("amax", "the amax of blocks", ("SCL-001",)),
            ("mantissa", "the shared mantissas", ("GAM-001",)),
            ("exponent", "the stored exponents", ("GAM-002", "GAM-003")),
            ("scale", "the scales", ("GAM-005",)),
            ("code", "the codes", ("QNT-001",)),
            ("y", "what they stand for", ("QNT-002",)),
            ("sum", "the error sums of blocks", ("ERR-002",)),
            ("nonzero", "how many elements of blocks count", ("ERR-002",)),
            ("nonfinite", "how many elements of blocks are lost", ("ERR-003",)),
        ),
        functools.partial(_cases, (*_QUANTIZE, *_every_quantize())),
    ),
    Suite(
        "policies_large",
        "Larger tensors under policies",
        "mor",
        _ABOUT,
        _digests(
            ("amax", "the amax of units", ("SCL-001",)),
            ("amin", "the amin of units", ("MOR-004",)),
            *_SUMS,
            ("choice", "the choices", ("MOR-001",)),
            ("output", "the output", ("MOR-006",)),
        ),
        functools.partial(_cases, (*_MOR, *_every_policy())),
    ),
    Suite(
        "nvfp4_large",
        "Larger tensors in NVFP4",
        "nvfp4",
        _ABOUT,
        (
            *_digests(
                ("block_scale", "the scales of tiles", ("NVF-004", "NVF-006")),
                ("code", "the codes", ("NVF-010",)),
                ("packed", "the packed codes", ("NVF-011",)),
                ("y", "what they stand for", ("NVF-010",)),
            ),
            expected("global_encode_scale", "f32", "of the tensor", "NVF-003"),
            expected("global_decode_scale", "f32", "of the tensor", "NVF-003"),
        ),
        functools.partial(_cases, (*_NVFP4, *_every_profile())),
    ),
    Suite(
        "mx_large",
        "Larger tensors in MX",
        "mx",
        _ABOUT,
        _digests(
            ("scale", "the scales of blocks", ("MXS-003", "MXS-006")),
            ("code", "the codes", ("MXS-007",)),
            ("y", "what they stand for", ("MXS-008",)),
        ),
        functools.partial(_cases, (*_MX, *_every_rule())),
    ),
)
