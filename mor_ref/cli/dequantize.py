"""`mor-ref dequantize` and `mor-ref decode`: codes in files, back to numbers."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from mor_ref import decode
from mor_ref.analysis.bit_files import StoredBits, bits_in
from mor_ref.definitions.formats import as_format
from mor_ref.golden.store.array_files import Entry, array_file, file_of_arrays, recipe_of
from mor_ref.treatments import own_recipe
from mor_ref.verify.counts_in_words import counted
from mor_ref.verify.way_back import WayBackOf

_F32 = np.dtype(np.float32)


def run(file: str, recipe: str, out: str) -> None:
    """Write y of all tensors."""
    own, path = own_recipe(recipe), file_of_arrays("out", out, [file])
    made_by = recipe_of(file)
    if made_by not in (None, own.text):
        raise ValueError(
            f"recipe is {own.text}, but {file} was quantized with {made_by}; give that"
        )
    found = {name: WayBackOf(own, name, fields) for name, fields in bits_in(file)}
    if not found:
        raise ValueError(
            f"{file} has no fields of tensors; give a file that mor-ref quantize wrote"
        )
    with array_file(path, (Entry(name, _F32, one.shape) for name, one in found.items())) as written:
        for name, one in found.items():
            written.put(name, one.numbers())
            print(f"{name}: {_sides(one.shape)} f32")
    print(f"{out}: {counted(len(found), 'tensor')} from {own.text}")


def run_decode(file: str, fmt: str, field: str, out: str) -> None:
    """Write the numbers of codes without scales."""
    form, path = as_format(fmt), file_of_arrays("out", out, [file])
    found = {}
    for name, fields in bits_in(file):
        stored = _codes_of(fields, field)
        if stored is not None:
            found[name] = stored
    if not found:
        raise ValueError(f"{file} has no array TENSOR/{field}; name the field with --field")
    with array_file(path, (Entry(name, _F32, one.shape) for name, one in found.items())) as written:
        for name, one in found.items():
            written.put(name, _decoded(name, one, form.name))
            print(f"{name}: {_sides(one.shape)} f32")
    print(f"{out}: {counted(len(found), 'tensor')} from {form.name}")


def _codes_of(fields: Mapping[str, StoredBits], field: str) -> StoredBits | None:
    return fields.get(field) or fields.get("")


def _decoded(name: str, stored: StoredBits, fmt: str) -> NDArray[np.float32]:
    try:
        return decode(stored.load(), fmt)
    except ValueError as error:
        raise ValueError(f"tensor {name!r}: {error}") from error


def _sides(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "one number"
