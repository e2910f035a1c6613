"""The public functions on a GPU: they check their arguments, and run the kernels."""

from dataclasses import dataclass
from typing import Any, SupportsFloat, SupportsIndex

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
from mor_ref.cuda.records import GpuNumbers
from mor_ref.cuda.streams import Moment, now
from mor_ref.definitions.blocks import CutLike, Pair, Partition, check_unit, partition
from mor_ref.definitions.encoding import Nan, Overflow, Rounding, rounding_for, takes_random_bits
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import FormatLike, as_format, formats, special_cases_for
from mor_ref.definitions.mx import SCALE_RULES, mx_element
from mor_ref.definitions.nvfp4 import PROFILES, ROW_TILE, Nvfp4Profile, given_in, tile_of
from mor_ref.definitions.scales import (
    Scaling,
    check_group,
    given_for,
    scaled_format,
    scaling_or_usual,
)
from mor_ref.former_names import with_former_name
from mor_ref.policies import Policy, Thresholds
from mor_ref.recipes import as_policy
from mor_ref.records import on_host


@dataclass(frozen=True, eq=False, repr=False)
class Quantized(GpuNumbers):
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
    _scaled_codes: quantization.ScaledCodes
    _ready: Moment

    @property
    def tile(self) -> tuple[int, int]:
        """The rows and columns of numbers that share a scale, clipped to the sides of x."""
        return self.partition.block

    def dequantize(self, dtype: "np.typing.DTypeLike" = np.float32) -> Array:
        """Return the values of the codes, as float32 or bfloat16, on CuPy's current stream."""
        wanted, target = target_of(dtype)
        with on_gpu_after(self._ready, self.codes) as gpu:
            y = quantization.dequantize(gpu, self._scaled_codes, self.fmt, self.partition, target)
        return y.view(wanted).reshape(self.codes.shape)


@dataclass(frozen=True, eq=False, repr=False)
class Nvfp4(GpuNumbers):
    """A tensor in NVFP4 on a GPU; its fields are named as in `mor_ref.Nvfp4`."""

    codes: Array
    packed: Array
    block_scale: Array
    global_encode_scale: Array
    global_decode_scale: Array
    error: ErrorSums
    profile: Nvfp4Profile
    _tile: tuple[int, int]
    _arrays: in_nvfp4.Nvfp4Arrays
    _ready: Moment

    @property
    def tile(self) -> tuple[int, int]:
        """The rows and columns of numbers that share a scale, clipped to the sides of x."""
        return partition(self.shape, self._tile).block

    def dequantize(self, dtype: "np.typing.DTypeLike" = np.float32) -> Array:
        """Return the values of the codes, as float32 or bfloat16, on CuPy's current stream."""
        wanted, target = target_of(dtype)
        with on_gpu_after(self._ready, self.codes) as gpu:
            y = in_nvfp4.dequantize(gpu, self._arrays, self.profile, self._tile, target)
        return y.view(wanted).reshape(self.codes.shape)


@dataclass(frozen=True, eq=False, repr=False)
class Mx(GpuNumbers):
    """A tensor in an MX format on a GPU; its fields are named as in `mor_ref.Mx`."""

    codes: Array
    scale: Array
    error: ErrorSums
    fmt: Format
    scale_rule: str
    _block: int
    _arrays: in_mx.MxArrays
    _ready: Moment

    @property
    def tile(self) -> tuple[int, int]:
        """The rows and columns of numbers that share a scale, clipped to the sides of x."""
        return partition(self.shape, (1, self._block)).block

    def dequantize(self, dtype: "np.typing.DTypeLike" = np.float32) -> Array:
        """Return the values of the codes, as float32 or bfloat16, on CuPy's current stream."""
        wanted, target = target_of(dtype)
        with on_gpu_after(self._ready, self.codes) as gpu:
            y = in_mx.dequantize(gpu, self._arrays, self.fmt, self._block, target)
        return y.view(wanted).reshape(self.codes.shape)


@dataclass(frozen=True, eq=False, repr=False)
class MorResult(GpuNumbers):
    """The result of MoR for a tensor on a GPU; its fields are named as in `mor_ref.MorResult`.

    There is no `quantized`: the kernels decide and write the output, and keep no codes that nobody
    may ask for. `mor_ref.cuda.quantize` returns the codes of a representation.
    """

    _ENTRIES = "output"

    policy: Policy
    ladder: tuple[str, ...]
    choice: Array
    output: Array
    error: dict[str, ErrorSums]
    amax: Array
    amin: Array
    _ready: Moment

    def dequantize(self, dtype: "np.typing.DTypeLike" = np.float32) -> Array:
        """Return the numbers of `output`, as float32 or bfloat16, on CuPy's current stream."""
        wanted, target = target_of(dtype)
        with on_gpu_after(self._ready, self.output) as gpu:
            if target == "bf16":
                return self.output.copy().view(wanted)
            return decoding.decode(gpu, self.output, formats["bf16"]).view(wanted)

    def _choices(self) -> tuple[np.ndarray[Any, np.dtype[np.uint8]], tuple[str, ...]]:
        return on_host(self.choice), self.ladder


@with_former_name("preset", "profile")
def encode(
    x: Any,
    fmt: FormatLike,
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
        random = [_random_bits(word_array, n_random_bits, argument) for word_array in words]
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


def decode(codes: Any, fmt: FormatLike) -> Array:
    """Return the numbers that `codes` stand for, as float32; the host does not look at codes."""
    source = as_format(fmt)
    width = next(width for width in (8, 16, 32) if source.bits <= width)
    argument = given(codes, "codes")
    with on_gpu_of(argument) as gpu:
        values = decoding.decode(gpu, codes_from(argument, f"uint{width}"), source)
    return values.view(np.float32)


def quantize(
    x: Any,
    fmt: FormatLike,
    *,
    scaling: Scaling | None = None,
    block: CutLike | None = None,
    group: CutLike | None = None,
    amax: SupportsFloat | None = None,
    scale: SupportsFloat | None = None,
) -> Quantized:
    """Quantize `x` with a scale for each block, as `mor_ref.quantize` does."""
    target = scaled_format(fmt)
    kind, together = scaling_or_usual(scaling), "tensor" if group is None else group
    amax_or_scale = given_for(kind, amax, scale)
    argument = given(x, "x")
    with on_gpu_of(argument) as gpu:
        numbers = numbers_from(argument)
        parts = partition(numbers.shape, "tensor" if block is None else block, together)
        check_group(parts, together, kind)
        scaled_codes = quantization.quantize(gpu, numbers.bits, target, kind, parts, amax_or_scale)
        ready = now()
    return Quantized(
        scaled_codes.codes.reshape(numbers.shape),
        scaled_codes.amax.view(np.float32),
        scaled_codes.scales.scale.view(np.float32),
        None if kind == "fp32" else scaled_codes.scales.exponent,
        scaled_codes.scales.mantissa if kind == "gam" else None,
        scaled_codes.error,
        target,
        kind,
        parts,
        scaled_codes,
        ready,
    )


def quantize_nvfp4(
    x: Any,
    *,
    profile: str = "te",
    tile: Pair = ROW_TILE,
    amax: SupportsFloat | None = None,
    global_scale: SupportsFloat | None = None,
) -> Nvfp4:
    """Quantize `x` to NVFP4, as `mor_ref.quantize_nvfp4` does."""
    rules = PROFILES[profile]
    sides = tile_of(rules, tile)
    amax_or_scale = given_in(rules, amax, global_scale)
    argument = given(x, "x")
    with on_gpu_of(argument) as gpu:
        numbers = numbers_from(argument)
        global_scales = in_nvfp4.given_scales(gpu, numbers.bits, rules, amax_or_scale)
        arrays = in_nvfp4.nvfp4(gpu, numbers.bits, rules, sides, global_scales)
        error = in_nvfp4.errors(gpu, numbers.bits, rules, sides, arrays.tiles)
        ready = now()
    encode_scale, decode_scale = (s.view(np.float32).reshape(-1) for s in arrays.whole[1:])
    return Nvfp4(
        arrays.codes.reshape(numbers.shape),
        arrays.packed.reshape(*numbers.shape[:-1], arrays.packed.shape[1]),
        arrays.tiles.codes,
        encode_scale if rules.per_row else encode_scale[0],
        decode_scale if rules.per_row else decode_scale[0],
        error,
        rules,
        sides,
        arrays,
        ready,
    )


def quantize_mx(
    x: Any, fmt: FormatLike, *, scale_rule: str = "floor", block: SupportsIndex = 32
) -> Mx:
    """Quantize `x` to an MX format, as `mor_ref.quantize_mx` does."""
    element = mx_element(fmt)
    known_name("scale_rule", scale_rule, SCALE_RULES)
    side = whole_number("block", block, 1, 1 << 62)
    argument = given(x, "x")
    with on_gpu_of(argument) as gpu:
        numbers = numbers_from(argument)
        arrays = in_mx.mx(gpu, numbers.bits, element, scale_rule, side)
        ready = now()
    codes = arrays.codes.reshape(numbers.shape)
    return Mx(codes, arrays.scale, arrays.error, element, scale_rule, side, arrays, ready)


def mor(
    x: Any,
    policy: str | Policy = "tensor",
    *,
    block: CutLike | None = None,
    scaling: Scaling | None = None,
    threshold: Thresholds | None = None,
) -> MorResult:
    """Choose a representation for each unit of `x`, and fake-quantize it, as `mor_ref.mor` does.

    Nothing comes to the host: the decisions are made on the GPU, and the output follows from them
    there.
    """
    rules = as_policy(policy)
    if threshold is not None:
        rules = rules.with_threshold(threshold)
    kind = rules.scaling_for(scaling)
    argument = given(x, "x")
    with on_gpu_of(argument) as gpu:
        numbers = numbers_from(argument)
        parts = partition(numbers.shape, rules.block if block is None else block, rules.group)
        check_group(parts, rules.group, kind)
        check_unit("unit", parts.block if rules.unit == "block" else (parts.rows, parts.columns))
        arrays = policies.mor(gpu, numbers.bits, rules, kind, parts)
        ready = now()
    return MorResult(
        rules,
        rules.names,
        arrays.choice,
        arrays.output.reshape(numbers.shape),
        arrays.error,
        arrays.extremes.amax.view(np.float32),
        arrays.extremes.amin.view(np.float32),
        ready,
    )
