"""`mor-ref exhaustive`: compare the codes of all 2^32 inputs with the bundled digests."""

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from typing import NamedTuple

from rich.progress import TaskProgressColumn, TimeRemainingColumn

from mor_ref.cli.show import Bars, bar
from mor_ref.cli.statuses import Status, comparison_status
from mor_ref.definitions.encoding import rounding_for, special_cases
from mor_ref.definitions.formats import as_format
from mor_ref.golden.all_inputs import digests as exhaustive
from mor_ref.golden.suites import SUITES
from mor_ref.verify.all_inputs.engine_codes import (
    ComparedWithExact,
    chunks_of_workers,
    describe_difference,
    engine_chunks,
)
from mor_ref.verify.all_inputs.verify import (
    ChunkResult,
    chunks_named,
    verify_chunks,
    verify_chunks_by,
)
from mor_ref.verify.candidates.by_name import candidate_named
from mor_ref.verify.candidates.candidate import CandidateError
from mor_ref.verify.reporting.text import addresses
from mor_ref.workers.pools import workers_named


class WrittenCase(NamedTuple):
    """A case as written on the command line."""

    fmt: str
    rounding: str | None
    overflow: str
    random_word: int | None
    n_random_bits: int | None

    def case(self) -> exhaustive.Case:
        """Return the case; raise a ValueError if there is none."""
        fmt, cases = as_format(self.fmt), special_cases(self.overflow)
        mode = rounding_for(fmt, self.rounding, cases)
        random = exhaustive.random_word_for(mode, self.random_word, self.n_random_bits)
        return exhaustive.Case(fmt, mode, cases.overflow, random)


def run(
    asked: WrittenCase,
    threads: int | None,
    executor: str,
    *,
    brief: bool,
    as_json: bool,
) -> int:
    """Print the digest and its comparison, and return the exit status."""
    with workers_named(executor) as workers:  # of the processes of MPI, only one continues
        case = asked.case()
        by_engine = (
            chunks_of_workers(case, workers, threads) if workers else engine_chunks(case, threads)
        )
        digest, first_wrong, verdict = _compared(case, by_engine)
    if first_wrong is not None:
        verdict = describe_difference(case, first_wrong)
    if as_json:
        entry = {"sha256": digest.sha256, "crc32": [f"{crc:08x}" for crc in digest.crc32]}
        print(json.dumps({"case": case.name, **entry, "verdict": verdict}, indent=1))
    else:
        print(f"{case.name}: sha256 {digest.sha256}")
        for first in range(0, 0 if brief else exhaustive.CHUNKS, 8):
            crcs = " ".join(f"{crc:08x}" for crc in digest.crc32[first : first + 8])
            print(f"  crc32 of inputs from 0x{first << 24:08x}: {crcs}")
        print(verdict)
        if first_wrong is not None:
            _print_addresses()
    return comparison_status(differs=first_wrong is not None)


def _print_addresses() -> None:
    for line in addresses((), SUITES["encode"].rules):
        print(line)


def _compared(
    case: exhaustive.Case, chunks: Iterable[exhaustive.Buffer]
) -> tuple[exhaustive.Digest, int | None, str]:
    """Return the digest, the first wrong chunk, and the verdict if no chunk is wrong."""
    if case.is_made_when_asked:
        compared = ComparedWithExact(case, chunks)
        digest = _digest(case, compared)
        return digest, compared.first_wrong, "equals the digest of the exact model"
    digest, bundled = _digest(case, chunks), exhaustive.bundled_digests().get(case.name)
    if bundled is None:
        return digest, None, "there is no bundled digest of this case"
    return digest, digest.first_difference(bundled), "equals the bundled digest"


def _digest(case: exhaustive.Case, chunks: Iterable[exhaustive.Buffer]) -> exhaustive.Digest:
    with Bars(TaskProgressColumn(), TimeRemainingColumn()) as progress:
        task = progress.add_task(f"{case.name}, 2^32 inputs", total=exhaustive.CHUNKS)
        return exhaustive.digest_of(
            chunks, lambda chunk: progress.update(task, completed=chunk + 1)
        )


def run_candidate(
    name: str,
    asked: WrittenCase,
    chunks: str | None,
    timeout: float,
    executor: str,
    *,
    as_json: bool,
) -> int:
    """Print the first chunk that differs; return the exit status as `mor-ref verify` does."""
    try:
        with workers_named(executor) as workers, candidate_named(name, timeout) as candidate:
            case = asked.case()
            wanted = range(exhaustive.CHUNKS) if chunks is None else chunks_named(chunks)
            results = (
                verify_chunks_by(workers, candidate.name, timeout, case, wanted)
                if workers
                else verify_chunks(candidate, case, wanted)
            )
            found = []
            with bar(case.name, "chunk", len(wanted)) as on_chunk:
                for result in results:
                    found.append(result)
                    on_chunk(str(result.number))
    except CandidateError as error:
        print(f"mor-ref: {error}", file=sys.stderr)
        return Status.NOT_RUN
    _print_chunks(name, case, found, as_json=as_json)
    return comparison_status(differs=not found[-1].is_same)


def _print_chunks(
    name: str, case: exhaustive.Case, found: list[ChunkResult], *, as_json: bool
) -> None:
    last = found[-1]
    verdict = "match" if last.is_same else "mismatch"
    if as_json:
        record = {"candidate": name, "case": case.name, "verdict": verdict}
        print(json.dumps({**record, "chunks": [asdict(result) for result in found]}, indent=1))
        return
    if not last.is_same:
        print(last)
    for mismatch in last.first:
        print(f"  {mismatch}")
    if not last.is_same:
        _print_addresses()
    stopped = "" if last.is_same else ", stopped here"
    done = f"chunks {found[0].number} to {last.number} of 2^24 inputs"
    print(f"{name}: {verdict} in {case.name}, {done}{stopped}")
