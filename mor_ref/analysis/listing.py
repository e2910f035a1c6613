"""The tensors of several files, those that are left out, and why."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from mor_ref.analysis.compare_tensor import is_matrix
from mor_ref.analysis.tensor_files import SkippedTensor, StoredTensor, tensors_of

_AGAIN = "given more than once"
Stored = tuple[str, StoredTensor]  # the given name of a file, and a tensor in it


@dataclass(frozen=True)
class Listed:
    """The tensors in the files.

    `without` has the files without tensors, and `left_out` a count for each reason of a selection.
    """

    stored: list[Stored] = field(default_factory=list)
    skipped: list[tuple[str, SkippedTensor]] = field(default_factory=list)
    without: list[str] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Selection:
    """The tensors that are wanted: by regular expressions of names, and by shape.

    The state of an optimizer is left out with `matrices_only`, as it has no matrices of a model.
    """

    include: str | None = None
    exclude: str | None = None
    matrices_only: bool = False

    def __post_init__(self) -> None:
        for option in ("include", "exclude"):
            given = getattr(self, option)
            try:
                re.compile(given or "")
            except re.error as error:
                raise ValueError(
                    f"{option} is {given!r}, which is not a regular expression ({error}); give one "
                    "such as 'layer.*weight'"
                ) from error

    def reason_against(self, tensor: StoredTensor | SkippedTensor) -> str | None:
        """Return why a tensor is left out; None if it is wanted."""
        if self.include is not None and not re.search(self.include, tensor.name):
            return f"not named as --include {self.include}"
        if self.exclude is not None and re.search(self.exclude, tensor.name):
            return f"named as --exclude {self.exclude}"
        if self.matrices_only and not is_matrix(tensor.shape):
            return "not a matrix; --all-shapes takes them"
        if self.matrices_only and isinstance(tensor, StoredTensor) and tensor.is_of_optimizer:
            return "the state of an optimizer; --all-shapes takes them"
        return None


def list_tensors(files: Iterable[str], selection: Selection | None = None) -> Listed:
    """Return the tensors of files, each once, from their headers alone."""
    wanted, listed, named = selection or Selection(), Listed(), list(files)
    with_tensors = set()
    for file, tensor, is_again in tensors_of(named):
        with_tensors.add(file)
        if isinstance(tensor, SkippedTensor) and not is_again:
            listed.skipped.append((file, tensor))
            continue
        reason = _AGAIN if is_again else wanted.reason_against(tensor)
        if reason is None and isinstance(tensor, StoredTensor):
            listed.stored.append((file, tensor))
        elif reason is not None:
            listed.left_out[reason] = listed.left_out.get(reason, 0) + 1
    listed.without.extend(file for file in named if file not in with_tensors)
    return listed
