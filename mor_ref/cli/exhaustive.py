"""`mor-ref exhaustive`: all 2^32 inputs through the engine, held to the kept digests."""

import json

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from mor_ref.catalogue import as_format
from mor_ref.conventions import rounding_for, special_cases
from mor_ref.golden import exhaustive


def run(
    fmt_name: str,
    rounding: str | None,
    overflow: str,
    threads: int | None,
    *,
    brief: bool,
    as_json: bool,
) -> int:
    """Print the digest and how it compares; the exit status is 1 if it is wrong."""
    fmt = as_format(fmt_name)
    cases = special_cases(overflow)
    mode = rounding_for(fmt, rounding, cases)
    if mode == "sr":
        raise ValueError("rounding is 'sr', whose codes depend on the random bits; give another")
    case = exhaustive.Case(fmt, mode, cases.overflow)
    kept = exhaustive.kept_digests().get(case.name)
    digest = _digest(case, threads)
    verdict = "no digest is kept for this case" if kept is None else "equals the kept digest"
    different = kept is not None and digest != kept
    if kept is not None and different:
        verdict = exhaustive.describe_difference(case, digest, kept)
    if as_json:
        entry = {"sha256": digest.sha256, "crc32": [f"{crc:08x}" for crc in digest.crc32]}
        print(json.dumps({"case": case.name, **entry, "verdict": verdict}, indent=1))
    else:
        print(f"{case.name}: sha256 {digest.sha256}")
        for first in range(0, 0 if brief else exhaustive.CHUNKS, 8):
            crcs = " ".join(f"{crc:08x}" for crc in digest.crc32[first : first + 8])
            print(f"  crc32 of inputs from 0x{first << 24:08x}: {crcs}")
        print(verdict)
    return 1 if different else 0


def _digest(case: exhaustive.Case, threads: int | None) -> exhaustive.Digest:
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as progress:
        task = progress.add_task(f"{case.name}, 2^32 inputs", total=exhaustive.CHUNKS)
        return exhaustive.digest_of(
            exhaustive.engine_chunks(case, threads),
            lambda chunk: progress.update(task, completed=chunk + 1),
        )
