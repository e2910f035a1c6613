"""What MoR makes of the tensors of files, found here or by workers."""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from mor_ref.analysis import Analysis, Settings, analyze
from mor_ref.tensor_files import StoredTensor, tensors_in
from mor_ref.workers import Workers, threads_of_worker

Stored = tuple[str, StoredTensor]  # a file as it was named, and a tensor in it


def analyses_of(
    stored: Sequence[Stored], settings: Settings, workers: Workers | None
) -> Iterator[Analysis]:
    """The analysis of each tensor, in this order."""
    if workers is None:
        return (_analyzed(file, tensor, settings) for file, tensor in stored)
    settings = replace(settings, threads=threads_of_worker(settings.threads))
    shards = [(file, str(Path(file).resolve()), tensor.name, settings) for file, tensor in stored]
    return workers.in_order(_analyzed_by_name, shards)


def _analyzed(file: str, tensor: StoredTensor, settings: Settings) -> Analysis:
    try:
        return analyze(tensor.load(), settings, file=file, name=tensor.name, dtype=tensor.dtype)
    except MemoryError as error:
        raise RuntimeError(
            f"{tensor.name} in {file} does not fit into memory ({error}); its codes and its output "
            "take 3 bytes an element and more: use a larger machine, or cut the tensor"
        ) from error


def _analyzed_by_name(file: str, path: str, name: str, settings: Settings) -> Analysis:
    """A tensor that a worker finds in a file that it can read as well."""
    there = _tensors_of(path)[path if name == file else name]  # that of a .npy is named as the file
    return _analyzed(file, replace(there, name=name), settings)


@functools.lru_cache(maxsize=4)
def _tensors_of(path: str) -> dict[str, StoredTensor]:
    found = [tensor for tensor in tensors_in(path) if isinstance(tensor, StoredTensor)]
    return {tensor.name: tensor for tensor in found}
