"""`mor-ref compare`: the errors and the bits of recipes on the tensors of files."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mor_ref.analysis.compare_files import Comparison, compared, record_of, without_misfits
from mor_ref.analysis.inputs_by_name import inputs_named
from mor_ref.analysis.listing import Listed, Selection, list_tensors
from mor_ref.analysis.recipes import OF_ALL_REPRESENTATIONS, USUAL, recipes_from
from mor_ref.analysis.stored_tensors import name_shown
from mor_ref.analysis.summary import SUMMARY_WRITERS
from mor_ref.analysis.tables import WRITERS, check_ending, finite
from mor_ref.analysis.tensor_files import files_read
from mor_ref.cli.compare_text import print_comparison
from mor_ref.cli.outputs import outputs_named
from mor_ref.cli.show import bar
from mor_ref.counts_in_words import counted
from mor_ref.definitions.roles import kind_named
from mor_ref.recipes import short_text
from mor_ref.whole_files import write_whole
from mor_ref.workers.pools import workers_named

_PICTURES = (".png", ".svg", ".pdf")
_LONGEST_IN_PROGRESS = 30  # letters of a name


def run(
    files: list[str],
    *,
    recipes: list[str],
    representations: bool,
    selection: Selection,
    inputs: list[str],
    out: list[str],
    pareto: list[str],
    kind: str,
    threads: int | None,
    executor: str,
    as_json: bool,
) -> None:
    """Print the totals of each recipe, and write all measures on request."""
    with workers_named(executor) as workers:  # of the processes of MPI, only one continues
        chosen = recipes_from(
            [*recipes, *(OF_ALL_REPRESENTATIONS if representations else ())] or USUAL
        )
        known_kind = kind_named(kind)
        for path in out:
            _check(path)
        for path in pareto:
            _check_picture(path)
        outputs_named("out", [*out, *pareto], files_read([*files, *inputs]))
        listed = list_tensors(files, selection)
        if not listed.stored:
            raise ValueError(f"no tensor is left to compare{_why(listed)}")
        given = inputs_named(inputs, listed.stored) if inputs else None
        asked, others = chosen[: len(recipes)], chosen[len(recipes) :]
        fitting, misfits = (
            without_misfits(others, listed.stored) if representations else (others, {})
        )
        chosen = (*asked, *fitting)
        tensors = []
        with bar("comparing", "compared", len(listed.stored)) as done:
            for one in compared(listed.stored, chosen, known_kind, threads, workers, given):
                tensors.append(one)
                done(name_shown(one.name)[-_LONGEST_IN_PROGRESS:])
    found = Comparison(chosen, tuple(tensors))
    if as_json:
        print(json.dumps(_document(found, listed, misfits), indent=1, allow_nan=False))
    else:
        print_comparison(found, listed, misfits)
    lines = [_write(path, found) for path in out]  # the results are shown, whatever a disk does
    lines += [_draw(path, found) for path in pareto]
    if not as_json:
        for line in lines:
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
    if target.suffix in _PICTURES:
        from mor_ref.analysis.comparison_plot import check_library

        check_library()
    elif target.suffix not in SUMMARY_WRITERS:
        check_ending("out", path, target.suffix, also=(*SUMMARY_WRITERS, *_PICTURES))


def _check_picture(path: str) -> None:
    """Refuse a picture that cannot be drawn, before anything is computed."""
    if Path(path).suffix not in _PICTURES:
        raise ValueError(f"pareto is {path!r}; give a file that ends in .png, .svg or .pdf")
    _check(path)


def _write(path: str, found: Comparison) -> str:
    """Write a table or a picture whole; return a line about it."""
    target = Path(path)
    if target.suffix in _PICTURES:
        from mor_ref.analysis.comparison_plot import picture

        write_whole(target, picture(found, target.suffix[1:]))
        return f"{path}: a picture of every tensor under every recipe"
    if target.suffix in SUMMARY_WRITERS:
        write_whole(target, SUMMARY_WRITERS[target.suffix](found))
        return f"{path}: {counted(len(found.recipes), 'row')}, one for each recipe"
    records = found.to_records()
    write_whole(target, WRITERS[target.suffix](records))
    return f"{path}: {counted(len(records), 'row')}, one for each tensor and recipe"


def _draw(path: str, found: Comparison) -> str:
    """Write the picture of bits and SQNR whole; return a line about it."""
    from mor_ref.analysis.comparison_plot import bits_and_sqnr

    target = Path(path)
    write_whole(target, bits_and_sqnr(found, target.suffix[1:]))
    return f"{path}: a picture of bits and SQNR, with the recipes that no other beats"


def _document(found: Comparison, listed: Listed, misfits: Mapping[str, str]) -> dict[str, Any]:
    with_inputs = found.with_inputs > 0
    return {
        "recipes": {one.name: short_text(one.tensor_recipe) for one in found.recipes},
        "totals": [finite(record_of(one, with_inputs=with_inputs)) for one in found.totals],
        "best": [one.recipe for one in found.best],
        "tensors": [finite(record) for record in found.to_records()],
        "recipes_left_out": misfits,
        "left_out": listed.left_out,
        "skipped": [{"file": file, **vars(tensor)} for file, tensor in listed.skipped],
        "files_without_tensors": listed.without,
    }
