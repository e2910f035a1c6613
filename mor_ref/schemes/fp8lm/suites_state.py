"""FP8-LM: states after each of some steps, and the ranks of tensors."""

import itertools
from collections.abc import Iterator

import numpy as np

from mor_ref.golden.inputs.edges import bell
from mor_ref.golden.model.suite import Case, Size, suite
from mor_ref.operations.bits import Unsigned
from mor_ref.operations.random_numbers import Draws
from mor_ref.operations.random_words import random_words
from mor_ref.schemes.fp8lm.definition import AUTOMATIC, SCALE_PROFILES, format_of
from mor_ref.schemes.fp8lm.inputs import scales
from mor_ref.schemes.fp8lm.operation import random_shared
from mor_ref.schemes.fp8lm.operation_adam import random_stored

_ROWS = 24
_WINDOWS = (1, 2, 5, 16)
_SIZES = (1, 3, 100, 1000, 2048)
_LOST = (0x7F800000, 0x7FC00000, 0, 0x00000001)
_MU = (0x3F800000, 0x3F000000, 0x00800000, 0x00000003, 0x7F7FFFFF, 0x3DCCCCCD)
_LR = (0x3A83126F, 0x38D1B717, 0x3F800000, 0x00000001)
_BETA = (0x3F666666, 0x3F7FBE77, 0x3F7D70A4, 0x3F000000, 0x00000000, 0x3F7FFFFF)
_STEPS = (1, 2, 3, 10, 100, 999, 12345)
_RANKS = (1, 2, 3, 8)
# Ranks by whose number, or by whose root, a product with a rounded reciprocal differs.
_BY_ROOTS = (("msamp_max", 5), ("msamp_0_4_max", 5), ("msamp_0_4_max", 6), ("msamp_0_4_max", 7))
_ROUNDED = 600  # the window for which 2^RN32(1 / window) is another number of binary32
# Saturated codes, whose product with 100,000 needs 32 bits or more, and all codes.
_BEYOND = ((21_474, (1 << 31) - 1), (21_475, (1 << 31) - 1), (21_475, 1_000_000), (42_949, 1 << 24),
           (42_950, 1 << 24), (42_950, 1 << 30), (64_425, 1 << 30), (20_000_000, (1 << 31) - 1),
           ((1 << 31) - 1, (1 << 31) - 1), (168, (1 << 24) + 1))  # fmt: skip
# Betas next to 1, and steps at which their corrections are so near a tie of binary32 that binary64
# has the tie.
_NEAR_ONE = (0x3F7FFFFF, 0x3F7FFFFE, 0x3F7FFFF4)
_AT_TIES = (3, 4, 64)
# Sizes and ranks: loads beyond 31 and 32 bits, and sizes and loads that differ by 1 above 2^24.
_LARGE_TENSORS = (
    ((3_000_000_000, 2_000_000_000, 1_500_000_000, 1_400_000_000, 10), 2),
    ((2_000_000_000, 1_000_000_000, 900_000_000, 800_000_000, 10), 2),
    ((4_294_967_295, 4_294_967_295, 4_294_967_294, 4_000_000_000, 7), 3),
    (((1 << 24) + 2, 1 << 24, 3, 2, 1), 2),
    ((1 << 24, (1 << 24) + 1, 0, 0, 0), 2),
)
_SATURATED = (1, 2, 3, 7, 10, 167, 168, 400, 1000, 1677, 20_000)


def _words(count: int, size: Size, stream: int) -> Unsigned:
    return random_words(count, size.seed, stream)


def _window_cases(size: Size) -> Iterator[Case]:
    for k, width in enumerate(_WINDOWS):
        rows = _ROWS * size.factor
        x = bell(2 * rows * width, size.seed, 300 + k) & np.uint32(0x7FFFFFFF)
        amax, window = x.reshape(2, rows, width).copy()
        for n, bits in enumerate(_LOST):  # also the first and the last step
            amax[n::7, (n * 3) % width] = bits
        amax[5] = np.sort(amax[5])[::-1]
        yield Case(f"{width}", {}, {"amax": amax, "window": window})


def _mu_cases(size: Size) -> Iterator[Case]:
    for automatic in AUTOMATIC:
        for steps in (1, 7, 1000):
            rows = _ROWS * size.factor
            drawn = _words(rows * 6, size, 310).reshape(rows, 6)
            sizes = np.array(_SIZES, np.uint32)[np.arange(rows) % len(_SIZES)]
            counts = np.where(drawn % 4 == 0, drawn >> 8 & 3, 0).astype(np.uint32)
            arrays = {
                "saturated": np.minimum(counts, sizes[:, None]).astype(np.uint32),
                "size": sizes,
                "mu": np.array(_MU, np.uint32)[np.arange(rows) % len(_MU)],
            }
            parameters = {"automatic": automatic, "steps": steps}
            yield Case(f"{automatic}.{steps}", parameters, arrays)
    for automatic, steps in itertools.product(AUTOMATIC, (9, 187)):
        parameters = {"automatic": automatic, "steps": steps}
        yield Case(f"{automatic}.thresholds.{steps}", parameters, _thresholds())
    count, codes = np.array(_BEYOND, np.uint32).T
    beyond = {"saturated": count[:, np.newaxis].copy(), "size": codes.copy()}
    for automatic in AUTOMATIC:
        mu = np.full(codes.size, _MU[0], np.uint32)
        yield Case(
            f"{automatic}.beyond", {"automatic": automatic, "steps": 9}, {**beyond, "mu": mu}
        )
    few = {"saturated": np.zeros((1, 4), np.uint32), "size": np.array([100], np.uint32)}
    mu = np.array([_MU[0]], np.uint32)
    yield Case(f"msamp.{_ROUNDED}", {"automatic": "msamp", "steps": _ROUNDED}, {**few, "mu": mu})


def _thresholds() -> dict[str, Unsigned]:
    """Return gradients of 100,000 codes for each saturated one, one fewer, and one more."""
    pairs = [(k, 100_000 * k + off) for k in _SATURATED for off in (-1, 0, 1)]
    counts, sizes = np.array(pairs, np.uint32).T
    steps = np.array([0, 1, -1, 0, 0], np.int64)
    return {
        "saturated": (counts[:, np.newaxis] + steps).astype(np.uint32),
        "size": sizes.copy(),
        "mu": np.array(_MU, np.uint32)[np.arange(len(pairs)) % len(_MU)],
    }


def _rate_cases(_: Size) -> Iterator[Case]:
    rows = [(a, b, c, t) for a in _LR for b in _BETA for c in _BETA for t in _STEPS]
    rows += [(_LR[2], b, c, t) for b in _NEAR_ONE for c in _NEAR_ONE for t in _AT_TIES]
    lr, beta1, beta2, step = (np.array(one, np.uint32) for one in zip(*rows, strict=True))
    yield Case("all", {}, {"lr": lr, "beta1": beta1, "beta2": beta2, "step": step})


def _partition_cases(size: Size) -> Iterator[Case]:
    for k, width in enumerate((1, 2, 7, 20)):
        rows = _ROWS * size.factor
        numel = (_words(rows * width, size, 320 + k) % 9).astype(np.uint32).reshape(rows, width)
        numel[::3] *= np.uint32(4096)  # many are equal: the index decides
        ranks = np.array(_RANKS, np.uint32)[np.arange(rows) % len(_RANKS)]
        yield Case(f"{width}", {}, {"numel": numel, "ranks": ranks})
    sizes, ranks = (np.array(one, np.uint32) for one in zip(*_LARGE_TENSORS, strict=True))
    yield Case("large", {}, {"numel": sizes, "ranks": ranks})


def _shared_cases(size: Size) -> Iterator[Case]:
    """Yield amaxes where a logarithm turns, of one rank, and of ranks whose amaxes are drawn."""
    shared = ("paper", "msamp_min", "msamp_max")
    for fmt, how, profile in itertools.product(("e4m3", "e5m2"), shared, SCALE_PROFILES):
        parameters = {"format": fmt, "reduction": how, "profile": profile}
        name = f"{fmt}.{how}.{profile}"
        turns = scales(format_of(fmt), parameters, size, 0)["amax"]
        yield Case(f"{name}.1", parameters, {"amax": np.unique(turns)[:, np.newaxis]})
        for width in (2, 3, 7):
            drawn = random_shared(parameters, Draws(0, 40 * size.factor, size.seed, width))
            yield Case(f"{name}.{width}", parameters, {"amax": drawn["amax"].astype(np.uint32)})
    of_roots = itertools.product(("e4m3", "e5m2"), SCALE_PROFILES, _BY_ROOTS)
    for fmt, profile, (how, width) in of_roots:
        parameters = {"format": fmt, "reduction": how, "profile": profile}
        drawn = random_shared(parameters, Draws(0, 40 * size.factor, size.seed, width))
        arrays = {"amax": drawn["amax"].astype(np.uint32)}
        yield Case(f"{fmt}.{how}.{profile}.{width}", parameters, arrays)


def _stored_cases(size: Size) -> Iterator[Case]:
    """Yield amaxes where a logarithm turns, scales before, and random ones."""
    turns = {fmt: scales(format_of(fmt), {"format": fmt}, size, 0) for fmt in ("e4m3", "f16")}
    count = min(len(one["amax"]) for one in turns.values())
    arrays = {
        "first_amax": turns["e4m3"]["amax"][:count],
        "second_amax": turns["f16"]["amax"][:count],
        "master_amax": turns["f16"]["amax"][-count:],
        "previous": turns["f16"]["previous"][-count:],
    }
    yield Case("turns", {}, arrays)
    drawn = random_stored({}, Draws(0, 600 * size.factor, size.seed))
    yield Case("random", {}, {name: one.astype(np.uint32) for name, one in drawn.items()})


SHARED = suite(
    "fp8lm_shared", "Scales of the ranks of an all-reduce", "fp8lm_shared", (), _shared_cases
)
STORED = suite(
    "fp8lm_stored", "Scales of the stored state of Adam", "fp8lm_stored", (), _stored_cases
)
WINDOWS = suite(
    "fp8lm_windows", "Windows of delayed scaling after each step", "fp8lm_window", (), _window_cases
)
MU = suite("fp8lm_mu", "Automatic scaling after each step", "fp8lm_mu", (), _mu_cases)
RATES = suite("fp8lm_rates", "The numbers of a step of Adam", "fp8lm_rate", (), _rate_cases)
PARTITION = suite(
    "fp8lm_partition", "The rank of each tensor", "fp8lm_partition", (), _partition_cases
)
