"""`mor-ref dequantize` and `mor-ref decode`: codes in files, back to numbers."""

import contextlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mor_ref import decode
from mor_ref.analysis.bit_files import StoredBits, bits_in
from mor_ref.analysis.listing import Selection
from mor_ref.analysis.piped_files import as_file
from mor_ref.analysis.stored_tensors import SkippedTensor, name_shown
from mor_ref.argument_checks import UnknownNameError
from mor_ref.cli.outputs import arrays_named
from mor_ref.counts_in_words import counted
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import as_format
from mor_ref.golden.store.array_files import ArrayEntry, array_file, metadata_of
from mor_ref.recipes import OwnRecipe, own_recipe
from mor_ref.verify.own_inputs import lines_of_skipped
from mor_ref.verify.way_back import RECIPE, WayBackOf, sources_in

_F32 = np.dtype(np.float32)
_LONGEST = 200  # characters of a recipe that is shown
_MOST_NAMES = 24  # of fields, in an error
_FEW = 3  # skipped tensors of an error


def run(file: str, recipe: str | None, out: str) -> None:
    """Write y of all tensors; without a recipe, with that of the file."""
    path, metadata = arrays_named("out", out, [Path(file)]), metadata_of(str(as_file(file)))
    made_by, sources = metadata.get(RECIPE), sources_in(metadata, file)
    own = _recipe_of_file(file, made_by) if recipe is None else own_recipe(recipe)
    if made_by not in (None, own.text):
        raise ValueError(
            f"recipe is {own.text}, but {file} was quantized with {_shortened(made_by)}; give this "
            "second recipe"
        )
    found, skipped = {}, []
    for name, fields in bits_in(file):
        if fields.keys() == {""}:
            array = fields[""]
            skipped.append(SkippedTensor(name, array.shape, array.dtype, "it is not TENSOR/FIELD"))
        else:
            found[name] = WayBackOf(own, name, fields, sources.get(name, "f32"))
    if not found:
        raise ValueError(
            f"{file} has no fields of tensors; give a file that mor-ref quantize wrote"
        )
    with array_file(
        path, (ArrayEntry(name, _F32, one.shape) for name, one in found.items())
    ) as written:
        for name, one in found.items():
            written.put(name, one.numbers())
            print(f"{name_shown(name)}: {_sides(one.shape)} f32")
    for line in lines_of_skipped(tuple(skipped)):
        print(line)
    print(f"{out}: {counted(len(found), 'tensor')} from {own.title}")


def _recipe_of_file(file: str, made_by: str | None) -> OwnRecipe:
    """Return the recipe that a file says it was quantized with."""
    if made_by is None:
        raise ValueError(f"{file} does not say its recipe; give --recipe")
    try:
        return own_recipe(made_by)
    except ValueError as error:
        raise ValueError(
            f"{file} says that its recipe is {_shortened(made_by)}, which cannot be read; give "
            f"--recipe"
        ) from error


def run_decode(file: str, fmt: str, field: str, out: str, wanted: Selection) -> None:
    """Write the numbers of codes without scales."""
    form, path = _format_of_codes(fmt, file), arrays_named("out", out, [Path(file)])
    found, skipped = _codes_in(file, form.name, field, wanted)
    if not found and skipped:
        reasons = "; ".join(map(str, skipped[:_FEW]))
        raise ValueError(f"{file} has no codes of {form.name}: {reasons}; give the right --format")
    if not found:
        chosen = "" if wanted == Selection() else " of the chosen names"
        raise ValueError(
            f"field is {field!r}, but {file} has no array TENSOR/{field}{chosen}; "
            f"{_fields_to_choose(file)}"
        )
    with array_file(
        path, (ArrayEntry(name, _F32, one.shape) for name, one in found.items())
    ) as written:
        for name, one in found.items():
            written.put(name, _decoded(name, one, form.name))
            print(f"{name_shown(name)}: {_sides(one.shape)} f32")
    for line in lines_of_skipped(skipped):
        print(line)
    print(f"{out}: {counted(len(found), 'tensor')} from {form.name}")


def _format_of_codes(fmt: str, file: str) -> Format:
    """Return the format of codes that need no scale; refuse the name of a recipe."""
    with contextlib.suppress(UnknownNameError):
        return as_format(fmt)
    try:
        own_recipe(fmt)
    except ValueError:
        return as_format(fmt)
    made_by = metadata_of(str(as_file(file))).get(RECIPE, fmt)
    raise ValueError(
        f"format is {fmt!r}, a recipe whose codes have scales; write their numbers with "
        f"mor-ref dequantize {file} --recipe {_shortened(made_by)}"
    )


def _fields_to_choose(file: str) -> str:
    """Return what to give as --field, with the fields that a file has."""
    names = sorted({name for _, fields in bits_in(file) for name in fields if name})
    said = ", ".join(map(name_shown, names[:_MOST_NAMES]))
    more = f" or {len(names) - _MOST_NAMES} others" if len(names) > _MOST_NAMES else ""
    return f"give --field with one of {said}{more}" if names else "give another file"


def _codes_in(
    file: str, fmt: str, field: str, wanted: Selection
) -> tuple[dict[str, StoredBits], tuple[SkippedTensor, ...]]:
    """Return the codes of the wanted tensors, and the arrays whose dtype is another format."""
    found, skipped, size = {}, [], -(-as_format(fmt).bits // 8)
    for name, fields in bits_in(file):
        stored = fields.get(field) or fields.get("")
        if stored is None:
            continue
        other = SkippedTensor(name, stored.shape, stored.dtype, f"its dtype is not {fmt}")
        if wanted.reason_against(other) is not None:
            continue
        if stored.is_of(fmt, size):
            found[name] = stored
        else:
            skipped.append(other)
    return found, tuple(skipped)


def _decoded(name: str, stored: StoredBits, fmt: str) -> NDArray[np.float32]:
    try:
        return decode(stored.load(), fmt)
    except ValueError as error:
        raise ValueError(f"tensor {name!r}: {error}, or leave it out with --exclude") from error


def _shortened(text: str) -> str:
    """Return a recipe of a file, which may have anything there, as text for an error."""
    return ascii(text)[1:-1] if len(text) <= _LONGEST else f"{ascii(text[:_LONGEST])[1:-1]}.."


def _sides(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "one number"
