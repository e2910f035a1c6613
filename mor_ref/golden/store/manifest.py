"""Reading a manifest, which is trusted no more than the files that it lists (VEC-002)."""

import functools
import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from mor_ref.definitions.formats import formats
from mor_ref.golden.model.checks import OperationError, check_fields, check_parameters
from mor_ref.golden.model.views import VIEWS
from mor_ref.operations import OPERATIONS
from mor_ref.operations.fields import CASE_FORMATS, INTEGERS
from mor_ref.operations.parameters import Kind, kind, number, one_of
from mor_ref.whole_files import read_inside

VERSION = 1
MANIFEST = "MANIFEST.json"
DIGESTS = "exhaustive.json"  # of the results for all inputs, next to the manifest
_LARGEST = 1 << 24  # bytes
_MOST = 1 << 16  # entries of a list or a record
_WORD = (1 << 64) - 1
AGAIN = "make it again with mor-ref golden make"


class GoldenError(ValueError):
    """A file of golden vectors, or a manifest, that cannot be used."""


class _UnusableError(Exception):
    """Why a manifest cannot be used, as the end of a sentence."""


class _FaultError(Exception):
    """A fault of a manifest, and its place."""

    def __init__(self, place: str, what: str) -> None:
        super().__init__(f"{place} {what}")


# A rule takes a place and its content, and raises a fault or does not.
EntryRule = Callable[[str, Any], None]


def _value(kind: Kind) -> EntryRule:
    def rule(place: str, value: Any) -> None:
        if not kind.holds(value):
            raise _FaultError(place, f"is {_shown(value)}, and has to be {kind.wanted}")

    return rule


def _matching(pattern: str, wanted: str) -> Kind:
    compiled = re.compile(pattern)
    return kind(
        lambda value: isinstance(value, str) and compiled.fullmatch(value) is not None, wanted
    )


def _list_of(kind: Kind) -> EntryRule:
    def rule(place: str, value: Any) -> None:
        if not isinstance(value, list) or len(value) > _MOST:
            raise _FaultError(place, f"is {_shown(value)}, and has to be a list")
        for at, one in enumerate(value):
            _value(kind)(f"{place}[{at}]", one)

    return rule


def _each(rule: EntryRule) -> EntryRule:
    def rule_of_all(place: str, value: Any) -> None:
        if not isinstance(value, list) or not 0 < len(value) <= _MOST:
            raise _FaultError(place, f"is {_shown(value)}, and has to be a list with entries")
        for at, one in enumerate(value):
            rule(f"{place}[{at}]", one)

    return rule_of_all


def _by_name(name: Kind, rule: EntryRule) -> EntryRule:
    def rule_of_all(place: str, value: Any) -> None:
        if not isinstance(value, dict) or len(value) > _MOST:
            raise _FaultError(place, f"is {_shown(value)}, and has to be a record")
        for key, one in value.items():
            if not name.holds(key):
                raise _FaultError(place, f"has the name {_shown(key)}, which is not {name.wanted}")
            rule(f"{place}.{key}", one)

    return rule_of_all


def _record(rules: Mapping[str, EntryRule], optional: Iterable[str] = ()) -> EntryRule:
    def rule(place: str, value: Any) -> None:
        if not isinstance(value, dict):
            raise _FaultError(place, f"is {_shown(value)}, and has to be a record")
        missing = [key for key in rules if key not in value and key not in optional]
        if missing:
            raise _FaultError(place, f"has no {missing[0]}")
        for key, one in value.items():
            if key not in rules:
                raise _FaultError(place, f"has {_shown(key)}, which this version does not know")
            rules[key](f"{place}.{key}".removeprefix("it."), one)

    return rule


def _shown(value: Any) -> str:
    """Return a value in a few characters of ASCII."""
    if isinstance(value, dict | list):
        return f"a {'record' if isinstance(value, dict) else 'list'} of {len(value)}"
    text = ascii(value[:41] if isinstance(value, str) else value)
    return text if len(text) <= 60 else text[:60] + ".."


def _anything(_: str, value: Any) -> None:
    """Accept anything: the operation checks it later."""
    del value


# Names become names of files, of arrays and in other languages: nothing in them leads anywhere.
NAME = _matching(
    r"(?=.{1,100}$)[A-Za-z0-9_]([A-Za-z0-9_.+-]*[A-Za-z0-9_+-])?",
    "a file name of letters, digits and _ . + - of at most 100 characters",
)
_FIELD_NAME = _matching(
    r"(?=.{1,100}$)([A-Za-z][A-Za-z0-9_-]*\.)?[a-z][a-z0-9_]*(@[a-z0-9_]+)?",
    "a name of a field, maybe @ a view",
)
# Exports put texts into comments: none can end one.
_TEXT = _matching(r"(?!.*(\*/|/\*|\\))[ -~]{1,1000}", "a line of ASCII that can be a comment")
_RULES = _list_of(_matching(r"[A-Z]{3}-[0-9]{3}", "the id of a rule, as ENC-001"))
_FORMAT = one_of((*formats, *INTEGERS, *CASE_FORMATS))
_BOOL = kind(lambda value: isinstance(value, bool), "true or false")
_SHA256 = _matching("[0-9a-f]{64}", "64 hexadecimal digits")
_AT = {"case": _value(NAME), "field": _value(_FIELD_NAME), "index": _list_of(number(0, _WORD))}
_ENTRY = {
    "title": _value(_TEXT),
    "operation": _value(one_of(OPERATIONS)),
    "rules": _RULES,
    "normative": _value(_BOOL),
    "fields": _each(
        _record(
            {
                "name": _value(_FIELD_NAME),
                "role": _value(one_of(("input", "expected"))),
                "format": _value(_FORMAT),
                "meaning": _value(_TEXT),
                "rules": _RULES,
                "views": _list_of(one_of(VIEWS)),
                "shape": _list_of(_TEXT),
                "layout": _value(_TEXT),
            }
        )
    ),
    "cases": _by_name(NAME, _by_name(_matching("[a-z_]{1,40}", "a parameter"), _anything)),
    "elements": _value(number(0, _WORD)),
    "sha256": _value(_SHA256),
    "kills": _by_name(_matching("[a-z0-9_]{1,100}", "a deviation"), _record(_AT)),
    "negative": _record(
        {
            "sha256": _value(_SHA256),
            "planted": _each(
                _record(
                    _AT
                    | {
                        "right": _value(number(0, _WORD)),
                        "wrong": _value(number(0, _WORD)),
                        "what": _value(_TEXT),
                    }
                )
            ),
        }
    ),
}
_WHOLE = _record(
    {
        "version": _value(number(VERSION, VERSION)),
        "made_with": _record(
            {"size": _value(number(1, 1 << 20)), "seed": _value(number(0, 0xFFFF))}
        ),
        "views": _by_name(_matching("[a-z0-9_]{1,100}", "a view"), _value(_TEXT)),
        "all_inputs": _record({"sha256": _value(_SHA256)}),
        "suites": _by_name(NAME, _record(_ENTRY, optional=("negative",))),
    },
    optional=("all_inputs",),
)


def read_manifest(directory: Path) -> dict[str, Any]:
    """Return the manifest of a directory, which readers share: nothing in it may be changed.

    One of another version is refused.
    """
    path = directory / MANIFEST
    try:
        return _checked(read_inside(directory, MANIFEST, _LARGEST))
    except FileNotFoundError:
        raise GoldenError(
            f"{path} is not there; make the suites with mor-ref golden make"
        ) from None
    except OSError as error:
        raise GoldenError(f"{path} cannot be read ({error.strerror}); {AGAIN}") from error
    except _UnusableError as error:
        raise GoldenError(f"{path} {error}") from error


def check_entry(name: str, entry: Mapping[str, Any]) -> None:
    """Refuse an entry that no reader of a manifest would take, before it is written."""
    try:
        _by_name(NAME, _record(_ENTRY, optional=("negative",)))("suites", {name: entry})
        _check_suite(f"suites.{name}", entry)
    except _FaultError as fault:
        said = str(fault).removeprefix(f"suites.{name}").removeprefix(".").strip()
        raise GoldenError(
            f"suite {name!a} cannot be made, as no manifest can list it: {said}; change it in the "
            "module of --rows"
        ) from fault


@functools.lru_cache(maxsize=4)
def _checked(content: bytes) -> dict[str, Any]:
    """Return the manifest that a content is; all but one of this version is refused.

    The bundled manifest is read by nearly every call, and to check it takes a tenth of a second.
    """
    try:
        manifest: dict[str, Any] = json.loads(
            content.decode("utf-8"), object_pairs_hook=_without_repeats, parse_constant=_no_number
        )
    except (ValueError, RecursionError) as error:
        reason = "too deep" if isinstance(error, RecursionError) else error
        raise _UnusableError(f"is not a manifest ({reason}); {AGAIN}") from error
    version = manifest.get("version") if isinstance(manifest, dict) else None
    if type(version) is int and version != VERSION:
        raise _UnusableError(
            f"is of version {_shown(version)}; this program reads version {VERSION}"
        )
    try:
        _WHOLE("it", manifest)
        for name, entry in manifest["suites"].items():
            _check_suite(f"suites.{name}", entry)
        _check_distinct("suites", manifest["suites"])
    except _FaultError as fault:
        raise _UnusableError(f"is not a manifest: {fault}; {AGAIN}") from fault
    return manifest


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("it has a name twice")
    return found


def _no_number(text: str) -> None:
    raise ValueError(f"it has the number {text}")


def _check_suite(place: str, entry: Mapping[str, Any]) -> None:
    """Refuse an entry that contradicts its operation, or itself."""
    for case, parameters in entry["cases"].items():
        try:
            check_parameters(entry["operation"], parameters)
        except OperationError as error:
            raise _FaultError(f"{place}.cases.{case}", str(error)) from error
    try:
        check_fields(entry["operation"], entry["fields"], entry["cases"].values())
    except OperationError as error:
        raise _FaultError(place, str(error)) from error
    _check_distinct(f"{place}.cases", entry["cases"])
    names = {field["name"] for field in entry["fields"]}
    planted = entry["negative"]["planted"] if "negative" in entry else ()
    for at in (*entry["kills"].values(), *planted):
        if at["case"] not in entry["cases"] or at["field"] not in names:
            raise _FaultError(place, "names a case or a field that it does not list")


def _check_distinct(place: str, names: Iterable[str]) -> None:
    """Refuse names that are equal in C, or in a file system that ignores case."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(re.sub(r"\W", "_", name.lower()), name)
        if other != name:
            raise _FaultError(
                place, f"has {other} and {name}, which other languages cannot distinguish"
            )
