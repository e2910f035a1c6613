"""The names that are promised, as they are today, and the list of those of the last version.

`make stable` adds to `tests/stable.json` what is new. It drops nothing: see `--drop` in `main`.
"""

import dataclasses
import hashlib
import importlib
import importlib.util
import inspect
import json
import re
import sys
import tempfile
import warnings
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch
from xml.etree import ElementTree as ET

import numpy as np
import typer
from filled import filled
from mor_docs.trace import rules_of
from safetensors import safe_open
from safetensors.numpy import save_file
from typer.testing import CliRunner

import mor_ref
from mor_ref.addresses import cause_path, rule_path
from mor_ref.analysis.recipes import OF_ALL_REPRESENTATIONS, USUAL
from mor_ref.cli import app, exhaustive, golden
from mor_ref.cli.statuses import VERDICT_STATUSES, Status
from mor_ref.definitions.mx import SCALE_RULES
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.deviations import applied
from mor_ref.golden import bundled_files
from mor_ref.golden.all_inputs.digests import Digest, bundled_digests
from mor_ref.golden.generation.mistakes_shown import InSuite
from mor_ref.golden.streams.stream import stream_named
from mor_ref.mistakes import Shown, mistakes_of
from mor_ref.mistakes.catalogue import CAUSES, FORMER_IDS
from mor_ref.mistakes.rows import Verdict
from mor_ref.mistakes.scales import mistakes_of_scales
from mor_ref.operations import OPERATIONS
from mor_ref.policies import POLICIES
from mor_ref.recipes import Situation, as_block_format, own_recipe
from mor_ref.representations import known_names
from mor_ref.verify.all_inputs.verify import ChunkResult
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.checking.check import Check
from mor_ref.verify.comparing.allowed import EVERY_BIT
from mor_ref.verify.reporting.declaration import declaration
from mor_ref.verify.reporting.junit import as_junit
from mor_ref.verify.reporting.origin import origin_here
from mor_ref.verify.reporting.report_files import as_json
from mor_ref.verify.running.run import Verification, verify
from mor_ref.verify.running.suites import suites_in

ROOT = Path(__file__).resolve().parent.parent
FILE = Path(__file__).with_suffix(".json")
_INTEGERS = np.ones((4, 4), np.int32)  # which no recipe takes

# ------------------------------------------------------------------------------ Python

# Modules whose documented names are for work on mor_ref itself, as the page says.
INSIDE = ("deviations", "operations", "exact", "engine")
_INSIDE = rf"mor_ref\.({'|'.join(INSIDE)})\b"
# Records are made by functions: nobody but them calls their classes.
_RECORDS = (
    r"mor_ref\.(api|analysis|fp8lm|cuda|torch\.(measures|recording|layers))\b|"
    r"mor_ref\.schemes\.\w+\.(functions|cuda)"
)
_IN_REFERENCE = re.compile(
    r"^\.\. (?:auto(?:function|class|exception):: (mor_ref\.[\w.]+)"
    r"|py:data:: (\w+)\n +:module: (mor_ref[\w.]*))",
    re.MULTILINE,
)
_WHOLE = ("mor_ref", "mor_ref.cuda", "mor_ref.fp8lm", "mor_ref.layouts", "mor_ref.torch")


def api(promised: "Section") -> "Section":
    """Return the public names with their parameters: documented ones, and those promised."""
    text = (ROOT / "docs" / "reference" / "api.md").read_text("utf-8")
    names = {name or f"{module}.{data}" for name, data, module in _IN_REFERENCE.findall(text)}
    for module in _WHOLE:
        if _is_there(module):
            names |= {f"{module}.{name}" for name in importlib.import_module(module).__all__}
    names = {name for name in names if not re.match(_INSIDE, name)}
    found: Section = {}
    for name in sorted(name for name in names if _is_there(name)):
        found |= _described(name)
    for name in promised:
        if name not in found and _is_there(name):
            with suppress(AttributeError):
                found[name] = _kind(_resolved(name))
    return found


def _is_there(name: str) -> bool:
    """Return whether the module of a name can be imported: torch may be missing."""
    return not name.startswith("mor_ref.torch") or importlib.util.find_spec("torch") is not None


def _resolved(name: str) -> Any:
    """Return what a name stands for; a deprecated one may warn."""
    parts = name.split(".")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for end in range(len(parts), 0, -1):
            with suppress(ModuleNotFoundError):
                found = importlib.import_module(".".join(parts[:end]))
                break
        for part in parts[end:]:
            fields = dataclasses.fields(found) if dataclasses.is_dataclass(found) else ()
            found = None if part in {f.name for f in fields} else getattr(found, part)
    return found


def _described(name: str) -> "Section":
    """Return a name with its parameters, and the members of a class."""
    value = _resolved(name)
    found = {name: _kind(value)}
    if inspect.isclass(value):
        members = {member for member in dir(value) if not member.startswith("_")}
        if dataclasses.is_dataclass(value):
            members |= {f.name for f in dataclasses.fields(value) if not f.name.startswith("_")}
        if issubclass(value, Exception):
            members -= set(dir(Exception))
        found |= {f"{name}.{m}": _kind(_resolved(f"{name}.{m}")) for m in sorted(members)}
    return found


def _kind(value: Any) -> Any:
    """Return the parameters of what can be called, and a word for anything else."""
    if inspect.isclass(value):
        is_called = not re.match(_RECORDS, value.__module__) and not issubclass(value, Exception)
        return _parameters(value) if is_called else "class"
    is_called = inspect.isroutine(value) and callable(value)  # and is no other descriptor
    return _parameters(value) if is_called else "value"


def _parameters(function: Any) -> list[str]:
    """Return parameters: `x`, `x=1`, then `*` and those by name; `?` is another default."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ["..."]
    found = []
    for one in parameters:
        if one.kind is one.KEYWORD_ONLY and "*" not in found:
            found.append("*")
        if one.name.startswith("_") or one.name == "self":
            continue
        is_plain = isinstance(one.default, str | int | float | bool | tuple | None)
        default = "" if one.default is one.empty else f"={one.default!r}" if is_plain else "=?"
        mark = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        found.append(f"{mark}{one.name}{default}")
    return found


def _still_takes(promised: list[str], today: list[str]) -> bool:
    """Return whether each call by the promised parameters does the same today."""

    def parted(parameters: list[str]) -> tuple[list[str], list[str]]:
        at = parameters.index("*") if "*" in parameters else len(parameters)
        return parameters[:at], parameters[at + 1 :]

    (placed, named), (placed_now, named_now) = parted(promised), parted(today)
    more = [p for p in placed_now[len(placed) :] if p not in named]
    more += [p for p in named_now if p not in named]
    return (
        placed_now[: len(placed)] == placed
        and set(named) <= {*placed_now, *named_now}
        and all("=" in parameter or parameter.startswith("*") for parameter in more)
    )


# ------------------------------------------------------------------ the command line


def commands() -> "Section":
    """Return commands, arguments and options, with what they take and their defaults."""
    found: Section = {}

    def add(command: Any, name: str) -> None:
        nonlocal found
        arguments = [one for one in command.params if one.param_type_name == "argument"]
        for number, argument in enumerate(arguments, 1):
            found[f"{name} argument {number}"] = _taken(argument)
        for option in command.params:
            if option not in arguments and "--help" not in option.opts:
                found |= {f"{name} {spelt}".strip(): _taken(option) for spelt in option.opts}
        for sub, inner in getattr(command, "commands", {}).items():
            found[f"{name} {sub}".strip()] = "a command"
            add(inner, f"{name} {sub}".strip())

    add(typer.main.get_command(app), "")
    return found


def _taken(option: Any) -> str:
    if getattr(option, "is_flag", False):
        return "a flag"
    many = ", repeated" if option.multiple or option.nargs == -1 else ""
    if option.required:
        return f"a value, required{many}"
    default = option.default
    return f"a value{many}" if default is None else f"a value{many}, or {default}"


def library() -> "Section":
    """Return the names of the library in C, and of its package for SystemVerilog.

    A number has its value, a function what it takes and returns, and a structure its fields. In
    SystemVerilog, where arguments are given by name, they have their names.
    """
    directory = ROOT / "mor_ref" / "sources" / "c"
    files = ("mor_ref.h", "mor_ref_dpi.h", "mor_ref_dpi.sv")
    texts = [(directory / name).read_text("utf-8") for name in files]
    return declared_in_systemverilog(texts[2]) | declared_in_c("\n".join(texts[:2]))


_COUNTS = ("MOR_FORMATS", "MOR_POLICIES", "MOR_PROFILES")  # which grow


def declared_in_c(text: str) -> "Section":
    """Return the names of headers, each with what has to stay."""
    code = _without_comments(text)
    found = dict.fromkeys(_names_in_c(code), "")
    for result, name, taken in re.findall(
        r"^([\w *]*?)(\bmor_\w+)\(([^)]*)\);", code, re.MULTILINE
    ):
        types = (re.sub(r"\w+$", "", part.strip()).strip() for part in taken.split(","))
        found[name] = f"{result.strip()} ({', '.join(types)})"
    for body, name in re.findall(r"typedef struct \{(.*?)\} (\w+);", code, re.DOTALL):
        for kind, fields in re.findall(r"(\w[\w ]*? \*?)((?:\w+(?:, )?)+);", body):
            found |= {f"{name}.{field}": kind.strip() for field in fields.split(", ")}
    return found | _numbers_of_enums(code)


def declared_in_systemverilog(text: str) -> "Section":
    """Return the names of the package, each with what has to stay."""
    code = _without_comments(text)
    found = dict.fromkeys(_names_in_c(code), "")
    functions = re.findall(r"function ([\w ]+?) (mor_\w+)\(([^)]*)\);", code)
    arguments = {name: [part.strip() for part in taken.split(",")] for _, name, taken in functions}
    members = {name: f"{result} ({', '.join(arguments[name])})" for result, name, _ in functions}
    members |= _numbers_of_enums(code)
    return found | {f"mor_ref_dpi::{name}": value for name, value in members.items()}


def _without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)


def _names_in_c(code: str) -> list[str]:
    return sorted(set(re.findall(r"\b(?:mor_\w+|MOR_\w+|\w+_t)\b", code)))


def _numbers_of_enums(code: str) -> "Section":
    """Return the number of each name of an enumeration; those that count the others have none."""
    lists = re.findall(r"enum(?: int)? *\{(.*?)\}", code, re.DOTALL)
    return {
        name: "" if name in _COUNTS else str(number)
        for names in lists
        for number, name in enumerate(re.findall(r"\w+", names))
    }


def statuses() -> "Section":
    """Return the exit status of a command in each state."""
    vectors = str(bundled_files())
    with tempfile.TemporaryDirectory() as directory:
        empty = Path(directory) / "empty"
        empty.mkdir()
        file = str(Path(directory) / "x.safetensors")
        save_file({"x": _numbers(), "of_integers": _INTEGERS}, file)
        other = ["--suite", "mx_blocks"]
        chunk = ["--chunks", "0", "--candidate"]
        complete = ["--out", str(Path(directory) / "y.npz"), "--complete"]
        calls = {
            "all bits match": ["verify", "numba", "--suite", "scale_steps"],
            "bits differ": ["verify", f"dir:{vectors}/negative", "--suite", "scale_steps"],
            "a wrong call": ["explain", "0.3", "--format", "e9m9"],
            "files that cannot be used": ["golden", "check", str(empty)],
            "a candidate that cannot be run": ["verify", f"exec:{empty}/no", "--suite", "decode"],
            "results that cannot be read": ["verify", f"dir:{empty}", "--suite", "decode"],
            "a candidate without an answer": ["verify", f"dir:{vectors}/negative", *other],
            "a tensor that is left out": ["quantize", file, "--recipe", "nvfp4", *complete],
            "chunks that cannot be asked": ["exhaustive", "e2m1", *chunk, f"exec:{empty}/no"],
        }
        shown = {state: _run(call)[0] for state, call in calls.items()}
    of_verdicts = {
        f"verify: {verdict}": int(status) for verdict, status in VERDICT_STATUSES.items()
    }
    ends = {f"{status.name}": int(status) for status in Status}
    return {**shown, **of_verdicts, **ends}


def _run(call: list[str]) -> tuple[int, str]:
    """Return the exit status and the output of a command; a user error has 2, as in main."""
    done = CliRunner().invoke(app, call)
    is_error = isinstance(done.exception, ValueError | TypeError | OSError | RuntimeError)
    return 2 if is_error else done.exit_code, done.stdout


# ------------------------------------------------------------------- keys of records

# What is in these is by the names of suites, cases, fields, formats and the like.
_BY_NAME = re.compile(
    r".*\.(addresses|bits|cases|errors|expected|kills|left_out|\w*shares|suites|taken|thresholds"
    r"|units|views)|compare\.recipes(_left_out)?"
    r"|policies|profiles|recipes|roundings|declaration\.suites\[\]\.results\[\]\.fields"
)
# Of an operation, which differ.
_PARAMETERS = re.compile(r".*\.cases\.\*|declaration\.suites\[\]\.results\[\]\.parameters")


def records() -> "Section":
    """Return the keys of the manifest and of what commands write as JSON, with their types."""
    found: Section = {}
    _add_keys(found, "manifest", json.loads((bundled_files() / "MANIFEST.json").read_text("utf-8")))
    kernel = PythonFunction("kernel:run", _deviating)
    verified = verify(kernel, suites_in(bundled_files(), ["decode", "quantize_steps"]))
    made = origin_here("kernel:run", bundled_files())
    faulty = filled(Verification)
    for name in ("verify", "verify --inputs"):
        _add_keys(found, name, json.loads(as_json(faulty, made)))
    _add_keys(found, "verify", json.loads(as_json(verified, made)))
    there = suites_in(bundled_files(), ["decode", "quantize_steps"])
    _add_keys(found, "declaration", declaration(verified, there, EVERY_BIT, "all"))
    of_inputs = replace(there, entries={"e4m3": there.entries["decode"]}, named="inputs")
    _add_keys(found, "declaration", declaration(faulty, of_inputs, EVERY_BIT, "all"))
    suites = ["decode", "quantize_steps", "decisions", "error_steps"]
    each = verify(PythonFunction("kernel:each", _each_outcome), suites_in(bundled_files(), suites))
    for element in ET.fromstring(as_junit(each, made)).iter():  # noqa: S314, its own
        found[f"junit {element.tag}"] = ["element"]
        for attribute in element.keys():  # noqa: SIM118, of an element
            found[f"junit {element.tag} {attribute}"] = ["text"]
    with tempfile.TemporaryDirectory() as directory:
        file = str(Path(directory) / "x.safetensors")
        save_file({"x": _numbers(), "row": _numbers()[0], "of_integers": _INTEGERS}, file)
        empty = str(Path(directory) / "empty.safetensors")
        save_file({}, empty)
        calls = {
            "formats": ["formats"],
            "formats FORMAT": ["formats", "e4m3"],
            "explain": ["explain", "0.3", "--format", "e4m3"],
            "analyze": ["analyze", file, file, empty],
            "compare": [
                *("compare", file, empty, "--inputs", file),
                *("--recipe", "nvfp4", "--recipe", "mor:three_way"),
            ],
            "golden list": ["golden", "list"],
            "golden list SUITE": ["golden", "list", "decode"],
            "golden list --cases": ["golden", "list", "decode", "--cases"],
            "golden check": ["golden", "check", "--suite", "decode"],
            "verify --inputs": ["verify", "numba", "--inputs", file, "--recipe", "nvfp4"],
            "encode": ["encode", "0.3", "--format", "e4m3"],
            "decode": ["decode", "0x2A", "--format", "e4m3"],
            "recipes": ["recipes"],
            "profiles": ["profiles"],
            "policies": ["policies"],
            "roundings": ["roundings"],
            "exhaustive": ["exhaustive", "e2m1", "--candidate", "numba", "--chunks", "0"],
        }
        for name, call in calls.items():
            _add_keys(found, name, json.loads(_run([*call, "--json"])[1]))
        _add_keys(found, "formats FORMAT", json.loads(_run(["formats", "e5m2", "--json"])[1]))
        _add_keys(found, "golden list SUITE", _of_a_suite_with_views())
        for name, call in _with_faults(directory).items():
            with call.patched:
                _add_keys(found, name, json.loads(_run([*call.words, "--json"])[1]))
    return dict(sorted(found.items()))


def _of_a_suite_with_views() -> Any:
    suites = json.loads((bundled_files() / "MANIFEST.json").read_text("utf-8"))["suites"]
    name = next(name for name, of in suites.items() if any(f["views"] for f in of["fields"]))
    return json.loads(_run(["golden", "list", name, "--json"])[1])


class _Call(NamedTuple):
    """A call of a command, with results in place of those that take minutes or need faults."""

    words: list[str]
    patched: Any


def _with_faults(other: str) -> dict[str, _Call]:
    """Return calls of commands that find a fault of each kind."""
    of_scales = mistakes_of_scales()[0]
    of_format, other_of_format, *_ = mistakes_of(as_block_format("mxfp8"))
    is_open = SimpleNamespace(kind="open", words="no answer within 1 s for s")
    verdict = Verdict(of_scales, "e4m3.gam", touched=1, shown=(0,), field="scale")
    open_verdict = replace(verdict, shown=(), field=None)
    in_suite = InSuite([verdict], [verdict, open_verdict])
    wrong_chunk = replace(filled(ChunkResult), is_same=False)
    return {
        "golden mistakes SUITE": _Call(
            ["golden", "mistakes", "scale_steps"],
            patch.object(golden, "mistakes_in", lambda *_: {of_scales.name: in_suite}),
        ),
        "golden mistakes FORMAT": _Call(
            ["golden", "mistakes", "mxfp8", "--prove", "1"],
            patch.multiple(
                golden,
                mistakes_shown=lambda *_: [
                    Shown(other_of_format),
                    Shown(of_format, "tie", "scale"),
                ],
                _verdicts=lambda *_: {other_of_format.name: is_open},
            ),
        ),
        "golden check": _Call(
            ["golden", "check", "--suite", "decode", "--same-as", other],
            patch.multiple(
                golden, check=lambda *_: filled(Check), compare_manifests=lambda *_: ["differs"]
            ),
        ),
        "exhaustive": _Call(
            ["exhaustive", "e2m1", "--candidate", "numba", "--chunks", "0"],
            patch.object(exhaustive, "verify_chunks", lambda *_: [wrong_chunk]),
        ),
        "exhaustive FORMAT": _Call(
            ["exhaustive", "e2m1"],
            patch.object(
                exhaustive,
                "_compared",
                lambda *_: (filled(Digest), None, "equals the bundled digest"),
            ),
        ),
    }


def _deviating(operation: str, parameters: Any, inputs: Any) -> Any:
    with applied(CAUSES["ENC-003/ties-away"]):
        return OPERATIONS[operation].exact(parameters, inputs)


def _each_outcome(operation: str, parameters: Any, inputs: Any) -> Any:
    """Match in one suite, differ in one, raise in one, and answer nothing in one."""
    if operation == "decide":
        raise ArithmeticError
    return None if operation == "error_term" else _deviating(operation, parameters, inputs)


def _add_keys(found: "Section", path: str, value: Any) -> None:
    """Add the types of a value and of all that it contains to those of their paths."""
    kind = {dict: "object", list: "list", str: "text", bool: "true or false", type(None): "null"}
    found[path] = sorted({*found.get(path, []), kind.get(type(value), "number")})
    if isinstance(value, dict) and not _PARAMETERS.fullmatch(path):
        for key, inner in value.items():
            _add_keys(found, f"{path}.{'*' if _BY_NAME.fullmatch(path) else key}", inner)
    if isinstance(value, list):
        for inner in value:
            _add_keys(found, f"{path}[]", inner)


# --------------------------------------------------------------------- files of users


def files() -> "Section":
    """Return the names of files, and of their arrays, keys and columns, that commands write."""
    found: Section = {}
    x = _numbers()
    saved = {
        "quantize": mor_ref.quantize(x, "e4m3"),
        "quantize_mx": mor_ref.quantize_mx(x, "e4m3"),
        "quantize_nvfp4": mor_ref.quantize_nvfp4(x),
        "mor": mor_ref.mor(x, "two_way"),
    }
    with tempfile.TemporaryDirectory() as directory:
        file, out = Path(directory) / "x.safetensors", Path(directory) / "out"
        for name, record in saved.items():
            record.save(file)
            found |= _arrays_of(file, f"save of {name}")
        save_file({"x": x}, file)
        _run(["quantize", str(file), "--recipe", "nvfp4", "--out", f"{out}.safetensors"])
        found |= _arrays_of(Path(f"{out}.safetensors"), "quantize --out")
        recipes = ["--recipe", "nvfp4", "--recipe", "mxfp8"]
        _run(["compare", str(file), *recipes, "--out", f"{out}.csv"])
        columns = Path(f"{out}.csv").read_text("utf-8").splitlines()[0].split(",")
        found |= {f"compare --out column {name}": "" for name in columns}
        for kind in ("jsonl", "testfloat", "readmemh", "c", "npz"):
            _run(["golden", "export", "--to", kind, "--suite", "decode", "--out", str(out / kind)])
            for path in sorted((out / kind).rglob("*.*")):
                if len(path.relative_to(out).parts) == 2 or path.name.startswith("e4m3."):
                    found[f"golden export --to {path.relative_to(out).as_posix()}"] = ""
        with np.load(out / "npz" / "decode.npz") as arrays:
            for name in sorted(name for name in arrays if name.startswith("e4m3/")):
                found[f"golden export --to npz array {name}"] = str(arrays[name].dtype)
        line = (out / "jsonl" / "decode.jsonl").read_text("utf-8").splitlines()[0]
        found |= {f"golden export --to jsonl key {key}": "" for key in json.loads(line)}
    return found | _lines_of_streams()


def _lines_of_streams() -> "Section":
    """Return what is in a line of the first case of each suite that has lines, in its order."""
    found: Section = {}
    suites = json.loads((bundled_files() / "MANIFEST.json").read_text("utf-8"))["suites"]
    for suite, entry in suites.items():
        if OPERATIONS[entry["operation"]].random is not None:
            stream = stream_named(f"{suite}/{next(iter(entry['cases']))}")
            words = [f"{one.name}:{one.format}x{one.words}" for one in stream.answer.columns]
            found[f"gen and ver {stream.name}"] = " ".join(words)
    return found


def _arrays_of(path: Path, what: str) -> "Section":
    """Return the arrays of a file with their dtypes, and the keys of its metadata."""
    with safe_open(path, "numpy") as file:
        arrays = {f"{what} array {key}": str(file.get_tensor(key).dtype) for key in file.keys()}  # noqa: SIM118
        return arrays | {f"{what} metadata {key}": "" for key in file.metadata()}


# ------------------------------------------------------------------- ids, files, recipes


def golden_files() -> "Section":
    """Return the files of golden/v1 with the first digits of their SHA-256."""
    files = sorted((ROOT / "golden" / "v1").rglob("*.safetensors"))
    return {
        path.relative_to(ROOT).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        for path in files
    }


def digests() -> "Section":
    """Return the first digits of the digest of all inputs in each case."""
    return {name: digest.sha256[:16] for name, digest in sorted(bundled_digests().items())}


_TRAINING = "training: "


def recipes(promised: "Section") -> "Section":
    """Return the digests of a tensor under each recipe, and of the recipes of training."""
    scaled = [name for name in mor_ref.formats if _bits_under(f"{name}:fp32:tensor")]
    words = ("fp32:tensor", "gam:128x128", "gam:1x16", "e8m0:row")
    texts = {*known_names(), *USUAL, *OF_ALL_REPRESENTATIONS, *(f"mor:{name}" for name in POLICIES)}
    texts |= {f"{name}:{more}" for name in scaled for more in words}
    texts |= {f"mxfp8:{rule}" for rule in SCALE_RULES} | {f"nvfp4:{name}" for name in PROFILES}
    texts |= {text for text in promised if not text.startswith(_TRAINING)}
    found = {text: bits for text in sorted(texts) if (bits := _bits_under(text))}
    if _is_there("mor_ref.torch"):
        from mor_ref.torch import recipes as of_training

        for name, recipe in of_training.items():
            found[f"{_TRAINING}{name}"] = hashlib.sha256(str(recipe).encode()).hexdigest()[:16]
    return found


def _numbers() -> Any:
    """Return a tensor whose blocks differ in their magnitudes."""
    words = np.arange(40 * 48, dtype=np.uint64) * np.uint64(2654435761) % np.uint64(2**32)
    x = (words.astype(np.float32) / np.float32(2**31) - 1).reshape(40, 48)
    return x * np.float32(2) ** (np.arange(48, dtype=np.float32) // 16 * 9 - 9)


def _bits_under(text: str) -> str:
    """Return the digest of a tensor that is quantized with a recipe; "" if that is none."""
    try:
        tensor_recipe = own_recipe(text).tensor_recipe
        policy = tensor_recipe.policy_in(Situation())
    except ValueError:
        return ""
    if policy is None:
        return ""
    scaling = tensor_recipe.scales if policy.uses_scaling else None
    done = mor_ref.mor(_numbers(), policy, block=tensor_recipe.cut, scaling=scaling)
    return hashlib.sha256(np.asarray(done.output).tobytes()).hexdigest()[:16]


# ------------------------------------------------------------------------- the list

Section = dict[str, Any]
NEXT = (
    "keep the old name, and let it name the new one (docs/guide/stable.md); if its two minor "
    "versions are over, or 0.2.0 is not released yet, run `make stable ARGUMENTS=--drop`, and list "
    "it in CHANGELOG.md"
)
_NEW_VERSION = "undo it; new cases and other bits are a new version of the golden vectors"
PROMISES = {
    "python": f"a public name or a parameter of Python is gone or another: {NEXT}",
    "commands": f"a command or an option is gone or takes something else: {NEXT}",
    "library": f"a name of the library in C is gone or means something else: {NEXT}",
    "statuses": "an exit status has another meaning: give the old one; new states take 6 or more",
    "records": f"a key of a file or a report is gone or of another type: {NEXT}",
    "files": f"a file, or an array, a key or a column of it, is gone or of another type: {NEXT}",
    "rules": "the id of a rule, or its address, is gone: keep it, and name the rule in its place",
    "causes": "the id of a cause, or its address, is gone: let it lead to the new one",
    "golden": f"a file of golden/v1 is gone or has other bytes: {_NEW_VERSION}",
    "digests": f"a digest of all inputs is gone or another: {_NEW_VERSION}",
    "recipes": f"a recipe is gone or leads to other bits: {NEXT}",
}


def listed() -> dict[str, Section]:
    """Return the list of what was promised."""
    found: dict[str, Section] = json.loads(FILE.read_text("utf-8"))
    return found


def today(section: str, promised: Section) -> Section:
    """Return the names of a section as they are today."""
    match section:
        case "python":
            return api(promised)
        case "recipes":
            return recipes(promised)
        case "rules":
            return {rule.id: rule_path(rule.id) for rule in rules_of(ROOT / "spec")}
        case "causes":
            return {cause: cause_path(cause) for cause in (*CAUSES, *FORMER_IDS)}
    return {
        "commands": commands,
        "library": library,
        "statuses": statuses,
        "records": records,
        "files": files,
        "golden": golden_files,
        "digests": digests,
    }[section]()


def broken(section: str, promised: Section, now: Section) -> dict[str, str]:
    """Return the names that are gone or changed, with how; names that are new break nothing."""
    found = {}
    for name, was in promised.items():
        if name.startswith(("mor_ref.torch", _TRAINING)) and not _is_there("mor_ref.torch"):
            continue
        if name not in now:
            found[name] = "gone"
        elif not _keeps(section, was, now[name]):
            found[name] = f"{_shown(was)} is {_shown(now[name])} now"
    return found


def _keeps(section: str, was: Any, now: Any) -> bool:
    """Return whether a name does today what was promised."""
    if section == "records":  # what was null can have a value
        return set(now) <= {*was, "null"} or was == ["null"]
    if isinstance(was, list) and isinstance(now, list):
        return _still_takes(was, now)
    return bool(was == now)


def _shown(value: Any) -> str:
    return f"({', '.join(value)})" if isinstance(value, list) else str(value)


def main(arguments: list[str]) -> int:
    """Write the list with what is new; with --drop, also without what is gone or changed.

    --drop is for the time before the release of 0.2.0, and for names whose deprecation has lasted
    two minor versions (docs/guide/stable.md).
    """
    before = listed() if FILE.exists() else {}
    after, lost = {}, []
    for section in PROMISES:
        promised = before.get(section, {})
        now = today(section, promised)
        wrong = broken(section, promised, now)
        lost += [f"{section}: {name}: {how}" for name, how in wrong.items()]
        kept = {name: was for name, was in promised.items() if name not in wrong}
        after[section] = dict(sorted((kept | now).items()))
        new = len(now.keys() - promised.keys())
        print(f"{section}: {len(after[section]):,} names, {new:,} new, {len(wrong):,} lost")
    if lost:
        print("\n".join(lost))
    if lost and "--drop" not in arguments:
        print(f"stable: these promises are broken, so nothing is written; {NEXT}")
        return 1
    FILE.write_text(_text(after), encoding="utf-8")
    return 0


def _text(sections: dict[str, Section]) -> str:
    """Return the list as JSON with a line for each name, which changes merge by."""
    parts = []
    for section, names in sections.items():
        lines = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in names.items())
        parts.append(f" {json.dumps(section)}: {{\n{lines}\n }}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
