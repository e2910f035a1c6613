"""Verifying on a user's own tensors, with one recipe.

Small tensors have the bits of the exact model, with all intermediate results. Larger ones have the
bits of the engine, which matches the exact model on all bundled suites. If there are larger ones,
the upper left corners of tensors are a suite of their own: on it a mismatch can be diagnosed.

Tensors are read when they are asked, and forgotten after that: a file may be larger than the
memory.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from mor_ref.golden.generation.expected import with_expected
from mor_ref.golden.inputs.own_tensors import unread_cases
from mor_ref.golden.model.suite import Case, Size, Suite, case_in_memory
from mor_ref.golden.store.suite_files import (
    described,
    file_of,
    manifest_entry,
    suite_bytes,
    write_manifest,
)
from mor_ref.mapped_files import in_memory
from mor_ref.operations import OPERATIONS
from mor_ref.operations.call import Arrays, Parameters
from mor_ref.operations.fields import Field
from mor_ref.operations.given_words import BITS
from mor_ref.recipes import Asked, OwnRecipe, RecipeLike, own_recipe, rungs_of
from mor_ref.verify.candidates.by_name import SECONDS, candidate_named
from mor_ref.verify.candidates.candidate import Answer
from mor_ref.verify.candidates.numba_engine import Engine
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.comparing.allowed import EVERY_BIT, Allowed
from mor_ref.verify.comparing.domain import Domain, has_outside
from mor_ref.verify.own_fields import fields_of_operation
from mor_ref.verify.own_inputs import OwnInputs, from_arrays, from_files
from mor_ref.verify.own_rungs import name_of, with_rungs
from mor_ref.verify.quantize_by_rows import NOT_OF_RUNGS, fields_of, needs_amax
from mor_ref.verify.reporting.report import Report
from mor_ref.verify.running.ask import Ask, Parts, ask_parts
from mor_ref.verify.running.large_cases import CaseInStrips, is_cut
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import Entry, Suites, suites_in
from mor_ref.whole_files import write_inside

SUITE, CORNERS = "own", "own_corners"
LARGEST_SMALL = 1 << 14  # numbers
MOST_DIAGNOSED = 1 << 20  # numbers of a suite
_MOST_EXACT = 1 << 20  # numbers
_TOGETHER = 1 << 20  # numbers of a part of a suite
_CORNER, _MOST_CORNERS = 128, 16  # the most rows and columns of a corner, and corners
_WHOLE = 64  # numbers of whole blocks, which a corner may leave out

Item = TypeVar("Item")
Function = Callable[[str, Parameters, Arrays], Answer | None]


def verify_on(
    candidate: str | Function,
    inputs: str | Path | Sequence[str | Path] | Mapping[str, Any],
    recipe: RecipeLike | OwnRecipe,
    timeout: float = SECONDS,
    allowed: Allowed = EVERY_BIT,
    domain: Domain = "all",
) -> Report:
    """Return the report on a candidate for own tensors.

    `candidate` is a name as for `mor-ref verify`, or a function of (operation, parameters, inputs).
    `inputs` are arrays by name, or a file or files of them.
    """
    asked = own_recipe(recipe)
    if isinstance(inputs, Mapping):
        own = own_tensors(asked, from_arrays(inputs, with_words=asked.is_random))
    else:
        own = own_tensors(asked, from_files(_names(inputs), with_words=asked.is_random))
    own = replace(own, domain=domain)
    how: Any = {"ask": own.ask, "allowed": allowed, "domain": domain}
    if callable(candidate):
        name = getattr(candidate, "__name__", type(candidate).__name__)
        return Report(verify(PythonFunction(name, candidate), own.suites, **how))
    if not isinstance(candidate, str):
        raise TypeError(f"candidate is {candidate!r}; give a function, or a name such as 'numba'")
    with candidate_named(candidate, timeout) as one:
        return Report(verify(one, own.suites, **how))


def _names(inputs: Any) -> list[str]:
    """Return the names of a file or of files; refuse anything else."""
    files = inputs if isinstance(inputs, list | tuple) and inputs else [inputs]
    for file in files:
        if not isinstance(file, str | Path):
            held = "" if file is inputs else f" with one of {type(file).__name__}"
            raise TypeError(
                f"inputs is of the type {type(inputs).__name__}{held}; give arrays by name, such "
                'as {"x": x}, or the names of files'
            )
    return [str(file) for file in files]


@dataclass(frozen=True)
class OwnTensors:
    """Tensors as suites with a recipe. They are read when they are needed, some at a time.

    `sizes` are the numbers of each case. The cases that are `exact` have the bits of the exact
    model, and `corners` are the cases whose corners are a suite. Numbers outside the `domain` are
    left out.
    """

    recipe: OwnRecipe
    inputs: OwnInputs
    parameters: Mapping[str, Parameters]
    sizes: Mapping[str, int]
    exact: frozenset[str]
    corners: frozenset[str]
    domain: Domain = "all"

    @property
    def suites(self) -> Suites:
        """The suites, without their cases."""
        cases = {SUITE: [*self.sizes], CORNERS: [n for n in self.sizes if n in self.corners]}
        entries = {
            name: self._entry(_suite(name, self.recipe), of_it)
            for name, of_it in cases.items()
            if of_it
        }
        of_rungs = {
            name_of(name, rung): self._entry(_of_rung(name, self.recipe, rung, asked), cases[name])
            for name in entries
            for rung, asked in rungs_of(self.recipe.asked).items()
        }
        parts = len(list(_grouped(self.sizes.items(), lambda one: one[1]))) + len(entries) - 1
        named, skipped = self.inputs.named, self.inputs.skipped
        known, optional = tuple(entries), frozenset({CORNERS})
        return Suites(
            Path(), entries, known, MOST_DIAGNOSED, named, parts, skipped, of_rungs, optional,
            self.inputs.rounded, self._from_engine,
        )  # fmt: skip

    @property
    def _from_engine(self) -> int:
        """The count of the tensors whose expected bits are those of the engine."""
        return len(self.sizes) - len(self.exact)

    def _entry(self, suite: Suite, cases: list[str]) -> Entry:
        """Return the entry of a manifest about a suite."""
        parameters = {case: self.parameters[case] for case in cases}
        return {**described(suite), "cases": parameters, "kills": {}}

    @property
    def ask(self) -> Ask:
        """The way to ask a candidate."""
        return with_rungs(ask_parts(self._to_ask), self._expected_of_rung)

    def _expected_of_rung(self, name: str, asked: Asked, case: Case) -> Case:
        """Return a case of a policy as one of a rung, in the suite of this name."""
        given, is_exact = {"x": case.arrays["x"]}, case.name in self.exact or CORNERS in name
        one = Case(case.name, {**asked.parameters, "source": case.parameters["source"]}, given)
        if not is_exact:
            return with_engine(asked.operation, one)
        suite, _, rung = name.partition(".")
        return with_expected(_of_rung(suite, self.recipe, rung, asked), one)

    def parts(self, suites: Collection[str] = (SUITE, CORNERS)) -> Iterator[tuple[str, list[Case]]]:
        """Yield some cases of a suite at a time, with their expected fields."""
        for name, some in self._to_ask(suites):
            yield name, [some.whole()] if isinstance(some, CaseInStrips) else some

    def _to_ask(self, suites: Collection[str]) -> Parts:
        """Yield some cases of a suite at a time, or one that is compared in strips."""
        corners = list[Case]()
        cases = unread_cases(self.recipe, self.inputs)
        for unread in _grouped(cases, lambda case: case.size):
            group = [case.read() for case in unread]
            corners += [_corner(case) for case in group if case.name in self.corners]
            if len(group) == 1 and self._is_cut(group[0]):
                yield SUITE, CaseInStrips(self.recipe.asked.operation, group.pop())
                continue
            yield SUITE, [self._expected(case_in_memory(group.pop(0))) for _ in range(len(group))]
        if corners and CORNERS in suites:
            suite = _suite(CORNERS, self.recipe)
            yield CORNERS, [with_expected(suite, case) for case in corners]

    def _is_cut(self, case: Case) -> bool:
        """Return whether a case is compared in strips.

        It is whole if its amax may be outside the domain: then none of it may be compared.
        """
        operation = self.recipe.asked.operation
        is_whole = needs_amax(operation, case.parameters) and has_outside(case, self.domain)
        return not is_whole and is_cut(operation, case)

    def written(self, directory: Path) -> Suites:
        """Write the suites into an empty directory, whole, and return them."""
        cases: dict[str, list[Case]] = {}
        for name, some in self.parts():
            cases.setdefault(name, []).extend(some)
        entries = {}
        for name, of_it in cases.items():
            content = suite_bytes(of_it)
            write_inside(directory, file_of(name), content)
            entry = manifest_entry(_suite(name, self.recipe), of_it, content)
            entries[name] = {**entry, "kills": {}}
        write_manifest(directory, entries, {"size": 1, "seed": 0})
        found = suites_in(directory)
        named, skipped = self.inputs.named, self.inputs.skipped
        found = replace(found, named=named, skipped=skipped, optional=frozenset({CORNERS}))
        found = replace(found, most_diagnosed=MOST_DIAGNOSED, rounded=self.inputs.rounded)
        return replace(found, expected_from_engine=self._from_engine)

    def _expected(self, case: Case) -> Case:
        if case.name in self.exact:
            return with_expected(_suite(SUITE, self.recipe), case)
        return with_engine(self.recipe.asked.operation, case)


def own_tensors(recipe: OwnRecipe, inputs: OwnInputs) -> OwnTensors:
    """Return tensors as suites. Only their sizes are looked at here."""
    parameters, sizes = {}, {}
    for case in unread_cases(recipe, inputs):
        parameters[case.name], sizes[case.name] = case.parameters, case.size
    exact, room = set(), _MOST_EXACT
    for name, size in sizes.items():
        if size <= min(LARGEST_SMALL, room):
            exact.add(name)
            room -= size
    of_all = [] if len(exact) == len(sizes) else [*sizes]
    corners = of_all[:: max(1, -(-len(of_all) // _MOST_CORNERS))]
    return OwnTensors(recipe, inputs, parameters, sizes, frozenset(exact), frozenset(corners))


def _grouped(items: Iterable[Item], size_of: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Yield items in groups of at most so many numbers, a larger item by itself.

    A group is made before its items are changed: whoever takes them leaves nothing here.
    """
    group: list[Item] = []
    size = 0
    for item in items:
        if group and size + size_of(item) > _TOGETHER:
            yield group
            group, size = [], 0
        group.append(item)
        size += size_of(item)
    if group:
        yield group


def with_engine(operation: str, case: Case) -> Case:
    """Return a case with the fields that the engine computes."""
    found = Engine().answer(SUITE, operation, case)
    return replace(case, arrays={**case.arrays, **(found or {})})


def _corner(case: Case) -> Case:
    """Return the case of the upper left corner of a tensor, which does not hold the tensor."""
    rows, columns = (_side_of_corner(n) for n in case.arrays["x"].shape)
    groups = case.parameters.get("groups", 1)
    columns = max(columns // groups, 1) * groups
    corners = {
        name: in_memory(array[:rows, :columns]).copy() for name, array in case.arrays.items()
    }
    return replace(case, arrays=corners)


def _side_of_corner(n: int) -> int:
    """Return the rows or columns of a corner: it ends with a partial block if the tensor does.

    >>> [_side_of_corner(n) for n in (8, 128, 200, 4096, 4099)]
    [8, 128, 72, 128, 67]
    """
    return n if n <= _CORNER else _CORNER - (-n) % _WHOLE


def _suite(name: str, recipe: OwnRecipe) -> Suite:
    words = OPERATIONS[recipe.asked.operation].optional_inputs.get(BITS, {})
    given = tuple(words.values()) if recipe.is_random else ()
    return _suite_of(name, recipe.title, recipe.asked, given)


def _of_rung(name: str, recipe: OwnRecipe, rung: str, asked: Asked) -> Suite:
    """Return the suite of the codes and scales of a rung."""
    text = f"{recipe.title}, codes and scales of {rung}"
    return _suite_of(name, text, asked, without=NOT_OF_RUNGS)


def _suite_of(
    name: str,
    text: str,
    asked: Asked,
    words: tuple[Field, ...] = (),
    without: tuple[str, ...] = (),
) -> Suite:
    """Return a suite of the fields that mor-ref quantize writes: no steps of single numbers."""
    title = f"{'Corners of own tensors' if name == CORNERS else 'Own tensors'} with {text}"
    x, *others = fields_of_operation(asked)
    parameters = {"source": "f32", **asked.parameters}
    stored = {*fields_of(asked.operation, parameters, (1, 1))} - {*without}
    fields = (x, *words, *(one for one in others if one.name in stored))
    return Suite(name, title, asked.operation, (), fields, _none, normative=False)


def _none(_: Size) -> Iterator[Case]:
    """Yield nothing: the cases are those of a user."""
    yield from ()
