"""FP8-LM: scales, casts, delayed scaling, automatic scaling and the partition of ZeRO."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.border import public
from mor_ref.api.dequantization import WithY
from mor_ref.argument_checks import known_name, whole_number
from mor_ref.arrays import Bits, numbers_from
from mor_ref.counts_in_words import counted
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.records import Record
from mor_ref.schemes.fp8lm.definition import (
    AUTOMATIC,
    FIRST_MOMENT,
    PAPER_PARTS,
    PAPER_WINDOW,
    SCALE_PROFILES,
    ScaleProfile,
    check_rate,
    format_of,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_LARGEST_MARGIN = 1000
_LONGEST_WINDOW = 1 << 20
_SATURATED = 0x7E
_MOST_SHOWN = 8  # amaxes of a history as text
Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False, repr=False)
class Scale(Record):
    """Scales of tensors, and the numbers that they follow from, each in the shape of amax.

    `scale` multiplies x, and `scale_inv` the numbers of the codes.

    >>> from mor_ref import fp8lm
    >>> scales = fp8lm.scale([3.5])
    >>> scales.scale * 3.5, scales.scale * scales.scale_inv
    (array([448.], dtype=float32), array([1.], dtype=float32))
    """

    amax: Floats
    ratio: Floats
    exponent: Floats
    scale: Floats
    scale_inv: Floats

    def __repr__(self) -> str:
        return f"<{counted(self.scale.size, 'scale')} of tensors>"


@dataclass(frozen=True, eq=False, repr=False)
class Cast(WithY):
    """A tensor in FP8 or binary16: its codes, its scale, and y.

    `scale` multiplies x, and `scale_inv` the numbers of the codes.

    >>> import mor_ref, numpy as np
    >>> cast = mor_ref.fp8lm.cast([0.3, -3.5], 128.0)
    >>> y = mor_ref.decode(cast.codes, "e4m3") * cast.scale_inv
    >>> y.tolist() == cast.dequantize().tolist() == np.asarray(cast).tolist()
    True
    """

    codes: Bits
    scale: np.float32
    scale_inv: np.float32
    y: Floats

    def __repr__(self) -> str:
        return f"<{described(self.codes)}, scale {self.scale}>"


@dataclass(frozen=True)
class History(Record):
    """The state of delayed scaling: the latest amaxes, the oldest first, and the scale.

    `scale` multiplies x.

    >>> from mor_ref import fp8lm
    >>> delayed = fp8lm.history(fp8lm.History((7.0, 1.0)), 3.5)
    >>> delayed.scale * max(delayed.window) <= 448
    True
    """

    window: tuple[float, ...]
    scale: float = 1.0

    def __repr__(self) -> str:
        if len(self.window) <= _MOST_SHOWN:
            return f"History(window={self.window}, scale={self.scale})"
        count = counted(len(self.window), "amax")
        return f"<History of {count}, the latest {self.window[-1]}, scale {self.scale}>"


@dataclass(frozen=True)
class AutoScale(Record):
    """The state of automatic scaling: mu, and how many codes of the step were saturated."""

    mu: float
    saturated: int = 0


def described(codes: Bits) -> str:
    """Return the shape of codes, and their width, in words."""
    return f"{'x'.join(map(str, codes.shape)) or 'one'} codes of {8 * codes.itemsize} bits"


def floats(argument: str, x: object) -> Floats:
    """Return numbers as binary32; only those of binary64 are rounded (QNT-004)."""
    from mor_ref.engine.blocks import binary32_words  # imports Numba

    numbers = numbers_from(x, argument)
    return binary32_words(numbers).view(np.float32).reshape(numbers.shape)


def one_number(argument: str, x: object) -> np.float32:
    """Return one number of binary32; refuse several."""
    number = floats(argument, x)
    if number.shape != ():
        raise ValueError(f"{argument} has the shape {number.shape}; give one number")
    return np.float32(number)


def check_amax(amaxes: Floats | np.float32) -> None:
    """Refuse an amax that is negative (FLM-001)."""
    if np.any(amaxes < 0):
        raise ValueError(f"amax is {np.nanmin(amaxes)}; give the largest |x| of each tensor")


@public
def scale(
    amax: "ArrayLike",
    previous: "ArrayLike | None" = None,
    *,
    fmt: str = "e4m3",
    margin: int = 0,
    profile: ScaleProfile = "msamp",
) -> Scale:
    """Return the scale of each tensor from its amax; `previous` is 1 if it is omitted.

    `fmt` is e4m3, e5m2 or f16. `profile` is "msamp", which takes the exponent from a binary32
    logarithm, or "exact". Numbers of binary64 are rounded to binary32 first.

    >>> from mor_ref import fp8lm
    >>> scales = fp8lm.scale([3.5, 3.6])
    >>> scales.exponent.tolist(), scales.scale.tolist()
    ([7.0, 6.0], [128.0, 64.0])
    """
    known_name("profile", profile, SCALE_PROFILES)
    target = format_of(fmt)
    steps = whole_number("margin", margin, -_LARGEST_MARGIN, _LARGEST_MARGIN)
    amaxes = floats("amax", amax)
    check_amax(amaxes)
    previous_scales = floats("previous", 1.0 if previous is None else previous)
    if previous_scales.shape not in ((), amaxes.shape):
        raise ValueError(
            f"previous has the shape {previous_scales.shape}, but amax has {amaxes.shape}; give "
            "one number, or one for each tensor"
        )
    before = np.broadcast_to(previous_scales, amaxes.shape)
    from mor_ref.schemes.fp8lm.engine import scales  # imports Numba

    ratio, exponent, scale_values = (np.empty(amaxes.size, np.float32) for _ in range(3))
    largest, is_msamp = np.float32(target.largest), profile == "msamp"
    flat = np.ascontiguousarray(amaxes).reshape(-1), np.ascontiguousarray(before).reshape(-1)
    scales(*flat, largest, np.int32(steps), is_msamp, ratio, exponent, scale_values)
    shape = amaxes.shape
    shaped = scale_values.reshape(shape)
    return Scale(amaxes, ratio.reshape(shape), exponent.reshape(shape), shaped, inverse(shaped))


def inverse(scale: Any) -> Any:
    """Return RN32(1 / scale) (FLM-003)."""
    with np.errstate(all="ignore"):
        return np.float32(1) / scale


@public
def cast(x: "ArrayLike", scale: float, *, fmt: str = "e4m3") -> Cast:
    """Return the codes of x with a scale, and y.

    >>> from mor_ref import fp8lm
    >>> cast = fp8lm.cast([0.3, -3.5], 128.0)
    >>> cast.codes.tolist(), cast.y.tolist()
    ([98, 254], [0.3125, -3.5])
    """
    target = format_of(fmt)
    factor = one_number("scale", scale)
    back = inverse(factor)
    codes, y = codes_and_y(floats("x", x), factor, target)
    return Cast(codes, factor, back, y)


@public
def codes_and_y(x: Floats, scale: Any, fmt: Format) -> tuple[Bits, Floats]:
    """Return the codes and y of numbers with one scale, or with one for each (FLM-005)."""
    from mor_ref.schemes.fp8lm.engine_tensors import cast as codes_of  # imports Numba

    return codes_of(x, scale, inverse(scale), fmt)


@public
def history(
    state: History,
    amax: float,
    *,
    fmt: str = "e4m3",
    margin: int = 0,
    profile: ScaleProfile = "msamp",
) -> History:
    """Return the state of delayed scaling after a step with that amax.

    >>> from mor_ref import fp8lm
    >>> fp8lm.history(fp8lm.History((0.0, 7.0, 1.0)), 3.5)
    History(window=(7.0, 1.0, 3.5), scale=64.0)
    """
    if not state.window:
        raise ValueError("window is empty; give an amax for each step, such as (0.0,) * 16")
    with np.errstate(over="ignore"):
        wrong = [entry for entry in state.window if not (entry >= 0 and np.float32(entry) < np.inf)]
    if wrong:
        raise ValueError(f"window holds {wrong[0]}; give finite amaxes from 0 on, also in binary32")
    newest = one_number("amax", amax)
    check_amax(newest)
    window = (*state.window[1:], float(newest) if np.isfinite(newest) else 0.0)
    new_scale = scale(max(window), state.scale, fmt=fmt, margin=margin, profile=profile)
    return History(window, float(new_scale.scale))


@public
def auto_scale(
    state: AutoScale,
    codes: "ArrayLike",
    *,
    profile: str = "msamp",
    threshold: float = 1e-5,
    window: int = 1000,
) -> AutoScale:
    """Return the state of automatic scaling after a step whose gradient has these e4m3 codes.

    `profile` is "msamp", or "paper", which has a threshold and a window of its own.

    >>> from mor_ref import fp8lm
    >>> fp8lm.auto_scale(fp8lm.AutoScale(1.0), [0x7E, 0x30])
    AutoScale(mu=0.5, saturated=1)
    """
    known_name("profile", profile, AUTOMATIC)
    steps = whole_number("window", window, 1, _LONGEST_WINDOW)
    mu, share = _plain_number("mu", state.mu), _plain_number("threshold", threshold)
    with np.errstate(over="ignore"):
        check_rate("mu", mu, float(np.float32(mu)), math.inf)
    if not 0 <= share <= 1:
        raise ValueError(f"threshold is {share!r}; give a share from 0 to 1")
    from mor_ref.api.dot import codes_from

    gradient_codes = codes_from(codes, formats[FIRST_MOMENT], "codes")
    count = int(np.count_nonzero((gradient_codes & 0x7F) == _SATURATED))
    return AutoScale(next_mu(mu, count, gradient_codes.size, profile, share, steps), count)


def _plain_number(argument: str, value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]  # the handler below reports it
    except (TypeError, ValueError):
        raise TypeError(f"{argument} is {value!r}; give a number") from None


@public
def next_mu(mu: float, count: int, size: int, profile: str, threshold: float, window: int) -> float:
    """Return mu after a step whose gradient has `count` saturated codes (FLM-010)."""
    from mor_ref.schemes.fp8lm.engine import growth  # imports Numba

    if profile == "paper":
        too_many, window = count * PAPER_PARTS > size, PAPER_WINDOW
    else:
        with np.errstate(invalid="ignore"):  # of a gradient without codes
            too_many = bool(np.float32(count) / np.float32(size) > np.float32(threshold))
    before = np.float32(mu)
    with np.errstate(over="ignore"):
        return float(before / np.float32(2) if too_many else before * growth(window))


def partition(numels: Sequence[int], ranks: int) -> tuple[int, ...]:
    """Return the rank of each tensor, from how many numbers it has.

    >>> from mor_ref import fp8lm
    >>> fp8lm.partition([10, 40, 30, 10], 2)
    (1, 0, 1, 0)
    """
    count = whole_number("ranks", ranks, 1, 1 << 30)
    sizes = [whole_number(f"numels[{i}]", n, 0, 1 << 62) for i, n in enumerate(numels)]
    loads, owners = [0] * count, [0] * len(sizes)
    for i in sorted(range(len(sizes)), key=lambda i: (-sizes[i], i % count)):
        owners[i] = loads.index(min(loads))
        loads[owners[i]] += sizes[i]
    return tuple(owners)
