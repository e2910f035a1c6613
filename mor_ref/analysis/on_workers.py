"""Tensors of files by name, so that a worker on another machine reads them itself."""

import functools
import platform
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from mor_ref.analysis.tensor_files import StoredTensor, tensors_in
from mor_ref.workers.shards import WorkersError


class NamedTensor(NamedTuple):
    """A tensor of a file, without its numbers: `file` is as given, and `path` where it is."""

    file: str
    path: str
    name: str
    shape: tuple[int, ...]
    dtype: str


def named_tensor(file: str, tensor: StoredTensor) -> NamedTensor:
    """Return the name of a tensor, for a worker."""
    return NamedTensor(file, str(Path(file).resolve()), tensor.name, tensor.shape, tensor.dtype)


def tensor_on_worker(one: NamedTensor) -> StoredTensor:
    """Return the tensor of this name on a worker; refuse a file with another header."""
    stored = _tensors_of(one.path, _version_of(one.path))
    # The tensor of a .npy has the name of the file.
    there = stored.get(one.path if one.name == one.file else one.name)
    if there is None or (there.shape, there.dtype) != (one.shape, one.dtype):
        what = "is not there" if there is None else f"is {_described(there.shape, there.dtype)}"
        raise WorkersError(
            f"{one.name} in {one.file} is {_described(one.shape, one.dtype)} here, but on the "
            f"worker {platform.node()} it {what}; give every worker the same file, and do not "
            "change it"
        )
    return replace(there, name=one.name)


def _described(shape: tuple[int, ...], dtype: str) -> str:
    return f"{'x'.join(map(str, shape)) or 'scalar'} {dtype}"


def _version_of(path: str) -> tuple[int, int]:
    """Return the size and the time of a file, as a worker may outlive its content."""
    found = Path(path).stat()
    return found.st_size, found.st_mtime_ns


@functools.lru_cache(maxsize=4)
def _tensors_of(path: str, _version: tuple[int, int]) -> dict[str, StoredTensor]:
    found = [tensor for tensor in tensors_in(path) if isinstance(tensor, StoredTensor)]
    return {tensor.name: tensor for tensor in found}
