"""`mor-ref compare`: the errors and the bits of recipes on the tensors of files."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mor_ref.analysis.compare_files import Comparison, compared, record_of, without_misfits
from mor_ref.analysis.listing import Listed, Selection, list_tensors
from mor_ref.analysis.recipes import OF_ALL_REPRESENTATIONS, USUAL, recipes_from
from mor_ref.analysis.stored_tensors import name_shown
from mor_ref.analysis.tables import WRITERS, check_ending, finite
from mor_ref.analysis.tensor_files import files_read
from mor_ref.cli.compare_text import print_comparison
from mor_ref.cli.outputs import outputs_named
from mor_ref.cli.show import bar
from mor_ref.golden.store.whole_files import write_whole
from mor_ref.recipes import short_text
from mor_ref.verify.counts_in_words import counted
from mor_ref.workers.pools import workers_named

_PICTURE = ".png"
_LONGEST_IN_PROGRESS = 30  # letters of a name


def run(
    files: list[str],
    *,
    recipes: list[str],
    representations: bool,
    selection: Selection,
    out: list[str],
    threads: int | None,
    executor: str,
    as_json: bool,
) -> None:
    """Print the totals of each recipe, and write all measures on request."""
    with workers_named(executor) as workers:  # of the processes of MPI, only one continues
        chosen = recipes_from(
            [*recipes, *(OF_ALL_REPRESENTATIONS if representations else ())] or USUAL
        )
        for path in out:
            _check(path)
        outputs_named("out", out, files_read(files))
        listed = list_tensors(files, selection)
        if not listed.stored:
            raise ValueError(f"no tensor is left to compare{_why(listed)}")
        asked, others = chosen[: len(recipes)], chosen[len(recipes) :]
        fitting, misfits = (
            without_misfits(others, listed.stored) if representations else (others, {})
        )
        chosen = (*asked, *fitting)
        tensors = []
        with bar("comparing", "compared", len(listed.stored)) as done:
            for one in compared(listed.stored, chosen, threads, workers):
                tensors.append(one)
                done(name_shown(one.name)[-_LONGEST_IN_PROGRESS:])
    found = Comparison(chosen, tuple(tensors))
    if as_json:
        print(json.dumps(_document(found, listed, misfits), indent=1, allow_nan=False))
    else:
        print_comparison(found, listed, misfits)
    for path in out:  # the results are shown by now, whatever a full disk does
        line = _write(path, found)
        if not as_json:
            print(line)


def _why(listed: Listed) -> str:
    """Return the reasons why tensors are left out, as the end of a sentence."""
    reasons = [f"{count} {reason}" for reason, count in listed.left_out.items()]
    if listed.skipped:
        reasons.append(f"{len(listed.skipped)} skipped: {listed.skipped[0][1].reason}")
    return f": {'; '.join(reasons)}" if reasons else "; give a file that has one"


def _check(path: str) -> None:
    """Refuse a kind of file that cannot be written before anything is computed."""
    target = Path(path)
    if target.suffix == _PICTURE:
        from mor_ref.analysis.comparison_plot import check_library

        check_library()
    else:
        check_ending("out", path, target.suffix, also=_PICTURE)


def _write(path: str, found: Comparison) -> str:
    """Write a table or a picture whole; return a line about it."""
    target, records = Path(path), found.to_records()
    if target.suffix == _PICTURE:
        from mor_ref.analysis.comparison_plot import picture

        write_whole(target, picture(found))
        return f"{path}: a picture of every tensor under every recipe"
    write_whole(target, WRITERS[target.suffix](records))
    return f"{path}: {counted(len(records), 'row')}, one for each tensor and recipe"


def _document(found: Comparison, listed: Listed, misfits: Mapping[str, str]) -> dict[str, Any]:
    return {
        "recipes": {one.name: short_text(one.tensor_recipe) for one in found.recipes},
        "totals": [finite(record_of(one)) for one in found.totals],
        "best": [one.recipe for one in found.best],
        "tensors": [finite(record) for record in found.to_records()],
        "recipes_left_out": misfits,
        "left_out": listed.left_out,
        "skipped": [{"file": file, **vars(tensor)} for file, tensor in listed.skipped],
        "files_without_tensors": listed.without,
    }
