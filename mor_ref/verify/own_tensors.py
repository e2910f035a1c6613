"""Verifying on a user's own tensors, under one treatment.

Small tensors have the bits of the exact model, with all intermediate results. Larger ones have the
bits of the engine, which matches the exact model on all bundled suites. If there are larger ones,
the upper left corners of all tensors are a suite of their own: on it a mismatch can be diagnosed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from mor_ref.analysis.tensor_files import arrays_in
from mor_ref.golden.inputs.own_tensors import cases_of
from mor_ref.golden.making.witnesses import with_expected
from mor_ref.golden.model.suite import Case, Field, Size, Suite
from mor_ref.golden.store.suite_files import (
    file_of,
    manifest_entry,
    suite_bytes,
    write_manifest,
)
from mor_ref.golden.store.whole_files import write_inside
from mor_ref.golden.suites import SUITES
from mor_ref.golden.suites.errors import sum_fields
from mor_ref.operations.operation import Arrays, Parameters
from mor_ref.policies import as_policy
from mor_ref.treatments import Asked, OwnRecipe, Treatment, own_recipe
from mor_ref.verify.candidates.by_name import SECONDS, opened
from mor_ref.verify.candidates.candidate import Answer
from mor_ref.verify.candidates.numba_engine import Engine
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.comparing.allowed import EVERY_BIT, Allowed
from mor_ref.verify.comparing.domain import Domain
from mor_ref.verify.running.run import Verification, verify
from mor_ref.verify.running.suites import Suites, suites_in

SUITE, CORNERS = "own", "own_corners"
LARGEST_SMALL = 1 << 14  # elements
_CORNER = 128  # rows and columns

Function = Callable[[str, Parameters, Arrays], Answer | None]


def verify_on(
    candidate: str | Function,
    inputs: str | Path | Mapping[str, Any],
    recipe: str | Treatment | OwnRecipe,
    timeout: float = SECONDS,
    allowed: Allowed = EVERY_BIT,
    domain: Domain = "all",
) -> Verification:
    """Return the report on a candidate for own tensors.

    `candidate` is a name as for `mor-ref verify`, or a function of (operation, parameters, inputs).
    `inputs` are arrays by name, or a file of them.
    """
    own = own_recipe(recipe)
    named = inputs.items() if isinstance(inputs, Mapping) else arrays_in([str(inputs)])
    with TemporaryDirectory() as directory:
        suites = write_own_suites(Path(directory), own, named)
        if callable(candidate):
            name = getattr(candidate, "__name__", type(candidate).__name__)
            return verify(PythonFunction(name, candidate), suites, allowed=allowed, domain=domain)
        with opened(candidate, timeout) as one:
            return verify(one, suites, allowed=allowed, domain=domain)


def write_own_suites(
    directory: Path, recipe: OwnRecipe, tensors: Iterable[tuple[str, Any]]
) -> Suites:
    """Write the suites of some tensors into an empty directory, and return them."""
    own = list(cases_of(recipe, tensors))
    if not own:
        raise ValueError("inputs have no numbers; give tensors that are not empty")
    suites = {SUITE: own}
    if not all(_is_small(case) for case in own):
        suites[CORNERS] = [_corner(case) for case in own]
    entries = {}
    for name, questions in suites.items():
        suite = _suite(name, recipe)
        cases = [
            with_expected(suite, case) if _is_small(case) else with_engine(recipe, case)
            for case in questions
        ]
        content = suite_bytes(cases)
        write_inside(directory, file_of(name), content)
        entries[name] = {**manifest_entry(suite, cases, content), "kills": {}}
    write_manifest(directory, entries, {"size": 1, "seed": 0})
    return suites_in(directory)


def with_engine(recipe: OwnRecipe, case: Case) -> Case:
    """Return a case with the fields that the engine computes."""
    found = Engine().answer(SUITE, recipe.asked.operation, case)
    return replace(case, arrays={**case.arrays, **(found or {})})


def _is_small(case: Case) -> bool:
    return case.arrays["x"].size <= LARGEST_SMALL


def _corner(case: Case) -> Case:
    """Return the case of the upper left corner of a tensor."""
    corner = np.ascontiguousarray(case.arrays["x"][:_CORNER, :_CORNER])
    return replace(case, arrays={"x": corner})


def _suite(name: str, recipe: OwnRecipe) -> Suite:
    asked, which = recipe.asked, "Corners of own tensors" if name == CORNERS else "Own tensors"
    title = f"{which} under {recipe.text}"
    return Suite(
        name, title, asked.operation, (), fields_of_operation(asked), _none, normative=False
    )


def _none(_: Size) -> Iterator[Case]:
    """Yield nothing: the cases are those of a user."""
    yield from ()


def fields_of_operation(asked: Asked) -> tuple[Field, ...]:
    """Return the fields of the first suite of the operation, with the sums that a policy has."""
    suite = next(one for one in SUITES.values() if one.operation == asked.operation)
    if asked.operation != "mor":
        return suite.fields
    tried = as_policy(asked.parameters["policy"]).tried
    sums = (one for row in tried for one in sum_fields(f"{row.name}.", f", under {row.name}"))
    *first, choice, output = (one for one in suite.fields if "." not in one.name)
    return (*first, *sums, choice, output)
