"""Analyses of the tensors of files, computed here or by workers."""

import functools
import platform
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from mor_ref.analysis.listing import Stored
from mor_ref.analysis.tensor_files import StoredTensor, tensors_in
from mor_ref.analysis.tensors import Analysis, Settings, analyze
from mor_ref.workers.pools import Workers
from mor_ref.workers.shards import WorkersError


def analyses_of(
    stored: Sequence[Stored], settings: Settings, workers: Workers | None
) -> Iterator[Analysis]:
    """Return the analysis of each tensor, in this order."""
    if workers is None:
        return (_analyzed(file, tensor, settings) for file, tensor in stored)
    shards = [
        (file, str(Path(file).resolve()), tensor.name, tensor.shape, tensor.dtype, settings)
        for file, tensor in stored
    ]
    return workers.in_order(_analyzed_by_name, shards)


def _analyzed(file: str, tensor: StoredTensor, settings: Settings) -> Analysis:
    try:
        return analyze(tensor.load(), settings, file=file, name=tensor.name, dtype=tensor.dtype)
    except MemoryError as error:
        raise RuntimeError(
            f"{tensor.name} in {file} does not fit into memory ({error}); its codes and its output "
            "take 3 bytes an element and more: use a larger machine, or cut the tensor"
        ) from error


def _analyzed_by_name(
    file: str, path: str, name: str, shape: tuple[int, ...], dtype: str, settings: Settings
) -> Analysis:
    """Analyze a tensor of a file on a worker; refuse a file with another header."""
    stored = _tensors_of(path, _version_of(path))
    there = stored.get(
        path if name == file else name
    )  # the tensor of a .npy has the name of the file
    if there is None or (there.shape, there.dtype) != (shape, dtype):
        what = "is not there" if there is None else f"is {_described(there.shape, there.dtype)}"
        raise WorkersError(
            f"{name} in {file} is {_described(shape, dtype)} here, and on the worker "
            f"{platform.node()} it {what}; give every worker the same file, and do not change it"
        )
    return _analyzed(file, replace(there, name=name), settings)


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
