"""`mor-ref verify`: run a candidate on the suites, and write a report."""

import shlex
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from mor_ref.analysis.tensor_files import files_read
from mor_ref.argument_checks import directory_named
from mor_ref.cli.outputs import output_named, outputs_named
from mor_ref.cli.show import Bars
from mor_ref.cli.statuses import VERDICT_STATUSES
from mor_ref.golden import bundled_files
from mor_ref.golden.store.manifest import DIGESTS, MANIFEST
from mor_ref.verify.candidates.by_name import candidate_named
from mor_ref.verify.candidates.candidate import CandidateError
from mor_ref.verify.candidates.results_directory import SIDECAR
from mor_ref.verify.comparing.allowed import Allowed
from mor_ref.verify.comparing.domain import Domain, as_domain
from mor_ref.verify.comparing.near_ties import as_ties
from mor_ref.verify.reporting.declaration import declaration, write_declaration
from mor_ref.verify.reporting.origin import origin_here
from mor_ref.verify.reporting.report_files import WRITERS, write_reports
from mor_ref.verify.reporting.report_files import as_json as report_as_json
from mor_ref.verify.reporting.rules import as_site
from mor_ref.verify.reporting.text import lines
from mor_ref.verify.running.ask import Ask, ask_here, ask_workers
from mor_ref.verify.running.run import Verification, asked_of, not_opened, verify
from mor_ref.verify.running.suites import Suites, suites_in
from mor_ref.workers.pools import workers_named

if TYPE_CHECKING:
    from rich.progress import TaskID

    from mor_ref.verify.own_tensors import OwnTensors


class _Counting(NamedTuple):
    """Which bits and inputs count, and whether all of them must be there."""

    allowed: Allowed
    domain: Domain
    must_be_complete: bool


class _Outputs(NamedTuple):
    """The files that are written."""

    reports: list[Path]
    declaration: Path | None

    @property
    def all(self) -> list[Path]:
        """All of them."""
        return self.reports if self.declaration is None else [*self.reports, self.declaration]


class Own(NamedTuple):
    """The tensors of a user: files, a recipe, and which tensors are wanted."""

    inputs: list[str]
    recipe: str | None
    include: str | None
    exclude: str | None

    @property
    def is_asked(self) -> bool:
        """Whether anything of it is given."""
        return any(
            one for one in (self.inputs, self.recipe is not None, self.include, self.exclude)
        )


def run(
    name: str,
    suites: list[str],
    vectors: str | None,
    reports: list[str],
    site: str | None,
    declare: str | None,
    timeout: float,
    executor: str,
    *,
    must_be_complete: bool,
    own: Own,
    allowed: tuple[str, str, str],
    domain: str,
    as_json: bool,
) -> int:
    """Print the report, and return the exit status."""
    with workers_named(executor) as workers, ExitStack() as stack:
        ask = ask_workers(workers, timeout) if workers else ask_here
        directory = bundled_files() if vectors is None else directory_named("vectors", vectors)
        outputs = _checked(reports, declare, name, own, directory)
        if own.is_asked:
            tensors = replace(_own_tensors(own, suites, vectors), domain=as_domain(domain))
            if workers:
                wanted = tensors.written(Path(stack.enter_context(TemporaryDirectory())))
            else:
                wanted, ask = tensors.suites, tensors.ask
        else:
            wanted = suites_in(directory, suites)
        nan, zero_sign, ties = allowed
        bits = Allowed(nan, zero_sign, as_ties(ties))  # type: ignore[arg-type]  # found out there
        counting = _Counting(bits, as_domain(domain), must_be_complete)
        rules_at = as_site(site)
        found = _verified(name, wanted, outputs, timeout, ask, counting)
        if as_json:
            print(report_as_json(found, origin_here(name, Path(found.vectors))))
        else:
            for line in lines(found):
                print(line)
        write_reports(found, outputs.reports, rules_at)
        if outputs.declaration is not None:
            write_declaration(
                outputs.declaration, declaration(found, wanted, bits, counting.domain)
            )
        return VERDICT_STATUSES[found.verdict]


def _read_by(candidate: str) -> Iterator[Path]:
    """Yield the files that a candidate reads and whose names end as those of reports may."""
    kind, _, rest = candidate.partition(":")
    if kind == "dir":
        yield from Path(rest).rglob(SIDECAR)
    elif kind == "exec":
        with suppress(ValueError):  # an open quotation, which is refused later
            yield from map(Path, shlex.split(rest))


def _checked(
    reports: list[str], declare: str | None, candidate: str, own: Own, directory: Path
) -> _Outputs:
    """Return the paths of what is written; refuse files that are read, or cannot be written."""
    for report in reports:
        if Path(report).suffix not in WRITERS:
            raise ValueError(f"report is {report!r}; give a file that ends in .json, .xml or .html")
    if not reports and declare is None:
        return _Outputs([], None)
    suites = (directory / MANIFEST, directory / DIGESTS)
    read = [*suites, *files_read(own.inputs), *_read_by(candidate)]
    paths = outputs_named("report", reports, read)
    if declare is None:
        return _Outputs(paths, None)
    path = output_named("declare", declare, read)
    if path.resolve() in [report.resolve() for report in paths]:
        raise ValueError(f"declare is {declare!r}, which is also a report; give another file")
    return _Outputs(paths, path)


def _own_tensors(own: Own, suites: list[str], vectors: str | None) -> "OwnTensors":
    """Return the tensors of some files as suites."""
    if not own.inputs:
        given = own.recipe or own.include or own.exclude
        what = "recipe" if own.recipe else "include" if own.include else "exclude"
        raise ValueError(f"{what} is {given!r} without inputs; give --inputs FILE")
    if own.recipe is None:
        raise ValueError("inputs are given without a recipe; give --recipe, such as mxfp8:rceil")
    if suites or vectors is not None:
        raise ValueError("--inputs takes the place of suites; leave out --suite and --vectors")
    from mor_ref.analysis.listing import Selection
    from mor_ref.recipes import own_recipe
    from mor_ref.verify.own_inputs import from_files
    from mor_ref.verify.own_tensors import own_tensors

    recipe, wanted = own_recipe(own.recipe), Selection(own.include, own.exclude)
    return own_tensors(recipe, from_files(own.inputs, wanted, with_words=recipe.is_random))


def _verified(
    name: str,
    wanted: Suites,
    outputs: _Outputs,
    timeout: float,
    ask: Ask,
    counting: _Counting,
) -> Verification:
    """Run the candidate with bars, after older reports are removed."""
    for path in outputs.all:  # if this run ends early, nobody takes an older file for its own
        path.unlink(missing_ok=True)
    try:
        with (
            candidate_named(name, timeout) as candidate,
            _Shown(asked_of(candidate, wanted).steps) as shown,
        ):
            found = verify(
                candidate,
                wanted,
                shown.verified,
                shown.diagnosing,
                must_be_complete=counting.must_be_complete,
                ask=ask,
                allowed=counting.allowed,
                domain=counting.domain,
            )
            shown.done()
            return found
    except CandidateError as error:
        return not_opened(name, wanted, error)


class _Shown(Bars):
    """A bar for the suites that were run, and one for the suites that were diagnosed."""

    def __init__(self, total: int) -> None:
        super().__init__()
        self._suites = self.add_task("verifying", total=total)
        self._diagnoses: TaskID | None = None

    def verified(self, suite: str) -> None:
        """Count a suite that was run."""
        self.update(self._suites, advance=1, description=f"verified {suite}")

    def diagnosing(self, suite: str, of: int) -> None:
        """Show that the diagnosis of a suite begins, and that the one before it is done."""
        if self._diagnoses is None:
            self._diagnoses = self.add_task("diagnosing", total=of)
        else:
            self.advance(self._diagnoses)
        self.update(self._diagnoses, description=f"diagnosing {suite}")

    def done(self) -> None:
        """Count the last diagnosis, which ends with the run."""
        if self._diagnoses is not None:
            self.update(self._diagnoses, completed=self.tasks[-1].total, description="diagnosed")
