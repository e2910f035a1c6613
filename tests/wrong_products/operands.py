"""Wrong scales, elements and numbers in bfloat16."""

import math
from unittest import mock

import numpy as np

from mor_ref import formats
from mor_ref.exact.arithmetic import FLT_MAX
from mor_ref.operations.random_products import CHOICES
from wrong_products.kernel import by_nvfp4, divides, has_overall, has_scales, wrong


def _changed(field, side, change):
    """Return a change of the numbers of a field."""

    def arrays(given):
        numbers = given[f"{field}_{side}"].view(np.float32)
        with np.errstate(all="ignore"):
            found = change(numbers).astype(np.float32)
        return given | {f"{field}_{side}": found.view(np.uint32)}

    return arrays


def _where(is_special, instead):
    return lambda x: np.where(is_special(x), np.float32(instead), x)


def _is_subnormal(x):
    return (x != 0) & (np.abs(x) < 2.0**-126)


SPECIALS = {
    "NaN is 1": _where(np.isnan, 1),
    "NaN is 0": _where(np.isnan, 0),
    "NaN is infinite": _where(np.isnan, math.inf),
    "infinite is 1": _where(np.isinf, 1),
    "infinite is the largest": lambda x: np.clip(x, -FLT_MAX, FLT_MAX),
    "zero is 1": _where(lambda x: x == 0, 1),
    "zero is small": _where(lambda x: x == 0, 2.0**-126),
    "-0 is 0": lambda x: x + np.float32(0),
    "without sign": np.abs,
    "negative is 0": lambda x: np.where(x < 0, np.float32(0), x),
    "negative is 1": lambda x: np.where(np.signbit(x), np.float32(1), x),
    "subnormal is 0": _where(_is_subnormal, 0),
    "the largest is less": lambda x: np.where(np.abs(x) > 2.0**125, np.float32(2.0**125), x),
}
SCALES = {
    "scaled": SPECIALS,
    "mx": {
        "NaN is 1": _where(np.isnan, 1),
        "NaN is 2^127": _where(np.isnan, 2.0**127),
        "NaN is 2^-127": _where(np.isnan, 2.0**-127),
        "2^-127 is 2^-126": _where(_is_subnormal, 2.0**-126),
        "2^127 is 2^126": _where(lambda x: x == 2.0**127, 2.0**126),
    },
    "nvfp4": {
        "NaN is 0": _where(np.isnan, 0),
        "NaN is 1": _where(np.isnan, 1),
        "NaN is 448": _where(np.isnan, 448),
        "0 is 1": _where(lambda x: x == 0, 1),
        "0 is 2^-9": _where(lambda x: x == 0, 2.0**-9),
        "subnormal is 0": _where(lambda x: np.abs(x) < 2.0**-6, 0),
        "subnormal is 2^-6": _where(lambda x: (x != 0) & (np.abs(x) < 2.0**-6), 2.0**-6),
        "448 is 416": _where(lambda x: x == 448, 416),
    },
}
for _side in "ab":
    for _record, _changes in SCALES.items():
        for _name, _change in _changes.items():
            wrong(
                f"{_record} scale_{_side}: {_name}",
                lambda kind, record=_record: has_scales(kind) and kind.record.name == record,
                arrays=_changed("scale", _side, _change),
            )
    for _name, _change in SPECIALS.items():
        # A factor of -0 is that of 0, but for the sign of the result of an instruction.
        wrong(
            f"overall_{_side}: {_name}",
            by_nvfp4 if _name == "-0 is 0" else has_overall,
            arrays=_changed("overall", _side, _change),
        )
    wrong(
        f"scale_{_side}: a power of two",
        divides,
        arrays=lambda given, name=f"scale_{_side}": given | {name: given[name] & 0xFF800000},
    )
    wrong(
        f"scale_{_side}: of the block before",
        has_scales,
        arrays=lambda given, name=f"scale_{_side}": (
            given | {name: np.concatenate([given[name][:, :1], given[name][:, :-1]], axis=1)}
        ),
    )
    wrong(
        f"scale_{_side}: the last one is of the block before",
        has_scales,
        arrays=lambda given, name=f"scale_{_side}": (
            given
            | {name: np.concatenate([given[name][:, :-1], given[name][:, -2:][:, :1]], axis=1)}
        ),
    )
wrong(
    "blocks in bfloat16 have a scale",
    lambda kind: "bf16" in kind.takes,
    patches=(lambda: mock.patch("mor_ref.operations.matmul.WIDEST", -1),),
)


def _recoded(side, fmt, to):
    """Return a change of codes of a format."""

    def arrays(given):
        choice = given[f"choice_{side}"]
        width = given[side].shape[1]
        block = next(b for b in range(1, 4096) if -(-width // b) == choice.shape[1] and _fits(b))
        each = np.repeat(choice, block, axis=1)[:, :width]
        codes = given[side]
        new = np.vectorize(to, otypes=[codes.dtype])(codes)
        return given | {side: np.where(each == CHOICES.index(fmt), new, codes)}

    def _fits(block):
        return block in (16, 32, 64, 128, 256)

    return arrays


def _of_format(side, fmt):
    """Return whether blocks of a format are multiplied as codes."""

    def applies(kind):
        return fmt in kind.formats_of(side) and fmt in (kind.profile.formats or CHOICES)

    return applies


def _elements():
    for side in "ab":
        for fmt in ("e4m3", "e5m2"):
            of = formats[fmt]
            for nan in sorted({codes[k] for codes in of.nan_codes for k in (0, -1)}):
                less = of.largest_code | nan & of.sign_bit
                yield (
                    f"{fmt} in {side}: 0x{nan:02X} is finite",
                    _of_format(side, fmt),
                    _recoded(side, fmt, lambda x, nan=nan, less=less: less if x == nan else x),
                )
        for fmt in ("e4m3", "e5m2", "e2m1", "bf16"):
            of = formats[fmt]
            low = 1 << of.mantissa_bits
            yield (
                f"{fmt} in {side}: subnormal is 0",
                _of_format(side, fmt),
                _recoded(
                    side,
                    fmt,
                    lambda x, of=of, low=low: (
                        x & of.sign_bit if (int(x) & ~of.sign_bit) < low else x
                    ),
                ),
            )
            yield (
                f"{fmt} in {side}: without sign",
                _of_format(side, fmt),
                _recoded(side, fmt, lambda x, of=of: int(x) & ~of.sign_bit),
            )
            if of.infinity_code is not None:
                for sign in (0, of.sign_bit):
                    yield (
                        f"{fmt} in {side}: infinity {sign:X} is finite",
                        _of_format(side, fmt),
                        _recoded(
                            side,
                            fmt,
                            lambda x, of=of, sign=sign: (
                                x - 1 if x == of.infinity_code | sign else x
                            ),
                        ),
                    )


for _name, _applies, _arrays in _elements():
    wrong(_name, _applies, arrays=_arrays)


def _y(side, change):
    def arrays(given):
        return given | {f"y_{side}": change(given[f"y_{side}"])}

    return arrays


for _side in "ab":
    for _name, _change in {
        "subnormal is 0": lambda y: np.where(y & 0x7FFF < 0x80, y & np.uint16(0x8000), y),
        "infinite is the largest": lambda y: np.where(y & 0x7FFF == 0x7F80, y - np.uint16(1), y),
        "NaN is infinite": lambda y: np.where(y & 0x7FFF > 0x7F80, np.uint16(0x7F80), y),
    }.items():
        wrong(f"y_{_side}: {_name}", lambda kind: kind.upcasts, arrays=_y(_side, _change))
