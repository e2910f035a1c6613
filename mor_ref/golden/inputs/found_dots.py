"""Rows of dot products, found by a search, that expose wrong sums.

Each row exposes one error, in one profile or in several: a lane without its exponent, a narrow sum
or exponent, a wrong e0, a wrong second cut or a wrong tail. `found_dots.json` lists the rows by
suite and case, as hexadecimal codes of a, b, c and the scales, without the zeros at the ends.
"""

import functools
from dataclasses import replace

import numpy as np

from mor_ref.arrays import code_dtype
from mor_ref.definitions.dot import DOT_PROFILES, DotProfile
from mor_ref.definitions.formats import formats
from mor_ref.golden.inputs.found_files import contents_of
from mor_ref.operations.call import Arrays, Parameters
from mor_ref.operations.dot import formats_of, profile_of


@functools.cache
def first_with_numbers_of(profile: DotProfile) -> str:
    """Return the name of the first profile that has the same numbers as `profile`."""
    numbers = replace(profile, name="p", wide="")
    return next(
        name for name, row in DOT_PROFILES.items() if replace(row, name="p", wide="") == numbers
    )


def with_found_rows(suite: str, parameters: Parameters, rows: Arrays) -> Arrays:
    """Return the rows of a case of a suite, and the found rows below them."""
    first = first_with_numbers_of(profile_of(parameters))
    name = ".".join(map(str, {**parameters, "dot_profile": first}.values()))
    texts = [text.split(" ") for text in contents_of("dots")[suite].get(name, ())]
    if not texts:
        return rows
    of = [*formats_of(parameters), formats["f32"]]
    names = ["a", "b", "c"]
    if "scale_format" in parameters:
        of += [formats[parameters["scale_format"]]] * 2
        names += ["scale_a", "scale_b"]
    found = dict(rows)
    for name, fmt, column in zip(names, of, zip(*texts, strict=True), strict=True):
        dtype = code_dtype(fmt)
        shape = len(texts), *rows[name].shape[1:]
        digits = 2 * dtype.itemsize * (shape[1] if len(shape) > 1 else 1)
        whole = bytes.fromhex("".join(text.ljust(digits, "0") for text in column))
        codes = np.frombuffer(whole, dtype.newbyteorder(">")).astype(dtype).reshape(shape)
        found[name] = np.concatenate([rows[name], codes])
    return found
