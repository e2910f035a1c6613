"""The engine is MMA-Sim on a million dot products of each profile that MMA-Sim has."""

import numpy as np
import pytest
from dots import drawn_codes
from extras import needs, skip_without

import mor_ref
from mor_ref import formats
from mor_ref.definitions.dot import DOT_PROFILES
from mor_ref.verify.candidates.peers.mmasim_dots import (
    canonical,
    dot_of_mmasim,
    is_simulated,
    needs_compiler,
    operation,
)

BATCH, MILLION = 20_000, 1_000_000
SIMULATED = [name for name, profile in DOT_PROFILES.items() if is_simulated(profile)]


def batch(profile, random):
    """Return the arguments of both."""
    special = random.random() < 0.2
    of = tuple(formats[str(random.choice(profile.formats))] for _ in "ab")
    if profile.name == "cdna3_fp8" or len(profile.formats) == 1:
        of = of[:1] * 2
    scale_format, block = None, None
    if profile.scales:
        name, block = profile.scales[random.integers(len(profile.scales))]
        scale_format = formats[name]
    columns = operation(profile, of, scale_format and scale_format.name, block)[1]
    columns *= 1 if columns >= 32 else 2
    a, b = (drawn_codes(random, fmt, (BATCH, columns), special) for fmt in of)
    half = columns // 2
    cancels = (random.random(BATCH) < 0.2) & (of[0] == of[1])
    rest = a[cancels, :half], b[cancels, :half] ^ b.dtype.type(of[1].sign_bit)
    if of[1].specials != "fnuz":
        a[cancels, half:], b[cancels, half:] = rest
    start = formats[profile.start]
    c = mor_ref.decode(drawn_codes(random, start, (BATCH, 1), special)[:, 0], start)
    c[random.random(BATCH) < 0.3] = 0
    scales = None
    if block:
        shape = BATCH, columns // block
        scales = tuple(drawn_codes(random, scale_format, shape, special) for _ in "ab")
    return a, b, c, of, scales, scale_format, block


def mismatches(profile, count):
    """Return the rows in which the engine and MMA-Sim differ, and how many there were."""
    random, found, total = np.random.default_rng(1), [], 0
    while total < count:
        a, b, c, of, scales, scale_format, block = batch(profile, random)
        expected = dot_of_mmasim(a, b, c, profile, of, scales, scale_format, block)
        given = {"scales": scales, "scale_format": scale_format, "block": block} if block else {}
        ours = canonical(mor_ref.dot(a, b, c, formats=of, profile=profile, **given))
        found += [(a[n], b[n], c[n], of) for n in np.flatnonzero(ours != expected)]
        total += BATCH
    return found, total


@needs("mmasim")
@pytest.mark.tier("exhaustive")
@pytest.mark.parametrize("name", SIMULATED)
def test_the_engine_is_mmasim(name):
    """DOT-007 to DOT-018; MMA-Sim loses an infinite or NaN c in cdna3_fp8 (DOT-008)."""
    if needs_compiler(DOT_PROFILES[name]):
        skip_without("g++", "ninja")
    found, _ = mismatches(DOT_PROFILES[name], MILLION)
    assert [row for row in found if name != "cdna3_fp8" or not loses_c(*row)] == []


def loses_c(a, b, c, of):
    """Return whether an instruction takes a c that is not finite."""
    after = mor_ref.dot_chunks(a[None], b[None], c[None], formats=of, profile="cdna3_fp8").c[0]
    return not np.isfinite([c, *after[:-1]]).all()
