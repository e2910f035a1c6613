"""The tensors of files and of directories of models, one at a time.

Tensors are listed from the headers of a file alone. Numbers are read on demand, so that a file may
be larger than the memory.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from mor_ref.analysis.gguf_files import gguf
from mor_ref.analysis.numpy_files import npy, npz
from mor_ref.analysis.piped_files import as_file, name_of
from mor_ref.analysis.safetensors_files import safetensors
from mor_ref.analysis.stored_tensors import (
    SkippedTensor,
    StoredTensor,
    Tensors,
    numbers_as_such,
    reading,
)
from mor_ref.analysis.torch_files import torch_tensors

__all__ = ["SkippedTensor", "StoredTensor", "tensors_in", "tensors_of"]

_INDEX = ".index.json"
# The kinds of files of a model; a directory may have the same tensors in several.
_OF_MODELS = ((".safetensors",), (".bin", ".pt", ".pth"), (".gguf",), (".npy",), (".npz",))
_NOT_OF_TENSORS = {"training_args.bin", "optimizer.pt", "optimizer.bin", "scheduler.pt"}

Tensor = StoredTensor | SkippedTensor
Placed = Iterator[tuple[Path, Tensor]]  # the file that has a tensor, and the tensor


class TensorOfFile(NamedTuple):
    """A tensor, the name that was given for its file, and whether an earlier name has it, too."""

    file: str
    tensor: Tensor
    is_again: bool


def tensors_of(files: Iterable[str]) -> Iterator[TensorOfFile]:
    """Yield the tensors of several files, as `tensors_in` has them.

    A model may be given by its directory, by its index and by its parts.
    """
    before: set[tuple[Path, str]] = set()
    resolved = cache(Path.resolve)  # of a file once, however many tensors it has
    for file in files:
        found: set[tuple[Path, str]] = set()
        for path, tensor in _placed(file):
            # The tensor of a .npy has the name of the file, as it was given.
            key = resolved(path), "" if tensor.name == file else tensor.name
            found.add(key)
            yield TensorOfFile(file, tensor, key in before)
        before |= found


def files_read(files: Iterable[str]) -> Iterator[Path]:
    """Yield every file that belongs to the inputs: parts of an index, and the files of a directory.

    Those of a directory are all of its files: a model has more than its tensors.
    """
    for file in files:
        path = Path(file)
        if path.is_dir():
            yield from path.iterdir()
        else:
            yield path
            if path.name.endswith(_INDEX) and path.is_file():
                yield from map(Path, _places(file))


def tensors_in(file: str) -> Tensors:
    """Yield the tensors of a file, or of the model in a directory.

    A .npy file has one tensor, with the name of the file. Other files name their tensors. A
    .safetensors file has no order; here, layer 2 comes before layer 10.
    """
    yield from (tensor for _, tensor in _placed(file))


def _placed(file: str) -> Placed:
    """Yield the tensors of a file or a directory, each with the file that has it."""
    known = ", ".join(_LISTERS)
    if not file:
        raise ValueError(f"FILE is ''; give a file that ends in one of {known}")
    path = as_file(file)
    if path.is_dir():
        yield from _model(file)
        return
    is_index = path.name.endswith(_INDEX)
    lister = None if is_index else _LISTERS.get(path.suffix.lower())
    if lister is None and not is_index:
        raise ValueError(f"{file} ends in {path.suffix!r}; give a file that ends in one of {known}")
    if not path.is_file():
        raise FileNotFoundError(f"{file} is not there; give the path of one of {known}")
    if not path.stat().st_size:
        raise ValueError(f"{file} is empty; save or download it again")
    if lister is None:
        yield from _index(file)
    else:
        yield from ((path, _named(tensor, file, path)) for tensor in lister(str(path)))


def _named(tensor: Tensor, file: str, path: Path) -> Tensor:
    """Return a tensor; that of a .npy file has the name that was given for the file."""
    is_file = tensor.name == str(path) != file
    return replace(tensor, name=name_of(file)) if is_file else tensor


# ---------------------------------------------------------------------- files of several parts


def _model(directory: str) -> Placed:
    """Yield the tensors of a directory: by an index if there is one, else of all of its files."""
    there = sorted(path for path in Path(directory).iterdir() if path.is_file())
    for endings in _OF_MODELS:
        indices = [p for p in there if p.name.endswith(tuple(f"{e}{_INDEX}" for e in endings))]
        if indices:
            yield from _index(str(indices[0]))
            return
        parts = [p for p in there if p.suffix.lower() in endings and p.name not in _NOT_OF_TENSORS]
        if parts:
            yield from _of_parts(directory, {str(part): None for part in parts})
            return
    known = ", ".join(ending for endings in _OF_MODELS for ending in endings)
    raise ValueError(
        f"{directory} is a directory without a file that ends in one of {known}; name the files"
    )


def _index(file: str) -> Placed:
    """Yield the tensors that an index names, from the files that it says."""
    yield from _of_parts(file, _places(file))


def _places(file: str) -> dict[str, set[str]]:
    """Return the files that an index names, and the names of the tensors in each."""
    path = Path(file)
    with reading(path):
        read = json.loads(path.read_bytes())
    places = read.get("weight_map") if isinstance(read, Mapping) else None
    if not isinstance(places, Mapping) or not all(isinstance(p, str) for p in places.values()):
        raise ValueError(f"{file} has no weight_map of names and files; download it again")
    wanted: dict[str, set[str]] = {}
    for name, place in places.items():
        if Path(place).name != place or Path(place).suffix.lower() not in _LISTERS:
            raise ValueError(f"{file} names {place!r}, which is not a file of tensors next to it")
        wanted.setdefault(str(path.parent / place), set()).add(name)
    return wanted


def _of_parts(whole: str, wanted: Mapping[str, set[str] | None]) -> Placed:
    """Yield the tensors of several files, as if from one file; None takes all of a file."""
    found: dict[str, tuple[Path, Tensor]] = {}
    for part, names in wanted.items():
        there = {placed[1].name: placed for placed in _placed(part)}
        missing = sorted((names or set()) - there.keys())
        if missing:
            raise ValueError(f"{part} has no tensor {missing[0]}, which {whole} names there")
        for name, placed in there.items():
            if names is None or name in names:
                if name in found:
                    raise ValueError(f"{whole} has {name} in two files; name one of the files")
                found[name] = placed
    for name in sorted(found, key=numbers_as_such):
        yield found[name]


_LISTERS: dict[str, Callable[[str], Tensors]] = {
    ".npy": npy,
    ".npz": npz,
    ".safetensors": safetensors,
    ".bin": torch_tensors,
    ".pt": torch_tensors,
    ".pth": torch_tensors,
    ".gguf": gguf,
}
