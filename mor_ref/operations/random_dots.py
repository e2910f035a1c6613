"""Random rows of dot products at which sums differ: near each other, cancelling, and next to a cut.

Each row has a style: any codes, exponents near each other, pairs of opposite products, one large
product and others at the edge of the cut, or few numbers. c is a zero, near the negative sum, near
the sum, or any number. One row in eight has a special code.
"""

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.dot import DotProfile
from mor_ref.definitions.format import Format
from mor_ref.operations.random_numbers import Draws, Words, bits_at, share

_U = np.uint64
_ANY, _NEAR, _OPPOSITE, _EDGE, _FEW = range(5)
_STYLES = np.repeat(np.arange(5), (2, 5, 4, 4, 1))
_FAR = 88  # binades below 1, of scales whose products are subnormal numbers
_CHARGES = np.array([-2, -1, -1, 0, 0, 0, 1, 1, 2])  # exponents next to the middle of a row


def rows(
    draws: Draws, stream: int, profile: DotProfile, fmts: tuple[Format, Format]
) -> tuple[Words, Words]:
    """Draw codes of two operands; use six streams."""
    per_number, shape = draws.per_number(), (draws.count, draws.width)
    choices = draws.words(stream)
    style = _STYLES[share(bits_at(choices, 0, 16), 16, _STYLES.size)][:, np.newaxis]
    pairs = []
    for k, fmt in enumerate(fmts):
        words = per_number.words(stream + 1 + k).reshape(shape)
        near = _near(fmt, words, draws.words(stream + 3 + k))
        anywhere = words & _U(fmt.code_count - 1)
        pairs.append(np.where(style == _ANY, anywhere, near))
    a, b = pairs
    opposite = (style == _OPPOSITE) & (np.arange(draws.width) % 2 == 1)
    a = np.where(opposite, np.roll(a, 1, axis=1), a)
    b = np.where(opposite, np.roll(b, 1, axis=1) ^ _U(fmts[1].sign_bit), b)
    more = per_number.words(stream + 5).reshape(shape)
    edge_a, edge_b = _edge(profile, fmts, more)
    a, b = np.where(style == _EDGE, edge_a, a), np.where(style == _EDGE, edge_b, b)
    is_zero = (style == _FEW) & (bits_at(more, 60, 3) != 0) | (bits_at(more, 56, 4) == 0)
    a = np.where(is_zero & (style != _OPPOSITE), a & _U(fmts[0].sign_bit), a)
    return _with_a_special(a, fmts[0], choices), b


def _codes(fmt: Format, fields: NDArray[np.int64], words: Words) -> Words:
    """Return codes of these exponent fields, within those of finite numbers."""
    most = (1 << fmt.exponent_bits) - 1 - (fmt.infinity_code is not None)
    magnitudes = np.clip(fields, 0, most).astype(_U) << _U(fmt.mantissa_bits)
    mantissas = words & _U((1 << fmt.mantissa_bits) - 1)
    magnitudes = np.minimum(magnitudes | mantissas, _U(fmt.largest_code))
    codes: Words = magnitudes | (words >> _U(63)) * _U(fmt.sign_bit)
    return np.where(codes == _U(fmt.sign_bit), _U(0), codes) if fmt.specials == "fnuz" else codes


def _near(fmt: Format, words: Words, choices: Words) -> Words:
    """Return codes whose exponents are near that of their row."""
    middle = share(choices >> _U(32), 32, 1 << fmt.exponent_bits).astype(np.int64)
    is_usual = bits_at(choices, 0, 2) != 0
    usual = fmt.bias + share(bits_at(choices, 8, 16), 16, 7).astype(np.int64) - 3
    spread = share(bits_at(choices, 24, 8), 8, 4).astype(np.int64)
    steps = _CHARGES[share(bits_at(words, 32, 16), 16, _CHARGES.size)]
    fields = np.where(is_usual, usual, middle)[:, np.newaxis] + steps * spread[:, np.newaxis]
    return _codes(fmt, fields, words)


def _edge(profile: DotProfile, fmts: tuple[Format, Format], words: Words) -> tuple[Words, Words]:
    """Return one large product, and others that are F binades below it, about."""
    first, second = fmts
    span = (1 << first.exponent_bits) + (1 << second.exponent_bits) - 4
    depth = min(profile.fraction_bits or 24, span)
    below = depth + share(bits_at(words, 8, 16), 16, 5).astype(np.int64) - 2
    below = np.where(bits_at(words, 24, 2) == 0, below // 2, below)
    place = bits_at(words[:, :1], 32, 16) % _U(words.shape[1])
    below = np.where(np.arange(words.shape[1]) == place.astype(np.int64), 0, below)
    top_a = (1 << first.exponent_bits) - 2 if first.bits <= 8 else first.bias + 6
    top_b = (1 << second.exponent_bits) - 2 if second.bits <= 8 else second.bias + 6
    depth_a = np.minimum(below // 2, top_a)
    return (
        _codes(first, top_a - depth_a, words << _U(1)),
        _codes(second, top_b - (below - depth_a), words >> _U(26)),
    )


def _with_a_special(codes: Words, fmt: Format, choices: Words) -> Words:
    """Put a NaN, an infinity or a zero into one row of eight."""
    with_special = codes.copy()
    place = share(bits_at(choices, 32, 16), 16, codes.shape[1])
    specials = [0, fmt.sign_bit]
    if fmt.canonical_nan_code is not None:
        specials.append(fmt.canonical_nan_code)
    if fmt.infinity_code is not None:
        specials += [fmt.infinity_code, fmt.infinity_code | fmt.sign_bit]
    which = np.array(specials, _U)[share(bits_at(choices, 16, 12), 12, len(specials))]
    row_numbers = np.arange(len(codes))
    is_special = bits_at(choices, 28, 3) == 0
    with_special[row_numbers, place] = np.where(is_special, which, with_special[row_numbers, place])
    return with_special


def scales(draws: Draws, stream: int, fmt: Format, blocks: int, kinds: Words) -> Words:
    """Draw codes of scales near 1, far below it, or any; `kinds` chooses for a row."""
    per_block = Draws(draws.first * blocks, draws.count * blocks, draws.seed)
    words = per_block.words(stream).reshape(draws.count, blocks)
    middle = (fmt.bias << fmt.mantissa_bits) + (4 << fmt.mantissa_bits if fmt.mantissa_bits else 0)
    width = 8 << fmt.mantissa_bits
    near = _U(middle - width // 2) + share(bits_at(words, 0, 16), 16, width)
    alike = _U(middle) + bits_at(words, 0, 1)
    kind = bits_at(kinds, 0, 3)[:, np.newaxis]
    anywhere = np.where(bits_at(words, 40, 2) == 0, _U(0), words & _U(fmt.code_count - 1))
    low = _U(max(middle - (_FAR << fmt.mantissa_bits), 1)) + bits_at(words, 1, 5)
    codes: Words = np.select([kind == 0, kind < 3, kind < 5], [anywhere, alike, low], near)
    return codes


@functools.cache
def _values(fmt: Format) -> NDArray[np.float64]:
    values = np.array([fmt.value(code) for code in range(fmt.code_count)])
    values.setflags(write=False)
    return values


def values_of(codes: Words, fmt: Format) -> NDArray[np.float64]:
    """Return the numbers of codes."""
    if fmt.bits <= 16:
        return _values(fmt)[codes.astype(np.int64)]
    return codes.astype(np.uint32).view(np.float32).astype(np.float64)


def addends(draws: Draws, stream: int, profile: DotProfile, terms: NDArray[np.float64]) -> Words:
    """Draw c: zeros, numbers near the sum of the terms and its opposite, and any; two streams."""
    words, choices = draws.words(stream), draws.words(stream + 1)
    with np.errstate(all="ignore"):
        sums = np.zeros(len(terms))
        for k in range(terms.shape[1]):  # in a stated order, so that every machine draws the same
            sums = sums + np.where(np.isfinite(terms[:, k]), terms[:, k], 0.0)
        binades = share(bits_at(words, 0, 16), 16, 65).astype(np.float64) - 32
        far = sums * np.exp2(binades)
        kind = share(bits_at(choices, 0, 16), 16, 8)
        chosen = np.select([kind == 0, kind == 1, kind <= 3], [sums, far, -sums], 0.0)
        numbers = chosen.astype(np.float32)
    is_any = kind >= 6
    if profile.start == "f16":
        with np.errstate(all="ignore"):
            small = numbers.astype(np.float16).view(np.uint16).astype(_U)
        codes = np.where(is_any, words & _U(0xFFFF), small)
        with np.errstate(all="ignore"):
            wide = codes.astype(np.uint16).view(np.float16).astype(np.float32)
        numbers_of_f16: Words = wide.view(np.uint32).astype(_U)
        return numbers_of_f16
    steps = share(bits_at(choices, 16, 16), 16, 5)
    near: Words = numbers.view(np.uint32).astype(_U)
    is_moved = (kind == 2) & (near & _U(0x7FFFFFFF) > _U(2))
    near = np.where(is_moved, near + steps - _U(2), near)
    signed_zero = bits_at(choices, 40, 1) << _U(31)
    return np.where(is_any, words & _U(0xFFFFFFFF), np.where(kind == 5, signed_zero, near))


def terms_of(
    a: Words, b: Words, fmts: tuple[Format, Format], factors: Any = 1.0
) -> NDArray[np.float64]:
    """Return the products of codes in binary64, about."""
    with np.errstate(all="ignore"):
        terms: NDArray[np.float64] = values_of(a, fmts[0]) * values_of(b, fmts[1]) * factors
    return terms
