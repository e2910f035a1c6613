"""The Numba engine as a candidate."""

from dataclasses import dataclass
from typing import ClassVar

from mor_ref.definitions.block_formats import MissingFunctionError
from mor_ref.golden.model.suite import Case
from mor_ref.golden.store.manifest import GoldenError
from mor_ref.operations import OPERATIONS
from mor_ref.verify.candidates.candidate import Answer, Candidate


@dataclass(frozen=True)
class Engine(Candidate):
    """The Numba engine."""

    name: str = "numba"
    is_engine: ClassVar[bool] = True

    def answer(self, suite: str, operation: str, case: Case) -> Answer | None:
        """Return the fields that the public functions compute."""
        try:
            return OPERATIONS[operation].engine(case.parameters, case.arrays)
        except MissingFunctionError as error:
            raise GoldenError(
                f"case {case.name!r} of suite {suite!r} cannot be computed here: {error}"
            ) from error
        except (ValueError, TypeError) as error:
            raise GoldenError(
                f"case {case.name!r} of suite {suite!r} cannot be computed ({error}); make the "
                "suite again with mor-ref golden make"
            ) from error
