"""What each operation takes and gives: its parameters and fields, and what goes together."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mor_ref.definitions.encoding import (
    DETERMINISTIC_ROUNDINGS,
    NANS,
    OVERFLOWS,
    SpecialCases,
    rounding_for,
)
from mor_ref.definitions.formats import formats, presets, special_cases_for
from mor_ref.definitions.mx import SCALE_RULES, mx_element
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.definitions.policies import POLICIES, FitsRange, Rung, name_of
from mor_ref.definitions.scales import SCALINGS, scaled_format
from mor_ref.golden.inputs.generated import LONGEST
from mor_ref.golden.model.suite import Parameters
from mor_ref.golden.model.views import SEPARATOR

RECIPE, GENERATED = "recipe", "x"  # the parameter, and the field that it stands for
LARGEST_TENSOR = 1 << 25  # elements of a generated one
_LARGEST_SIDE = 1 << 20  # of blocks, tiles and groups
_CUTS = ("tensor", "row", "column")

Fields = Mapping[str, tuple[str, str]]  # names to formats and axes


@dataclass(frozen=True)
class Axes:
    """What the sizes of an array are of, the outermost first, and how its entries lie (VEC-012)."""

    names: tuple[str, ...]
    layout: str = "row-major"


AXES: Mapping[str, Axes] = {
    "n": Axes(("rows",)),
    "nk": Axes(("rows", "numbers")),
    "rc": Axes(("rows", "columns")),
    "grid": Axes(("block rows", "block columns")),
    "group": Axes(("group rows", "group columns")),
    "unit": Axes(("unit rows", "unit columns")),
    "ends": Axes(("whole scales",)),
    "pairs": Axes(("rows", "pairs"), "row-major, the even code of a pair in the low nibble"),
}
_OF_DIGESTS = Axes(("digest rows", "digest columns", "bytes"))


@dataclass(frozen=True)
class Kind:
    """Which values a parameter has, and words for them."""

    holds: Callable[[Any], bool]
    wanted: str


def is_int(value: Any, lowest: int, highest: int) -> bool:
    """Whether a value is a whole number of this range; True and 1.0 are none."""
    return type(value) is int and lowest <= value <= highest


def one_of(names: Iterable[str]) -> Kind:
    """One of some names."""
    known = tuple(names)
    return Kind(lambda value: isinstance(value, str) and value in known, " or ".join(known))


def number(lowest: int, highest: int) -> Kind:
    """A whole number."""
    return Kind(lambda value: is_int(value, lowest, highest), f"an int, {lowest} to {highest}")


def _is_pair(value: Any, highest: int = _LARGEST_SIDE) -> bool:
    is_list = isinstance(value, list) and len(value) == 2
    return is_list and all(is_int(side, 1, highest) for side in value)


def _is_cut(value: Any) -> bool:
    return value in _CUTS if isinstance(value, str) else _is_pair(value)


def _is_recipe(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and set(value) == {"shape", "seed", "stream"}
        and _is_pair(value["shape"], LONGEST)
        and value["shape"][0] * value["shape"][1] <= LARGEST_TENSOR
        and all(is_int(value[name], 0, 0xFFFF) for name in ("seed", "stream"))
    )


_SIDES = f"a list of two sides, 1 to {_LARGEST_SIDE}"
_CUT = Kind(_is_cut, f"{' or '.join(_CUTS)}, or {_SIDES}")
_KINDS = {
    "format": one_of(formats),
    "source": one_of(("f32", "f16", "bf16")),
    "any_source": one_of(("f64", "f32", "f16", "bf16")),
    "f32": one_of(("f32",)),
    "rounding": one_of(DETERMINISTIC_ROUNDINGS),
    "overflow": one_of(OVERFLOWS),
    "nan": one_of(NANS),
    "preset": one_of(presets),
    "n_random_bits": number(1, 32),
    "metric": one_of(("mean_relative_error", "not_worse_than", "fits_range")),
    "scaling": one_of(SCALINGS),
    "block": _CUT,
    "group": _CUT,
    "side": number(1, _LARGEST_SIDE),
    "policy": one_of(POLICIES),
    "profile": one_of(PROFILES),
    "tile": Kind(_is_pair, _SIDES),
    "scale_rule": one_of(SCALE_RULES),
    RECIPE: Kind(_is_recipe, f"a shape of at most {LARGEST_TENSOR} elements, and seed and stream"),
}


# ---------------------------------------------------------------------- what goes together


def _scaled(parameters: Parameters) -> None:
    scaled_format(parameters["format"])


def _element_of_mx(parameters: Parameters) -> None:
    mx_element(parameters["format"])


def _rounding(parameters: Parameters) -> None:
    rounding = parameters.get("rounding", "sr")
    rounding_for(formats[parameters["format"]], rounding, SpecialCases())


def _preset(parameters: Parameters) -> None:
    special_cases_for(formats[parameters["format"]], None, None, parameters["preset"])


def _metric(parameters: Parameters) -> None:
    if (parameters["metric"] == "fits_range") != ("format" in parameters):
        raise ValueError("a format goes with the metric fits_range, and with no other")
    if "format" in parameters:
        Rung("e4m3", FitsRange(parameters["format"]))


def _tile(parameters: Parameters) -> None:
    tiles = PROFILES[parameters["profile"]].tiles
    if tuple(parameters["tile"]) not in tiles:
        raise ValueError(f"the profile {parameters['profile']} takes the tiles {tiles}")


# ---------------------------------------------------------------------- the operations


@dataclass(frozen=True)
class Call:
    """Names of parameters and fields; `admit` raises where parameters do not go together."""

    parameters: Mapping[str, Kind]
    optional: Mapping[str, Kind]
    inputs: Fields
    outputs: Fields
    admit: Callable[[Parameters], None]


def _kinds(text: str) -> dict[str, Kind]:
    """Such as "format block:side", for parameters that are named as their kind or otherwise."""
    pairs = (word.partition(":") for word in text.split())
    return {name: _KINDS[kind or name] for name, _, kind in pairs}


def _fields(text: str) -> Fields:
    """Such as "n xs,y f32; n code format": axes, names and formats."""
    found: dict[str, tuple[str, str]] = {}
    for row in text.split(";"):
        axes, names, fmt = row.split()
        found |= dict.fromkeys(names.split(","), (fmt, axes))
    return found


def _call(
    parameters: str,
    inputs: str,
    outputs: str,
    admit: Callable[[Parameters], None] = lambda _: None,
    optional: str = "",
) -> Call:
    return Call(_kinds(parameters), _kinds(optional), _fields(inputs), _fields(outputs), admit)


_TRIED = sorted({name_of(one) for policy in POLICIES.values() for one in policy.tried})
_POLICY_SUMS = ",".join(f"{t}.{s}" for t in _TRIED for s in ("sum", "nonzero", "nonfinite"))
CALLS: Mapping[str, Call] = {
    "encode": _call(
        "format source:any_source rounding overflow nan",
        "n x source",
        "n code format",
        _rounding,
    ),
    "encode_preset": _call(
        "format source:any_source preset", "n x source", "n code format", _preset
    ),
    "encode_stochastic": _call(
        "format source:f32 n_random_bits overflow",
        "n x source; n random_word u32",
        "n code format",
        _rounding,
    ),
    "decode": _call("format", "n code format", "n value f32"),
    "scale": _call(
        "format scaling",
        "n group_amax,block_amax f32",
        "n mantissa u32; n exponent e8m0; n scale f32",
        _scaled,
    ),
    "quantize_element": _call("format", "n x,scale f32", "n xs,y f32; n code format", _scaled),
    "error_term": _call("", "n x,y f32", "n d,r f32; n u u32"),
    "decide": _call(
        "metric",
        "n sum,nonzero,nonfinite,yardstick_sum u64; n limit u32; n amax,amin f32",
        "n accepted u8",
        _metric,
        optional="format",
    ),
    "quantize": _call(
        "format scaling block group source",
        "rc x source",
        "grid amax,scale f32; group mantissa u32; grid exponent e8m0; rc xs,y,d,r f32; "
        "rc code format; rc u u32; grid sum,nonzero,nonfinite u64",
        _scaled,
        optional=RECIPE,
    ),
    "mor": _call(
        "policy scaling block source",
        "rc x source",
        f"unit amax,amin f32; unit {_POLICY_SUMS} u64; unit choice u8; rc output bf16",
        optional=RECIPE,
    ),
    "nvfp4": _call(
        "profile tile source",
        "rc x source",
        "ends global_encode_scale,global_decode_scale f32; grid block_scale e4m3; rc xs,y f32; "
        "rc code e2m1; pairs packed u8",
        _tile,
        optional=RECIPE,
    ),
    "mx": _call(
        "format scale_rule block:side source",
        "rc x source",
        "grid scale e8m0; rc xs,y f32; rc code format",
        _element_of_mx,
        optional=RECIPE,
    ),
    "quantize_block": _call(
        "format scaling source:f32",
        "nk x f32; n group_amax f32",
        "n amax,scale f32; n mantissa u32; n exponent e8m0; nk xs,y,d,r f32; nk code format; "
        "nk u u32; n sum,nonzero,nonfinite u64",
        _scaled,
    ),
    "nvfp4_block": _call(
        "profile source:f32",
        "nk x f32; n amax f32",
        "n block_amax,global_encode_scale,global_decode_scale f32; "
        "n six.block_scale,four.block_scale e4m3; nk six.code,four.code e2m1; "
        "n six.error,four.error f32; n block_scale e4m3; n encode_scale,decode_scale f32; "
        "nk xs,y f32; nk code e2m1",
    ),
    "mx_block": _call(
        "format scale_rule source:f32",
        "nk x f32",
        "n scale e8m0; nk xs,y f32; nk code format",
        _element_of_mx,
    ),
}


def kind_of_axes(operation: str, field: str) -> str:
    """The kind of axes that a field of an operation has, without its views."""
    base = field.partition(SEPARATOR)[0]
    call = CALLS[operation]
    return (call.inputs[base] if base in call.inputs else call.outputs[base])[1]


def axes_of(operation: str, field: str) -> Axes:
    """The axes of a field of an operation, or of the digests of its tiles."""
    return _OF_DIGESTS if SEPARATOR in field else AXES[kind_of_axes(operation, field)]
