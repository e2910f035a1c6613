"""`mor-ref quantize`: the tensors of files under a recipe, with every field of the record."""

import io
from pathlib import Path

import numpy as np

from mor_ref.analysis.tensor_files import arrays_in
from mor_ref.golden.inputs.own_tensors import cases_of
from mor_ref.golden.model.suite import Case
from mor_ref.golden.store.suite_files import SEPARATOR, suite_bytes
from mor_ref.golden.store.whole_files import write_whole
from mor_ref.treatments import own_recipe
from mor_ref.verify.counts import counted
from mor_ref.verify.own_tensors import with_engine

_ENDINGS = (".safetensors", ".npz")


def run(files: list[str], recipe: str, out: str) -> None:
    """Write the fields of all tensors, and print which they are."""
    own, path = own_recipe(recipe), Path(out)
    if path.suffix not in _ENDINGS:
        raise ValueError(f"out is {out!r}; give a file that ends in {' or '.join(_ENDINGS)}")
    found = []
    for case in cases_of(own, arrays_in(files)):
        fields = dict(with_engine(own, case).arrays)
        rows, columns = fields.pop("x").shape
        found.append(Case(case.name, {}, fields))
        shapes = (f"{name} {'x'.join(map(str, a.shape))}" for name, a in fields.items())
        print(f"{case.name}: {rows}x{columns} {case.parameters['source']}: {', '.join(shapes)}")
    if not found:
        raise ValueError("the files have no numbers; give tensors that are not empty")
    write_whole(path, suite_bytes(found) if path.suffix == ".safetensors" else _npz(found))
    print(f"{out}: {counted(len(found), 'tensor')} under {own.text}")


def _npz(cases: list[Case]) -> bytes:
    written = io.BytesIO()
    arrays = {
        f"{case.name}{SEPARATOR}{name}": array
        for case in cases
        for name, array in case.arrays.items()
    }
    np.savez(written, **arrays)  # type: ignore[arg-type]  # mypy takes the names for its options
    return written.getvalue()
