"""Records out of files: the public function."""

from collections.abc import Callable, Iterable
from dataclasses import is_dataclass
from functools import partial
from os import PathLike
from types import ModuleType
from typing import Any, TypeVar

from mor_ref import metrics, representations
from mor_ref.api.before_blocks import check_kept
from mor_ref.api.block_formats import BlockQuantized
from mor_ref.api.border import public
from mor_ref.api.coded_blocks import CodedBlocks
from mor_ref.api.dequantization import Dequantizable, Values, check_fields
from mor_ref.api.dot import DotChunks
from mor_ref.api.errors import ErrorSums
from mor_ref.api.mx import Mx
from mor_ref.api.nvfp4 import Nvfp4
from mor_ref.api.policies import MorResult
from mor_ref.api.quantization import Quantized
from mor_ref.definitions.before_blocks import Hadamard, KeptColumns
from mor_ref.definitions.block_formats import BlockFormat, BlockScale
from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.dot import DotProfile
from mor_ref.definitions.format import Format
from mor_ref.definitions.nvfp4 import Nvfp4Profile
from mor_ref.definitions.table_format import TableFormat
from mor_ref.former_names import with_former_name
from mor_ref.policies import Policy, Rung
from mor_ref.record_files import read_record
from mor_ref.records import Record, Transposed
from mor_ref.schemes import in_schemes

_Checked = TypeVar("_Checked", bound=Dequantizable)


def _checked(kind: type[_Checked], **fields: Any) -> _Checked:
    """Return a record whose fields go together: kernels read where its tiles say."""
    record = kind(**fields)
    check_fields(record)
    if isinstance(record, BlockQuantized):
        check_kept(record.shape, record.block_format.before, record.kept)
    return record


def _dataclasses_in(modules: Iterable[ModuleType]) -> tuple[type[Any], ...]:
    """Return the dataclasses of modules: their own, and those of a package's modules."""
    return tuple(
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type)
        and is_dataclass(value)
        and f"{value.__module__}.".startswith(f"{module.__name__}.")
    )


_RECORDS = CodedBlocks, DotChunks, ErrorSums, MorResult, Transposed, Values
_FIELDS = (
    *(BlockFormat, BlockScale, DotProfile, Format, Nvfp4Profile, Partition, Policy, Rung),
    *(Hadamard, KeptColumns, TableFormat),
)
_OF_RUNGS = _dataclasses_in([metrics, representations])
_OF_SCHEMES = _dataclasses_in(
    [module for file in ("functions", "representation") for module in in_schemes(file)]
)
_KINDS: dict[str, Callable[..., Any]] = {
    **{kind.__name__: kind for kind in (*_RECORDS, *_FIELDS, *_OF_RUNGS, *_OF_SCHEMES)},
    **{
        kind.__name__: with_former_name("kind", "representation")(kind)
        for kind in _OF_SCHEMES
        if "representation" in kind.__dataclass_fields__ and issubclass(kind, Record)
    },
    **{kind.__name__: partial(_checked, kind) for kind in (BlockQuantized, Mx, Nvfp4, Quantized)},
}


@public
def load(path: str | PathLike[str]) -> Any:
    """Return the record that its method `save` wrote to a .safetensors or .npz file.

    >>> import mor_ref, numpy as np, tempfile
    >>> record = mor_ref.quantize(np.float32([[0.3, -1.1]]), "e4m3")
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     record.save(f"{directory}/x.npz")
    ...     mor_ref.load(f"{directory}/x.npz") == record, np.load(f"{directory}/x.npz")["codes"]
    (True, array([[111, 254]], dtype=uint8))
    """
    record = read_record(path, _KINDS)
    if not isinstance(record, Record):
        raise TypeError(f"{path} has a {type(record).__name__}, which is no record")
    return record
