"""Which mistakes golden vectors show: those of a block format, and those of a modelled chapter."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from mor_ref.definitions.block_formats import BlockFormat
from mor_ref.definitions.formats import formats
from mor_ref.definitions.scales import SCALINGS, is_scaled
from mor_ref.golden import load
from mor_ref.golden.model.suite import Case, Size, question
from mor_ref.golden.suites import SUITES
from mor_ref.golden.suites.block_formats import OPERATION, suite_of
from mor_ref.golden.suites.mx import ELEMENTS
from mor_ref.mistakes import Shown, mistakes_of, shown_by
from mor_ref.mistakes.amaxes import mistakes_of_amaxes
from mor_ref.mistakes.landmarks import blocks, blocks_with_specials, pairs_of_amaxes
from mor_ref.mistakes.mistake import Mistake
from mor_ref.mistakes.mx import RULES, mistakes_of_mx
from mor_ref.mistakes.rows import Kind, Verdict, matrix
from mor_ref.mistakes.scales import mistakes_of_scales
from mor_ref.operations import OPERATIONS
from mor_ref.operations.call import Arrays

_OF_ANY_CODES = "MXS-009"  # also those that no quantizer makes
_WIDTH = 18  # of blocks with a NaN in each place


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
            for verdict in matrix(mistakes, kind):
                found[verdict.mistake.name][place].append(verdict)
            done()
    return found


def kinds_of(suite: str) -> tuple[list[Kind], list[Kind]]:
    """Return the kinds of calls of a modelled suite: its cases, and those of derived inputs."""
    fields = SUITES[suite].fields
    cases = [question(fields, case) for case in load(suite)]
    derived = MODELLED[suite].derived()
    return [kind_of(suite, case) for case in cases], [kind_of(suite, case) for case in derived]


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


MODELLED = {
    "scale_steps": Modelled(mistakes_of_scales, derived_scales),
    "mx_blocks": Modelled(mistakes_of_blocks, derived_blocks),
}
