"""fp8lm_scale, fp8lm_cast, fp8lm_recast, fp8lm_shared and fp8lm_sum: numbers of FP8-LM."""

import numpy as np
from numpy.typing import NDArray

import mor_ref
from mor_ref.arrays import code_dtype
from mor_ref.exact.arithmetic import quotient
from mor_ref.operations.bits import bits32
from mor_ref.operations.call import Arrays, Call, DeviceArrays, DeviceCall, Parameters, Results
from mor_ref.operations.fields import expected, given
from mor_ref.operations.operation import Operation, RandomInputs
from mor_ref.operations.parameters import kinds, number, one_of
from mor_ref.operations.random_blocks import amaxes_at, bits_of, fraction_of, values_of
from mor_ref.operations.random_numbers import (
    ANY_NUMBER,
    LAYOUTS,
    Draws,
    any_row,
    bits_at,
    numbers,
    share,
)
from mor_ref.operations.results import each
from mor_ref.schemes.fp8lm import exact as fp8lm
from mor_ref.schemes.fp8lm.definition import (
    FP8LM_FORMATS,
    REDUCTIONS,
    SCALE_PROFILES,
    SUMS,
    format_of,
)

_SCALES = ("ratio", "exponent", "scale", "scale_inv")
_OF_RANKS = ("rank_scale", "scale", "scale_inv", "requantized")
_MOST_RANKS = 1 << 12  # binary64 holds each sum of so many
_U = np.uint64
_F32 = LAYOUTS["f32"]
_SIGN = _U(1 << 31)
_SPECIALS = np.array(
    [0, 1, 0x7FFFFF, 0x800000, _F32.largest, _F32.infinity, 0x7FC00000, 0x7F800001], _U
)


def exact_scale(call: Call) -> Results:
    """Compute scales with the exact model."""
    fmt, margin, profile = format_of(call["format"]), call["margin"], call["profile"]
    pairs = call.together("amax", "previous")
    scales = (fp8lm.scale_of(amax, before, fmt, margin, profile) for amax, before in pairs)
    return each(scales, *_SCALES)


def engine_scale(call: Call) -> Results:
    """Compute scales with the public function."""
    amaxes = call.tensor("amax"), call.tensor("previous")
    scales = mor_ref.fp8lm.scale(*amaxes, fmt=call["format"], **call.arguments("margin profile"))
    return {name: bits32(getattr(scales, name)) for name in _SCALES}


def cuda_scale(call: DeviceCall) -> DeviceArrays:
    """Compute scales on a device."""
    from mor_ref.schemes.fp8lm.cuda import scales

    amaxes, fmt = (call.arrays["amax"], call.arrays["previous"]), format_of(call["format"])
    return scales(call.device, *amaxes, fmt, call["margin"], call["profile"])


def random_scale(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw amaxes next to the largest number times a power of two, and scales before."""
    largest = format_of(parameters["format"]).largest
    amax = amaxes_at(draws, 0, (fraction_of(largest),), largest)
    words = draws.words(3)
    lost = _SPECIALS[share(bits_at(words, 0, 8), 8, _SPECIALS.size)]
    amax = np.where(bits_at(words, 8, 4) == 0, lost, amax)
    powers = (share(bits_at(words, 16, 16), 16, 254) + np.uint64(1)) << np.uint64(23)
    special = _SPECIALS[share(bits_at(words, 40, 8), 8, _SPECIALS.size)]
    return {"amax": amax, "previous": np.where(bits_at(words, 32, 4) == 0, special, powers)}


def are_amaxes(_: Parameters, arrays: Arrays) -> NDArray[np.bool_]:
    """Return which rows have amaxes without a sign bit."""
    is_positive = arrays["amax"] < 1 << 31
    inside: NDArray[np.bool_] = np.all(is_positive, axis=tuple(range(1, is_positive.ndim)))
    return inside


def exact_cast(call: Call) -> Results:
    """Compute with the exact model."""
    fmt, x, scales = format_of(call["format"]), call.numbers("x"), call.numbers("scale")
    elements = (fp8lm.cast(*pair, fmt) for pair in zip(x, scales, strict=True))
    inverses = [quotient(1.0, scale) for scale in scales]
    return {"scale_inv": inverses, **each(elements, "code", "y")}


def engine_cast(call: Call) -> Results:
    """Compute with the public function, for all numbers of a scale at a time."""
    x, scales = call.tensor("x"), call.tensor("scale")
    code = np.empty(x.shape, code_dtype(format_of(call["format"])))
    y, scale_inv = np.empty_like(x), np.empty_like(x)
    for bits in np.unique(call.arrays["scale"]):
        has_scale = call.arrays["scale"] == bits
        cast = mor_ref.fp8lm.cast(x[has_scale], float(scales[has_scale][0]), fmt=call["format"])
        code[has_scale], y[has_scale], scale_inv[has_scale] = cast.codes, cast.y, cast.scale_inv
    return {"code": code, "y": bits32(y), "scale_inv": bits32(scale_inv)}


def cuda_cast(call: DeviceCall) -> DeviceArrays:
    """Compute on a device."""
    from mor_ref.schemes.fp8lm.cuda import casts

    return casts(call.device, call.arrays["x"], call.arrays["scale"], format_of(call["format"]))


def random_cast(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw powers of two as scales, and numbers at which encoders differ after them."""
    fmt = format_of(parameters["format"])
    words = draws.words(3)
    field = share(bits_at(words, 0, 16), 16, 60) + _U(97)
    field = np.where(bits_at(words, 16, 3) == 0, share(bits_at(words, 0, 16), 16, 256), field)
    fraction = np.where(bits_at(words, 20, 2) == 0, bits_at(words, 24, 23), _U(0))
    scale = field << _U(23) | fraction
    xs = numbers(draws, 0, fmt, "f32")
    with np.errstate(all="ignore"):
        x = np.abs(values_of(xs & ~_SIGN) / np.maximum(values_of(scale), 1e-300))
    is_plain = np.isfinite(x) & (field < 255)
    return {"x": np.where(is_plain, bits_of(np.nan_to_num(x)) | xs & _SIGN, xs), "scale": scale}


def exact_recast(call: Call) -> Results:
    """Compute both casts with the exact model."""
    fmt = format_of(call["format"])
    rows = list(call.together("x", "scale", "shared"))
    codes = [fp8lm.cast(x, scale, fmt).code for x, scale, _ in rows]
    recasts = each((fp8lm.recast(x, scale, shared, fmt) for x, scale, shared in rows), "code", "y")
    return {"code": codes, "recast": recasts["code"], "y": recasts["y"]}


def engine_recast(call: Call) -> Results:
    """Compute both casts as the all-reduce does."""
    from mor_ref.fp8lm import codes_and_y

    fmt = format_of(call["format"])
    x, scale, shared = (call.tensor(name) for name in ("x", "scale", "shared"))
    code, between = codes_and_y(x, scale, fmt)
    recast, y = codes_and_y(between, shared, fmt)
    return {"code": code, "recast": recast, "y": bits32(y)}


def cuda_recast(call: DeviceCall) -> DeviceArrays:
    """Compute both casts on a device."""
    from mor_ref.schemes.fp8lm.cuda import casts

    fmt, arrays = format_of(call["format"]), call.arrays
    first = casts(call.device, arrays["x"], arrays["scale"], fmt)
    second = casts(call.device, first["y"], arrays["shared"], fmt)
    return {"code": first["code"], "recast": second["code"], "y": second["y"]}


def random_recast(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw numbers and their scales, and shared scales up to 2^15 below, some of any kind."""
    drawn = random_cast(parameters, draws)
    words = draws.words(5)
    field = drawn["scale"] >> _U(23) & _U(0xFF)
    less = np.minimum(share(bits_at(words, 0, 16), 16, 16), field) << _U(23)
    shared = np.where(bits_at(words, 16, 4) == 0, bits_at(words, 24, 32), drawn["scale"] - less)
    return {**drawn, "shared": shared}


def exact_shared(call: Call) -> Results:
    """Compute the scales of ranks with the exact model."""
    fmt, choices = format_of(call["format"]), (call["reduction"], call["profile"])
    scales = (fp8lm.shared_scales(row, fmt, *choices) for row in call.numbers("amax"))
    return each(scales, *_OF_RANKS)


def engine_shared(call: Call) -> Results:
    """Compute the scales of ranks as the all-reduce does."""
    from mor_ref.fp8lm import shared_scales

    choices = call["format"], call["reduction"], call["profile"]
    rows = [shared_scales(row, *choices) for row in call.tensor("amax")]
    rank_scales, shared, back, changed = (list(part) for part in zip(*rows, strict=True))
    return {
        "rank_scale": bits32(np.array(rank_scales)),
        "scale": bits32(np.array(shared)),
        "scale_inv": bits32(np.array(back)),
        "requantized": np.array(changed, np.uint8),
    }


def cuda_shared(call: DeviceCall) -> DeviceArrays:
    """Compute the scales of ranks on a device."""
    from mor_ref.schemes.fp8lm.cuda_state import shared_scales

    fmt, choices = format_of(call["format"]), (call["reduction"], call["profile"])
    return shared_scales(call.device, call.arrays["amax"], fmt, *choices)


def random_shared(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw amaxes of ranks; those of a row are next to each other in half of the rows."""
    amax = random_scale(parameters, draws.per_number())["amax"].reshape(-1, draws.width)
    near = amax[:, :1] + np.arange(draws.width, dtype=_U) % _U(3)
    is_near = (draws.words(5)[:, np.newaxis] & _U(1) == 1) & (amax[:, :1] < 0x7F000000)
    return {"amax": np.where(is_near, near, amax)}


def exact_sum(call: Call) -> Results:
    """Add the codes of all ranks with the exact model."""
    fmt = format_of(call["format"])
    rows = ([fmt.value(code) for code in row] for row in call.numbers("code"))
    return {"sum": [fp8lm.sum_of(row, fmt, call["sums"]) for row in rows]}


def engine_sum(call: Call) -> Results:
    """Add the codes of all ranks as the all-reduce does."""
    from mor_ref.fp8lm import sums_of

    codes = np.ascontiguousarray(call.arrays["code"].T)
    return {"sum": sums_of(codes, format_of(call["format"]), call["sums"])}


def cuda_sum(call: DeviceCall) -> DeviceArrays:
    """Add the codes of all ranks on a device."""
    from mor_ref.schemes.fp8lm.cuda import sums_of_ranks

    fmt = format_of(call["format"])
    return {"sum": sums_of_ranks(call.device, call.arrays["code"], fmt, call["sums"])}


def random_sum(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw rows of codes in few binades, so that sums are ties, and some codes of any kind."""
    fmt, per_number = format_of(parameters["format"]), draws.per_number()
    shape = (draws.count, draws.width)
    words, choices = per_number.words(0).reshape(shape), draws.words(1)[:, np.newaxis]
    step = _U(1 << fmt.mantissa_bits)
    lowest = share(bits_at(choices, 0, 16), 16, fmt.largest_code // int(step)) * step
    binades = share(bits_at(choices, 16, 8), 8, 4) + _U(1)
    near = np.minimum(lowest + share(bits_at(words, 0, 24), 24, binades * step), fmt.largest_code)
    anywhere = bits_at(words, 24, fmt.bits)
    is_any = (bits_at(words, 56, 5) == 0) & (bits_at(choices, 32, 2) == 0)
    signs = bits_at(words, 48, 1) * (bits_at(choices, 40, 1)) * _U(fmt.sign_bit)
    return {"code": np.where(is_any, anywhere, near | signs)}


_LARGEST_MARGIN = 1000
_KINDS = {
    "format": one_of(FP8LM_FORMATS),
    "profile": one_of(SCALE_PROFILES),
    "margin": number(-_LARGEST_MARGIN, _LARGEST_MARGIN),
    "reduction": one_of(REDUCTIONS),
    "sums": one_of(SUMS),
}
FP8LM_SCALE = Operation(
    "fp8lm_scale",
    kinds("format profile margin", **_KINDS),
    (
        given("amax f32 n", "the amax of a tensor"),
        given("previous f32 n", "the scale before"),
        expected("ratio f32 n", "the largest number by amax", "FLM-002 FLM-004"),
        expected("exponent f32 n", "the exponent, a whole number", "FLM-002 FLM-004"),
        expected("scale f32 n", "the scale", "FLM-003 FLM-004"),
        expected("scale_inv f32 n", "its rounded inverse", "FLM-003"),
    ),
    model=exact_scale,
    function=engine_scale,
    kernels=cuda_scale,
    random=RandomInputs(
        random_scale, are_amaxes, "amax has no sign bit", answers=("exponent", "scale")
    ),
)
FP8LM_CAST = Operation(
    "fp8lm_cast",
    kinds("format", **_KINDS),
    (
        given("x f32 n", "the numbers"),
        given("scale f32 n", "a scale for each"),
        expected("scale_inv f32 n", "its rounded inverse", "FLM-003"),
        expected("code format n", "the code of each number", "FLM-005"),
        expected("y f32 n", "what each code stands for", "FLM-005"),
    ),
    model=exact_cast,
    function=engine_cast,
    kernels=cuda_cast,
    random=RandomInputs(random_cast, any_row, ANY_NUMBER, answers=("code", "y")),
)
FP8LM_RECAST = Operation(
    "fp8lm_recast",
    kinds("format", **_KINDS),
    (
        given("x f32 n", "the numbers"),
        given("scale f32 n", "the scale of the rank"),
        given("shared f32 n", "the shared scale"),
        expected("code format n", "the code with the scale of the rank", "FLM-005"),
        expected("recast format n", "the code with the shared scale", "FLM-007"),
        expected("y f32 n", "the value of the code with the shared scale", "FLM-007"),
    ),
    model=exact_recast,
    function=engine_recast,
    kernels=cuda_recast,
    random=RandomInputs(random_recast, any_row, ANY_NUMBER),
)
FP8LM_SHARED = Operation(
    "fp8lm_shared",
    kinds("format reduction profile", **_KINDS),
    (
        given("amax f32 nk", "the amax of each rank"),
        expected("rank_scale f32 nk", "the scale of each rank", "FLM-001 FLM-007"),
        expected("scale f32 n", "the shared scale", "FLM-007 FLM-008"),
        expected("scale_inv f32 n", "its inverse by the number of ranks", "FLM-009"),
        expected("requantized u8 nk", "1 for a rank that is cast anew", "FLM-007 FLM-008"),
    ),
    model=exact_shared,
    function=engine_shared,
    kernels=cuda_shared,
    random=RandomInputs(random_shared, are_amaxes, "an amax has no sign bit"),
    widths=(1, _MOST_RANKS),
)
FP8LM_SUM = Operation(
    "fp8lm_sum",
    kinds("format sums", **_KINDS),
    (
        given("code format nk", "a code of each rank"),
        expected("sum format n", "the code of the sum", "FLM-009"),
    ),
    model=exact_sum,
    function=engine_sum,
    kernels=cuda_sum,
    random=RandomInputs(random_sum, any_row, "every code is taken"),
    widths=(1, _MOST_RANKS),
)
