"""Mixtures of formats in vectorized NumPy, in binary64: right, and copies with a mistake each."""

import numpy as np

from wrong.kernel import Kernel
from wrong.microscaling import bits

KERNELS = []
LIMIT = float(1 << 22)
NAMES = ("first", "second")

# ---------------------------------------------------------------------- the right steps


def amax_of(x):
    """Return the largest finite magnitude of each row."""
    return np.where(np.isfinite(x), np.abs(x), 0).max(axis=1, initial=0)


def exponent_of(amax):
    """Return floor(log2(amax)) of each row."""
    return np.frexp(amax.astype(np.float64))[1] - 1


def errors(x, y, amax, exponent=exponent_of, rounded=np.rint, limit=LIMIT):
    """Return u of each number."""
    d = np.abs((x - y).astype(np.float32)).astype(np.float64)
    u = rounded(np.ldexp(d, (20 - exponent(amax))[:, None].astype(np.int32)))
    u = np.where(np.isfinite(d), np.minimum(u, limit), limit)
    return np.where(np.isfinite(x) & (amax > 0)[:, None], u, 0)


def sums(u):
    """Return the sums of squares of each row."""
    whole = u.astype(np.uint64)
    return (whole * whole).sum(axis=1, dtype=np.uint64)


def first_least(squares):
    """Return the first candidate with the least sum in each row."""
    return np.argmin(np.array(squares), axis=0).astype(np.uint8)


# ---------------------------------------------------------------------- units with y


def of_rows(x, ys, amax_=amax_of, errors_=errors, sums_=sums, least=first_least):
    amax = amax_(x)
    found = [sums_(errors_(x, y, amax)) for y in ys]
    return amax, found, least(found)


def steps(name, mistake="", unseen=None, **changed):
    """Replace steps of the right program for units."""

    def run(operation, _, inputs):
        if operation not in ("mix_errors", "mix_layers"):
            return None
        given = {key: array.view(np.float32) for key, array in inputs.items()}
        with np.errstate(all="ignore"):
            amax, own, choice = of_rows(given["x"], [given[one] for one in NAMES], **changed)
            if operation == "mix_errors":
                squares = {f"{one}_squares": s for one, s in zip(NAMES, own, strict=True)}
                return {"amax": bits(amax.astype(np.float32)), **squares, "choice": choice}
            ys = [given[f"other_{one}"] for one in NAMES]
            _, other, _ = of_rows(given["other_x"], ys, **changed)
        both = [a + b for a, b in zip(own, other, strict=True)]
        squares = {f"{one}_squares": s for one, s in zip(NAMES, both, strict=True)}
        return {**squares, "choice": changed.get("least", first_least)(both)}

    KERNELS.append(Kernel(f"mix_steps.{name}", run, mistake, unseen or {}))


def layers(name, mistake, join):
    """Replace the addition of the sums of two tensors."""

    def run(operation, _, inputs):
        if operation != "mix_layers":
            return None
        given = {key: array.view(np.float32) for key, array in inputs.items()}
        with np.errstate(all="ignore"):
            _, own, _ = of_rows(given["x"], [given[one] for one in NAMES])
            ys = [given[f"other_{one}"] for one in NAMES]
            _, other, _ = of_rows(given["other_x"], ys)
        return {"choice": first_least(join(own, other))}

    KERNELS.append(Kernel(f"mix_layers.{name}", run, mistake))


def with_errors(**changed):
    return lambda x, y, amax: errors(x, y, amax, **changed)


def last_least(squares):
    return (len(squares) - 1 - np.argmin(np.array(squares[::-1]), axis=0)).astype(np.uint8)


def of_floats(u):
    """Return the sums in binary32, added in halves as a GPU reduces a warp."""
    terms = (u * u).astype(np.float32)
    while terms.shape[1] > 1:
        half = terms.shape[1] // 2
        rest = terms[:, 2 * half :]
        terms = np.concatenate([terms[:, :half] + terms[:, half : 2 * half], rest], axis=1)
    return terms[:, 0].astype(np.uint64)


def wide_errors(x, y, amax):
    """Return u of differences that are computed in binary64."""
    d = np.abs(x.astype(np.float64) - y)
    u = np.minimum(np.rint(np.ldexp(d, (20 - exponent_of(amax))[:, None].astype(np.int32))), LIMIT)
    right = errors(x, y, amax)
    return np.where((right > 0) & (right < LIMIT), u, right)


steps("numpy")
steps(
    "half_away", "u is rounded half up.", errors_=with_errors(rounded=lambda v: np.floor(v + 0.5))
)
steps("cut", "u is cut.", errors_=with_errors(rounded=np.floor))
steps("no_limit", "u has no limit.", errors_=with_errors(limit=2.0**31))
steps("frexp", "The exponent is the one of frexp, one above.",
      errors_=with_errors(exponent=lambda a: exponent_of(a) + 1))  # fmt: skip
steps("exponent_field", "The exponent of a subnormal amax is taken from its field: -127.",
      errors_=with_errors(exponent=lambda a: np.maximum(exponent_of(a), -127)))  # fmt: skip
steps("log2_in_binary32", "The exponent is floor(log2f(amax)), which is one above for 1.9999999.",
      errors_=with_errors(
          exponent=lambda a: np.floor(np.log2(np.maximum(a, 1e-45).astype(np.float32)))
      ))  # fmt: skip
steps("relative_to_amax", "u is in units of amax, not of its binade.",
      errors_=lambda x, y, a: np.where(
          errors(x, y, a) < LIMIT,
          np.rint(np.abs((x - y).astype(np.float32)).astype(np.float64)
                  / np.maximum(a, 1e-45)[:, None].astype(np.float64) * 2**20)
          * (np.isfinite(x) & (a > 0)[:, None]), LIMIT))  # fmt: skip
steps("difference_in_binary64", "x - y is not rounded to binary32.",
      errors_=wide_errors)  # fmt: skip
steps("infinite_amax", "An infinity counts in amax.",
      amax_=lambda x: np.where(np.isnan(x), 0, np.abs(x)).max(axis=1, initial=0))  # fmt: skip
steps("lost_left_out", "An infinite or NaN y has no error.",
      errors_=lambda x, y, a: np.where(np.isfinite(y), errors(x, y, a), 0))  # fmt: skip
steps("floats", "Squares are summed in binary32.", sums_=of_floats)
steps("not_squared", "The sum is of u, not of u^2.",
      sums_=lambda u: u.astype(np.uint64).sum(axis=1, dtype=np.uint64))  # fmt: skip
steps("squares_of_32_bits", "u^2 is a product of 32 bits.",
      sums_=lambda u: np.square(u.astype(np.uint32)).sum(axis=1, dtype=np.uint64))  # fmt: skip
steps("sums_of_32_bits", "The sum has 32 bits.",
      sums_=lambda u: sums(u) & np.uint64(0xFFFFFFFF))  # fmt: skip
steps(
    "last_number_left_out",
    "The last number of a unit is left out.",
    sums_=lambda u: sums(u[:, :-1]),
)
steps("last_of_ties", "Of equal sums, the last candidate is taken.", least=last_least)
steps("compared_as_floats", "The sums are compared in binary32.",
      least=lambda s: first_least([one.astype(np.float32) for one in s]))  # fmt: skip
layers("first_alone", "The first tensor decides.", lambda own, _: own)
layers("second_alone", "The second tensor decides.", lambda _, other: other)
layers("worst", "The larger sum decides.",
       lambda own, other: [np.maximum(a, b) for a, b in zip(own, other, strict=True)])  # fmt: skip
layers("votes", "The tensors vote, and the first has the last word.",
       lambda own, other: [np.where(own[0] == own[1], b, a)
                           for a, b in zip(own, other, strict=True)])  # fmt: skip
