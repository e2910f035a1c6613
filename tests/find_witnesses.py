"""The tensors at which block quantizers differ; run by hand, a search among them for witnesses.

`PYTHONPATH=docs python tests/find_witnesses.py` writes witnesses.json anew, the same in each run:
tensors that distinguish every pair of profiles and of rules, the exact model's results for them,
and how often the pairs differ on bell-shaped numbers.
"""

import json
from pathlib import Path

import ml_dtypes
import numpy as np
from inputs import values_of
from mor_docs.shown.profiles import bell_shaped, differences, pairs_of
from records import adversarial, exact_mx, exact_nvfp4

from mor_ref import formats
from mor_ref.definitions.mx import SCALE_RULES
from mor_ref.definitions.nvfp4 import PROFILES, TILES

FILE = Path(__file__).with_name("witnesses.json")
SHAPE = (16, 64)
ALIKE = {
    "te te_row": "On a tensor of one row: its amax is that of the tensor.",
    "even rceil": "For int8_mx on bfloat16: in each binade even goes up from 1.9921875 and rceil "
    "above 1.984375, and no bfloat16 lies between.",
}
MX_FORMATS = ["e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "int8_mx"]

# ---------------------------------------------------------------------- tensors


def with_maxima(maxima, random, side, columns=64):
    """Return blocks of `side` numbers, with the given maxima as the largest magnitudes."""
    x = random.uniform(-1, 1, (maxima.size, side)) * maxima.reshape(-1, 1)
    x[:, side // 3] = maxima.ravel()
    return x.reshape(-1, columns)


def nudged(x, random):
    """Return x moved by up to three float32 steps."""
    words = np.asarray(x, np.float32).view(np.int32)
    return (words + random.integers(-3, 4, words.shape, np.int32)).view(np.float32)


def ordinary(random):
    """Yield Gaussian tensors; most have a few columns with far larger numbers."""
    for exponent in range(-4, 12):
        x = random.standard_normal((32, 128)) * random.uniform(0.01, 30)
        x[:, random.integers(0, 128, 3)] *= 2.0 ** max(exponent, 0)
        yield x


def wide(random):
    """Yield tensors of every magnitude, with subnormals, infinities, and blocks of zeros."""
    yield from (np.zeros(SHAPE), np.full(SHAPE, -0.0))
    for exponent in range(-149, 128, 3):
        x = np.ldexp(adversarial(SHAPE, seed=exponent + 149), exponent)
        x = (x.reshape(-1, 32) * (random.random((32, 1)) < 0.8)).reshape(SHAPE)
        yield np.where(np.isnan(x), -0.0, x)


def ties(random):
    """Yield scaled numbers of e2m1 and midpoints; the same a step away; the same times a factor."""
    points = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 6, 0.5, 1, 1.5, 2, 3, 4, 0, -0.0])
    for exponent in range(-60, 60, 5):
        x = random.choice(points, SHAPE) * random.choice([-1, 1], SHAPE)
        x[:, ::16] = 6
        x *= np.exp2(random.integers(-6, 7, (16, 4)).repeat(16, 1) + float(exponent))
        yield from (x, np.where(x == 0, x, nudged(x, random)), x * random.uniform(1, 2))


def near_scales(random, count=40, blocks=64, columns=64):
    """Yield tensors with block amaxes around midpoints between scales, and at random."""
    scales = np.array([v for v in values_of(formats["e4m3"]) if v > 0])
    for i in range(count):
        amax = np.ldexp(random.uniform(1, 2), int(random.integers(-40, 40)))
        share = random.choice((scales[1:] + scales[:-1]) / 2 / 448, blocks)
        share = random.uniform(0.001, 1, blocks) if i % 2 else share
        x = with_maxima(nudged(amax * share, random), random, 16, columns)
        x[0, 0] = amax
        yield x


def near_powers(random):
    """Yield block amaxes around powers of two, largest numbers of formats, and rounding points."""
    tops = [1, 1.25, 1.5, 1.75, 1.875, 1.9375, 1.96875, 1.9921875]
    for exponents in np.array_split(np.arange(-148, 127), 12):
        maxima = nudged(np.ldexp.outer(tops, exponents), random)
        yield with_maxima(maxima.repeat(2, 1), random, 32)


KINDS = {f.__name__: f for f in (ordinary, wide, ties, near_scales, near_powers)}


def tensors(kind):
    """Yield all tensors of a kind, as float32 and as bfloat16."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for x in KINDS[kind](np.random.default_rng(2024)):
            yield from (x.astype(np.float32), x.astype(np.float32).astype(ml_dtypes.bfloat16))


# ---------------------------------------------------------------------- pairs


def recipes():
    """Yield each heading, the names to distinguish under it, and the arguments of the quantizer."""
    for tile in TILES:
        names = [p.name for p in PROFILES.values() if tile in p.tiles]
        yield f"nvfp4 {tile[0]}x{tile[1]}", names, {"tile": tile}
    for fmt in MX_FORMATS:
        yield f"mx {fmt}", list(SCALE_RULES), {"fmt": fmt}


def candidates(how):
    """Return small float32 tensors: two rows of two tiles, two tiles of 16x16, or one MX block."""
    random = np.random.default_rng(7)
    if "fmt" in how:
        maxima = 1 + (np.arange(256) + random.random(256)) / 256
        found = [with_maxima(amax, random, 32, 32) for amax in maxima]
    else:
        found = near_scales(random, 200, 4 if how["tile"] == (1, 16) else 32, 32)
    return [x.astype(np.float32) for x in found]


def witnesses(names, how):
    """Yield few tensors that distinguish all pairs of names, the one with most pairs first."""
    telling = [(x, differences([x], names, how)) for x in candidates(how)]
    missing = set(pairs_of(names))
    while missing:
        apart = [{pair for pair in missing if any(found[pair])} for _, found in telling]
        best = max(range(len(telling)), key=lambda i: len(apart[i]))
        if not apart[best]:
            raise LookupError(f"no candidate tells these apart: {sorted(missing)}")
        yield witness(telling[best][0], names, sorted(apart[best]), how)
        missing -= apart[best]


def witness(x, names, pairs, how):
    """Return a tensor as the words of its rows, and the exact model's results for it."""
    hexadecimal = [" ".join(f"{w:08x}" for w in row) for row in x.view(np.uint32).tolist()]
    expected = {name: compact(by_exact_model(x, name, **how), x.shape) for name in names}
    return {"tells_apart": pairs, "x": hexadecimal, "expected": expected}


def by_exact_model(x, name, **how):
    if "fmt" in how:
        return exact_mx(x, scale_rule=name, **how)
    return exact_nvfp4(x, name, **how)


def compact(found, shape):
    """Return codes and scales as two hexadecimal digits each, global scales as eight, by rows."""
    codes = np.array(found["codes"]).reshape(shape).tolist()
    listed = {name: [bytes(row).hex(" ") for row in rows]
              for name, rows in (("codes", codes), ("scale", found["scale"]))}  # fmt: skip
    if "global" in found:
        listed["global"] = " ".join(f"{w:08x}" for w in found["global"])
    return listed


def main():
    """Write the file."""
    found = {"witnesses": {}, "alike": ALIKE, "differing scales and codes": {}}
    for heading, names, how in recipes():
        found["witnesses"][heading] = list(witnesses(names, how))
        found["differing scales and codes"][heading] = differences(bell_shaped(), names, how)
    FILE.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
