"""How far dot products are from their exact sums, by profile and length."""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import mor_ref
from mor_docs.shown.markup import data, line, picture, table, text
from mor_docs.shown.plots import Axes, key
from mor_ref.definitions.dot import DOT_PROFILES, PERIOD, DotProfile

_OF_FP8 = (
    "hopper_fp8", "hopper_fp8_promoted", "ada_fp8", "blackwell_fp8", "f32_fma", "f32_pairwise",
)  # fmt: skip
_WIDE = ("hopper_bf16", "ampere_bf16", "volta_fp16", "cdna1_fp16", "cdna3_bf16", "blackwell_nvfp4")
_IN_F16 = (
    "volta_fp16_f16", "ampere_fp16_f16", "hopper_fp16_f16", "ada_fp8_f16", "hopper_fp8_f16",
    "blackwell_fp8_f16",
)  # fmt: skip
_INTEGERS = ("int32", "switchback")
_LENGTHS = tuple(range(5, 14))  # binary logarithms of K
_ROWS, _SEED = 256, 18
_LONG = 12  # of the table
_TICKS = range(-28, -7, 4)  # binary logarithms of errors
_WIDE_TICKS, _F16_TICKS = range(-30, -19, 2), range(-14, -5, 2)
Codes = NDArray[np.uint8]
Numbers = NDArray[np.float64]


class _Rows(NamedTuple):
    """The longest rows of both operands, their numbers, and their scales if they have some."""

    codes: Sequence[NDArray[Any]]
    numbers: Sequence[Numbers]
    fmt: str
    scales: Sequence[Codes] = ()
    scale_format: str = ""
    block: int = 1


@cache
def _drawn() -> NDArray[np.float32]:
    """Return bell-shaped numbers."""
    random = np.random.default_rng(_SEED)
    return random.standard_normal((2, _ROWS, 1 << _LENGTHS[-1])).astype(np.float32)


@cache
def _codes() -> Codes:
    """Return codes of e4m3 of bell-shaped numbers, as scaled tensors have them."""
    x = _drawn()
    return mor_ref.quantize(x.reshape(2, -1), "e4m3", block="row").codes.reshape(x.shape)


@cache
def _rows(fmt: str, scales: tuple[str, int], result: str) -> _Rows:
    """Return the same numbers in a format; those of sums in f16 have no scale, and never overflow.

    Only formats of 4 bits have scales other than 1, and so other numbers.
    """
    scale_format, block = scales
    if fmt == "e2m1":
        return _in_blocks(scale_format, block)
    of_e4m3 = mor_ref.encode(_drawn(), "e4m3") if result == "f16" else _codes()
    numbers = mor_ref.decode(of_e4m3, "e4m3").astype(np.float64)
    if fmt == "e4m3fnuz":  # the same codes are half of the numbers, and there is no -0
        codes, numbers = np.where(of_e4m3 == 0x80, 0, of_e4m3).astype(np.uint8), numbers / 2
    else:
        codes = mor_ref.encode(numbers, fmt)
    if scale_format:
        ones = np.full((_ROWS, numbers.shape[2] // block), 127, np.uint8)
        return _Rows([*codes], [*numbers], fmt, [ones] * 2, scale_format, block)
    return _Rows([*codes], [*numbers], fmt)


def _in_blocks(scale_format: str, block: int) -> _Rows:
    """Return NVFP4 or MXFP4 of the numbers."""
    codes, scales, numbers = [], [], []
    for x in _drawn():
        if scale_format == "e4m3":
            found: Any = mor_ref.quantize_nvfp4(x)
            scales.append(found.block_scale)
        else:
            found = mor_ref.quantize_mx(x, "e2m1", block=block)
            scales.append(found.scale)
        codes.append(found.codes)
        factors = np.repeat(mor_ref.decode(scales[-1], scale_format), block, axis=1)
        numbers.append(mor_ref.decode(codes[-1], "e2m1").astype(np.float64) * factors)
    return _Rows(codes, numbers, "e2m1", scales, scale_format, block)


def _rows_of(profile: DotProfile) -> _Rows:
    known = profile.formats or ("e4m3",)
    scales = profile.scales[0] if profile.family in ("st_fdpa", "gst_fdpa") else ("", 1)
    return _rows(known[0], scales, profile.result)


@cache
def _error(name: str, length: int) -> float:
    """Return the root of the mean square of errors, as a share of that of the exact sums.

    Products are multiples of a small unit, and binary64 holds their sums.
    """
    rows, k = _rows_of(DOT_PROFILES[name]), 1 << length
    x, y = (numbers[:, :k] for numbers in rows.numbers)
    exact = (x * y).sum(axis=1)
    given: dict[str, Any] = {}
    if rows.scale_format:
        scales = tuple(one[:, : k // rows.block] for one in rows.scales)
        given = {"scales": scales, "scale_format": rows.scale_format, "block": rows.block}
    a, b = (codes[:, :k] for codes in rows.codes)
    found = mor_ref.dot(a, b, formats=(rows.fmt, rows.fmt), profile=name, **given)
    error = found.astype(np.float64) - exact
    return float(np.sqrt((error**2).mean() / (exact**2).mean()))


def _drawing(names: Sequence[str], ticks: range, title: str, said: str) -> str:
    """Return a picture of the errors of some profiles against K."""
    axes = Axes(70, 16, 600, 280, (_LENGTHS[0], _LENGTHS[-1]), (ticks[0], ticks[-1]))
    shapes = []
    for tick in ticks:
        _, up = axes.at(_LENGTHS[0], tick)
        shapes.append(line(70, up, 670, up, "grid"))
        shapes.append(text(60, up + 4, f"2^{tick}".replace("-", "−"), anchor="end"))
    least = 2.0 ** (ticks[0] - 1)  # below the picture: no error is on its lower edge
    curves = [
        [(k, float(np.log2(max(_error(name, k), least)))) for k in _LENGTHS] for name in names
    ]
    shapes += [text(axes.at(k, 0)[0], 314, str(1 << k)) for k in _LENGTHS]
    shapes.append(text(370, 334, "K, products of a sum"))
    shapes += [axes.curve(points, n) for n, points in enumerate(curves)]
    shapes += key(90, 362, names)
    return picture(700, 462, title, shapes, said)


def errors() -> str:
    """Draw the error of profiles of FP8 against K."""
    said = (
        f"The error of {_ROWS} dot products of bell-shaped numbers in e4m3, as a share of their "
        "exact sums (roots of mean squares), against the number of products."
    )
    return _drawing(_OF_FP8, _TICKS, "Error against K", said)


def wide_errors() -> str:
    """Draw the error of profiles of other formats against K."""
    said = (
        "The same numbers in 16 bits, and as NVFP4: c and results are binary32. The sums of NVFP4 "
        "have no error, which is the lower edge."
    )
    return _drawing(_WIDE, _WIDE_TICKS, "Error against K with other formats", said)


def f16_errors() -> str:
    """Draw the error of profiles with results in f16 against K."""
    said = "Numbers in e4m3 without a scale, so that no sum overflows: c and results are f16."
    return _drawing(_IN_F16, _F16_TICKS, "Error against K with results in f16", said)


def _alike() -> dict[str, list[str]]:
    """Return the profiles that add up alike, by the first of them.

    Scales of 1, formats and e0 do not matter to these numbers, and neither does a flush.
    """
    found: dict[tuple[object, ...], list[str]] = {}
    for name in sorted(DOT_PROFILES.specified, key=lambda name: name not in _OF_FP8):
        row = DOT_PROFILES[name]
        family = {"st_fdpa": "t_fdpa"}.get(row.family, row.family)
        numbers = row.chunk, row.fraction_bits, row.result_bits, row.result
        if name not in _INTEGERS:
            found.setdefault((family, *numbers), []).append(name)
    return {names[0]: names for names in found.values()}


def compared() -> str:
    """Show the error of each profile for one K, and the numbers that cause it."""
    rows = []
    for name, names in sorted(_alike().items(), key=lambda one: -_error(one[0], _LONG)):
        row = DOT_PROFILES[name]
        cut = f"{row.fraction_bits} bits" if row.fraction_bits else "no cut"
        length: object = row.chunk or {"f32_fma": 1, "f32_pairwise": "a tree"}.get(
            row.family, "all"
        )
        if row.family == "promoted":
            length = f"{length}, in parts of {PERIOD}"
        share = _error(name, _LONG)
        said = f"1 in {1 / share:,.0f}" if share else "none"
        of = ", ".join(f"`{one}`" for one in names)
        rows.append([of, length, cut, row.result_bits, said])
    head = ["profiles", "products at once", "bits below the largest term", "bits of c"]
    shown = table([*head, f"error at K = {1 << _LONG:,}"], rows)
    numbers = [
        [name, *(f"{_error(first, k):.4g}" for k in _LENGTHS)]
        for first, names in _alike().items()
        for name in names
    ]
    return shown + data("dot-errors", ["profile", *(str(1 << k) for k in _LENGTHS)], numbers)
