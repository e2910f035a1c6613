"""Integers with zero points: single numbers, tensors, groups of dimensions and large tensors."""

import itertools
from collections.abc import Iterator
from typing import Any

from mor_ref.definitions.integer_grids import integer_grid
from mor_ref.golden.inputs.beyond_tiles import beyond_tiles
from mor_ref.golden.inputs.integer_ties import (
    rows_near_half_zeros,
    rows_of_wide_grids,
    turned,
)
from mor_ref.golden.inputs.late_blocks import down_a_column, of_amaxes, with_zero_points
from mor_ref.golden.inputs.placed import End
from mor_ref.golden.inputs.tensors import Tensor, tensors
from mor_ref.golden.model.suite import Case, Size, suite
from mor_ref.golden.suites.large import (
    TALLER,
    WIDER,
    LargeCase,
    large_beyond_tiles,
    large_suite,
)
from mor_ref.golden.suites.tensor_cases import each_once
from mor_ref.schemes.affine.definition import AFFINE_PROFILES
from mor_ref.schemes.affine.inputs import (
    dimensions,
    elements,
    float_zeros,
    many_dimensions,
    positive,
    random_dimensions,
    rows_at_ties,
    rows_below_normal,
    rows_of_ranges,
)

_RANDOM = 160  # numbers of a case of steps
_GRIDS = ("int8", "uint8", "int4", "uint4", "int16", "uint3")  # of steps
# Of torch.quantize, torch itself has int8 and uint8.
_GRIDS_OF = {"torch_quantize": _GRIDS[:2], "torch_quantize_channel": ("int8", "uint8", "uint3")}
_BLOCKS = ("tensor", "row", "column", [2, 8], [1, 16])
_CHOICES = (
    ("int8", True), ("uint8", False), ("int8", False), ("uint4", True), ("int4", False),
    ("uint8", True), ("int16", True), ("uint3", False), ("uint5", True),
)  # fmt: skip
# torch.quantize_per_tensor has no rows, so that most rows are those of torch_quantize_channel.
_ROWS_OF = {"torch_quantize": _CHOICES[:2], "torch_quantize_channel": _CHOICES[:5]}
_OF_ALL = ("5x37.f32", "nan.bf16", "infinity.f16", "zeros")  # tensors, by the beginning
# affine_large has larger ones for profiles that store an amax, and those of torch.quantize.
_IN_LARGE = ("24x48.f32", "24x48.bf16")
# Tensors with blocks that every profile has: some end within a block, and one has a large sum.
_CUT = (
    ("1x1.bf16", [1, 16]), ("1x37.f32", [2, 8]), ("5x37.f32", [1, 16]), ("outlier.f32", "tensor"),
)  # fmt: skip
# Large tensors: long rows, long columns, and whole tensors of every other profile.
_LONG = (
    ("wide", (1, 2101), "row"), ("tall", (2101, 1), "column"), ("whole", (37, 61), "tensor"),
)  # fmt: skip
# For each of these, the grid, the symmetry, the source and the stream. The streams of small grids
# have numbers next to a tie beyond the grid, and those of 127 large sums of errors.
_OF_PROFILE: dict[str, tuple[tuple[str, bool, str, int], ...]] = {
    "torch_fake_tensor": (("uint8", True, "bf16", 380), ("uint4", False, "f16", 716)),
    "torch_fake_channel_2_13": (
        ("uint8", True, "f32", 381), ("uint4", True, "bf16", 401), ("int4", False, "f16", 705),
    ),
    "torch_quantize": (("uint8", True, "f16", 382),),
    "torchao_0_18": (
        ("uint16", False, "bf16", 383), ("uint4", True, "f32", 403), ("int4", False, "bf16", 423),
    ),
    "onnx": (("uint8", True, "f32", 384), ("int4", False, "f16", 716)),
    "onnxruntime": (
        ("uint8", True, "f16", 385), ("int4", False, "bf16", 705), ("uint8", True, "f32", 425),
    ),
    "bnb_int8_row": (("int8", True, "bf16", 386), ("int8", True, "f16", 441)),
    "switchback_row": (("int8", True, "f32", 387), ("int8", True, "bf16", 441)),
    "switchback_tensor": (
        ("int8", True, "f16", 388), ("int8", True, "f16", 408), ("int8", True, "f32", 428),
    ),
    "peg": (("uint8", True, "f32", 389), ("uint4", False, "bf16", 705), ("int8", True, "f16", 429)),
    "torch_quantize_channel": (("uint8", True, "f16", 390), ("uint4", True, "bf16", 402)),
}  # fmt: skip
_SOURCES = ("f32", "bf16", "f16")
_GROUPED = ("peg", "torch_fake_tensor", "torchao_0_18")


def _choices(profile: str) -> tuple[tuple[str, bool], ...]:
    """Return the grids and symmetries that a profile has."""
    return (("int8", True),) if AFFINE_PROFILES[profile].stores_amax else _CHOICES


def _element_cases(size: Size) -> Iterator[Case]:
    for profile in AFFINE_PROFILES.specified:
        is_of_127 = AFFINE_PROFILES[profile].stores_amax
        for grid in ("int8",) if is_of_127 else _GRIDS_OF.get(profile, _GRIDS):
            parameters = {"grid": grid, "profile": profile, "source": "f32"}
            arrays = elements(parameters, size, _RANDOM)
            yield Case(f"{grid}.{profile}", parameters, arrays)


def _float_zero_cases(size: Size) -> Iterator[Case]:
    for name in ("int8", "uint8", "int4", "uint3", "int16"):
        parameters = {"grid": name, "profile": "torch_fake_channel_2_13", "source": "f32"}
        yield Case(name, parameters, float_zeros(parameters, size, _RANDOM))


def _tensor_cases(size: Size) -> Iterator[Case]:
    of_tensors = itertools.chain(
        _every_tensor_case(size),
        _cases_below_normal(),
        _cases_at_ties(),
        (_case(tensor, "uint8", False, "peg", "row") for tensor in beyond_tiles(size)),
    )
    return each_once(of_tensors)


def _every_tensor_case(size: Size) -> Iterator[Case]:
    for n, profile in enumerate(AFFINE_PROFILES.specified):
        choices, narrow = _choices(profile), _CHOICES[: 0 if profile == "torch_quantize" else 2]
        some = AFFINE_PROFILES[profile].stores_amax or profile in _ROWS_OF
        for k, tensor in enumerate(tensors(size)):
            is_there = some and tensor.name in _IN_LARGE
            if tensor.name.startswith(_OF_ALL) or ((k + n) % 5 == 0 and not is_there):
                block = _BLOCKS[(k // 5 + n) % len(_BLOCKS)]
                yield _case(tensor, *choices[(k + n) % len(choices)], profile, block)
        named = {tensor.name: tensor for tensor in tensors(size)}
        for name, block in _CUT:
            yield _case(named[name], "int8", True, profile, block)
        for grid, symmetric in _ROWS_OF.get(profile, choices):
            steps = (1 << integer_grid(grid).bits) - 1
            for tensor in rows_at_ties(steps, size):
                if tensor.source == "f32" or (grid, symmetric) in narrow:
                    yield _case(tensor, grid, symmetric, profile, "row")
            for source in _SOURCES if (grid, symmetric) in narrow else ("f32",):
                tensor = rows_of_ranges(source)
                yield _case(tensor, grid, symmetric, profile, "row")
                if symmetric:
                    yield _case(positive(tensor), grid, symmetric, profile, "row")


def _cases_below_normal() -> Iterator[Case]:
    for profile, grid in itertools.product(("onnx", "onnxruntime"), ("uint8", "int8")):
        yield _case(rows_below_normal(), grid, False, profile, "row")


def _cases_at_ties() -> Iterator[Case]:
    """Yield rows next to ties for profiles with zero points, and more of torchao's own dtypes."""
    for profile in AFFINE_PROFILES.specified:
        if not AFFINE_PROFILES[profile].stores_amax:
            yield _case(rows_near_half_zeros("f32"), "int8", False, profile, "row")
    for tensor, grid in _of_narrow_dtypes():
        yield _case(tensor, grid, False, "torchao_0_18", "row")


def _of_narrow_dtypes() -> Iterator[tuple[Tensor, str]]:
    for source, grid in (("bf16", "uint16"), ("f16", "uint12")):
        yield rows_near_half_zeros(source), "int8"
        yield rows_of_wide_grids(source), grid


def _case(tensor: Tensor, grid: str, symmetric: bool, profile: str, block: Any) -> Case:
    word = "x".join(map(str, block)) if isinstance(block, list) else block
    zeros = "symmetric" if symmetric else "asymmetric"
    name = f"{tensor.name}.{grid}.{zeros}.{profile}.{word}"
    of = {"grid": grid, "profile": profile, "symmetric": symmetric, "source": tensor.source}
    return Case(name, {**of, "block": block}, {"x": tensor.x})


def _group_cases(size: Size) -> Iterator[Case]:
    return each_once(
        itertools.chain(_every_group_case(size), _groups_at_ties(), _groups_beyond_tiles(size))
    )


def _every_group_case(size: Size) -> Iterator[Case]:
    for n, (profile, symmetric) in enumerate(itertools.product(_GROUPED, (True, False))):
        for k, tensor in enumerate(dimensions(size)):
            grid = ("uint8", "int4", "uint4", "int8")[(k + n // 2) % 4]
            groups = (6, 1, 36, 4, 9)[(k + n // 2) % 5] if k else 24
            yield _groups(tensor, grid, symmetric, profile, groups)
            if not k:
                yield _groups(tensor, "int4", symmetric, profile, groups)
        yield _groups(many_dimensions(size), "uint8", symmetric, profile, 6)
    for tensor in random_dimensions(size):
        yield _groups(tensor, "uint8", False, "peg", 6)


def _groups_at_ties() -> Iterator[Case]:
    """Yield the rows next to ties as dimensions: each is a group."""
    near = turned(rows_near_half_zeros("f32"))
    for profile in _GROUPED:
        yield _groups(near, "int8", False, profile, near.x.shape[1])
    for tensor, grid in _of_narrow_dtypes():
        for symmetric in (False, True):
            yield _groups(turned(tensor), grid, symmetric, "torchao_0_18", len(tensor.x))
    wide = turned(rows_of_wide_grids("bf16"))
    yield _groups(wide, "uint16", True, "peg", wide.x.shape[1])


def _groups_beyond_tiles(size: Size) -> Iterator[Case]:
    for tensor, groups in zip(beyond_tiles(size), (10, 9), strict=True):
        yield _groups(tensor, "uint8", False, "peg", groups)


def _groups(tensor: Tensor, grid: str, symmetric: bool, profile: str, groups: int) -> Case:
    zeros = "symmetric" if symmetric else "asymmetric"
    name = f"{tensor.name}.{grid}.{zeros}.{profile}.{groups}"
    of = {"grid": grid, "profile": profile, "symmetric": symmetric, "source": tensor.source}
    return Case(name, {**of, "groups": groups}, {"x": tensor.x})


def _large_cases() -> Iterator[LargeCase]:
    """Yield rows and columns beyond a thread block, and blocks of few numbers at their end."""
    for n, profile in enumerate(AFFINE_PROFILES.specified):
        for (word, shape, block), choices in zip(_LONG, _OF_PROFILE[profile], strict=False):
            grid, symmetric, source, stream = choices
            of = {"grid": grid, "profile": profile, "symmetric": symmetric, "block": block}
            name, ends = f"{word}.{profile}", (End.LARGEST,)
            yield LargeCase(name, source, shape, stream, of, ends=ends)
        yield _late(profile, 420 + n)
    wide = {"grid": "uint8", "profile": "peg", "symmetric": False, "block": [1, 32]}
    tall = {"grid": "uint4", "profile": "torch_fake_tensor", "symmetric": True, "block": [32, 1]}
    yield LargeCase("wider", "bf16", WIDER, 11, wide)
    yield LargeCase("taller", "bf16", TALLER, 12, tall)
    yield from large_beyond_tiles("peg", wide)


def _late(profile: str, stream: int) -> LargeCase:
    """Return a tensor whose blocks are 3 rows of a column at last: each is at an edge of a rule."""
    stores_amax = AFFINE_PROFILES[profile].stores_amax
    grid, source = ("int16", "f16") if AFFINE_PROFILES[profile].in_own_dtype else ("int8", "f32")
    of = {"grid": grid, "profile": profile, "symmetric": stores_amax, "block": [3, 120]}
    blocks = of_amaxes() if stores_amax else with_zero_points(source)
    placed = tuple(down_a_column(blocks, 120, source))
    return LargeCase(f"late.{profile}", source, (40, 121), stream, of, placed=placed)


STEPS = suite(
    "affine_steps",
    "Single numbers as integers, with a scale and a zero point that are given",
    "affine_element",
    ("AFF-001", "AFF-002", "AFF-006"),
    _element_cases,
)
FLOAT_ZEROS = suite(
    "affine_float_zeros",
    "Single numbers as integers, with zero points that are not integers",
    "affine_float_zero",
    ("AFF-001", "AFF-002", "AFF-006", "AFF-012"),
    _float_zero_cases,
)
TENSORS = suite(
    "affine",
    "Tensors as integers with scales and zero points",
    "affine",
    ("AFF-001", "AFF-002"),
    _tensor_cases,
)
GROUPS = suite(
    "affine_groups",
    "Groups of dimensions in the order of their ranges, as integers",
    "affine_groups",
    ("AFF-010",),
    _group_cases,
)
LARGE = large_suite("affine_large", "Larger tensors as integers", "affine", tuple(_large_cases()))
