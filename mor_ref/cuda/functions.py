"""The public functions on a GPU: they check their arguments, and run the kernels."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mor_ref.argument_checks import known_name, whole_number
from mor_ref.cuda import decoding, encoding, policies, quantization
from mor_ref.cuda import mx as in_mx
from mor_ref.cuda import nvfp4 as in_nvfp4
from mor_ref.cuda.arrays import (
    GivenArray,
    codes_from,
    given,
    numbers_from,
    on_gpu_after,
    on_gpu_of,
    target_of,
)
from mor_ref.cuda.encoding import RandomBits
from mor_ref.cuda.errors import ErrorSums
from mor_ref.cuda.launching import Array
from mor_ref.cuda.streams import Moment, now
from mor_ref.definitions.blocks import Cut, Partition, check_unit, partition
from mor_ref.definitions.encoding import Nan, Overflow, Rounding, rounding_for, takes_random_bits
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import as_format, special_cases_for
from mor_ref.definitions.mx import SCALE_RULES, mx_element
from mor_ref.definitions.nvfp4 import PROFILES, ROW_TILE, Nvfp4Profile, given_in, tile_of
from mor_ref.definitions.scales import (
    SCALINGS,
    Scaling,
    check_group,
    given_for,
    scaled_format,
)
from mor_ref.former_names import with_former_name
from mor_ref.policies import Policy, Thresholds, as_policy


@dataclass(frozen=True, eq=False)
class Quantized:
    """A quantized tensor on a GPU; its fields are named as in `mor_ref.Quantized`."""

    codes: Array
    amax: Array
    scale: Array
    scale_exponent: Array | None
    scale_mantissa: Array | None
    error: ErrorSums
    fmt: Format
    scaling: Scaling
    partition: Partition
    _found: quantization.ScaledCodes
    _ready: Moment

    def dequantize(self, dtype: "np.typing.DTypeLike" = np.float32) -> Array:
        """Return the values of the codes, as float32 or bfloat16, on CuPy's current stream."""
        wanted, target = target_of(dtype)
        with on_gpu_after(self._ready, self.codes) as gpu:
            y = quantization.dequantize(gpu, self._found, self.fmt, self.partition, target)
        return y.view(wanted).reshape(self.codes.shape)


@dataclass(frozen=True, eq=False)
class Nvfp4:
    """A tensor in NVFP4 on a GPU; its fields are named as in `mor_ref.Nvfp4`."""

    codes: Array
    packed: Array
    block_scale: Array
    global_encode_scale: Array
    global_decode_scale: Array
    error: ErrorSums
    profile: Nvfp4Profile
    _tile: tuple[int, int]
    _found: in_nvfp4.Nvfp4Arrays
    _ready: Moment

    def dequantize(self, dtype: "np.typing.DTypeLike" = np.float32) -> Array:
        """Return the values of the codes, as float32 or bfloat16, on CuPy's current stream."""
        wanted, target = target_of(dtype)
        with on_gpu_after(self._ready, self.codes) as gpu:
            y = in_nvfp4.dequantize(gpu, self._found, self.profile, self._tile, target)
        return y.view(wanted).reshape(self.codes.shape)


@dataclass(frozen=True, eq=False)
class Mx:
    """A tensor in an MX format on a GPU; its fields are named as in `mor_ref.Mx`."""

    codes: Array
    scale: Array
    error: ErrorSums
    fmt: Format
    scale_rule: str
    _block: int
    _found: in_mx.MxArrays
    _ready: Moment

    def dequantize(self, dtype: "np.typing.DTypeLike" = np.float32) -> Array:
        """Return the values of the codes, as float32 or bfloat16, on CuPy's current stream."""
        wanted, target = target_of(dtype)
        with on_gpu_after(self._ready, self.codes) as gpu:
            y = in_mx.dequantize(gpu, self._found, self.fmt, self._block, target)
        return y.view(wanted).reshape(self.codes.shape)


@dataclass(frozen=True, eq=False)
class MorResult:
    """The result of MoR for a tensor on a GPU; its fields are named as in `mor_ref.MorResult`.

    There is no `quantized`: the kernels decide and write the output, and keep no codes that nobody
    may ask for. `mor_ref.cuda.quantize` returns the codes of a representation.
    """

    policy: Policy
    ladder: tuple[str, ...]
    choice: Array
    output: Array
    error: dict[str, ErrorSums]
    amax: Array
    amin: Array


@with_former_name("preset", "profile")
def encode(
    x: Any,
    fmt: str | Format,
    *,
    rounding: Rounding | None = None,
    overflow: Overflow | None = None,
    nan: Nan | None = None,
    profile: str | None = None,
    random_bits: Any = None,
    n_random_bits: int | None = None,
) -> Array:
    """Return the codes of the numbers in `x`, as `mor_ref.encode` does.

    The random bits of "sr" are uint32 on the GPU; a word's bits beyond `n_random_bits` are not
    looked at on the host, and have to be 0.
    """
    target = as_format(fmt)
    special = special_cases_for(target, overflow, nan, profile)
    mode = rounding_for(target, rounding, special)
    argument, words = given(x, "x"), _random_words(mode, random_bits, n_random_bits)
    with on_gpu_of(argument, *words) as gpu:
        numbers = numbers_from(argument)
        random = [_random_bits(each, n_random_bits, argument) for each in words]
        codes = encoding.encode(gpu, numbers.bits, target, mode, special, *random)
    return codes.reshape(numbers.shape)


def _random_words(rounding: Rounding, words: Any, count: int | None) -> list[GivenArray]:
    """Return the random words as a list of one argument, empty if the rounding takes none."""
    is_taken = takes_random_bits(rounding, random_bits=words, n_random_bits=count)
    return [given(words, "random_bits")] if is_taken else []


def _random_bits(words: GivenArray, count: int | None, x: GivenArray) -> RandomBits:
    array = codes_from(words, np.uint32)
    if array.shape != x.array.shape:
        raise ValueError(
            f"random_bits has shape {array.shape}, but x has {x.array.shape}; give a word for each "
            "element"
        )
    return RandomBits(array, whole_number("n_random_bits", count, 1, 32))


def decode(codes: Any, fmt: str | Format) -> Array:
    """Return the numbers that `codes` stand for, as float32; the host does not look at codes."""
    source = as_format(fmt)
    width = next(width for width in (8, 16, 32) if source.bits <= width)
    argument = given(codes, "codes")
    with on_gpu_of(argument) as gpu:
        found = decoding.decode(gpu, codes_from(argument, f"uint{width}"), source)
    return found.view(np.float32)


def quantize(
    x: Any,
    fmt: str | Format,
    *,
    scaling: Scaling = "gam",
    block: Cut = "tensor",
    group: Cut = "tensor",
    amax: float | None = None,
    scale: float | None = None,
) -> Quantized:
    """Quantize `x` with a scale for each block, as `mor_ref.quantize` does."""
    target = scaled_format(fmt)
    known_name("scaling", scaling, SCALINGS)
    known = given_for(scaling, amax, scale)
    argument = given(x, "x")
    with on_gpu_of(argument) as gpu:
        numbers = numbers_from(argument)
        parts = partition(numbers.shape, block, group)
        check_group(parts, group, scaling)
        found = quantization.quantize(gpu, numbers.bits, target, scaling, parts, known)
        ready = now()
    return Quantized(
        found.codes.reshape(numbers.shape),
        found.amax.view(np.float32),
        found.scales.scale.view(np.float32),
        None if scaling == "fp32" else found.scales.exponent,
        found.scales.mantissa if scaling == "gam" else None,
        found.error,
        target,
        scaling,
        parts,
        found,
        ready,
    )


def quantize_nvfp4(
    x: Any,
    *,
    profile: str = "te",
    tile: tuple[int, int] = ROW_TILE,
    amax: float | None = None,
    global_scale: float | None = None,
) -> Nvfp4:
    """Quantize `x` to NVFP4, as `mor_ref.quantize_nvfp4` does."""
    rules = PROFILES[profile]
    sides = tile_of(rules, tile)
    known = given_in(rules, amax, global_scale)
    argument = given(x, "x")
    with on_gpu_of(argument) as gpu:
        numbers = numbers_from(argument)
        whole = in_nvfp4.given_scales(gpu, numbers.bits, rules, known)
        found = in_nvfp4.nvfp4(gpu, numbers.bits, rules, sides, whole)
        error = in_nvfp4.errors(gpu, numbers.bits, rules, sides, found.tiles)
        ready = now()
    encode_scale, decode_scale = (s.view(np.float32).reshape(-1) for s in found.whole[1:])
    return Nvfp4(
        found.codes.reshape(numbers.shape),
        found.packed.reshape(*numbers.shape[:-1], found.packed.shape[1]),
        found.tiles.codes,
        encode_scale if rules.per_row else encode_scale[0],
        decode_scale if rules.per_row else decode_scale[0],
        error,
        rules,
        sides,
        found,
        ready,
    )


def quantize_mx(x: Any, fmt: str | Format, *, scale_rule: str = "floor", block: int = 32) -> Mx:
    """Quantize `x` to an MX format, as `mor_ref.quantize_mx` does."""
    element = mx_element(fmt)
    known_name("scale_rule", scale_rule, SCALE_RULES)
    side = whole_number("block", block, 1, 1 << 62)
    argument = given(x, "x")
    with on_gpu_of(argument) as gpu:
        numbers = numbers_from(argument)
        found = in_mx.mx(gpu, numbers.bits, element, scale_rule, side)
        ready = now()
    codes = found.codes.reshape(numbers.shape)
    return Mx(codes, found.scale, found.error, element, scale_rule, side, found, ready)


def mor(
    x: Any,
    policy: str | Policy = "tensor",
    *,
    block: Cut | None = None,
    scaling: Scaling = "gam",
    threshold: Thresholds | None = None,
) -> MorResult:
    """Choose a representation for each unit of `x`, and fake-quantize it, as `mor_ref.mor` does.

    Nothing comes to the host: the decisions are made on the GPU, and the output follows from them
    there.
    """
    rules = as_policy(policy)
    if threshold is not None:
        rules = rules.with_threshold(threshold)
    known_name("scaling", scaling, SCALINGS)
    argument = given(x, "x")
    with on_gpu_of(argument) as gpu:
        numbers = numbers_from(argument)
        parts = partition(numbers.shape, rules.block if block is None else block, rules.group)
        check_group(parts, rules.group, scaling)
        check_unit("unit", parts.block if rules.unit == "block" else (parts.rows, parts.columns))
        found = policies.mor(gpu, numbers.bits, rules, scaling, parts)
    return MorResult(
        rules,
        rules.names,
        found.choice,
        found.output.reshape(numbers.shape),
        found.error,
        found.extremes.amax.view(np.float32),
        found.extremes.amin.view(np.float32),
    )
