"""Files of golden vectors: written whole or not at all, and read with suspicion."""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from mor_ref.golden.bits import Unsigned
from mor_ref.golden.generated import generated
from mor_ref.golden.suite import Arrays, Case, Parameters, Suite
from mor_ref.golden.views import VIEWS

VERSION = 1
MANIFEST = "MANIFEST.json"
SEPARATOR = "/"
_RECIPE, _GENERATED = "recipe", "x"  # the parameter, and the field that it stands for


class GoldenError(ValueError):
    """A file of golden vectors, or a manifest, that cannot be used."""


def suite_bytes(cases: list[Case]) -> bytes:
    """The file of a suite (VEC-001): the same bytes for the same cases, on any machine.

    What a recipe generates is not kept.
    """
    arrays = {
        f"{case.name}{SEPARATOR}{field}": np.ascontiguousarray(array)
        for case in cases
        for field, array in case.arrays.items()
        if not (field == _GENERATED and _RECIPE in case.parameters)
    }
    return save(arrays)


def manifest_entry(suite: Suite, cases: list[Case], content: bytes) -> dict[str, Any]:
    """What the manifest says of a suite (VEC-002)."""
    return {
        "title": suite.title,
        "operation": suite.operation,
        "rules": list(suite.rules),
        "normative": suite.normative,
        "fields": [asdict(field) for field in suite.fields],
        "cases": {case.name: dict(case.parameters) for case in cases},
        "elements": sum(next(iter(case.arrays.values())).size for case in cases),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is never seen half-written, whatever interrupts."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_manifest(folder: Path, entries: Mapping[str, Any], made_with: Mapping[str, int]) -> None:
    """Write the manifest of a folder; it comes last, so that what it lists is there."""
    manifest = {
        "version": VERSION,
        "made_with": dict(made_with),
        "views": {name: view.meaning for name, view in VIEWS.items()},
        "suites": dict(entries),
    }
    write_whole(folder / MANIFEST, (json.dumps(manifest, indent=1) + "\n").encode("ascii"))


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a folder, if it is one of this version."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise GoldenError(
            f"{path} is not there; make the suites with mor-ref golden make"
        ) from None
    except (ValueError, OSError) as error:
        raise GoldenError(f"{path} is no manifest ({error}); make it again") from error
    if not isinstance(manifest, dict) or manifest.get("version") != VERSION:
        found = manifest.get("version") if isinstance(manifest, dict) else type(manifest).__name__
        raise GoldenError(f"{path} is of version {found!r}; this program reads version {VERSION}")
    suites = manifest.get("suites")
    if not isinstance(suites, dict) or not all(_is_entry(entry) for entry in suites.values()):
        raise GoldenError(f"{path} has no list of suites as this program makes it; make it again")
    return manifest


def _is_entry(entry: object) -> bool:
    wanted = {
        "title": str, "operation": str, "rules": list, "normative": bool, "fields": list,
        "cases": dict, "sha256": str, "kills": dict,
    }  # fmt: skip
    return (
        isinstance(entry, dict)
        and all(isinstance(entry.get(key), kind) for key, kind in wanted.items())
        and all(_is_field(field) for field in entry["fields"])
        and all(isinstance(parameters, dict) for parameters in entry["cases"].values())
    )


def _is_field(field: object) -> bool:
    wanted = {
        "name": str, "role": str, "format": str, "meaning": str, "rules": list, "views": list,
    }  # fmt: skip
    return isinstance(field, dict) and all(
        isinstance(field.get(key), kind) for key, kind in wanted.items()
    )


def read_suite(folder: Path, name: str, entry: Mapping[str, Any]) -> list[Case]:
    """The cases of a suite, held to the manifest before anything in them is used."""
    path = folder / f"{name}.safetensors"
    if name != Path(name).name:
        raise GoldenError(f"the manifest in {folder} names a suite {name!r}, which is no file name")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise GoldenError(f"{path} cannot be read ({error.strerror}); make it again") from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != entry["sha256"]:
        raise GoldenError(
            f"{path} has the SHA-256 {digest[:16]}.., but the manifest says "
            f"{entry['sha256'][:16]}..; it was changed or cut: make it again"
        )
    return list(_cases(path, content, entry))


def _cases(path: Path, content: bytes, entry: Mapping[str, Any]) -> Iterator[Case]:
    try:
        arrays = load(content)
    except (SafetensorError, ValueError, KeyError) as error:
        raise GoldenError(f"{path} is no safetensors file ({error}); make it again") from error
    by_case: dict[str, dict[str, np.ndarray[Any, Any]]] = {name: {} for name in entry["cases"]}
    for key, array in arrays.items():
        case, _, field = key.rpartition(SEPARATOR)
        if case not in by_case or array.dtype.kind != "u":
            raise GoldenError(f"{path} holds {key!r}, which the manifest does not list")
        by_case[case][field] = array
    for case, parameters in entry["cases"].items():
        if _RECIPE in parameters:
            by_case[case][_GENERATED] = _generated(path, case, parameters)
    order = [field["name"] for field in entry["fields"]]
    inputs = [field["name"] for field in entry["fields"] if field["role"] == "input"]
    for case, found in by_case.items():
        missing = [name for name in inputs if name not in found]
        strange = [name for name in found if name not in order]
        if missing or strange:
            raise GoldenError(
                f"{path} has other fields of case {case!r} than the manifest lists: "
                f"{', '.join([*missing, *strange])}"
            )
        ordered: Arrays = {name: found[name] for name in order if name in found}
        yield Case(case, entry["cases"][case], ordered)


def _generated(path: Path, case: str, parameters: Parameters) -> Unsigned:
    try:
        return generated(parameters[_RECIPE], parameters["source"])
    except (KeyError, TypeError, ValueError, OverflowError, MemoryError) as error:
        raise GoldenError(
            f"the manifest beside {path} has no recipe for x in case {case!r} ({error!r}); make it "
            "again"
        ) from error
