"""The tensors of PyTorch's .bin, .pt and .pth files, without running any code in them."""

import pickle
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from mor_ref.analysis.stored_tensors import (
    DTYPES,
    SMALL,
    SkippedTensor,
    StoredTensor,
    Tensors,
    in_memory_if_small,
    reading,
)
from mor_ref.mapped_files import FileState, in_memory, mapped_by_others, state_of

_NAMES = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16"}
_GLOBAL = re.compile(r"GLOBAL (\S+)")  # a class or function, in torch's message
_CONSTANTS = "/constants.pkl"  # of archives of TorchScript
_NEXT = "save its state_dict with torch.save"
_OF_OPTIMIZER = {"state", "param_groups"}  # the keys of an optimizer's state_dict
_DEPTH = 64  # of dicts and lists inside each other
_MOST_REPEATED = 64  # times that each stored byte may be shown, on average
_FEW_BYTES = 1 << 28  # that any file may show
_FEW_TENSORS = 1 << 12  # that any file may name
_MOST_AGAIN = 1 << 16  # items of shared dicts and lists, beyond those that the file stores


def torch_tensors(file: str) -> Tensors:
    """Yield the tensors of a state_dict, or of nested ones, whose keys are joined by dots."""
    with reading(Path(file)):
        state = state_of(Path(file))
    loaded = _loaded(file)
    _check_nesting(loaded, file)
    _check_storages(loaded, file)
    for name, tensor, is_of_optimizer in _tensors_in(loaded, ""):
        shape, dtype = tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")
        reason = _reason_against(tensor, dtype)
        if reason is None:
            load = partial(_array, Path(file), tensor, DTYPES[_NAMES[dtype]], state)
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


def _check_nesting(loaded: Any, file: str) -> None:
    """Refuse dicts and lists that are nested deeply, or that come again too often.

    A list may contain itself, and a few that share others stand for more tensors than any file has.
    """
    known: dict[int, tuple[int, int]] = {}
    stored: list[int] = []  # items of each container

    def measured(found: Any, depth: int) -> tuple[int, int]:
        """Return the items of a container, at any depth, and how many levels it has."""
        if not isinstance(found, Mapping | list | tuple):
            return 0, 0
        if id(found) not in known and depth <= _DEPTH:
            inside = [measured(item, depth + 1) for _, item in _items(found)]
            items = len(inside) + sum(count for count, _ in inside)
            known[id(found)] = items, 1 + max((levels for _, levels in inside), default=0)
            stored.append(len(inside))
        items, levels = known.get(id(found), (0, 1))
        if depth + levels > _DEPTH + 1:
            raise ValueError(
                f"{file} has dicts and lists inside each other, more than {_DEPTH} deep; {_NEXT}"
            )
        return items, levels

    items, _ = measured(loaded, 0)
    again = items - sum(stored)
    if again > _MOST_AGAIN:
        raise ValueError(
            f"{file} has the same dicts and lists over and over: {again:,} items come again, and "
            f"at most {_MOST_AGAIN:,} may; {_NEXT}"
        )


def _check_storages(loaded: Any, file: str) -> None:
    """Refuse tensors that repeat what is stored: strides of 0, and many names for one storage."""
    stored: dict[int, int] = {}
    shown = names = 0
    for _, tensor, _ in _tensors_in(loaded, ""):
        if str(tensor.layout) != "torch.strided" or tensor.is_meta:
            continue
        storage = tensor.untyped_storage()
        stored[storage.data_ptr()] = storage.nbytes()
        shown += tensor.numel() * tensor.element_size()
        names += 1
    most_names = max(_MOST_REPEATED * len(stored), _FEW_TENSORS)
    if names > most_names:
        raise ValueError(
            f"{file} has {names:,} tensors, and stores {len(stored):,}: at most {most_names:,} may "
            "be named; save each once"
        )
    most = max(_MOST_REPEATED * sum(stored.values()), _FEW_BYTES)
    if shown > most:
        raise ValueError(
            f"{file} has tensors of {shown:,} bytes in all, and stores {sum(stored.values()):,}: "
            f"at most {most:,} may be shown; save tensors that are contiguous, and each once"
        )


def _tensors_in(
    found: Any, name: str, *, is_of_optimizer: bool = False
) -> Iterator[tuple[str, Any, bool]]:
    """Yield the tensors of dicts and lists, by name, and whether an optimizer keeps them."""
    import torch

    if isinstance(found, torch.Tensor):
        yield name or "tensor", found, is_of_optimizer
        return
    if isinstance(found, Mapping):
        is_of_optimizer = is_of_optimizer or found.keys() >= _OF_OPTIMIZER
    for key, item in _items(found):
        inside = f"{name}.{key}" if name else str(key)
        yield from _tensors_in(item, inside, is_of_optimizer=is_of_optimizer)


def _items(found: Any) -> Iterable[tuple[Any, Any]]:
    """Return the keys and items of a dict or a list; of anything else, none."""
    if isinstance(found, Mapping):
        return found.items()
    return enumerate(found) if isinstance(found, list | tuple) else ()


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


def _array(path: Path, tensor: Any, dtype: np.dtype[Any], state: FileState) -> NDArray[Any]:
    """Return the numbers of a tensor, from the part of its storage that has them."""
    import torch

    if not tensor.numel():
        return np.empty(tensor.shape, dtype)
    last = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
    first, count = tensor.storage_offset() * dtype.itemsize, (1 + last) * dtype.itemsize
    pages = torch.tensor([], dtype=torch.uint8).set_(
        tensor.untyped_storage(), first, (count,), (1,)
    )
    there = mapped_by_others(path, pages.numpy(), state).view(dtype)
    if tensor.is_contiguous() and not tensor.is_neg():
        return in_memory_if_small(there.reshape(tensor.shape))
    steps = [step * dtype.itemsize for step in tensor.stride()]
    found = np.ascontiguousarray(as_strided(in_memory(there), tensor.shape, steps))
    return -found if tensor.is_neg() else found
