"""Which mistakes golden vectors show: those of a block format, and those of a modelled chapter."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np

from mor_ref.definitions.block_formats import BlockFormat
from mor_ref.definitions.encoding import (
    DETERMINISTIC_ROUNDINGS,
    OVERFLOWS,
    POWER_OF_TWO_ROUNDINGS,
)
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.definitions.scales import SCALINGS, is_scaled
from mor_ref.exact.encoding import floor_log2, in_units_of
from mor_ref.golden import load
from mor_ref.golden.model.suite import Case, Size, question
from mor_ref.golden.suites import SUITES
from mor_ref.golden.suites.block_formats import OPERATION, suite_of
from mor_ref.golden.suites.mx import ELEMENTS
from mor_ref.mistakes import Shown, mistakes_of, shown_by
from mor_ref.mistakes.amaxes import mistakes_of_amaxes
from mor_ref.mistakes.encoding import is_at_random, mistakes_of_encoding
from mor_ref.mistakes.landmarks import (
    blocks,
    blocks_with_specials,
    codes,
    numbers,
    pairs_of_amaxes,
    tiles,
)
from mor_ref.mistakes.landmarks_of_units import (
    Sums,
    Unit,
    means,
    pairs,
    ranges,
    units,
    yardsticks,
)
from mor_ref.mistakes.mistake import Mistake
from mor_ref.mistakes.mx import RULES, mistakes_of_mx
from mor_ref.mistakes.nvfp4 import OF_TENSORS, mistakes_of_nvfp4
from mor_ref.mistakes.policies import OF_TENSORS as OF_TENSORS_OF_POLICIES
from mor_ref.mistakes.policies import mistakes_of_policies
from mor_ref.mistakes.rows import Kind, Verdict, matrix, matrix_by_calls
from mor_ref.mistakes.scales import mistakes_of_scales
from mor_ref.operations import OPERATIONS
from mor_ref.operations.bits import Unsigned
from mor_ref.operations.call import Arrays

_OF_ANY_CODES = "MXS-009"  # also those that no quantizer makes
_TILES = 400  # of a profile
_WIDTH = 18  # of blocks with a NaN in each place
_COUNTS = (1, 8, 16, 24, 32)  # of random bits
_STEPS = (0, 1, 2)  # from the last word that leads to the code below
_WIDEST_AT_RANDOM = 16  # bits
_RANGES = ("e4m3", "e5m2", "bf16")
_OF_DECISIONS = ("MOR-001", "MOR-002", "MOR-003", "MOR-004")
_THRESHOLDS = {
    "relative_frobenius": ("1/4", "1/10"),
    "sqnr": ("1/10", "1/100"),
    "cosine": ("24/25",),
    "largest_by_row": ("1/8", "1/10", "7/10", "0.10000000000000000000001"),
}
_DECIBELS = {"1/10": "20", "1/100": "40"}  # of ratios of distances
SUMS_OF_UNITS = {
    **dict.fromkeys(("sum", "nonzero", "nonfinite", "yardstick_sum"), np.uint64),
    **dict.fromkeys(("limit", "amax", "amin"), np.uint32),
}


def mistakes_shown(
    block_format: BlockFormat, size: Size, done: Callable[[str], None] = lambda _: None
) -> list[Shown]:
    """Return the case and the field that show each mistake, with the exact model."""
    operation = OPERATIONS[OPERATION]
    cases = {
        case.name: partial(operation.exact, case.parameters, case.arrays)
        for case in suite_of(block_format).questions(size)
    }
    return shown_by(mistakes_of(block_format), cases, done)


class InSuite(NamedTuple):
    """What becomes of a mistake: in the cases of a suite, and in kinds of derived inputs."""

    suite: list[Verdict]
    derived: list[Verdict]

    @property
    def is_hole(self) -> bool:
        """Whether derived inputs show it, and the suite does not."""
        return any(one.shown for one in self.derived) and not any(one.shown for one in self.suite)


def mistakes_in(suite: str, done: Callable[[], None] = lambda: None) -> dict[str, InSuite]:
    """Return what becomes of each mistake of a modelled suite, by its id.

    `done` is called after each of the `kinds_of` the suite.
    """
    mistakes = MODELLED[suite].mistakes()
    found = {mistake.name: InSuite([], []) for mistake in mistakes}
    for place, kinds in enumerate(kinds_of(suite)):
        for kind in kinds:
            for verdict in MODELLED[suite].matrix(mistakes, kind):
                found[verdict.mistake.name][place].append(verdict)
            done()
    return found


def kinds_of(suite: str) -> tuple[list[Kind], list[Kind]]:
    """Return the kinds of calls of a modelled suite: its cases, and those of derived inputs."""
    fields = SUITES[suite].fields
    cases = [question(fields, case) for case in load(suite)]
    derived = MODELLED[suite].derived()
    kind = MODELLED[suite].kind
    return [kind(suite, case) for case in cases], [kind(suite, case) for case in derived]


def kind_of(suite: str, case: Case) -> Kind:
    """Return a case whose rows are questions of their own, as a kind of call."""
    operation = OPERATIONS[SUITES[suite].operation]

    def compute(rows: Sequence[int]) -> Arrays:
        chosen = {name: array[rows] for name, array in case.arrays.items()}
        return operation.exact(case.parameters, chosen)

    return Kind(case.name, len(next(iter(case.arrays.values()))), compute)


def derived_scales() -> Iterator[Case]:
    """Yield questions about scales from the formats alone, in each kind of call that there is.

    Of formats with the same largest number, which alone matters, the first stands for all.
    """
    by_largest = {fmt.largest: fmt for fmt in reversed([*formats.values()]) if is_scaled(fmt)}
    for fmt in by_largest.values():
        pairs = np.array(pairs_of_amaxes(fmt), np.uint32)
        alone = pairs[pairs[:, 0] == pairs[:, 1]]
        for scaling in SCALINGS:
            groups, blocks = (pairs if scaling == "gam" else alone).T
            parameters = {"format": fmt.name, "scaling": scaling}
            arrays = {"group_amax": groups, "block_amax": blocks}
            yield Case(f"{fmt.name}.{scaling}", parameters, arrays)


def derived_blocks() -> Iterator[Case]:
    """Yield blocks of MX from the formats alone, in each kind of call that there is."""
    for fmt in map(formats.__getitem__, ELEMENTS):
        for rule in RULES:
            parameters = {"format": fmt.name, "scale_rule": rule, "source": "f32"}
            for name, found in (
                ("amaxes", blocks(fmt, rule)),
                ("specials", blocks_with_specials(_WIDTH)),
            ):
                arrays = {"x": np.array([*found], np.uint32)}
                yield Case(f"{fmt.name}.{rule}.{name}", parameters, arrays)


def derived_numbers() -> Iterator[Case]:
    """Yield numbers to encode from the formats alone, in each kind of call that there is."""
    for fmt in formats.values():
        roundings = POWER_OF_TWO_ROUNDINGS if fmt.is_power_of_two else DETERMINISTIC_ROUNDINGS
        for rounding, (overflow, nan) in itertools.product(
            roundings, (("satfinite", "canonical"), ("ieee", "signed"))
        ):
            asked = {"format": fmt.name, "rounding": rounding, "overflow": overflow, "nan": nan}
            for source, x in _in_sources(fmt):
                name = f"{fmt.name}.{source}.{rounding}.{overflow}.{nan}"
                yield Case(name, {**asked, "source": source}, {"x": x})


def _in_sources(fmt: Format) -> Iterator[tuple[str, Unsigned]]:
    """Yield the numbers of a format in binary64, and those that are numbers of binary32 or 16."""
    x = np.array(numbers(fmt), np.uint64)
    for source, kind in (("f64", np.float64), ("f32", np.float32), ("f16", np.float16)):
        with np.errstate(all="ignore"):
            narrow = x.view(np.float64).astype(kind)
        held = (narrow == x.view(np.float64)) | np.isnan(narrow)
        yield source, np.unique(narrow[held].view(f"u{np.dtype(kind).itemsize}"))


def derived_random_numbers() -> Iterator[Case]:
    """Yield numbers of binary32 to encode with random bits, each with the words that decide."""
    for fmt in formats.values():
        if fmt.is_power_of_two or fmt.bits > _WIDEST_AT_RANDOM:
            continue
        x = dict(_in_sources(fmt))["f32"]
        for n, overflow in itertools.product(_COUNTS, OVERFLOWS):
            last = (1 << n) - 1
            words = [_last_down(number, fmt, n) for number in x.view(np.float32).tolist()]
            moved = [[min(word + step, last) for step in _STEPS] + [last] for word in words]
            arrays = {
                "x": np.repeat(x, len(_STEPS) + 1),
                "random_word": np.array(moved, np.uint32).ravel(),
            }
            asked = {"format": fmt.name, "source": "f32", "n_random_bits": n, "overflow": overflow}
            yield Case(f"{fmt.name}.{n}.{overflow}", asked, arrays)


def _last_down(x: float, fmt: Format, n: int) -> int:
    """Return the last word of n bits with which a number takes the code below (ENC-005)."""
    if not math.isfinite(x) or x == 0:
        return 0
    exponent = max(floor_log2(abs(x)), fmt.smallest_exponent)
    _, rest, whole = in_units_of(exponent - fmt.mantissa_bits, abs(x))
    return (1 << n) - 1 - (rest << n) // whole


def derived_codes() -> Iterator[Case]:
    """Yield all codes of narrow formats, and those at the edges of exponents in wide ones."""
    for fmt in formats.values():
        found = np.array(codes(fmt), np.uint64)
        yield Case(
            fmt.name, {"format": fmt.name}, {"code": found.astype(f"u{max(fmt.bits, 8) // 8}")}
        )


def mistakes_of_encoders() -> list[Mistake]:
    """Return the mistakes of encoders without random bits."""
    others = {mistake.name for mistake in (*mistakes_at_random(), *mistakes_of_decoders())}
    return [one for one in mistakes_of_encoding() if one.name not in others]


def mistakes_at_random() -> list[Mistake]:
    """Return the mistakes that only encoders with random bits can have."""
    return [one for one in mistakes_of_encoding() if is_at_random(one)]


def mistakes_of_decoders() -> list[Mistake]:
    """Return the mistakes of decoders."""
    return [one for one in mistakes_of_encoding() if one.rules[0].startswith(("DEC", "ART"))]


def derived_tiles() -> Iterator[Case]:
    """Yield tiles of NVFP4 from the formats alone, under each profile."""
    for profile in PROFILES.values():
        found = [*tiles(profile, _TILES)]
        x, amaxes = (np.array([one[k] for one in found], np.uint32) for k in (0, 1))
        parameters = {"profile": profile.name, "source": "f32"}
        yield Case(profile.name, parameters, {"x": x, "amax": amaxes})


def derived_decisions() -> Iterator[Case]:
    """Yield sums of units from thresholds and formats alone, for each metric that reads them."""
    cases = {
        "mean_relative_error": ({}, means()),
        "not_worse_than": ({}, yardsticks()),
        **{f"fits_range.{name}": ({"format": name}, ranges(formats[name])) for name in _RANGES},
    }
    for name, (parameters, rows) in cases.items():
        columns = zip(*rows, strict=True)
        arrays = {
            field: np.array(column, SUMS_OF_UNITS[field])
            for field, column in zip(Sums._fields, columns, strict=True)
        }
        yield Case(name, {"metric": name.partition(".")[0], **parameters}, arrays)


def derived_units() -> Iterator[Case]:
    """Yield units of three rows of four from thresholds alone, for each metric of squares."""
    for metric, thresholds in _THRESHOLDS.items():
        for threshold in thresholds:
            found = [*units(metric, Fraction(threshold))]
            arrays = {
                name: np.array([_filled(unit[k], 12) for unit in found]).reshape(-1, 4)
                for k, name in enumerate("xy")
            }
            asked = {"metric": metric, "block": [3, 4], "source": "f32"}
            asked["threshold"] = (
                _DECIBELS.get(threshold, threshold) if metric == "sqnr" else threshold
            )
            yield Case(f"{metric}.{threshold}", asked, arrays)


def derived_pairs() -> Iterator[Case]:
    """Yield numbers to sum with their y, those of a width in a case."""
    by_width = dict[int, list[Unit]]()
    for pair in pairs():
        by_width.setdefault(len(pair[0]), []).append(pair)
    for width, found in by_width.items():
        arrays = {
            name: np.array([_filled(one[k], width) for one in found]) for k, name in enumerate("xy")
        }
        yield Case(str(width), {"source": "f32"}, arrays)


def _filled(numbers: list[float], width: int) -> Unsigned:
    """Return the bits of some numbers, and of zeros behind them."""
    return np.array([*numbers, *[0.0] * (width - len(numbers))], np.float32).view(np.uint32)


def kind_of_units(suite: str, case: Case) -> Kind:
    """Return a case as a kind of call: a row is a unit, if those of a tensor are below each other.

    Else the tensor is one row.
    """
    operation = OPERATIONS[SUITES[suite].operation]
    block, (rows, columns) = case.parameters["block"], case.arrays["x"].shape
    height = block[0] if isinstance(block, list) and block[1] == columns else rows
    count = rows // height if rows % height == 0 else 1

    def compute(chosen: Sequence[int]) -> Arrays:
        if count == 1:
            found = operation.exact(case.parameters, case.arrays)
            return {name: np.array([array.ravel()] * len(chosen)) for name, array in found.items()}
        arrays = {
            name: array.reshape(count, -1, columns)[chosen].reshape(-1, columns)
            for name, array in case.arrays.items()
        }
        found = operation.exact(case.parameters, arrays)
        return {name: array.reshape(len(chosen), -1) for name, array in found.items()}

    return Kind(case.name, count, compute)


def mistakes_of_decisions() -> list[Mistake]:
    """Return the mistakes of policies that the sums of a unit can show."""
    return [
        one
        for one in mistakes_of_policies()
        if one.rules[0] in _OF_DECISIONS and not one.name.startswith(OF_TENSORS_OF_POLICIES)
    ]


def mistakes_of_unit_sums() -> list[Mistake]:
    """Return the mistakes of the sums of a unit."""
    return [
        one
        for one in mistakes_of_policies()
        if one.rules == ("MOR-009",) and one.name != "MOR-009/infinite-left-out"
    ]


def mistakes_of_acceptance() -> list[Mistake]:
    """Return the mistakes of policies that numbers and their y can show, but those of sums."""
    of_sums = {one.name for one in (*mistakes_of_decisions(), *mistakes_of_unit_sums())}
    return [
        one
        for one in mistakes_of_policies()
        if one.name not in of_sums and not one.name.startswith(OF_TENSORS_OF_POLICIES)
    ]


def mistakes_of_tiles() -> list[Mistake]:
    """Return the mistakes of NVFP4, also of its amaxes, that a tile of one row can show."""
    return [
        one
        for one in (*mistakes_of_nvfp4(), *mistakes_of_amaxes())
        if all(rule.startswith("NVF") for rule in one.rules) and one.name not in OF_TENSORS
    ]


def mistakes_of_blocks() -> list[Mistake]:
    """Return the mistakes of MX, also of its amaxes, that a quantizer can have."""
    return [
        one
        for one in (*mistakes_of_mx(), *mistakes_of_amaxes())
        if all(rule.startswith("MXS") and rule != _OF_ANY_CODES for rule in one.rules)
    ]


@dataclass(frozen=True)
class Modelled:
    """A suite whose mistakes the model has, and the derived inputs that show them."""

    mistakes: Callable[[], list[Mistake]]
    derived: Callable[[], Iterator[Case]]
    matrix: Callable[[Sequence[Mistake], Kind], list[Verdict]] = matrix
    kind: Callable[[str, Case], Kind] = kind_of


MODELLED = {
    "encode": Modelled(mistakes_of_encoders, derived_numbers, matrix_by_calls),
    "encode_stochastic": Modelled(mistakes_at_random, derived_random_numbers, matrix_by_calls),
    "decode": Modelled(mistakes_of_decoders, derived_codes, matrix_by_calls),
    "scale_steps": Modelled(mistakes_of_scales, derived_scales),
    "mx_blocks": Modelled(mistakes_of_blocks, derived_blocks),
    "nvfp4_blocks": Modelled(mistakes_of_tiles, derived_tiles),
    "decisions": Modelled(mistakes_of_decisions, derived_decisions),
    "unit_sums": Modelled(mistakes_of_unit_sums, derived_pairs),
    "acceptance": Modelled(mistakes_of_acceptance, derived_units, kind=kind_of_units),
}
