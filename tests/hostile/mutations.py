"""Mutations of what comes from elsewhere: bytes of the fuzz targets, changed at random."""

import contextlib
import io
from pathlib import Path

from fuzz import answers, directories, lines, manifests, suites, tensors

TARGETS = [answers, manifests, suites, directories, lines, tensors]
FINDINGS = Path("build/hostile")


def mutated(content, draw):
    """Return bytes with a few bits, places or slices changed."""
    found = bytearray(content)
    for _ in range(draw.randint(1, 4)):
        place = draw.randrange(len(found) + 1)
        kind = draw.randrange(5)
        if kind == 0 and place < len(found):
            found[place] ^= 1 << draw.randrange(8)
        elif kind == 1 and place < len(found):
            found[place] = draw.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif kind == 2:
            del found[place:]
        elif kind == 3:
            del found[place : place + draw.randint(1, 16)]
        else:
            found[place:place] = found[place : place + draw.randint(1, 16)] or b"\0"
    return bytes(found)


def attack(draw, rounds):
    """Give each target so many mutations; return a line for each that fails."""
    failures = []
    for target in TARGETS:
        for number in range(rounds):
            given = mutated(draw.choice(target.SEEDS), draw)
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    target.one_input(given)
            except Exception as error:  # noqa: BLE001  # each one is a finding
                FINDINGS.mkdir(parents=True, exist_ok=True)
                kept = FINDINGS / f"{target.__name__}.{number}"
                kept.write_bytes(given)
                failures.append(f"{kept}: {type(error).__name__}: {error}")
    return failures
