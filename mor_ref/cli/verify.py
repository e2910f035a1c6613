"""`mor-ref verify`: a candidate on the suites, and a report."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mor_ref.cli.show import Bars
from mor_ref.golden import kept_files
from mor_ref.golden.container import read_manifest
from mor_ref.verify.candidates import CandidateError, opened
from mor_ref.verify.files import check_report, write_report
from mor_ref.verify.report import lines
from mor_ref.verify.run import verify

if TYPE_CHECKING:
    from rich.progress import TaskID

_STATUS = {"match": 0, "mismatch": 1, "not run": 3, "failed": 3}


def run(
    name: str, suites: list[str], vectors: str | None, report: str | None, timeout: float
) -> int:
    """Print what was found; the exit status says it as well."""
    if report is not None:
        check_report(Path(report))
    folder = Path(vectors) if vectors else kept_files()
    total = len(suites) or len(read_manifest(folder)["suites"])
    try:
        with opened(name, timeout) as candidate, _Shown(total) as shown:
            found = verify(candidate, folder, suites, shown.verified, shown.diagnosing)
            shown.done()
    except CandidateError as error:
        print(f"mor-ref: {error}", file=sys.stderr)
        return 3
    for line in lines(found):
        print(line)
    if report is not None:
        write_report(found, Path(report))
    if found.failure:
        print(f"mor-ref: {found.failure.message}", file=sys.stderr)
    return _STATUS[found.verdict]


class _Shown(Bars):
    """How far it is: a bar for the suites that are run, and one for those that are diagnosed."""

    def __init__(self, total: int) -> None:
        super().__init__()
        self._suites = self.add_task("verifying", total=total)
        self._diagnoses: TaskID | None = None

    def verified(self, suite: str) -> None:
        """A suite was run."""
        self.update(self._suites, advance=1, description=f"verified {suite}")

    def diagnosing(self, suite: str, of: int) -> None:
        """What explains the mismatches of a suite is being looked for, after those before it."""
        if self._diagnoses is None:
            self._diagnoses = self.add_task("diagnosing", total=of)
        else:
            self.advance(self._diagnoses)
        self.update(self._diagnoses, description=f"diagnosing {suite}")

    def done(self) -> None:
        """The last diagnosis is over when everything is."""
        if self._diagnoses is not None:
            self.update(self._diagnoses, completed=self.tasks[-1].total, description="diagnosed")
