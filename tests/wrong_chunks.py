"""Wrong kernels of dot products that cut their sums: one step of `dots_in_integers` is changed."""

import math
from dataclasses import replace

import dots_in_integers as right
import numpy as np
from dots_in_integers import NOTHING, Kernel, rounded, shifted, special_of

GROUP = right.GROUP


def kernel_of(profile, changes):
    """Return a kernel of a profile with other steps."""
    return type("Wrong", (Kernel,), changes)(profile)


def lane_count(profile):
    """Return the number of terms of a chunk, without c."""
    return profile.chunk // (GROUP if profile.family == "gst_fdpa" else 1)


def wrapped(x, bits):
    """Return a whole number modulo 2^bits, with a sign."""
    half = 1 << bits - 1
    return (x + half) % (2 * half) - half


def clipped(x, bits):
    """Return a whole number, or the nearest one of so many bits."""
    half = 1 << bits - 1
    return np.clip(x, -half, half - 1)


def in_float(n, bits, mode):
    """Return a whole number with so many bits from its leading one on."""
    drop = abs(n).bit_length() - bits
    if drop <= 0:
        return n
    q, rest, half = abs(n) >> drop, abs(n) & (1 << drop) - 1, 1 << drop - 1
    up = mode == "rne" and (rest > half or (rest == half and q & 1))
    return int(math.copysign(1, n)) * (q + up << drop)


def each(function):
    """Return a function of the numbers of an array."""
    return np.frompyfunc(function, 1, 1)


def in_an_accumulator(keep, order):
    """Return the sum of terms and c in an accumulator, in an order."""

    def total(_, n, n_c):
        row = list(n.astype(object).T)
        c = n_c.astype(object)
        if order == "final":
            return keep(sum(row) + c)
        if order == "products":
            return keep(sum(row)) + c
        if order == "tree":
            while len(row) > 1:
                row = [keep(sum(row[k : k + 2])) for k in range(0, len(row), 2)]
            return keep(row[0] + c)
        row = [c, *row] if order == "c first" else [*row, c]
        found = keep(row[0])
        for term in row[1:]:
            found = keep(found + term)
        return found

    return total


def exponents_of(change):
    """Return changes of the exponents of products that are not 0."""
    return {"exponents": lambda _, t: np.where(t.e == NOTHING, NOTHING, change(t.e))}


def lanes(profile):
    """Yield kernels that leave a lane out of the largest exponent, or of special numbers."""
    for k in range(lane_count(profile)):

        def special(_, t, c, k=k):
            return special_of(np.concatenate([np.delete(t.v, k, 1), c[:, None]], axis=1))

        def ordinary(self, t, c, is_first, k=k):
            v = t.v.copy()
            v[:, k] = np.where(np.isfinite(v[:, k]), v[:, k], 0.0)
            return Kernel.amd_chunk(self, replace(t, v=v), c, is_first)

        def largest(_, e, e_c, k=k):
            return np.maximum(np.delete(e, k, 1).max(axis=1, initial=NOTHING), e_c)

        yield f"specials without lane {k}", {"special": special, "amd_chunk": ordinary}
        if profile.family == "gtr_fdpa":
            continue
        p_of = lambda _, e, k=k: np.delete(e, k, 1).max(axis=1)  # noqa: E731
        yield f"E without lane {k}", {"largest": largest, "p_of": p_of}


def widths(profile):
    """Yield kernels with narrow sums: integers, and floats in several orders."""
    most = profile.fraction_bits + 2 + lane_count(profile).bit_length()
    name = "amd_sum" if profile.family in ("tr_fdpa", "gtr_fdpa") else "total"

    def step(keep, order):
        total = in_an_accumulator(keep, order)
        if name == "total":
            return {name: total}
        return {name: lambda self, n: total(self, n, np.zeros(len(n), np.int64))}

    for bits in range(profile.fraction_bits + 2, most + 1):
        yield f"sum of {bits} bits, wrapped", step(each(lambda x, n=bits: wrapped(x, n)), "final")
        yield f"sum of {bits} bits, clipped", step(each(lambda x, n=bits: clipped(x, n)), "c first")
    for bits in range(max(profile.result_bits + 1, most - 6), most):
        for mode in ("rtz", "rne"):
            for order in ("c first", "c last", "tree", "products", "final"):
                keep = each(lambda x, n=bits, mode=mode: in_float(x, n, mode))
                yield f"float of {bits} bits, {mode}, {order}", step(keep, order)


def exponents(profile):
    """Yield kernels with narrow exponents, and other exponents of zeros."""
    for bits in (7, 8, 9):
        yield f"exponents of {bits} bits, wrapped", exponents_of(lambda e, n=bits: wrapped(e, n))
        yield f"exponents of {bits} bits, clipped", exponents_of(lambda e, n=bits: clipped(e, n))
    for least in (-133, -132, -128, -127, -126, -125):
        yield f"exponents from {least} on", exponents_of(lambda e, x=least: np.maximum(e, x))
    if profile.family in ("tr_fdpa", "gtr_fdpa"):
        return
    for more in (-1, *range(1, 11)):
        zeros = lambda self, x=more: self.e0 + x  # noqa: E731
        yield f"e0 {more:+}", {"c_zero": zeros, "zeros": zeros}
    for e in (-126, -127, -128, -14):
        yield f"a zero c has {e}", {"c_zero": lambda _, e=e: e}
        yield f"a zero product has {e}", {"zeros": lambda _, e=e: e}
    yield "E without c", {"largest": lambda _, e, _c: e.max(axis=1)}
    for e in (-127, -128, -149):
        yield f"exponents of c from {e} on", {"c_e_min": lambda _self, _first, e=e: e}


def cuts_of_amd(profile):
    """Yield kernels of CDNA 3 with other cuts of S, c and the groups, and other infinities."""
    if profile.family not in ("tr_fdpa", "gtr_fdpa"):
        return
    yield "S is cut toward zero", {"second_cut": lambda _, n, s: shifted(n, s, False)}
    for bits in range(24, 31):

        def in_bits(self, t, bits=bits):
            n, p = Kernel.s_of(self, t)
            return each(lambda x: in_float(int(x), bits, "rtz"))(n), p

        yield f"S is a float of {bits} bits", {"s_of": in_bits}

        def coarse(_, n, s, bits=bits):
            return shifted(n, s - 32 + bits, True) * (1 << 32 - bits)

        yield f"S is cut at {bits} bits", {"second_cut": coarse}

    def near_cut(self, c, big):
        n = shifted(c.m, c.u + self.f - big, False)
        return np.where(self.is_far(c, big), 0, n)

    yield "c is cut toward zero", {"amd_c": near_cut}
    yield (
        "no rounding down",
        {"amd_result": lambda _, n, u: rounded(n, u, 23, mode="rne") if n else 0.0},
    )
    for which in (0, 1) if profile.family == "gtr_fdpa" else ():
        yield (
            f"group {which} is cut toward zero",
            {"group_cut": lambda _, n, s, w, one=which: shifted(n, s, w != one)},
        )
    for more in (-1, 1, 2) if profile.family == "gtr_fdpa" else ():
        yield (
            f"a far c {more:+}",
            {"is_far": lambda self, c, big, x=more: c.e < big - self.f - 1 - x},
        )
    for top in (126, 127, 129) if profile.family == "tr_fdpa" else ():

        def overflows(_, v, top=top):
            return np.where(np.abs(v) >= 2.0**top, np.copysign(np.inf, v), v)

        yield f"infinite from 2^{top} on", {"overflows": overflows}


def columns(t, places):
    """Return some products of a chunk."""
    arrays = (x[:, places] for x in (t.m, t.u, t.e, t.v))
    return right.Terms(*arrays, t.a.part(places), t.b.part(places), t.lowest)


def side_by_side(one, other):
    """Return the products of two chunks as one."""

    def numbers(x, y):
        pairs = ((x.m, y.m), (x.u, y.u), (x.e, y.e), (x.v, y.v))
        return (np.concatenate(pair, axis=1) for pair in pairs)

    of = (right.Numbers(*numbers(getattr(one, x), getattr(other, x))) for x in "ab")
    return right.Terms(*numbers(one, other), *of, one.lowest)


def tails(profile):
    """Yield kernels that add a last chunk otherwise that is not whole."""
    if profile.family in ("gst_fdpa", "promoted"):
        return
    length = profile.chunk

    def on_tails(change):
        def run(self, chunks, c):
            n = self.count - (len(chunks) - 1) * length
            whole, last = chunks[:-1], chunks[-1]
            given = chunks if n == length else change(whole, columns(last, [*range(n)]), n)
            return Kernel.run(self, given, c)

        return {"run": run}

    def in_steps(whole, last, n, size):
        starts = range(0, n, size)
        return [*whole, *(columns(last, [*range(k, min(k + size, n))]) for k in starts)]

    yield "no tail", on_tails(lambda whole, *_: whole)
    yield "the tail first", on_tails(lambda whole, last, _: [last, *whole])
    yield (
        "the tail without its last product",
        on_tails(
            lambda whole, last, n: [*whole, columns(last, [*range(n - 1)])] if n > 1 else whole
        ),
    )
    yield (
        "the tail filled with its last product",
        on_tails(
            lambda whole, last, n: [*whole, columns(last, [*range(n), *[n - 1] * (length - n)])]
        ),
    )
    if profile.family != "gtr_fdpa":
        yield (
            "the tail in the chunk before",
            on_tails(
                lambda whole, last, _: (
                    [*whole[:-1], side_by_side(whole[-1], last)] if whole else [last]
                )
            ),
        )
    for size in (1, 2, 4, 8, 16):
        if size < length and not (size == 1 and profile.family == "gtr_fdpa"):
            yield (
                f"the tail {size} at a time",
                on_tails(lambda whole, last, n, size=size: in_steps(whole, last, n, size)),
            )


TABLES = (lanes, widths, exponents, cuts_of_amd, tails)


def kernels(profile, tables=TABLES):
    """Yield the names and changes of all wrong kernels of a profile."""
    for table in tables:
        yield from table(profile)
