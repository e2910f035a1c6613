"""Analyses of the tensors of files, computed here or by workers."""

from collections.abc import Iterator, Sequence

from mor_ref.analysis.analyze_tensor import Analysis, Settings, analyze
from mor_ref.analysis.listing import Stored
from mor_ref.analysis.on_workers import NamedTensor, named_tensor, tensor_on_worker
from mor_ref.analysis.tensor_files import StoredTensor
from mor_ref.definitions.blocks import CutError
from mor_ref.workers.pools import Workers


def analyses_of(
    stored: Sequence[Stored], settings: Settings, workers: Workers | None
) -> Iterator[Analysis]:
    """Return the analysis of each tensor, in this order."""
    if workers is None:
        return (_analyzed(file, tensor, settings) for file, tensor in stored)
    shards = [(named_tensor(file, tensor), settings) for file, tensor in stored]
    return workers.in_order(_analyzed_by_name, shards)


def _analyzed(file: str, tensor: StoredTensor, settings: Settings) -> Analysis:
    try:
        return analyze(tensor.load(), settings, file=file, name=tensor.name, dtype=tensor.dtype)
    except CutError as error:
        raise ValueError(f"{tensor.name} in {file}: {error}") from error
    except MemoryError as error:
        raise MemoryError(
            f"{tensor.name} in {file}: {error}; its codes and its output take 3 bytes an element "
            "and more"
        ) from error


def _analyzed_by_name(one: NamedTensor, settings: Settings) -> Analysis:
    """Analyze a tensor of a file on a worker."""
    return _analyzed(one.file, tensor_on_worker(one), settings)
