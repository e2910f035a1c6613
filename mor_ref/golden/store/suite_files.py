"""Files of golden vectors: written whole or not at all, and read with suspicion."""

import copy
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from mor_ref.golden.inputs.generated import generated
from mor_ref.golden.model.checks import OperationError, check_arrays
from mor_ref.golden.model.suite import Case, Suite
from mor_ref.golden.model.views import VIEWS, axes_of
from mor_ref.golden.store.manifest import (
    AGAIN,
    DIGESTS,
    MANIFEST,
    VERSION,
    GoldenError,
    read_manifest,
)
from mor_ref.operations.fields import Field
from mor_ref.operations.parameters import GENERATED, RECIPE
from mor_ref.whole_files import load_arrays, read_inside, write_inside, write_whole

__all__ = [
    "MANIFEST",
    "SEPARATOR",
    "GoldenError",
    "described",
    "elements_of",
    "file_of",
    "manifest_entry",
    "read_manifest",
    "read_suite",
    "suite_bytes",
    "write_manifest",
    "write_whole",
]

SEPARATOR = "/"
_LINE = 500  # characters
_MOST_GENERATED = 1 << 26  # elements of all tensors of a suite


def suite_bytes(cases: list[Case]) -> bytes:
    """Return the file of a suite (VEC-001): the same bytes for the same cases everywhere.

    Tensors that a recipe generates are not stored, and no bytes lie between entries (VEC-013).
    """
    arrays = {
        f"{case.name}{SEPARATOR}{field}": np.ascontiguousarray(array)
        for case in cases
        for field, array in case.arrays.items()
        if not (field == GENERATED and RECIPE in case.parameters)
    }
    return save(arrays)


def file_of(suite: str) -> str:
    """Return the name of the file of a suite in its directory."""
    return f"{suite}.safetensors"


def elements_of(cases: Iterable[Case]) -> int:
    """Return the number of elements that go in: the entries of the first input of each case."""
    return sum(next(iter(case.arrays.values())).size for case in cases)


def described(suite: Suite) -> dict[str, Any]:
    """Return the entry of a suite in the manifest, without its cases, as JSON has it."""
    said = {
        "title": suite.title,
        "operation": suite.operation,
        "rules": suite.rules,
        "normative": suite.normative,
        "fields": [_described(suite.operation, field) for field in suite.fields],
    }
    plain: dict[str, Any] = json.loads(json.dumps(said))
    return plain


def _described(operation: str, field: Field) -> dict[str, Any]:
    axes = axes_of(operation, field.name)
    said = {name: getattr(field, name) for name in ("name", "role", "format")}
    said |= {"meaning": field.words, "rules": field.rules, "views": field.views}
    return {**said, "shape": axes.names, "layout": axes.layout}


def manifest_entry(suite: Suite, cases: list[Case], content: bytes) -> dict[str, Any]:
    """Return the entry of a suite in the manifest (VEC-002)."""
    return {
        **described(suite),
        "cases": {case.name: dict(case.parameters) for case in cases},
        "elements": elements_of(cases),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def write_manifest(
    directory: Path, entries: Mapping[str, Any], made_with: Mapping[str, int]
) -> None:
    """Write the manifest of a directory; it comes last, so that its files are there."""
    manifest = {
        "version": VERSION,
        "made_with": dict(made_with),
        "views": {name: view.meaning for name, view in VIEWS.items()},
        **_of_all_inputs(directory),
        "suites": dict(entries),
    }
    write_inside(directory, MANIFEST, (_in_lines(manifest) + "\n").encode("ascii"))


def _in_lines(value: Any) -> str:
    """Return JSON with an entry in a line, and short lists and records whole, as a case is.

    There are no spaces, and lines are not indented: vectors need the room.
    """
    whole = json.dumps(value, separators=(",", ":"))
    if not (isinstance(value, dict | list) and len(whole) > _LINE):
        return whole
    if isinstance(value, dict):
        opened, closed = "{}"
        entries = [f"{json.dumps(key)}:{_in_lines(one)}" for key, one in value.items()]
    else:
        opened, closed = "[]"
        entries = [_in_lines(one) for one in value]
    return f"{opened}\n" + ",\n".join(entries) + f"\n{closed}"


def _of_all_inputs(directory: Path) -> dict[str, Any]:
    """Return the entry for digests that are next to the suites (VEC-014)."""
    try:
        content = read_inside(directory, DIGESTS)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise GoldenError(
            f"{directory / DIGESTS} cannot be read ({error.strerror}); remove it"
        ) from error
    return {"all_inputs": {"sha256": hashlib.sha256(content).hexdigest()}}


def read_suite(directory: Path, name: str, entry: Mapping[str, Any]) -> list[Case]:
    """Return the cases of a suite, checked against the manifest before anything is used."""
    path = directory / file_of(name)
    try:
        content = read_inside(directory, file_of(name))
    except OSError as error:
        raise GoldenError(f"{path} cannot be read ({error.strerror}); {AGAIN}") from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != entry["sha256"]:
        raise GoldenError(
            f"{path} has the SHA-256 {digest[:16]}.., but the manifest says "
            f"{entry['sha256'][:16]}..; it was changed or cut: {AGAIN}"
        )
    return list(_cases(path, content, entry))


def _cases(path: Path, content: bytes, entry: Mapping[str, Any]) -> Iterator[Case]:
    try:
        arrays = load_arrays(content)
    except ValueError as error:
        raise GoldenError(f"{path} is not a safetensors file ({error}); {AGAIN}") from error
    by_case: dict[str, dict[str, np.ndarray[Any, Any]]] = {name: {} for name in entry["cases"]}
    for key, array in arrays.items():
        case, _, field = key.partition(SEPARATOR)
        if case not in by_case:
            raise GoldenError(
                f"{path} holds {key[:100]!a}, which the manifest does not list; {AGAIN}"
            )
        if array.dtype.kind != "u":
            raise GoldenError(
                f"{path} holds {key[:100]!a} as {array.dtype}, but unsigned integers are expected; "
                f"{AGAIN}"
            )
        by_case[case][field] = array
    _generate(path, by_case, entry)
    order = [field["name"] for field in entry["fields"]]
    inputs = [field["name"] for field in entry["fields"] if field["role"] == "input"]
    for case, found in by_case.items():
        missing = [name for name in inputs if name not in found]
        strange = [name for name in found if name not in order]
        if missing or strange:
            raise GoldenError(
                f"{path} has other fields of case {case!r} than the manifest lists: "
                f"{', '.join([*missing, *strange])[:100]!a}; {AGAIN}"
            )
        ordered = {name: found[name] for name in order if name in found}
        parameters = copy.deepcopy(entry["cases"][case])
        try:
            check_arrays(entry["operation"], parameters, ordered)
        except OperationError as error:
            raise GoldenError(f"{path}: case {case!r} {error}; {AGAIN}") from error
        yield Case(case, parameters, ordered)


def _generate(
    path: Path, by_case: dict[str, dict[str, np.ndarray[Any, Any]]], entry: Mapping[str, Any]
) -> None:
    """Add the tensors that are not stored; the manifest holds their recipes."""
    recipes = {name: p[RECIPE] for name, p in entry["cases"].items() if RECIPE in p}
    if sum(rows * columns for rows, columns in (r["shape"] for r in recipes.values())) > (
        _MOST_GENERATED
    ):
        raise GoldenError(
            f"the manifest next to {path} generates more than {_MOST_GENERATED} numbers; {AGAIN}"
        )
    for name, recipe in recipes.items():
        by_case[name][GENERATED] = generated(recipe, entry["cases"][name]["source"])
