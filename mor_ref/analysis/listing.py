"""The tensors of several files, those that are left out, and why."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from mor_ref.analysis.comparison import is_matrix
from mor_ref.analysis.tensor_files import SkippedTensor, StoredTensor, tensors_in

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
    """Return the tensors of files, from their headers alone."""
    wanted, listed = selection or Selection(), Listed()
    for file in files:
        is_without = True
        for tensor in tensors_in(file):
            is_without = False
            if isinstance(tensor, SkippedTensor):
                listed.skipped.append((file, tensor))
                continue
            reason = wanted.reason_against(tensor)
            if reason is None:
                listed.stored.append((file, tensor))
            else:
                listed.left_out[reason] = listed.left_out.get(reason, 0) + 1
        if is_without:
            listed.without.append(file)
    return listed
