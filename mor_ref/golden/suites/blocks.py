"""NVFP4 in each of its profiles, and MX under each of its rules."""

import functools
from collections.abc import Iterator

import numpy as np

from mor_ref.block_recipes import PROFILES, SCALE_RULES, Nvfp4Profile, ScaleRule
from mor_ref.catalogue import as_format, formats
from mor_ref.exact import mx, nvfp4
from mor_ref.golden.bits import codes_array, f32_array
from mor_ref.golden.inputs import amaxes, bell, to_bf16
from mor_ref.golden.suite import Case, Size, Suite, expected, given
from mor_ref.golden.suites.tensors import Tensor, tensors
from mor_ref.partition import partition

ELEMENTS = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "int8_mx")
_E2M1 = formats["e2m1"]


def _ladder(size: Size) -> Iterator[Tensor]:
    """Blocks whose largest numbers are edges, in tensors whose largest is larger or huge."""
    edges = amaxes()
    for name, top in (("near", 0x3F9E3779), ("far", 0x7F7FFFFF)):
        chosen = edges[edges <= top][::5]
        bits = bell(chosen.size * 16, size.seed, 90).reshape(-1, 16).copy()
        bits = np.where(bits & 0x7FFFFFFF > chosen[:, None], chosen[:, None] >> 1, bits)
        bits[:, 5] = chosen
        bits[0, 0] = top
        yield Tensor(f"ladder_{name}.f32", "f32", bits.astype(np.uint32))
    data = bell(32 * 64, size.seed, 91).reshape(32, 64)
    yield Tensor("bell.bf16", "bf16", to_bf16(data))
    yield Tensor("bell.f32", "f32", data)


def _all(size: Size) -> Iterator[Tensor]:
    yield from tensors(size)
    yield from _ladder(size)


def _nvfp4_cases(profile: Nvfp4Profile, size: Size) -> Iterator[Case]:
    for tensor in _all(size):
        is_nan = tensor.name.startswith(("nan", "patterns"))
        if profile.rule in ("torchao", "modelopt", "compressed_tensors") and is_nan:
            continue  # these profiles are of tensors without NaN
        for tile in profile.tiles:
            yield _in_nvfp4(tensor, profile, tile)


def _in_nvfp4(tensor: Tensor, profile: Nvfp4Profile, tile: tuple[int, int]) -> Case:
    found = nvfp4.nvfp4(tensor.rows, profile, tile)
    cut = partition(tensor.x.shape, tile)
    elements = [e for row in found.elements for e in row]
    codes = codes_array([e.code for e in elements], _E2M1).reshape(tensor.x.shape)
    rows, columns = cut.grid
    places = [(i, j) for i in range(rows) for j in range(columns)]
    return Case(
        f"{tensor.name}.{tile[0]}x{tile[1]}",
        {"profile": profile.name, "tile": list(tile), "source": tensor.source},
        {
            "x": tensor.x,
            "code": codes,
            "packed": _packed(codes),
            "block_scale": np.array(
                [found.scale[place].code for place in places], np.uint8
            ).reshape(cut.grid),
            "global_encode_scale": f32_array(s.encode for s in found.global_scale),
            "global_decode_scale": f32_array(s.decode for s in found.global_scale),
            "y": f32_array(e.y for e in elements).reshape(tensor.x.shape),
        },
    )


def _packed(codes: np.ndarray) -> np.ndarray:
    """NVF-011, pair by pair."""
    rows = [
        [low | high << 4 for low, high in zip(row[::2], [*row[1::2], 0], strict=False)]
        for row in codes.tolist()
    ]
    return np.array(rows, np.uint8)


def _mx_cases(size: Size) -> Iterator[Case]:
    for tensor in _all(size):
        for k, name in enumerate(ELEMENTS):
            for n, rule in enumerate(SCALE_RULES):
                if tensor.name.startswith("ladder") or (k + n) % 2 == 0:
                    yield _in_mx(tensor, name, rule, 32)
    yield _in_mx(next(_ladder(size)), "e4m3", "rceil", 16)


def _in_mx(tensor: Tensor, name: str, rule: ScaleRule, block: int) -> Case:
    fmt = as_format(name)
    found = mx.mx(tensor.rows, fmt, rule, block)
    cut = partition(tensor.x.shape, (1, block))
    elements = [e for row in found.elements for e in row]
    places = [(i, j) for i in range(cut.grid[0]) for j in range(cut.grid[1])]
    return Case(
        f"{tensor.name}.{name}.{rule}.{block}",
        {"format": name, "scale_rule": rule, "block": block, "source": tensor.source},
        {
            "x": tensor.x,
            "code": codes_array([e.code for e in elements], fmt).reshape(tensor.x.shape),
            "scale": np.array([found.scale[p] for p in places], np.uint8).reshape(cut.grid),
            "y": f32_array(e.y for e in elements).reshape(tensor.x.shape),
        },
    )


_RULES = {
    "te": ("NVF-003", "NVF-004"),
    "te_2_13": ("NVF-003", "NVF-005"),
    "4over6_mae": ("NVF-003", "NVF-006"),
    "4over6_mse": ("NVF-003", "NVF-006"),
    "torchao": ("NVF-007",),
    "modelopt": ("NVF-008",),
    "compressed_tensors": ("NVF-009",),
}


def _nvfp4_suite(profile: Nvfp4Profile) -> Suite:
    rules = ["NVF-001", "NVF-002", *_RULES[profile.rule], "NVF-010", "NVF-011"]
    return Suite(
        f"nvfp4_{profile.name}",
        f"Tensors in NVFP4, profile {profile.name}",
        "nvfp4",
        (*rules, "NVF-012") if profile.per_row else tuple(rules),
        (
            given("x", "source", "the tensor"),
            expected("code", "e2m1", "the codes, one in a byte"),
            expected("packed", "u8", "the codes, the even one of a pair in the low nibble"),
            expected("block_scale", "e4m3", "for each tile"),
            expected("global_encode_scale", "f32", "of the tensor, or of each row"),
            expected("global_decode_scale", "f32", "of the tensor, or of each row"),
            expected("y", "f32", "what the codes stand for"),
        ),
        functools.partial(_nvfp4_cases, profile),
        normative=not profile.rule.startswith(("torchao", "modelopt", "compressed")),
    )


SUITES = (
    *(_nvfp4_suite(profile) for profile in PROFILES.values()),
    Suite(
        "mx",
        "Tensors in MX formats under four scale rules",
        "mx",
        tuple(f"MXS-{k:03}" for k in range(1, 9)),
        (
            given("x", "source", "the tensor"),
            expected("code", "format", "the codes"),
            expected("scale", "e8m0", "for each block"),
            expected("y", "f32", "what the codes stand for"),
        ),
        _mx_cases,
    ),
)
