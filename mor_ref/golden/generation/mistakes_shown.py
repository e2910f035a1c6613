"""Which mistakes of a block format its golden vectors show."""

from collections.abc import Callable
from functools import partial

from mor_ref.definitions.block_formats import BlockFormat
from mor_ref.golden.model.suite import Size
from mor_ref.golden.suites.block_formats import OPERATION, suite_of
from mor_ref.mistakes import Shown, mistakes_of, shown_by
from mor_ref.operations import OPERATIONS


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
