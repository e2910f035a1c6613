"""Wrong implementations that every suite says match, each with a case that shows its mistake.

`tests/test_still_missed.py` runs them. One that a suite begins to show belongs to another module.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from mor_ref.operations import OPERATIONS
from mor_ref.operations.fields import bytes_of, format_meant
from mor_ref.operations.random_numbers import Draws
from wrong.affine_right import Integers, kernel_of
from wrong.fp8lm_states import partitioned
from wrong.kernel import Arrays, Kernel
from wrong.levels_right import Register, alphas, finished, limited, once, rn_of, rounded
from wrong.microscaling import magnitude_bits, widened
from wrong.mixed_tensors import program as mixture
from wrong.mor_right import INFINITE, tiled, units_of
from wrong.vector_tails import WHOLE, WIDTHS, right, tail, ties_away, unwritten

Question = tuple[Mapping[str, Any], Arrays]


@dataclass(frozen=True)
class Missed:
    """A wrong implementation of an operation, and a function that returns a case that shows it."""

    operation: str
    kernel: Kernel
    shown_by: Callable[[], Question]


def of(operation, name, mistake, answer, shown_by):
    """Return a mistake whose answer is a function of (operation, parameters, inputs)."""

    def run(asked, parameters, inputs):
        with np.errstate(all="ignore"):
            return answer(operation, parameters, inputs) if asked == operation else None

    return Missed(operation, Kernel(f"{operation}.{name}", run, mistake), shown_by)


def drawn(operation, parameters, count, width=1):
    """Return a function that returns random inputs, as streams have them."""

    def question():
        declared = OPERATIONS[operation]
        arrays = declared.random.draw(parameters, Draws(0, count, 1, width))
        fields = declared.inputs_for(parameters)
        sizes = {
            name: bytes_of(format_meant(field.format, parameters)) for name, field in fields.items()
        }
        return parameters, {name: arrays[name].astype(f"u{sizes[name]}") for name in sizes}

    return question


def numbers(x, **parameters):
    """Return a function that returns a tensor of binary32."""
    array = np.array(x, np.float32)
    return lambda: ({**parameters, "source": "f32"}, {"x": array.view(np.uint32)})


def random_numbers(shape, **parameters):
    """Return a function that draws a tensor of binary32."""

    def question():
        return numbers(np.random.default_rng(1).normal(size=shape), **parameters)()

    return question


# ---------------------------------------------------------------------- products


def split(operation, parameters, inputs):
    """Return rows of 1,024 products or more as a sum of two halves."""
    if _is_of_fp4(parameters):
        return None
    if inputs["a"].shape[1] < 1024:
        return right(operation, parameters, inputs)
    total = np.float32(0)
    for half in (0, 1):
        own = {
            name: np.split(array, 2, axis=1)[half] if array.ndim == 2 else array
            for name, array in inputs.items()
        }
        if half and "c" in own:
            own["c"] = np.zeros_like(own["c"])
        total = total + right(operation, parameters, own)["result"].view(np.float32)
    return {"result": np.where(np.isnan(total), np.uint32(0x7FFFFFFF), total.view(np.uint32))}


def _is_of_fp4(parameters):
    """Return whether suites have rows of more than 1,024 products and 32 blocks."""
    return parameters["dot_profile"] in ("blackwell_mxfp4", "blackwell_nvfp4")


def scales_of_32_blocks(operation, parameters, inputs):
    """Return products with scales of blocks whose index has 5 bits."""
    if _is_of_fp4(parameters):
        return None
    own = {
        name: array[:, np.arange(array.shape[1]) % 32]
        for name, array in inputs.items()
        if name.startswith("scale_")
    }
    return right(operation, parameters, {**inputs, **own})


_FP8 = {"dot_profile": "exact", "format_a": "e4m3", "format_b": "e4m3"}
_PRODUCTS: dict[str, Mapping[str, Any]] = {
    "dot": _FP8,
    "dot_scaled": {**_FP8, "scale_format": "e8m0", "scale_block": 32},
    "matmul": {"dot_profile": "exact", "record": "scaled", "scale_block": 32},
}


# ---------------------------------------------------------------------- groups of dimensions


class OrderByUpperBits(Integers):
    """Dimensions are in the order of the upper 20 bits of their ranges."""

    operations = ("affine_groups",)

    def order(self, ranges):
        return np.argsort(ranges.view(np.uint32) >> 12, kind="stable")


class OrderOfColumns(Integers):
    """The columns behind 2,048 stay where they are."""

    operations = ("affine_groups",)

    def order(self, ranges):
        first = super().order(ranges[:2048])
        return np.concatenate([first, np.arange(first.size, ranges.size)])


def of_groups(program, name, shown_by):
    return Missed("affine_groups", kernel_of(program, name, program.__doc__), shown_by)


_GROUPS = {"grid": "uint8", "profile": "peg", "symmetric": False}

# ---------------------------------------------------------------------- other operations


def in_binary64(u):
    """Return sums of squares in binary64."""
    return (u * u).sum(axis=1).astype(np.uint64)


LEVELS = Register()


def straight(value):
    """Round a rational number to bfloat16, once: through a binary32 number rounded to odd."""
    near = once(value)
    exact = Fraction(float(near))
    if exact != value and not near.view(np.uint32) & 1:
        near = np.nextafter(near, np.float32(np.inf if value > exact else -np.inf))
    return rounded(near)


@LEVELS.levels("mean_straight_to_bf16", "The mean is rounded to bfloat16 from the exact one.",
               ("elastic1",), ("bf16",), ("levels",))  # fmt: skip
def _mean_straight_to_bf16(w, given, kind, how):
    rn = rn_of(how)
    size = np.abs(rn(w))
    if not np.isfinite(size).all():
        return finished(w, alphas(w, given, kind, rn), kind, rn)
    means = [[straight(sum(map(Fraction, row), Fraction(0)) / len(row))] for row in size.tolist()]
    return finished(w, limited(np.array(means, np.float32), rn), kind, rn)


@LEVELS.levels("alpha_of_4096_columns", "Alphas are those of the first 4,096 columns.",
               operations=("levels",))  # fmt: skip
def _alpha_of_4096_columns(w, given, kind, how):
    rn = rn_of(how)
    return finished(w, alphas(w[:, :4096], given, kind, rn), kind, rn)


def amin_of_infinities(operation, parameters, inputs):
    """Return fields of units whose smallest magnitude may be an infinity, where it decides."""
    if parameters["policy"] != "three_way":
        return None
    x = widened(inputs["x"], parameters["source"])
    magnitudes = magnitude_bits(x)
    counted = (magnitudes > 0) & (magnitudes <= INFINITE)
    least = np.where(counted, magnitudes, np.uint32(0xFFFFFFFF))
    amin = tiled(least, units_of(x, parameters), np.minimum)
    found = right(operation, parameters, inputs)
    return {**found, "amin": np.where(amin == 0xFFFFFFFF, np.uint32(0), amin)}


def ranks_up_to_8(_operation, parameters, inputs):
    return partitioned({**inputs, "ranks": np.minimum(inputs["ranks"], 8)}, parameters)


# ---------------------------------------------------------------------- tails of vectors


def positive_zeros(parameters, inputs):
    """Return codes in which -0 is +0."""
    x = inputs["x"]
    sign = x.dtype.type(1 << 8 * x.itemsize - 1)
    return right("encode", parameters, {"x": np.where(x == sign, x.dtype.type(0), x)})


def with_words(words):
    """Return a function of codes with other words; `words` takes them and their bits."""

    def changed(parameters, inputs):
        given = inputs["random_word"]
        other = np.zeros_like(given) + words(given, parameters["n_random_bits"])
        other = other.astype(given.dtype)
        return right("encode_stochastic", parameters, {**inputs, "random_word": other})

    return changed


_ENCODE = {"format": "e4m3", "rounding": "rne", "overflow": "satfinite", "nan": "canonical"}
_STOCHASTIC = {"format": "e4m3", "n_random_bits": 8, "overflow": "satfinite", "source": "f32"}
_UNWRITTEN = {
    "fp8lm_scale": {"format": "e4m3", "profile": "msamp", "margin": 0},
    "mx_decode": {"format": "e4m3"},
}


def _words():
    """Return a number a quarter above a code, with words that round it up and down."""
    x = np.full(7, 1.03125, np.float32).view(np.uint32)
    words = np.array([0, 200, 0, 200, 200, 0, 200], np.uint32)
    return _STOCHASTIC, {"x": x, "random_word": words}


def _tail_of_codes(width, name, mistake, changed, last):
    shown_by = numbers([1.0] * 32 + [last], **_ENCODE)
    return Missed("encode", tail("encode", width, name, mistake, changed), shown_by)


def _tail_of_stochastic(name, mistake, words):
    kernel = tail("encode_stochastic", 4, name, mistake, with_words(words))
    return Missed("encode_stochastic", kernel, _words)


MISSED = [
    *(
        of(operation, "split_from_1024", "1,024 products or more are summed in two halves.",
           split, drawn(operation, parameters, 16, 1024))
        for operation, parameters in _PRODUCTS.items()
    ),
    *(
        of(operation, "scales_of_32_blocks", "The index of a block has 5 bits.",
           scales_of_32_blocks, drawn(operation, _PRODUCTS[operation], 16, 2048))
        for operation in ("dot_scaled", "matmul")
    ),
    of_groups(OrderByUpperBits, "order_by_upper_bits",
              numbers([[0, 0], [1 + 2**-23, 1]], **_GROUPS, groups=2)),
    of_groups(OrderOfColumns, "order_of_2048_columns",
              random_numbers((4, 4096), **_GROUPS, groups=64)),
    Missed("mix",
           mixture("squares_in_binary64", "Squares are summed in binary64.", sums=in_binary64),
           random_numbers((2400, 2400), mixture="int4_or_e2m1", block="tensor")),
    Missed("levels", LEVELS[0],
           numbers([[2.015625, 2, 2**-30, 0]], kind="elastic1", arithmetic="bf16", block="row")),
    Missed("levels", LEVELS[1],
           random_numbers((1, 8192), kind="elastic1", arithmetic="f32", block="row")),
    of("mor", "amin_of_infinities", "amin skips NaN, but no infinity.", amin_of_infinities,
       numbers([[np.inf, 0, 0, 0]], policy="three_way", scaling="gam", block="row")),
    of("fp8lm_partition", "ranks_up_to_8", "There are at most 8 ranks.", ranks_up_to_8,
       lambda: ({}, {"numel": np.arange(1, 21, dtype=np.uint32)[None],
                     "ranks": np.array([16], np.uint32)})),
    *(
        _tail_of_codes(width, "ties_away", "Ties are rounded away from zero.", ties_away, 1.0625)
        for width in (4, 8)
    ),
    *(
        _tail_of_codes(width, "positive_zeros", "-0 becomes +0.", positive_zeros, -0.0)
        for width in WIDTHS
    ),
    _tail_of_stochastic("without_words", "No word is added.", lambda words, _: 0 * words),
    _tail_of_stochastic("ones", "All bits of words are 1.", lambda _, bits: (1 << bits) - 1),
    _tail_of_stochastic("one_word", "All have the word of the first.", lambda words, _: words[:1]),
    *(
        Missed(operation, unwritten(operation, width),
               drawn(operation, _UNWRITTEN.get(operation, {}), 31))
        for operation, widths in WHOLE.items()
        for width in widths
    ),
]  # fmt: skip
