"""`mor-ref verify`: a candidate on the suites, and a report."""

from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from mor_ref.golden import kept_files
from mor_ref.golden.container import read_manifest
from mor_ref.verify.candidates import CandidateError, opened
from mor_ref.verify.files import check_report, write_report
from mor_ref.verify.report import lines
from mor_ref.verify.run import Verification, verify

_STATUS = {"match": 0, "mismatch": 1, "not run": 3}


def run(
    name: str, suites: list[str], vectors: str | None, report: str | None, timeout: float
) -> int:
    """Print what was found; the exit status says it as well."""
    if report is not None:
        check_report(Path(report))
    folder = Path(vectors) if vectors else kept_files()
    total = len(suites) or len(read_manifest(folder)["suites"])
    console = Console(stderr=True)
    try:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with (
            opened(name, timeout) as candidate,
            Progress(*columns, TimeElapsedColumn(), console=console) as progress,
        ):
            task = progress.add_task("verifying", total=total)

            def show(suite: str) -> None:
                progress.update(task, advance=1, description=f"verified {suite}")

            found: Verification = verify(candidate, folder, suites, show)
    except CandidateError as error:
        console.print(f"mor-ref: {error}", style=None, markup=False, soft_wrap=True)
        return 3
    for line in lines(found):
        print(line)
    if report is not None:
        write_report(found, Path(report))
    return _STATUS[found.verdict]
