"""Whole wrong programs of one profile: flushes of subnormal numbers, CDNA 3, and late scales.

Each is `dots_by_text`, which was written from the text alone, with other steps.
"""

import math
from fractions import Fraction
from functools import partial, reduce

import dots_by_text as by_text
from dots_by_text import FAMILIES, add, by_ieee, chunks, exponent, multiply, rounded, special, two
from tired_dots import SUITES, Program, low_of, without_scales


def plus(x, low):
    """Return a number, or +0 if it is below 2^low."""
    return 0.0 if abs(x) < 2.0**low else x


def signed(x, low):
    """Return a number, or a zero of its sign if it is below 2^low."""
    return math.copysign(0.0, x) if abs(x) < 2.0**low else x


# ---------------------------------------------------------------- flushes


def of_results(flush, function):
    """Flush the result of a chunk."""

    def chunk(products, c, row, **more):
        e, n, r = function(products, c, row, **more)
        return e, n, flush(r, low_of(row))

    return chunk


def of_c(flush, function):
    """Flush the c that a chunk takes."""

    def chunk(products, c, row, **more):
        return function(products, flush(c, -14 if more else low_of(row)), row, **more)

    return chunk


def of_elements(flush, function, low=None):
    """Flush elements that are subnormal in their format, or in another one."""

    def one(x, e):
        return flush(x, e if low is None else low) if math.isfinite(x) else x

    def chunk(products, c, row, **more):
        pairs = [((one(v[0], e[0]), one(v[1], e[1]), *v[2:]), e) for v, e in products]
        return function(pairs, c, row, **more)

    return chunk


def of_scales(flush, function):
    """Flush scales that are subnormal in their format."""

    def chunk(products, c, row, **more):
        found = [((*v[:2], flush(v[2], e[2]), flush(v[3], e[3])), e) for v, e in products]
        return function(found, c, row, **more)

    return chunk


def layered(*layers):
    """Return a program whose chunks have each of these layers."""

    def whole(function):
        return reduce(lambda inner, layer: layer(inner), layers, function)

    return Program(
        SUITES, lambda: {k: whole(one) for k, one in FAMILIES.items()}, fallback=whole(by_ieee)
    )


def at_the_end(flush):
    """Return a program that flushes its results alone."""

    def run(products, c, row, _):
        e, n, r = chunks(products, c, row)
        return e, n, flush(r, low_of(row))

    return Program(SUITES, chunks=run)


def at_both_ends(flush):
    """Return a program that flushes its arguments and its results."""

    def run(products, c, row, _):
        start = flush(c, -14 if row[6:] == ("f16",) else low_of(row))
        pairs = []
        of_elements(flush, lambda found, *_: pairs.extend(found))(products, c, row)
        e, n, r = chunks(pairs, start, row)
        return e, n, flush(r, low_of(row))

    return Program(SUITES, chunks=run)


def with_ftz(products, c, row):
    """Compute each operation as with -ftz=true."""

    def fl(x):
        return signed(x, -126)

    if row[0] == "f32_fma":
        a, b = products[0][0][:2]
        return 0, 0, fl(add(fl(a) * fl(b), fl(c)))
    sums = [fl(multiply(fl(v[0]), fl(v[1]))) for v, _ in products]
    while len(sums) > 1:
        pairs = [fl(add(*sums[i : i + 2])) for i in range(0, len(sums) - 1, 2)]
        sums = pairs + sums[len(pairs) * 2 :]
    return 0, 0, fl(add(fl(c), sums[0])) if sums else c


# ---------------------------------------------------------------- CDNA 3


def of_cdna3(kind):
    """Return the families of CDNA 3 with c last, or rounded to nearest everywhere."""

    def chunk(products, c, row):
        family, _, f, *_ = row
        found = special([*(v[0] * v[1] for v, _ in products), c])
        if found is not None:
            return 0, 0, found
        cut, down = (round, round) if kind == "nearest" else (math.trunc, math.floor)
        terms = [(Fraction(v[0]) * Fraction(v[1]), sum(e)) for v, e in products]
        sums, p = [], None
        for part in [terms] if family == "tr_fdpa" else [terms[0::2], terms[1::2]]:
            p = max((e for t, e in part if t), default=None)
            if p is not None:
                sums.append((p, sum(cut(t * two(f - p)) for t, _ in part) * two(p - f)))
        e_c = exponent(c, -126)
        p = max((e for e, _ in sums), default=None)
        s = sum(down(x * two(f - p)) for _, x in sums) * two(p - f) if sums else Fraction(0)
        if kind != "nearest":
            return added_last(s, p, c, e_c, kind)
        e = e_c if p is None else max(p, e_c)
        kept = Fraction(0 if family == "gtr_fdpa" and e_c < e - f - 1 else c)
        n = down(s * two(32 - e)) + (1 << 32 - f) * down(kept * two(f - e))
        return e, n, in_binary32(n * two(e - 32), down)

    return lambda: {"tr_fdpa": chunk, "gtr_fdpa": chunk}


def in_binary32(v, down):
    """Return a sum, rounded to 32 bits and then to binary32."""
    if v == 0:
        return 0.0
    unit = two(max(by_text.log2_floor(v), -126) - 31)
    return rounded(down(v / unit) * unit)


def added_last(s, p, c, e_c, kind):
    """Return the fields of products alone, and their result with c."""
    e = (e_c if kind == "of c" else -126) if p is None else p
    n = math.floor(s * two(32 - e)) if p is not None else 0
    r = in_binary32(n * two(e - 32), math.floor)
    if kind == "of c":
        return e, n, add(r, c)
    return e, n, in_binary32(Fraction(r) + Fraction(c), math.floor)


# ---------------------------------------------------------------- scales


def scaled_late(clears):
    """Return st_fdpa whose scales multiply the rounded sum of products alone."""

    def chunk(products, c, row):
        e, n, r = by_text.t_fdpa(without_scales(products), 0.0, row)
        value = r * math.prod(products[0][0][2:])
        found = special([value, c])
        if found is None:
            found = rounded(Fraction(value) + Fraction(c), to_integer=math.trunc) or 0.0
        terms = [*(math.prod(v) for v, _ in products), c]
        return (0, 0, found) if clears and special(terms) is not None else (e, n, found)

    return lambda: {"st_fdpa": chunk}


def with_short_chunks(products, c, row, _):
    """Take chunks of half of the products."""
    return chunks(products, c, (row[0], row[1] // 2, *row[2:]))


_ALL = [of_elements, of_c, of_results]
FLUSHES = {
    "c and +0": layered(partial(of_c, plus)),
    "c": layered(partial(of_c, signed)),
    "results and +0": layered(partial(of_results, plus)),
    "results": layered(partial(of_results, signed)),
    "last result and +0": at_the_end(plus),
    "last result": at_the_end(signed),
    "elements and +0": layered(partial(of_elements, plus)),
    "elements": layered(partial(of_elements, signed)),
    "elements and results": layered(partial(of_elements, signed), partial(of_results, signed)),
    "elements and scales": layered(partial(of_elements, signed), partial(of_scales, signed)),
    "all": layered(*(partial(one, signed) for one in _ALL)),
    "all and +0": layered(*(partial(one, plus) for one in _ALL)),
    "both ends": at_both_ends(signed),
    "both ends and +0": at_both_ends(plus),
    "ftz": Program(SUITES, fallback=with_ftz),
    "c last": Program(SUITES, of_cdna3("of c")),
    "c cut last": Program(SUITES, of_cdna3("alone")),
    "nearest": Program(SUITES, of_cdna3("nearest")),
    "short chunks": Program(SUITES, chunks=with_short_chunks),
    "scaled late": Program(SUITES, scaled_late(clears=False)),
    "scaled late, and special": Program(SUITES, scaled_late(clears=True)),
}
