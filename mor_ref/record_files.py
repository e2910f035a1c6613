"""Records as files: their arrays under the names of the fields, and everything else as JSON."""

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from os import PathLike, fspath
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, deserialize
from safetensors.numpy import save

from mor_ref.argument_checks import error_text
from mor_ref.arrays import BF16
from mor_ref.processor_modes import in_usual_modes
from mor_ref.whole_files import DTYPES, whole_file

_RECORD = "record"  # the name of the JSON, in the metadata of a file or next to its arrays
_ENDINGS = (".safetensors", ".npz")
_LENGTH = 8  # bytes of the length of the header
Arrays = dict[str, NDArray[Any]]
Kinds = Mapping[str, Callable[..., Any]]


@in_usual_modes
def write_record(record: object, given: str | PathLike[str]) -> None:
    """Write a record to a file that is there whole or not at all."""
    path, arrays = _path(given), Arrays()
    text = json.dumps(_tree(record, "", arrays))
    with whole_file(path) as file:
        if path.suffix == ".npz":
            np.savez(file, **{_RECORD: np.array(text)}, **arrays)  # type: ignore[arg-type]
        else:
            file.write(save(arrays, {_RECORD: text}))


def read_record(given: str | PathLike[str], kinds: Kinds) -> Any:
    """Return the record of a file; `kinds` make what it has, by the names of the types."""
    path = _path(given)
    try:
        text, arrays = _contents(path)
        return _value(json.loads(text), arrays, kinds)
    except FileNotFoundError:
        raise
    except (
        *(ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError),
        *(BadZipFile, EOFError, OSError, SafetensorError),
    ) as error:
        raise ValueError(
            f"{path} has no record that can be read ({error_text(error)}); give a file that the "
            "method save of a record wrote"
        ) from error


def _path(given: str | PathLike[str]) -> Path:
    path = Path(fspath(given))
    if path.suffix not in _ENDINGS:
        raise ValueError(
            f"path is {str(path)!r}; give a file that ends in one of {', '.join(_ENDINGS)}"
        )
    return path


def _contents(path: Path) -> tuple[str, Arrays]:
    """Return the JSON and the arrays of a file."""
    if path.suffix == ".npz":
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        return str(arrays.pop(_RECORD)), arrays
    content = path.read_bytes()  # the library would map the file, which may get shorter
    arrays = {name: _array(entry) for name, entry in deserialize(content)}  # type: ignore[no-untyped-call]
    header = content[_LENGTH : _LENGTH + int.from_bytes(content[:_LENGTH], "little")]
    return json.loads(header)["__metadata__"][_RECORD], arrays


def _array(entry: Mapping[str, Any]) -> NDArray[Any]:
    dtype = BF16 if entry["dtype"] == "BF16" else np.dtype(DTYPES[entry["dtype"]])
    return np.frombuffer(entry["data"], dtype).reshape(entry["shape"]).copy()


def _tree(value: object, name: str, arrays: Arrays) -> Any:
    """Return a value as JSON, and put its arrays among the others."""
    if isinstance(value, np.ndarray) and value.dtype.hasobject:  # integers of any size
        return {"integers": value.tolist(), "shape": value.shape}
    if isinstance(value, np.ndarray | np.generic):
        arrays[name] = np.require(value, requirements="C")
        return {"array" if isinstance(value, np.ndarray) else "scalar": name}
    if isinstance(value, Mapping):
        return {
            "items": [[key, _tree(item, f"{name}.{key}", arrays)] for key, item in value.items()]
        }
    if isinstance(value, tuple):
        return [_tree(item, f"{name}.{k}", arrays) for k, item in enumerate(value)]
    if isinstance(value, Decimal | Fraction):
        return {"number": str(value), "type": type(value).__name__}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    kind = type(value)
    if not is_dataclass(value) or kind.__module__.partition(".")[0] != __package__:
        raise ValueError(
            f"{name} has a {kind.__name__} of your own, which a file cannot hold; save another "
            "field of the record, such as record.quantized[name]"
        )
    start = f"{name}." if name else ""
    parts = {
        field.name: _tree(getattr(value, field.name), f"{start}{field.name}", arrays)
        for field in fields(value)
        if field.init
    }
    return {"type": kind.__name__, "fields": parts}


def _value(tree: Any, arrays: Arrays, kinds: Kinds) -> Any:
    """Return the value of JSON."""
    if isinstance(tree, list):
        return tuple(_value(item, arrays, kinds) for item in tree)
    if not isinstance(tree, dict):
        return tree
    if "integers" in tree:
        integers = np.empty(tree["shape"], object)
        integers[...] = np.array(tree["integers"], object).reshape(tree["shape"])
        return integers
    if "array" in tree:
        return arrays[tree["array"]]
    if "scalar" in tree:
        return arrays[tree["scalar"]][()]
    if "items" in tree:
        return {key: _value(item, arrays, kinds) for key, item in tree["items"]}
    if "number" in tree:
        return {"Decimal": Decimal, "Fraction": Fraction}[tree["type"]](tree["number"])
    parts = {name: _value(item, arrays, kinds) for name, item in tree["fields"].items()}
    return kinds[tree["type"]](**parts)
