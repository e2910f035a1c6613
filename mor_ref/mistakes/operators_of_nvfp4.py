"""Operators on the scales, errors and elements of NVFP4.

Each is called with the right function and its operands, and returns what a wrong program uses.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from mor_ref.definitions.formats import formats
from mor_ref.definitions.nvfp4 import Nvfp4Profile
from mor_ref.deviations.floating_point import SMALLEST_NORMAL
from mor_ref.exact.arithmetic import (
    FLT_MAX,
    difference,
    nearest_in,
    product,
    quotient,
    rn32,
    rn32_of_binary64,
    total,
)
from mor_ref.exact.encoding import encode
from mor_ref.exact.nvfp4 import SCALE_FORMAT, GlobalScale, TileScale
from mor_ref.mistakes.mistake import Operator
from mor_ref.mistakes.operators import AMAXES
from mor_ref.mistakes.operators_of_blocks import with_rounding

_E2M1 = formats["e2m1"]
_SIX, _SIXTH = 6.0, quotient(1.0, 6.0)
_CODE_OF_ONE = 0x38
Rows = Sequence[Sequence[float]]


def _saturated(right: Any, a: float, b: float) -> float:
    found = float(right(a, b))
    return math.copysign(FLT_MAX, found) if math.isinf(found) else found


_DIVISIONS = (
    *with_rounding("/", ("truncated", "ties-away", "flushed")),
    Operator(
        "by-reciprocal",
        "is a product with a rounded reciprocal",
        lambda _, a, b: product(a, quotient(1.0, b)),
    ),
)
_PRODUCTS = (
    *with_rounding("*", ("truncated", "ties-away", "flushed")),
    Operator("saturated", "is the largest number of binary32 where it is infinite", _saturated),
)


# ---------------------------------------------------------------------- global scales


def _exchanged(right: Any, profile: Nvfp4Profile, amax: float) -> GlobalScale:
    found = right(profile, amax)
    return GlobalScale(found.decode, found.encode)


def _if_finite(change: Callable[[GlobalScale, float, float], GlobalScale]) -> Callable[..., Any]:
    """Return global scales of a finite amax above 0, changed; the others are right."""

    def wrong(right: Any, profile: Nvfp4Profile, amax: float) -> GlobalScale:
        found: GlobalScale = right(profile, amax)
        return change(found, amax, profile.range) if 0 < amax < math.inf else found

    return wrong


def _of_reciprocal_of_amax(found: GlobalScale, amax: float, largest: float) -> GlobalScale:
    del found
    s = min(product(largest, quotient(1.0, amax)), FLT_MAX) or 1.0
    return GlobalScale(s, quotient(1.0, s))


_GLOBALS = (
    Operator("exchanged", "the global scales for numbers and for codes are exchanged", _exchanged),
    Operator(
        "of-reciprocal-of-amax",
        "S_enc is Q * RN(1 / amax): two roundings",
        _if_finite(_of_reciprocal_of_amax),
    ),
    Operator(
        "decode-by-division",
        "S_dec is amax / Q, not the inverse of the rounded S_enc",
        _if_finite(lambda found, amax, q: GlobalScale(found.encode, quotient(amax, q))),
    ),
)


# ---------------------------------------------------------------------- numbers of scales


def _orders(s: str, times: Callable[[float, float], float]) -> Iterator[tuple[str, str, Any]]:
    """Yield the orders of block_amax / 6 * S: a name, the formula, and the computation.

    `s` is how the formula writes the last factor, as in "* S_enc" or "/ g".
    """
    by = times
    yield "sixth-first", f"(block_amax / 6) {s}", lambda b, x: by(quotient(b, _SIX), x)
    yield "divided-last", f"(block_amax {s}) / 6", lambda b, x: quotient(by(b, x), _SIX)
    yield (
        "by-constant-sixth",
        f"(block_amax * RN(1 / 6)) {s}",
        lambda b, x: by(product(b, _SIXTH), x),
    )
    yield (
        "by-constant-sixth-last",
        f"(block_amax {s}) * RN(1 / 6)",
        lambda b, x: product(by(b, x), _SIXTH),
    )


def _scale_first(decode: bool) -> Iterator[tuple[str, str, Any]]:
    if decode:
        yield (
            "divisor-first",
            "block_amax / (6 * g)",
            lambda b, g: quotient(b, product(_SIX, g)),
        )
        return
    yield "quotient-first", "block_amax * (S / 6)", lambda b, s: product(b, quotient(s, _SIX))
    yield (
        "multiplier-first",
        "block_amax * (S * RN(1 / 6))",
        lambda b, s: product(b, product(s, _SIXTH)),
    )


def numbers(symbol: str) -> Iterator[Operator]:
    """Yield the operators on the number of a tile's scale, by the symbol of the global scale."""
    decode = symbol == "g"
    s = "/ g" if decode else f"* {symbol}"
    times = quotient if decode else product
    found = [*_orders(s, times), *_scale_first(decode)]
    if symbol == "S_enc":
        found.append(
            (
                "by-decode-scale",
                "block_amax / (6 * S_dec)",
                lambda b, x: quotient(b, product(_SIX, quotient(1.0, x))),
            )
        )
    if decode:
        found.append(
            (
                "by-encode-scale",
                "(block_amax / 6) * (1 / g)",
                lambda b, x: product(quotient(b, _SIX), quotient(1.0, x)),
            )
        )
    for name, formula, compute in found:
        text = formula.replace("(S ", f"({symbol} ")
        yield Operator(name, f"the number of a scale is {text}", _of_factors(symbol, compute))
    yield Operator(
        "in-binary64",
        "the number of a scale is computed in binary64, and rounded once",
        _of_factors(symbol, lambda b, x: _wide(b, x, decode=decode)),
    )
    yield Operator(
        "in-bf16",
        "the number of a scale is rounded to bfloat16",
        lambda right, *operands: _in_bf16(right(*operands)),
    )


def _of_factors(symbol: str, compute: Callable[[float, float], float]) -> Callable[..., float]:
    def wrong(_: Any, __: Any, block_amax: float, scale: GlobalScale) -> float:
        return compute(block_amax, scale.decode if symbol == "g" else scale.encode)

    return wrong


def _wide(b: float, x: float, *, decode: bool) -> float:
    if not decode:
        return rn32_of_binary64(b * x / 6)
    return rn32_of_binary64(b / 6 / x) if x else quotient(quotient(b, _SIX), x)


def _in_bf16(x: float) -> float:
    return nearest_in(x, formats["bf16"])


# ---------------------------------------------------------------------- codes and factors

_CODES = (
    Operator(
        "at-least-smallest",
        "the scale of a tile is at least 2^-9, the smallest number of e4m3",
        lambda right, s: right(max(s, 2.0**-9)),
    ),
    Operator(
        "at-least-normal",
        "the scale of a tile is at least 2^-6, the smallest normal number of e4m3",
        lambda right, s: right(max(s, 2.0**-6)),
    ),
    Operator(
        "zero-one",
        "a scale of a tile that becomes 0 is stored as 1",
        lambda right, s: right(s) or _CODE_OF_ONE,
    ),
    Operator(
        "truncated",
        "the scale of a tile is cut to e4m3 instead of rounded",
        lambda _, s: encode(s, SCALE_FORMAT, "rtz"),
    ),
    Operator(
        "rounded-up",
        "the scale of a tile is rounded up to e4m3: no element saturates",
        lambda _, s: encode(s, SCALE_FORMAT, "rtp"),
    ),
    Operator(
        "ties-away",
        "ties of the scale of a tile go away from zero",
        lambda _, s: encode(s, SCALE_FORMAT, "rna"),
    ),
    Operator(
        "through-f16",
        "the scale of a tile goes through binary16 before e4m3",
        lambda right, s: right(nearest_in(min(s, 448.0), formats["f16"])),
    ),
    Operator(
        "overflow-nan",
        "a scale of a tile beyond 464 is NaN",
        lambda right, s: 0x7F if s > 464 else right(s),
    ),
)


def _factors(change: Callable[[TileScale, GlobalScale], TileScale]) -> Callable[..., TileScale]:
    return lambda right, s, scale: change(right(s, scale), scale)


def _of_floored_decode(found: TileScale, _: GlobalScale) -> TileScale:
    decode = max(found.decode, SMALLEST_NORMAL)
    return TileScale(found.code, quotient(1.0, decode), decode)


def _number(found: TileScale) -> float:
    return SCALE_FORMAT.value(found.code)


_FACTORS = (
    Operator(
        "encode-by-division",
        "numbers are multiplied by S_enc / s, not by the inverse of the rounded s * S_dec",
        _factors(
            lambda one, scale: replace(
                one, encode=min(quotient(scale.encode, _number(one)), FLT_MAX)
            )
        ),
    ),
    Operator(
        "encode-of-reciprocals",
        "numbers are multiplied by (1 / s) * (1 / S_dec)",
        _factors(
            lambda one, scale: replace(
                one,
                encode=min(
                    product(quotient(1.0, _number(one)), quotient(1.0, scale.decode)), FLT_MAX
                ),
            )
        ),
    ),
    Operator(
        "encode-zero-at-scale-0",
        "a tile whose scale is 0 is stored as zeros",
        _factors(lambda one, _: one if one.code else replace(one, encode=0.0)),
    ),
    Operator(
        "decode-at-least-normal",
        "decode is kept above 2^-126, where encode should be kept below FLT_MAX",
        _factors(_of_floored_decode),
    ),
)
_LIMITS = (
    Operator(
        "left-out",
        "is left out: what is above it is infinite",
        lambda _, x, __: x,
    ),
)
_CLAMPS = (
    Operator(
        "without-lower",
        "the lower limit of the number of a scale is left out",
        lambda right, s, _, highest: right(s, 0.0, highest),
    ),
    Operator(
        "at-other-end",
        "the lower limit of the number of a scale is 2^-9 in place of 2^-6, or 2^-6 for 2^-9",
        lambda right, s, lowest, highest: right(s, 2.0**-15 / lowest, highest),
    ),
)
_ZERO_SCALES = (
    Operator("one", "is 1, not 0.125", lambda *_: _CODE_OF_ONE),
    Operator("smallest", "is the smallest, not 0.125", lambda *_: 1),
    Operator("zero", "stays 0", lambda *_: 0),
)
_ZEROS = (
    Operator("zero", "is 0, not 1", lambda *_: 0.0),
    Operator("largest", "is the largest one, not 1", lambda *_: FLT_MAX),
)


# ---------------------------------------------------------------------- 4 over 6


def _raised(compute: Callable[[float, float, float], float]) -> Callable[..., float]:
    return lambda _, base, block_amax, scale: compute(base, block_amax, scale.encode)


_RAISED = tuple(
    Operator(name, f"the scale for 4 is the code of {formula}", _raised(compute))
    for name, formula, compute in (
        (
            "of-stored",
            "1.5 times the number of the scale for 6",
            lambda base, _, __: product(1.5, SCALE_FORMAT.value(encode(base, SCALE_FORMAT, "rne"))),
        ),
        ("by-division", "(block_amax / 4) * S_enc", lambda _, b, s: product(quotient(b, 4.0), s)),
        (
            "of-raised-amax",
            "((1.5 * block_amax) / 6) * S_enc",
            lambda _, b, s: product(quotient(product(1.5, b), _SIX), s),
        ),
        (
            "of-raised-scale",
            "(block_amax / 6) * (1.5 * S_enc)",
            lambda _, b, s: product(quotient(b, _SIX), product(1.5, s)),
        ),
        (
            "of-raised-sixth",
            "((block_amax / 6) * 1.5) * S_enc",
            lambda _, b, s: product(product(quotient(b, _SIX), 1.5), s),
        ),
        (
            "over-two-thirds",
            "base / RN(2 / 3)",
            lambda base, _, __: quotient(base, quotient(2.0, 3.0)),
        ),
        ("at-most-256", "min(1.5 * base, 256)", lambda base, _, __: min(product(1.5, base), 256.0)),
    )
)
_CHOICES = (
    Operator(
        "with-equals", "takes four if both errors are equal", lambda _, four, six: four <= six
    ),
    Operator(
        "unless-six-is-less",
        "takes four unless the error of six is at most as large, as with a NaN",
        lambda _, four, six: not six <= four,
    ),
    Operator(
        "nan-of-six-greater",
        "never keeps six if its error alone is NaN",
        lambda right, four, six: right(four, six) or (math.isnan(six) and not math.isnan(four)),
    ),
    Operator(
        "nan-least",
        "takes an error of NaN for 0",
        lambda right, *errors: right(*(0.0 if math.isnan(one) else one for one in errors)),
    ),
    Operator(
        "infinite-keeps-six",
        "keeps six if its error is infinite",
        lambda right, four, six: right(four, six) and math.isfinite(six),
    ),
    Operator(
        "nonfinite-takes-four",
        "takes four if the error of six is not finite",
        lambda right, four, six: bool(right(four, six)) or not math.isfinite(six),
    ),
    Operator(
        "two-nonfinite-take-four",
        "takes four if neither error is finite",
        lambda right, four, six: (
            right(four, six) or not (math.isfinite(four) or math.isfinite(six))
        ),
    ),
    Operator(
        "two-zeros-take-four",
        "takes four if both errors are 0",
        lambda right, four, six: right(four, six) or four == six == 0,
    ),
    Operator(
        "reversed", "takes the candidate of the larger error", lambda _, four, six: four > six
    ),
    Operator("never", "never takes four", lambda *_: False),
    Operator("always", "always takes four", lambda *_: True),
)


def _sums(change: Callable[[list[list[float]]], list[list[float]]]) -> Callable[..., float]:
    return lambda right, errors: right(change([list(row) for row in errors]))


def _tree(values: Sequence[float], *, neighbours: bool = False) -> float:
    values = [*values] + [0.0] * ((1 << (len(values) - 1).bit_length()) - len(values))
    while len(values) > 1:
        half = len(values) // 2
        pairs = (
            zip(values[::2], values[1::2], strict=True)
            if neighbours
            else zip(values[:half], values[half:], strict=True)
        )
        values = list(itertools.starmap(total, pairs))
    return values[0]


def _in_turn(values: Sequence[float]) -> float:
    return functools.reduce(total, values, 0.0)


def _by_rows(
    of_row: Callable[[Sequence[float]], float], of_rows: Callable[[Sequence[float]], float]
) -> Callable[..., float]:
    def wrong(_: Any, errors: Rows) -> float:
        sums = [of_row(row) for row in errors]
        return sums[0] if len(sums) == 1 else of_rows(sums)

    return wrong


def _of_rows_only(of_rows: Callable[[Sequence[float]], float]) -> Callable[..., float]:
    return _by_rows(_in_turn, of_rows)


def _by_threads(
    count: int, add: Callable[[Sequence[float]], float]
) -> Callable[[Sequence[float]], float]:
    return lambda row: add([_in_turn(row[k : k + count]) for k in range(0, len(row), count)])


def _of_columns(_: Any, errors: Rows) -> float:
    return _tree([_in_turn(column) for column in zip(*errors, strict=True)])


def _of_binary64(_: Any, errors: Rows) -> float:
    return rn32_of_binary64(math.fsum(itertools.chain.from_iterable(errors)))


def _compensated(row: Sequence[float]) -> float:
    held = rest = 0.0
    for one in row:
        term = difference(one, rest)
        new = total(held, term)
        rest = difference(difference(new, held), term)
        held = new
    return held


def _all_in_turn(_: Any, errors: Rows) -> float:
    return _in_turn([*itertools.chain.from_iterable(errors)])


def _largest(_: Any, errors: Rows) -> float:
    return max(
        itertools.chain.from_iterable(errors), key=lambda x: math.inf if math.isnan(x) else x
    )


def _changed(change: Callable[[float, int], float]) -> Callable[..., float]:
    return lambda right, errors: change(right(errors), sum(map(len, errors)))


_SUMS = (
    Operator(
        "from-right",
        "the errors of a row of a tile are added from right to left",
        _sums(lambda errors: [row[::-1] for row in errors]),
    ),
    Operator(
        "rows-in-turn",
        "the sums of the rows of a tile are added from first to last, not in halves",
        _of_rows_only(_in_turn),
    ),
    Operator(
        "rows-by-neighbours",
        "the sums of the rows of a tile are added in pairs of neighbours, not in halves",
        _of_rows_only(lambda sums: _tree(sums, neighbours=True)),
    ),
    Operator(
        "of-16-lanes",
        "16 lanes have an error each, and are added in halves",
        _by_rows(_tree, _tree),
    ),
    Operator(
        "of-4-threads",
        "4 threads add 4 errors each, and are added in halves",
        _by_rows(_by_threads(4, _tree), _tree),
    ),
    Operator(
        "of-4-threads-in-turn",
        "4 threads add 4 errors each, and are added one after the other",
        _by_rows(_by_threads(4, _in_turn), _tree),
    ),
    Operator(
        "of-2-threads",
        "2 threads add 8 errors each",
        _by_rows(_by_threads(8, _tree), _tree),
    ),
    Operator("down-columns", "errors are added down the columns of a tile first", _of_columns),
    Operator(
        "in-one-thread",
        "one thread adds the errors of a tile from the first to the last",
        _all_in_turn,
    ),
    Operator("in-binary64", "errors are added in binary64", _of_binary64),
    Operator("compensated", "sums are compensated, after Kahan", _by_rows(_compensated, _tree)),
    Operator("largest", "the error of a tile is the largest of its elements", _largest),
    Operator(
        "mean",
        "the error of a tile is the mean, not the sum",
        _changed(lambda x, count: quotient(x, float(count))),
    ),
    Operator(
        "root",
        "the error of a tile is the root of the sum",
        _changed(lambda x, _: rn32_of_binary64(math.sqrt(x)) if x >= 0 else x),
    ),
    Operator(
        "of-bf16",
        "errors are rounded to bfloat16 before they are added",
        _sums(lambda errors: [[_in_bf16(x) for x in row] for row in errors]),
    ),
)


def _value(compute: Callable[[float, float, float, float], float]) -> Callable[..., float]:
    def wrong(_: Any, code: int, scale_code: int, amax: float, largest: float) -> float:
        return compute(_E2M1.value(code), SCALE_FORMAT.value(scale_code), amax, largest)

    return wrong


def _trees() -> Iterator[tuple[str, str, Callable[..., float]]]:
    """Yield each order of v * w * amax / Q: a name, the formula and the computation.

    v is the number of a code, and w that of the scale. A factor is a leaf, and whether it divides.
    """
    for text, tree in _orders_of(("v", "w", "a", "q")):
        if tree != ((("v", "w"), "a"), "q"):
            yield text, _formula(tree), functools.partial(_of_tree, tree)


Tree = Any


def _orders_of(leaves: tuple[str, ...]) -> Iterator[tuple[str, Tree]]:
    """Yield the trees of products of leaves, each once, with names."""
    for pair in itertools.combinations(leaves, 2):
        rest = tuple(leaf for leaf in leaves if leaf not in pair)
        for k, one in enumerate(rest):
            other = rest[1 - k]
            yield f"{''.join(pair)}-{one}-{other}", ((pair, one), other)
        if pair[0] == leaves[0]:
            yield f"{''.join(pair)}-{''.join(rest)}", (pair, rest)


def _divides(tree: Tree) -> bool:
    return isinstance(tree, str) and tree == "q"


def _of_tree(tree: Tree, v: float, w: float, a: float, q: float) -> float:
    known = {"v": v, "w": w, "a": a, "q": q}

    def run(part: Tree) -> float:
        if isinstance(part, str):
            return known[part]
        one, other = part
        return quotient(run(one), run(other)) if _divides(other) else product(run(one), run(other))

    return run(tree)


def _formula(tree: Tree) -> str:
    if isinstance(tree, str):
        return {"a": "amax", "q": "Q"}.get(tree, tree)
    one, other = map(_formula, tree)
    one, other = (f"({part})" if " " in part else part for part in (one, other))
    return f"{one} {'/' if _divides(tree[1]) else '*'} {other}"


_VALUES = (
    *(
        Operator(
            f"as-{name}",
            f"the number of a code, for its error, is {formula}",
            _value(compute),
        )
        for name, formula, compute in _trees()
    ),
)


def _element_error(
    compute: Callable[[float, float], float],
) -> Callable[..., float]:
    def wrong(_: Any, profile: Nvfp4Profile, value: float, x: float) -> float:
        e = compute(value, x)
        return abs(e) if profile.scales.error == "mae" else product(e, e)

    return wrong


def _other_metric(_: Any, profile: Nvfp4Profile, value: float, x: float) -> float:
    e = difference(value, x)
    return product(e, e) if profile.scales.error == "mae" else abs(e)


_ELEMENT_ERRORS = (
    Operator("of-other-metric", "errors and squares of errors are exchanged", _other_metric),
    Operator(
        "nan-left-out",
        "an element that is NaN has no error",
        lambda right, profile, value, x: 0.0 if math.isnan(x) else right(profile, value, x),
    ),
    Operator(
        "relative",
        "the error of an element is relative to it",
        _element_error(lambda value, x: quotient(difference(value, x), x) if x else 0.0),
    ),
)


# ---------------------------------------------------------------------- elements


def _restored(change: Callable[[float, float, float], float]) -> Callable[..., float]:
    """Return y by the value of a code, decode and the number of the tile's scale."""

    def wrong(_: Any, value: float, scale: TileScale) -> float:
        return change(value, scale.decode, SCALE_FORMAT.value(scale.code))

    return wrong


_RESTORED = (
    Operator(
        "global-left-out",
        "y lacks the global scale: it is the code times the scale of its tile",
        _restored(lambda value, _, own: product(value, own)),
    ),
    Operator(
        "global-twice",
        "y has the global scale twice",
        _restored(
            lambda value, decode, own: product(
                product(value, decode), quotient(decode, own) if own else 1.0
            )
        ),
    ),
    Operator(
        "tile-twice",
        "y has the scale of its tile twice",
        _restored(lambda value, decode, own: product(product(value, decode), own)),
    ),
)
_SCALED = (
    Operator(
        "by-decode",
        "numbers are divided by s * S_dec, not multiplied by its rounded inverse",
        lambda _, x, scale: quotient(x, scale.decode),
    ),
    Operator(
        "by-reciprocal",
        "numbers are multiplied by the rounded inverse of s * S_dec, not divided by it",
        lambda _, x, scale: product(x, quotient(1.0, scale.decode)),
    ),
)


def _without_sign_of_zero(right: Any, xs: float, profile: Nvfp4Profile) -> int:
    code = int(right(xs, profile))
    return 0 if code == _E2M1.sign_bit else code


_ELEMENTS = (
    Operator(
        "zero-keeps-sign",
        "a quotient of -0 keeps its sign",
        lambda _, xs, __: encode(xs, _E2M1, "rne"),
    ),
    Operator(
        "zero-loses-sign",
        "each element that becomes zero loses its sign",
        _without_sign_of_zero,
    ),
)
_PACKED = (
    Operator(
        "swapped",
        "the even element of a pair lies in the high nibble",
        lambda right, low, high: right(high, low),
    ),
)


# Of the global scale alone: the amax that is stored is the right one.
_AMAXES = (
    *(one for one in AMAXES if one.name != "at-least-1e-12"),
    Operator(
        "at-least-1e-12",
        "is at least 1e-12, also of a tensor of zeros, against a division by zero",
        lambda _, amax, *__: max(amax, rn32(Fraction(1, 10**12))),
    ),
)


OPERATORS_OF_NVFP4: Mapping[str, tuple[Operator, ...]] = {
    "amax": _AMAXES,
    "division": _DIVISIONS,
    "product": _PRODUCTS,
    "limit": _LIMITS,
    "zeros": _ZEROS,
    "global": _GLOBALS,
    "tile-code": _CODES,
    "factors": _FACTORS,
    "clamp": _CLAMPS,
    "zero-scale": _ZERO_SCALES,
    "raised": _RAISED,
    "comparison": _CHOICES,
    "sum-of-errors": _SUMS,
    "stored-number": _VALUES,
    "element-error": _ELEMENT_ERRORS,
    "restored": _RESTORED,
    "scaled": _SCALED,
    "element": _ELEMENTS,
    "packed": _PACKED,
}
