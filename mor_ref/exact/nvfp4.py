"""NVFP4: sixteen e2m1 elements with an e4m3 scale, a binary32 scale for all, and its profiles."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, filterfalse, groupby
from operator import itemgetter
from typing import Any

from mor_ref.definitions.formats import formats
from mor_ref.definitions.nvfp4 import Nvfp4Profile
from mor_ref.definitions.scales import NOTHING_GIVEN, AmaxOrScale
from mor_ref.exact.arithmetic import FLT_MAX, difference, product, quotient, total
from mor_ref.exact.blocks import Rows, cells
from mor_ref.exact.encoding import encode
from mor_ref.exact.quantization import Element, RandomWords
from mor_ref.exact.step import step

_E2M1 = formats["e2m1"]
SCALE_FORMAT = formats["e4m3"]
_SIXTH = quotient(1.0, 6.0)


@dataclass(frozen=True)
class GlobalScale:
    """The scale of the tensor or of a row: to multiply numbers by, and to multiply codes by."""

    encode: float
    decode: float


@dataclass(frozen=True)
class TileScale:
    """The stored scale of a tile, and the factors that follow from it.

    Numbers are multiplied by `encode`, or divided by `decode` if `encode` is None. The value of a
    code is multiplied by `decode`.
    """

    code: int
    encode: float | None
    decode: float

    def __hash__(self) -> int:
        return hash(self.decode)


@dataclass(frozen=True)
class Nvfp4:
    """A tensor in NVFP4. Tiles are keyed by their row and column in the grid."""

    elements: list[list[Element]]
    scale: dict[tuple[int, int], TileScale]
    global_scale: list[GlobalScale]


@step
def amax_of(numbers: Iterable[float]) -> float:
    """Return the largest magnitude, infinities included and NaN ignored (NVF-002)."""
    return max(map(abs, filterfalse(math.isnan, numbers)), default=0.0)


def nvfp4(
    x: Rows,
    profile: Nvfp4Profile,
    tile: tuple[int, int],
    given: AmaxOrScale = NOTHING_GIVEN,
    words: RandomWords | None = None,
) -> Nvfp4:
    """Quantize a tensor to NVFP4 (NVF-001).

    An amax (NVF-013) or a global scale (NVF-014) may be given, or one for each row. With random
    words, rounding is stochastic (QNT-005).
    """
    rows, columns = len(x), len(x[0]) if x else 0
    tensor_amax = amax_of(chain.from_iterable(x)) if given.amax is None else given.amax
    amaxes = amaxes_of(x, profile) if given.amax is None else _for_each(given.amax, rows)
    scales = [
        _global_scale(profile, amax, scale)
        for amax, scale in zip(amaxes, _for_each(given.scale, rows), strict=True)
    ]
    elements = [[Element(0.0, 0, 0.0)] * columns for _ in range(rows)]
    tile_scales = {}
    for place, members in cells(rows, columns, tile).items():
        i = place[0] * tile[0]
        by_row = [[x[k][j] for k, j in row] for _, row in groupby(members, itemgetter(0))]
        scale = tile_scales[place] = tile_scale(profile, by_row, amaxes[i], scales[i])
        for (i, j), number in zip(members, chain.from_iterable(by_row), strict=True):
            element = quantize_element(number, scale, profile)
            if words is not None:
                element = _at_random(element, words, (i, j), scale, profile)
            elements[i][j] = element
    global_scales = (
        scales if profile.per_row else [_global_scale(profile, tensor_amax, given.scale)]
    )
    return Nvfp4(elements, tile_scales, global_scales)


@step
def amaxes_of(x: Rows, profile: Nvfp4Profile) -> list[float]:
    """Return the amax that the global scale of each row follows from (NVF-012)."""
    tensor_amax = amax_of(chain.from_iterable(x))
    return [amax_of(row) if profile.per_row else tensor_amax for row in x]


@step
def global_scale(profile: Nvfp4Profile, amax: float) -> GlobalScale:
    """NVF-003 for the profiles of Transformer Engine; NVF-007 to NVF-009 for the others."""
    match profile.scales.global_scale:
        case "g":
            g = quotient(amax, profile.range)
            return GlobalScale(quotient(1.0, g), g)
        case "G":
            g = product(quotient(1.0, max(amax, math.ldexp(1.0, -126))), profile.range)
            g = g if math.isfinite(g) else 1.0
            return GlobalScale(g, quotient(1.0, g))
        case "S_enc":
            s_enc = min(quotient(profile.range, amax), FLT_MAX)
            s_enc = 1.0 if amax == 0 or s_enc == 0 else s_enc
            return GlobalScale(s_enc, quotient(1.0, s_enc))


def _for_each(given: Any, rows: int) -> list[Any]:
    """Return what is given for each row: the same number, or one of its own."""
    return [*given] if isinstance(given, Sequence) else [given] * rows


def _global_scale(profile: Nvfp4Profile, amax: float, scale: float | None) -> GlobalScale:
    return global_scale(profile, amax) if scale is None else given_global_scale(profile, scale)


@step
def given_global_scale(profile: Nvfp4Profile, scale: float) -> GlobalScale:
    """Return the global scales if one is given (NVF-014)."""
    if profile.begins_with_decode:
        return GlobalScale(quotient(1.0, scale), scale)
    return GlobalScale(scale, quotient(1.0, scale))


@step
def tile_scale(profile: Nvfp4Profile, tile: Rows, amax: float, scale: GlobalScale) -> TileScale:
    """Return the scale of a tile, given its rows, and the amax of the tensor (or row)."""
    block_amax = amax_of(chain.from_iterable(tile))
    if profile.scales.error:
        return _four_over_six(profile, tile, block_amax, amax, scale)
    match profile.rule:
        case "te":  # NVF-004
            s = product(block_amax, product(scale.encode, _SIXTH))
            return _te_scale(s, scale)
        case "te_2_13":  # NVF-005
            return _te_scale(product(quotient(block_amax, 6.0), scale.encode), scale)
        case "torchao":  # NVF-007
            s = quotient(quotient(block_amax, 6.0), scale.decode)
            code = block_scale_code(_clamp(s, math.ldexp(1.0, -6), 448.0))
            value = SCALE_FORMAT.value(code)
            return TileScale(code, quotient(scale.encode, value), product(scale.decode, value))
        case "modelopt":  # NVF-008
            s = quotient(block_amax, product(6.0, scale.decode))
            code = block_scale_code(_clamp(1.0 if s == 0 else s, math.ldexp(1.0, -9), 448.0))
            return TileScale(code, None, product(SCALE_FORMAT.value(code), scale.decode))
        case "compressed_tensors":  # NVF-009
            code = block_scale_code(product(scale.encode, quotient(block_amax, 6.0)))
            code = code or block_scale_code(0.125)
            return TileScale(code, None, quotient(SCALE_FORMAT.value(code), scale.encode))
    raise NotImplementedError(f"scale rule {profile.rule}")


def _te_scale(s: float, scale: GlobalScale) -> TileScale:
    code = block_scale_code(s)
    decode = product(SCALE_FORMAT.value(code), scale.decode)
    return TileScale(code, min(quotient(1.0, decode), FLT_MAX), decode)


def _four_over_six(
    profile: Nvfp4Profile, tile: Rows, block_amax: float, amax: float, scale: GlobalScale
) -> TileScale:
    """NVF-006: the largest element becomes 6 or 4, whichever errs less."""
    six, four = four_over_six_candidates(block_amax, scale)
    error = {c: candidate_error(profile, tile, c, amax) for c in (six, four)}
    return four if error[four] < error[six] else six


def four_over_six_candidates(block_amax: float, scale: GlobalScale) -> tuple[TileScale, TileScale]:
    """Return the scales that make the largest element 6 and 4 (NVF-006)."""
    base = product(quotient(block_amax, 6.0), scale.encode)
    return _te_scale(base, scale), _te_scale(product(1.5, base), scale)


@step
def candidate_error(profile: Nvfp4Profile, tile: Rows, candidate: TileScale, amax: float) -> float:
    """Return the error of a tile with a candidate, in binary32, left to right (NVF-006)."""
    rows = [0.0] * 16
    for i, row in enumerate(tile):
        for x in row:
            code = quantize_element(x, candidate, profile).code
            e = difference(candidate_value(code, candidate.code, amax, profile.range), x)
            rows[i] = total(rows[i], abs(e) if profile.scales.error == "mae" else product(e, e))
    if len(tile) == 1:
        return rows[0]
    for half in (8, 4, 2, 1):
        rows = [total(rows[i], rows[i + half]) for i in range(half)]
    return rows[0]


@step
def candidate_value(code: int, scale_code: int, amax: float, largest: float) -> float:
    """Return the number of a code with the scale of a candidate, for its error (NVF-006)."""
    stored = product(_E2M1.value(code), SCALE_FORMAT.value(scale_code))
    return quotient(product(stored, amax), largest)


@step
def quantize_element(x: float, scale: TileScale, profile: Nvfp4Profile) -> Element:
    """Quantize a number to an element (NVF-010)."""
    xs = scaled(x, scale)
    code = 0 if xs == 0 and profile.drops_sign_of_zero else encode(xs, _E2M1, "rne")
    return Element(xs, code, restored(_E2M1.value(code), scale))


def _at_random(
    element: Element,
    words: RandomWords,
    place: tuple[int, int],
    scale: TileScale,
    profile: Nvfp4Profile,
) -> Element:
    """Return an element, rounded with its random word (QNT-005)."""
    drops_sign = element.xs == 0 and profile.drops_sign_of_zero
    code = 0 if drops_sign else words.code(element.xs, _E2M1, place)
    return Element(element.xs, code, restored(_E2M1.value(code), scale))


@step
def scaled(x: float, scale: TileScale) -> float:
    """Return a number with the scale of its tile (NVF-010)."""
    return quotient(x, scale.decode) if scale.encode is None else product(x, scale.encode)


@step
def restored(value: float, scale: TileScale) -> float:
    """Return the value of a code with the scale of its tile (NVF-010)."""
    return product(value, scale.decode)


@step
def packed(low: int, high: int) -> int:
    """Return the byte of two codes (NVF-011); a row that ends with `low` has 0 as `high`."""
    return low | high << 4


@step
def block_scale_code(s: float) -> int:
    """Return the stored scale of a tile (NVF-002)."""
    return encode(s, SCALE_FORMAT, "rne")


def _clamp(s: float, lowest: float, highest: float) -> float:
    return s if math.isnan(s) else min(max(s, lowest), highest)
