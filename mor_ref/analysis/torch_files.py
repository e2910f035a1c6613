"""The tensors of PyTorch's .bin, .pt and .pth files, without running any code in them."""

import pickle
import re
import zipfile
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.analysis.stored_tensors import SMALL, SkippedTensor, StoredTensor, Tensors, reading
from mor_ref.arrays import numbers_from

_NAMES = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16"}
_GLOBAL = re.compile(r"GLOBAL (\S+)")  # a class or function, in torch's message
_CONSTANTS = "/constants.pkl"  # of archives of TorchScript
_NEXT = "save its state_dict with torch.save"
_OF_OPTIMIZER = {"state", "param_groups"}  # the keys of an optimizer's state_dict
_DEPTH = 64  # of dicts and lists inside each other
_MOST = 1 << 20  # items of all of them, which share lists and are counted each time


def torch_tensors(file: str) -> Tensors:
    """Yield the tensors of a state_dict, or of nested ones, whose keys are joined by dots."""
    for name, tensor, is_of_optimizer in _tensors_in(_loaded(file), "", file=file):
        shape, dtype = tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")
        reason = _reason_against(tensor, dtype)
        if reason is None:
            load = partial(_array, tensor)
            yield StoredTensor(name, shape, _NAMES[dtype], load, is_of_optimizer)
        else:
            yield SkippedTensor(name, shape, dtype, reason)


def _loaded(file: str) -> Any:
    """Return the content of a file; a zip archive stays on the disk until it is looked at."""
    try:
        import torch
    except ImportError as error:
        raise RuntimeError(
            f"{file} is read by torch, which is not installed; pip install 'mor-ref[torch]'"
        ) from error
    path = Path(file)
    try:
        with reading(path):
            is_mapped = zipfile.is_zipfile(path)
            is_script = is_mapped and _is_of_script(path)
        if is_script:
            raise ValueError(
                f"{file} is an archive of TorchScript, and no code is run here; {_NEXT}"
            )
        with reading(path):
            return torch.load(path, map_location="cpu", weights_only=True, mmap=is_mapped)
    except pickle.UnpicklingError as error:
        known = _GLOBAL.search(str(error))
        objects = f"objects, such as {known[1]}" if known else "objects"
        raise ValueError(
            f"{file} is not a file of tensors alone: it may have {objects}, and no object is "
            f"unpickled here; {_NEXT}"
        ) from error


def _is_of_script(path: Path) -> bool:
    with zipfile.ZipFile(path) as archive:
        return any(name.endswith(_CONSTANTS) for name in archive.namelist())


def _tensors_in(
    found: Any,
    name: str,
    *,
    file: str,
    depth: int = 0,
    is_of_optimizer: bool = False,
    counted: Iterator[int] | None = None,
) -> Iterator[tuple[str, Any, bool]]:
    """Yield the tensors of dicts and lists, by name, and whether an optimizer keeps them."""
    import torch

    if isinstance(found, torch.Tensor):
        yield name or "tensor", found, is_of_optimizer
        return
    if depth > _DEPTH:
        raise ValueError(
            f"{file} has dicts and lists inside each other, more than {_DEPTH} deep; {_NEXT}"
        )
    items: Any = ()
    if isinstance(found, Mapping):
        items = found.items()
        is_of_optimizer = is_of_optimizer or found.keys() >= _OF_OPTIMIZER
    elif isinstance(found, list | tuple):
        items = enumerate(found)
    counted = counted or count(1)
    for key, item in items:
        if next(counted) > _MOST:
            raise ValueError(f"{file} has more than {_MOST:,} items in dicts and lists; {_NEXT}")
        inside = f"{name}.{key}" if name else str(key)
        yield from _tensors_in(
            item,
            inside,
            file=file,
            depth=depth + 1,
            is_of_optimizer=is_of_optimizer,
            counted=counted,
        )


def _reason_against(tensor: Any, dtype: str) -> str | None:
    """Return why a tensor is not read; None if it is."""
    if tensor.is_quantized:
        return "it is quantized already"
    if str(tensor.layout) != "torch.strided":
        return "it is sparse; save it dense"
    if tensor.is_meta:
        return "it is on the device meta, without numbers; save it from the CPU"
    if dtype in _NAMES:
        return None
    if dtype == "bool":
        return "it holds booleans"
    if tensor.is_complex():
        return "it holds complex numbers"
    return f"it holds {SMALL if tensor.is_floating_point() else 'integers'}"


def _array(tensor: Any) -> NDArray[Any]:
    numbers = numbers_from(tensor, "tensor")
    return np.asarray(numbers.bits.view(numbers.dtype).reshape(numbers.shape))
