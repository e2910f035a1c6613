"""A declaration for machines: what matches to the bit, and how far the rest is from it (kappa)."""

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mor_ref import __version__
from mor_ref.golden.store.manifest import read_manifest
from mor_ref.verify.comparing.allowed import Allowed
from mor_ref.verify.comparing.by_parameters import FieldOfCases
from mor_ref.verify.reporting.origin import candidate_digest
from mor_ref.verify.running.results import SuiteResult
from mor_ref.verify.running.run import Verification
from mor_ref.verify.running.suites import Entry, Suites
from mor_ref.whole_files import write_whole

_VERSION = 1  # of the schema, which is in declaration_schema.json


def declaration(
    verification: Verification, suites: Suites, allowed: Allowed, domain: str
) -> dict[str, Any]:
    """Return the declaration of a run on suites; `allowed` bits and the `domain` are the user's."""
    entries = {**suites.entries, **suites.of_rungs}
    of_inputs = suites.named
    return {
        "declaration": _VERSION,
        "candidate": {
            "name": verification.candidate,
            "digest": candidate_digest(verification.candidate),
        },
        "verdict": verification.verdict,
        "bit_exact": bool(verification.conformance),
        "conformance": str(verification.conformance),
        "versions": {
            "mor_ref": __version__,
            "vectors": None if of_inputs else read_manifest(suites.directory)["version"],
        },
        "inputs": of_inputs or None,
        "allowed": {
            "nan": allowed.nan,
            "zero_sign": allowed.zero_sign,
            "ties": str(allowed.ties),
            "domain": domain,
        },
        "suites": [_suite(result, entries[result.suite]) for result in verification.results],
        "not_asked": {
            "suites": [
                *verification.not_asked,
                *(name for name in suites.known if name not in suites.entries),
            ],
            "cases": verification.cases_not_asked,
            "why": verification.why_not_asked,
            "tensors": [one.name for one in verification.skipped],
        },
    }


def _suite(result: SuiteResult, entry: Entry) -> dict[str, Any]:
    """Return what a suite declares: each field, by the parameters of its operation."""
    groups: dict[str, dict[str, Any]] = defaultdict(dict)
    for one in result.by_parameters:
        groups[json.dumps(one.parameters)][one.field] = _field(one)
    return {
        "suite": result.suite,
        "operation": entry["operation"],
        "rules": list(result.rules),
        "normative": result.normative,
        "sha256": entry.get("sha256"),
        "verdict": result.verdict,
        "cases": result.cases,
        "answered": result.answered,
        "not_given": list(result.not_given),
        "not_answered": list(result.not_answered),
        "changed": list(result.changed_cases),
        "left_out": result.left_out,
        "results": [
            {"parameters": json.loads(parameters), "fields": fields}
            for parameters, fields in groups.items()
        ],
    }


def _field(one: FieldOfCases) -> Mapping[str, Any]:
    return {
        "matches": one.matches,
        "kappa": one.kappa,
        "cases": one.cases,
        "entries": one.entries,
        "differing": one.differing,
        "allowed": one.allowed,
        "not_comparable": one.not_comparable,
    }


def write_declaration(path: Path, content: Mapping[str, Any]) -> None:
    """Write a declaration whole, or not at all."""
    write_whole(path, (json.dumps(content, indent=1) + "\n").encode())
