"""NVFP4: sixteen e2m1 elements with an e4m3 scale, a binary32 scale for all, and its profiles."""

import functools
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
            g = quotient(amax, profile.range)  # NVF-007, NVF-008
            inverse = quotient(1.0, g)  # NVF-007, NVF-008
            return GlobalScale(inverse, g)
        case "G":
            reciprocal = quotient(1.0, max(amax, math.ldexp(1.0, -126)))  # NVF-009
            g = product(reciprocal, profile.range)  # NVF-009
            g = g if math.isfinite(g) else 1.0
            inverse = quotient(1.0, g)  # NVF-009
            return GlobalScale(g, inverse)
        case "S_enc":
            s_enc = quotient(profile.range, amax)
            s_enc = min(s_enc, FLT_MAX)
            s_enc = 1.0 if amax == 0 or s_enc == 0 else s_enc
            s_dec = quotient(1.0, s_enc)
            return GlobalScale(s_enc, s_dec)


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
    """Return the scale of a tile, given its rows and the amax (NVF-004 to NVF-009)."""
    block_amax = amax_of(chain.from_iterable(tile))
    if profile.scales.error:
        return four_over_six(profile, tile, block_amax, amax, scale)
    s = tile_number(profile, block_amax, scale)
    match profile.rule:
        case "te" | "te_2_13":  # NVF-004, NVF-005
            return factors(s, scale)
        case "torchao":  # NVF-007
            code = block_scale_code(clamped(s, math.ldexp(1.0, -6), 448.0))  # NVF-007
            w = SCALE_FORMAT.value(code)
            encode_scale = quotient(scale.encode, w)  # NVF-007
            decode = product(scale.decode, w)  # NVF-007
            return TileScale(code, encode_scale, decode)
        case "modelopt":  # NVF-008
            s = 1.0 if s == 0 else s  # NVF-008
            code = block_scale_code(clamped(s, math.ldexp(1.0, -9), 448.0))  # NVF-008
            w = SCALE_FORMAT.value(code)
            decode = product(w, scale.decode)  # NVF-008
            return TileScale(code, None, decode)
        case "compressed_tensors":  # NVF-009
            code = block_scale_code(s)
            code = code or block_scale_code(0.125)  # NVF-009
            w = SCALE_FORMAT.value(code)
            decode = quotient(w, scale.encode)  # NVF-009
            return TileScale(code, None, decode)
    raise NotImplementedError(f"scale rule {profile.rule}")


@step
def tile_number(profile: Nvfp4Profile, block_amax: float, scale: GlobalScale) -> float:
    """Return the number whose code is the scale of a tile, before limits (NVF-004 to NVF-009)."""
    match profile.rule:
        case "te":
            multiplier = product(scale.encode, _SIXTH)  # NVF-004
            return product(block_amax, multiplier)  # NVF-004
        case "torchao":
            sixth = quotient(block_amax, 6.0)  # NVF-007
            return quotient(sixth, scale.decode)  # NVF-007
        case "modelopt":
            six_times_g = product(6.0, scale.decode)  # NVF-008
            return quotient(block_amax, six_times_g)  # NVF-008
        case "compressed_tensors":
            sixth = quotient(block_amax, 6.0)  # NVF-009
            return product(scale.encode, sixth)  # NVF-009
    sixth = quotient(block_amax, 6.0)  # NVF-005
    return product(sixth, scale.encode)  # NVF-005


@step
def factors(s: float, scale: GlobalScale) -> TileScale:
    """Return the scale of a tile that is the code of a number, and its factors (NVF-004)."""
    code = block_scale_code(s)
    w = SCALE_FORMAT.value(code)
    decode = product(w, scale.decode)
    encode_scale = quotient(1.0, decode)
    encode_scale = min(encode_scale, FLT_MAX)
    return TileScale(code, encode_scale, decode)


@step
def four_over_six(
    profile: Nvfp4Profile, tile: Rows, block_amax: float, amax: float, scale: GlobalScale
) -> TileScale:
    """NVF-006: the largest element becomes 6 or 4, whichever errs less."""
    six, four = four_over_six_candidates(profile, block_amax, scale)
    error_of_six = candidate_error(profile, tile, six, amax)
    error_of_four = candidate_error(profile, tile, four, amax)
    return four if error_of_four < error_of_six else six


def four_over_six_candidates(
    profile: Nvfp4Profile, block_amax: float, scale: GlobalScale
) -> tuple[TileScale, TileScale]:
    """Return the scales that make the largest element 6 and 4 (NVF-006)."""
    base = tile_number(profile, block_amax, scale)
    return factors(base, scale), factors(raised(base, block_amax, scale), scale)


@step
def raised(base: float, block_amax: float, scale: GlobalScale) -> float:
    """Return the number of the scale that makes the largest element 4 (NVF-006)."""
    del block_amax, scale  # a wrong program computes with them
    return product(1.5, base)


@step
def candidate_error(profile: Nvfp4Profile, tile: Rows, candidate: TileScale, amax: float) -> float:
    """Return the error of a tile with a candidate (NVF-006)."""
    errors = []
    for row in tile:
        codes = [quantize_element(x, candidate, profile).code for x in row]
        values = [candidate_value(code, candidate.code, amax, profile.range) for code in codes]
        errors.append([element_error(profile, v, x) for v, x in zip(values, row, strict=True)])
    return sum_of_errors(errors)


@step
def element_error(profile: Nvfp4Profile, value: float, x: float) -> float:
    """Return the magnitude or the square of a difference (NVF-006)."""
    e = difference(value, x)
    if profile.scales.error == "mae":
        return abs(e)
    return product(e, e)


@step
def sum_of_errors(errors: Rows) -> float:
    """Return a sum in binary32: each row from left to right, then rows in halves (NVF-006)."""
    sums = [functools.reduce(total, row, 0.0) for row in errors]
    if len(sums) == 1:
        return sums[0]
    sums += [0.0] * (16 - len(sums))
    for half in (8, 4, 2, 1):
        sums = [total(sums[i], sums[i + half]) for i in range(half)]
    return sums[0]


@step
def candidate_value(code: int, scale_code: int, amax: float, largest: float) -> float:
    """Return the number of a code with the scale of a candidate, for its error (NVF-006)."""
    v, w = _E2M1.value(code), SCALE_FORMAT.value(scale_code)
    stored = product(v, w)
    of_tensor = product(stored, amax)
    return quotient(of_tensor, largest)


@step
def quantize_element(x: float, scale: TileScale, profile: Nvfp4Profile) -> Element:
    """Quantize a number to an element (NVF-010)."""
    xs = scaled(x, scale)
    code = element_code(xs, profile)
    return Element(xs, code, restored(_E2M1.value(code), scale))


@step
def element_code(xs: float, profile: Nvfp4Profile) -> int:
    """Return the code of a number that has the scale of its tile (NVF-010)."""
    return 0 if xs == 0 and profile.drops_sign_of_zero else encode(xs, _E2M1, "rne")


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
    if scale.encode is None:
        return quotient(x, scale.decode)
    return product(x, scale.encode)


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


@step
def clamped(s: float, lowest: float, highest: float) -> float:
    """Return the nearest number between two limits; a NaN stays (NVF-002)."""
    return s if math.isnan(s) else min(max(s, lowest), highest)
