"""Checks of a directory of suites: each yields findings, with suite, case and field."""

import hashlib
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mor_ref.deviations import DEVIATIONS
from mor_ref.golden.all_inputs.digests import (
    CHUNKS,
    Digest,
    bundled_digests,
    digested_cases,
    digests_in,
    inputs_of,
)
from mor_ref.golden.generation.negative import PLANTED, negative_file_of, right_results
from mor_ref.golden.generation.witnesses import Entries
from mor_ref.golden.inputs.enlarged import questions
from mor_ref.golden.model.suite import Case, Size, Suite
from mor_ref.golden.model.views import VIEWS
from mor_ref.golden.store.manifest import AGAIN, DIGESTS, GoldenError
from mor_ref.golden.store.suite_files import SEPARATOR, described, file_of
from mor_ref.mistakes.catalogue import CAUSES, id_of
from mor_ref.operations.bits import Unsigned
from mor_ref.verify.all_inputs.engine_codes import engine_codes
from mor_ref.verify.comparing.difference import Difference
from mor_ref.verify.comparing.distance import shown
from mor_ref.verify.comparing.evidence import Evidence
from mor_ref.whole_files import load_arrays, read_inside

Entry = Mapping[str, Any]
_MOST_DIGESTS = 1 << 24  # bytes of the digests of all inputs


@dataclass(frozen=True)
class Finding:
    """A fault of a directory of suites, and its place if it has one."""

    what: str
    suite: str | None = None
    case: str | None = None
    field: str | None = None

    def __str__(self) -> str:
        places = {"suite": self.suite, "case": self.case, "field": self.field}
        where = ", ".join(f"{kind} {name}" for kind, name in places.items() if name is not None)
        return f"{where}: {self.what}" if where else self.what


# ---------------------------------------------------------------------- the suite itself


def check_definition(suite: Suite, entry: Entry) -> Iterator[Finding]:
    """Yield where the manifest differs from the suite of this name in this program."""
    right = described(suite)
    fields = {field["name"]: field for field in right.pop("fields")}
    there = {field["name"]: field for field in entry["fields"]}
    yield from _otherwise(right, entry, suite.name)
    for name in (*fields, *(name for name in there if name not in fields)):
        if name not in there:
            yield Finding("the manifest does not list it", suite.name, field=name)
        elif name not in fields:
            yield Finding("this program's suite does not have it", suite.name, field=name)
        else:
            yield from _otherwise(fields[name], there[name], suite.name, name)
    if set(there) == set(fields) and list(there) != list(fields):
        yield Finding("the manifest lists its fields in another order", suite.name)


def _otherwise(
    right: Entry, there: Entry, suite: str | None, field: str | None = None
) -> Iterator[Finding]:
    for key, value in right.items():
        if there.get(key) != value:
            what = f"the manifest says {key} {there.get(key)!r}, and {value!r} is right"
            yield Finding(what, suite, field=field)


def check_questions(suite: Suite, size: Size, cases: Iterable[Case]) -> Iterator[Finding]:
    """Yield cases, parameters and inputs that differ from those that this program makes."""
    there = {case.name: case for case in cases}
    for right in questions(suite, size):
        case = there.pop(right.name, None)
        if case is None:
            yield Finding("it is not there", suite.name, right.name)
            continue
        if dict(case.parameters) != dict(right.parameters):
            what = f"it has the parameters {case.parameters}, but {right.parameters} are expected"
            yield Finding(what, suite.name, case.name)
        for name, array in right.arrays.items():
            if not np.array_equal(case.arrays[name], array):
                what = "the inputs are not those that this program makes"
                yield Finding(what, suite.name, case.name, name)
    for name in there:
        yield Finding("this program's suite does not have it", suite.name, name)


# ---------------------------------------------------------------------- values


def check_presence(exact: Evidence) -> Iterator[Finding]:
    """Yield fields that a case lacks, and fields that the exact model does not return."""
    for case in exact.cases:
        for field in exact.fields:
            is_given = field.name in exact.answers[case.name]
            if is_given != (field.name in case.arrays):
                what = "it is not there" if is_given else "the exact model has no such field"
                yield Finding(what, exact.suite, case.name, field.name)


def check_values(evidence: Evidence, implementation: str) -> Iterator[Finding]:
    """Yield the expected fields that differ from those of an implementation."""
    for difference in evidence.differences():
        if difference.suite_field in evidence.chosen[difference.case]:
            what = _of_difference(implementation, difference)
            yield Finding(what, evidence.suite, difference.case, difference.suite_field)


def _of_difference(implementation: str, difference: Difference) -> str:
    if difference.problem is not None:
        return f"that of {implementation} {difference.problem}"
    first, fmt = difference.entries[0], difference.format
    return (
        f"{difference.count:,} of {difference.of:,} entries are not those of {implementation}, "
        f"the first at {list(first.index)}: {shown(first.expected, fmt)}, where {implementation} "
        f"has {shown(first.actual, fmt)}"
    )


# ---------------------------------------------------------------------- deviations


def check_witnesses(
    suite: Suite, witnesses: Entry, cases: Iterable[Case], *, lists_all: bool
) -> Iterator[Finding]:
    """Yield deviations that do not differ where the manifest says.

    If the manifest has to list all that the suite exposes, yield those that it does not list.
    """
    entries = Entries(suite, cases)
    for name, at in witnesses.items():
        place = (suite.name, at["case"], at["field"])
        deviation = CAUSES.get(id_of(name))
        if deviation is None:
            yield Finding(f"the manifest names the deviation {name}, which is not known", *place)
        elif not entries.differs(deviation, at):
            what = f"the manifest says that {name} differs at {at['index']}, and it does not"
            yield Finding(what, *place)
    for name, deviation in DEVIATIONS.items():
        if lists_all and suite.name in deviation.suites and name not in witnesses:
            yield Finding(f"the manifest does not say where {name} differs", suite.name)


# ---------------------------------------------------------------------- files


def check_negative(
    directory: Path, suite: Suite, listed: Entry | None, cases: list[Case]
) -> Iterator[Finding]:
    """Yield where a file of wrong results is not the suite with the listed entries (VEC-011).

    A GoldenError says that it cannot be read.
    """
    rows = [] if listed is None else listed["planted"]
    without_places = [{key: row[key] for key in row if key != "index"} for row in rows]
    if without_places != [asdict(row) for row in PLANTED.get(suite.name, ())]:
        yield Finding("the manifest lists other wrong results than this program has", suite.name)
    if listed is None:
        return
    name = negative_file_of(suite.name)
    try:
        content = read_inside(directory, name)
        there = load_arrays(content)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise GoldenError(f"{name} cannot be read ({reason}); {AGAIN}") from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != listed["sha256"]:
        what = f"{name} has the SHA-256 {digest}, and the manifest says {listed['sha256']}"
        yield Finding(what, suite.name)
    right = right_results(suite, cases)
    for key in sorted({*right, *there}):
        case, _, field = key.partition(SEPARATOR)
        planted = [
            (row["index"], row["right"], row["wrong"])
            for row in rows
            if (row["case"], row["field"]) == (case, field)
        ]
        if _wrong_entries(right.get(key), there.get(key)) != planted:
            what = f"{name} is wrong otherwise than the manifest lists"
            yield Finding(what, suite.name, ascii(case)[1:-1], ascii(field)[1:-1])


def _wrong_entries(right: Unsigned | None, there: Unsigned | None) -> list[Any] | None:
    """Return the entries in which two arrays differ; None if they cannot be compared."""
    if right is None or there is None or (right.shape, right.dtype) != (there.shape, there.dtype):
        return None
    places = np.argwhere(right != there).tolist()
    return [(place, int(right[tuple(place)]), int(there[tuple(place)])) for place in places]


def check_all_inputs(directory: Path, listed: Entry) -> Iterator[Finding]:
    """Yield digests of all inputs that differ from the manifest, or are wrong (VEC-014).

    A GoldenError says that there are no digests to be read.
    """
    try:
        content = read_inside(directory, DIGESTS, _MOST_DIGESTS)
        there = digests_in(content)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise GoldenError(
            f"{DIGESTS} cannot be read ({reason}); copy it from the package, or, without it, make "
            "the suites again with mor-ref golden make"
        ) from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != listed["sha256"]:
        what = f"{DIGESTS} has the SHA-256 {digest}, and the manifest says {listed['sha256']}"
        yield Finding(what)
    bundled = bundled_digests()
    for name in sorted(bundled.keys() ^ there.keys()):
        what = "is not there" if name in bundled else "is there, and is of no known format"
        yield Finding(f"{DIGESTS}: {name[:100]!a} {what}")
    for name in sorted(there.keys() & bundled.keys()):
        chunk = there[name].first_difference(bundled[name])
        if chunk is not None:
            is_same = there[name].crc32 == bundled[name].crc32
            place = "in its SHA-256" if is_same else f"first in chunk {chunk}"
            yield Finding(f"{DIGESTS}: {name!a} is not as the package has it, {place}")
    yield from _of_a_chunk(there, int(digest, 16))


def _of_a_chunk(there: Mapping[str, Digest], draw: int) -> Iterator[Finding]:
    """Yield a chunk that the engine encodes otherwise: one is drawn, as all take an hour."""
    cases = [case for case in digested_cases() if case.name in there]
    if not cases:
        return
    case, chunk = cases[draw % len(cases)], draw // len(cases) % CHUNKS
    found = zlib.crc32(engine_codes(case, inputs_of(chunk)))
    said = there[case.name].crc32[chunk]
    if found != said:
        what = f"says {said:08x} of chunk {chunk}, and the engine returns {found:08x}"
        yield Finding(f"{DIGESTS}: {case.name!a} {what}")


def check_directory(directory: Path, manifest: Entry) -> Iterator[Finding]:
    """Yield wrong views and digests of all inputs, and files that the manifest does not list."""
    right, said = {name: view.meaning for name, view in VIEWS.items()}, manifest["views"]
    off = [name for name in sorted({*right, *said}) if right.get(name) != said.get(name)]
    if off:
        yield Finding(f"the manifest is wrong about the views {', '.join(off)}")
    listed = {file_of(name) for name in manifest["suites"]}
    listed |= {
        negative_file_of(n) for n, entry in manifest["suites"].items() if "negative" in entry
    }
    for pattern in (file_of("*"), negative_file_of("*")):
        for path in sorted(directory.glob(pattern)):
            name = path.relative_to(directory).as_posix()
            if name not in listed:
                yield _unlisted(name)
    if "all_inputs" in manifest:
        yield from check_all_inputs(directory, manifest["all_inputs"])
    elif (directory / DIGESTS).exists():
        yield _unlisted(DIGESTS)


def _unlisted(name: str) -> Finding:
    return Finding(f"{name!a} is there, and the manifest does not list it")
