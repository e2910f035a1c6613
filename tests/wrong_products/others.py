"""Operands taken for others, and programs of other designs."""

import functools
import math
from dataclasses import replace
from fractions import Fraction
from unittest import mock

import numpy as np

from mor_ref import formats
from mor_ref.definitions.dot import DOT_PROFILES
from mor_ref.exact import dot, dot_binary32, dot_nvidia, matmul
from mor_ref.exact.arithmetic import nearest_in, rn32, rn32_of_binary64
from mor_ref.exact.dot_binary32 import fused, product, total
from mor_ref.exact.dot_terms import ONE as ONE_FACTOR
from mor_ref.exact.dot_terms import ZERO, Factor, Product
from mor_ref.exact.step import replaced
from wrong_products.kernel import (
    BF16,
    has_chunks,
    has_overall,
    has_scales,
    wrong,
)
from wrong_products.pieces import (
    code_in_bf16,
    in_loop,
    part_of,
)
from wrong_products.sums import product_of


def _as(field, source):
    return lambda given: given | {field: given[source]}


for _field, _applies in (("scale", has_scales), ("overall", has_overall)):
    for _one, _other in ("ab", "ba"):
        wrong(
            f"{_field}_{_one}: of the other operand",
            _applies,
            arrays=_as(f"{_field}_{_one}", f"{_field}_{_other}"),
        )
for _side in "ab":
    wrong(
        f"scale_{_side}: of the block behind",
        has_scales,
        arrays=lambda given, name=f"scale_{_side}": (
            given | {name: np.concatenate([given[name][:, 1:], given[name][:, -1:]], axis=1)}
        ),
    )


def _sticky(pieces, add, c, profile):
    """Upcast all pieces behind one that needs it."""
    is_upcast = False
    for one, other in pieces:
        is_upcast = is_upcast or matmul.needs_upcast(one, other, profile)
        with replaced([(matmul.needs_upcast, lambda *_, now=is_upcast: now)]):
            c = add((one, other), c)
    return c


def _all_or_none(pieces, add, c, profile):
    """Upcast all pieces if one needs it."""
    is_upcast = any(matmul.needs_upcast(*pair, profile) for pair in pieces)
    with replaced([(matmul.needs_upcast, lambda *_: is_upcast)]):
        return functools.reduce(lambda c, pair: add(pair, c), pieces, c)


def _mixes(kind):
    return kind.upcasts and kind.has_factors


wrong("upcast: all pieces behind one", _mixes, *in_loop(_sticky))
wrong("upcast: all pieces if one", _mixes, *in_loop(_all_or_none))


def _in_wide_sums(round_sum):
    """Return a loop that adds scaled sums as a function rounds them, and rounds once more."""

    def loop(pieces, add, c, _):
        found = [add(pair, 0.0) for pair in pieces]
        if not all(map(math.isfinite, found)):
            return functools.reduce(lambda c, pair: add(pair, c), pieces, c)
        return round_sum(found)

    return in_loop(loop)


def _compensated(terms):
    """Add as Kahan does."""
    c, lost_part = 0.0, 0.0
    for term in terms:
        y = total(term, -lost_part)
        found = total(c, y)
        lost_part = total(total(found, -c), -y)
        c = found
    return c


wrong(
    "pieces: a sum in binary64",
    lambda kind: kind.in_pieces,
    *_in_wide_sums(lambda terms: rn32_of_binary64(sum(terms) + 0.0)),
)
wrong(
    "pieces: an exact sum",
    lambda kind: kind.in_pieces,
    *_in_wide_sums(lambda terms: rn32(sum(map(Fraction, terms), Fraction(0)))),
)
wrong("pieces: a compensated sum", lambda kind: kind.in_pieces, *_in_wide_sums(_compensated))


def _dequantized_into_bf16(reference, one, other, c, profile):
    """Multiply y in bfloat16, from 0 on."""
    del reference
    wide = DOT_PROFILES[profile.wide]
    codes = [
        [_nearest_code(product_of(code, block)) for code in block.codes] for block in (one, other)
    ]
    return total(dot.dot(*codes, 0.0, wide, (BF16, BF16)), c)


def _nearest_code(x):
    return 0x7FFF if math.isnan(x) else code_in_bf16(nearest_in(x, BF16))


wrong(
    "pieces: y in bf16", lambda kind: kind.has_factors, (matmul.add_piece, _dequantized_into_bf16)
)
wrong(
    "sum: partial in f16",
    lambda kind: kind.in_pieces and kind.profile.result == "f32",
    (
        matmul.scaled_sum,
        lambda _, d, e, p, c: fused(product(d, e), nearest_in(p, formats["f16"]), c),
    ),
)


def _scaled_each_period(pieces, add, c, _):
    """Scale each sum of 128 products."""
    for one, other in pieces:
        for k in range(0, len(one.codes), 128):
            part = slice(k, k + 128)
            c = add((part_of(one, part), part_of(other, part)), c)
    return c


wrong(
    "promoted: scaled every 128",
    lambda kind: kind.profile.family == "promoted",
    *in_loop(_scaled_each_period),
)
wrong(
    "exact: both factors are rounded",
    lambda kind: kind.is_exact and kind.record.name != "mx",
    (
        dot_binary32.exact_chunk,
        lambda reference, part, c, profile: reference(
            [
                one._replace(
                    scale_a=Factor(product(*map(float, (one.scale_a.value, one.scale_b.value))), 0),
                    scale_b=ONE_FACTOR,
                )
                for one in part
            ],
            c,
            profile,
        ),
    ),
)


def _joint_scale(change):
    """Return a product whose scales are one number, which a function changes."""

    def changed(one):
        value = one.scale_a.value * one.scale_b.value
        exponent = one.scale_a.exponent + one.scale_b.exponent
        if not math.isfinite(value):
            return one
        return one._replace(scale_a=change(Factor(value, exponent)), scale_b=ONE_FACTOR)

    return (
        (
            dot_nvidia.term_of_product,
            lambda reference, one, profile: reference(changed(one), profile),
        ),
        (
            dot_nvidia.term_of_group,
            lambda reference, group, profile: reference([changed(one) for one in group], profile),
        ),
    )


def _at_most(x):
    return Factor(min(x.value, 2.0**127), min(x.exponent, 127))


def _at_least(x):
    return Factor(max(x.value, 2.0**-127), max(x.exponent, -127))


def _by_mx(kind):
    return kind.profile.needs_scales and kind.record.name == "mx"


wrong("scales: both are at most 2^127", _by_mx, *_joint_scale(_at_most))
wrong("scales: both are at least 2^-127", _by_mx, *_joint_scale(_at_least))
for _size in (8, 32):
    wrong(
        f"groups of {_size}",
        lambda kind: kind.profile.family == "gst_fdpa" and not (kind.record.has_overall),
        patches=(lambda size=_size: mock.patch.object(dot_nvidia, "GROUP", size),),
    )
wrong(
    "groups: products are cut",
    lambda kind: kind.profile.family == "gst_fdpa",
    (dot_nvidia.gst_fdpa, lambda _, part, c, profile: dot_nvidia.t_fdpa(part, c, profile)),
)
wrong(
    "K: the first 64 alone",
    lambda kind: any(case.arrays["a"].shape[1] > 64 for case in kind.cases),
    arrays=lambda given: (
        given
        | {
            name: np.where(
                np.arange(given[name].shape[1]) < 64, given[name], given[name].dtype.type(0)
            )
            for name in ("a", "b", "y_a", "y_b")
        }
    ),
)


def _four_sums(pieces, add, c, _):
    """Add every fourth piece to one of four sums."""
    sums = [functools.reduce(lambda c, one: add(one, c), pieces[k::4], 0.0) for k in range(4)]
    return total(c, total(total(sums[0], sums[1]), total(sums[2], sums[3])))


def _sorted_by(key):
    """Return a loop that takes pieces in the order of a number of their sums."""

    def loop(pieces, add, c, _):
        order = sorted(pieces, key=lambda pair: key(add(pair, 0.0)))
        return functools.reduce(lambda c, pair: add(pair, c), order, c)

    return in_loop(loop)


def _number(x):
    return 0.0 if math.isnan(x) else x


def _in_pieces(kind):
    return kind.in_pieces


wrong(
    "pieces: four sums",
    lambda kind: kind.in_pieces and kind.profile.family != "promoted",
    *in_loop(_four_sums),
)
for _name, _key in {
    "small": lambda x: abs(_number(x)),
    "large": lambda x: -abs(_number(x)),
    "positive": lambda x: _number(x) < 0,
}.items():
    wrong(f"pieces: {_name} ones first", _in_pieces, *_sorted_by(_key))


def _guarded(is_special):
    """Return a sum from 0 on if c is special."""

    def scaled_sum(_, one, other, partial, c):
        return fused(product(one, other), partial, 0.0 if is_special(c) else c)

    return (matmul.scaled_sum, scaled_sum)


wrong("sum: a c of NaN is 0", _in_pieces, _guarded(math.isnan))
wrong("sum: an infinite c is 0", _in_pieces, _guarded(math.isinf))


def _rounded_to(direction):
    """Return a sum rounded up or down."""

    def scaled_sum(reference, one, other, partial, c):
        found, factor_of = reference(one, other, partial, c), product(one, other)
        if not all(map(math.isfinite, (factor_of, partial, c, found))):
            return found
        exact = Fraction(factor_of) * Fraction(partial) + Fraction(c)
        is_there = (Fraction(found) - exact) * (1 if direction > 0 else -1) >= 0
        return found if is_there else float(np.nextafter(np.float32(found), np.float32(direction)))

    return (matmul.scaled_sum, scaled_sum)


wrong("sum: rounded up", _in_pieces, _rounded_to(math.inf))
wrong("sum: rounded down", _in_pieces, _rounded_to(-math.inf))
for _side in "ab":
    wrong(
        f"y_{_side}: without sign",
        lambda kind: kind.upcasts,
        arrays=lambda given, name=f"y_{_side}": given | {name: given[name] & np.uint16(0x7FFF)},
    )
    wrong(
        f"y_{_side}: without its last bit",
        lambda kind: kind.upcasts,
        arrays=lambda given, name=f"y_{_side}": given | {name: given[name] & np.uint16(0xFFFE)},
    )


def _filled_in_front(reference, products, profile):
    """Fill the first chunk, not the last one, with zeros."""
    length = dot.chunk_length(profile)
    rest = len(products) % length if length else 0
    zeros = [Product(ZERO, ZERO)] * (length - rest if rest else 0)
    return reference([*zeros, *products], profile)


wrong(
    "chunks: the short one comes first",
    lambda kind: has_chunks(kind) and kind.profile.family != "promoted",
    (dot.in_chunks, _filled_in_front),
)


def _any_infinity(reference, values):
    """Return the first of several infinities, whatever their signs."""
    special = [float(x) for x in values if not math.isfinite(x)]
    return special[0] if special and all(map(math.isinf, special)) else reference(values)


wrong(
    "exact: infinities never cancel",
    lambda kind: kind.is_exact and not kind.record.has_overall,
    (dot_binary32.special_sum, _any_infinity),
)
wrong(
    "d: of all rows at the end",
    lambda kind: kind.has_factors and kind.record.has_overall,
    *in_loop(
        lambda pieces, add, c, _: product(
            functools.reduce(
                lambda c, pair: add(tuple(replace(x, overall=1.0) for x in pair), c), pieces, c
            ),
            product(*(x.overall for x in pieces[0])),
        )
    ),
)
