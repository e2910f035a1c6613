"""The text of `mor-ref compare`: the conclusion, the totals, and where the rest is."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from mor_ref.analysis import Measures
from mor_ref.analysis.analyze_tensor import in_percent
from mor_ref.analysis.compare_files import Comparison
from mor_ref.analysis.compare_tensor import Compared
from mor_ref.analysis.listing import Listed
from mor_ref.analysis.stored_tensors import name_shown
from mor_ref.cli.show import plain_console
from mor_ref.cli.tensor_text import TextColumn, line_of, skipped_lines, width_of
from mor_ref.counts_in_words import counted

_NARROWEST = 40  # columns of a terminal
_LEAST_COLUMNS = 2  # of a table
_DIGITS = 1  # of a ratio in decibels
_LOST = "NaN,inf"  # a heading
_UNKNOWN, _BY_AUTHOR = "?", "*"
_WEIGHTED, _OUTPUT = "weighted %", "output %"  # headings
_LETTERS = 24  # of the name of the worst tensor


def print_comparison(
    found: Comparison,
    listed: Listed,
    misfits: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Print the conclusion first, then the totals, and the recipes and tensors left out of them."""
    console = plain_console()
    for line in (
        *_conclusion(found),
        *_table(found, max(console.width, _NARROWEST)),
        *(f"left out: {name}, as a tensor cannot take it ({why})" for name, why in misfits.items()),
        *skipped_lines(listed),
    ):
        console.print(line, soft_wrap=True)


def _conclusion(found: Comparison) -> Iterator[str]:
    """Yield the recipes that no other beats in bits and error, and those that one beats."""
    best, totals, unknown = found.best, found.totals, found.unknown
    numbers = counted(totals[0].measures.elements, "number")
    yield f"{counted(len(found.tensors), 'tensor')}, {numbers}"
    nearest = min((*best, *unknown), key=lambda one: one.measures.error)
    clearest = max((*best, *unknown), key=lambda one: round(one.measures.sqnr, _DIGITS))
    if best:
        yield f"fewest bits:    {_described(best[0])}"
    yield f"smallest error: {_described(nearest)}"
    if clearest.measures.sqnr > nearest.measures.sqnr + 10**-_DIGITS:
        yield f"highest SQNR:   {_described(clearest)}"
    else:
        clearest = nearest
    others = [one.recipe for one in best if one not in (*best[:1], nearest, clearest)]
    if others:
        yield f"also not beaten: {', '.join(others)}"
    beaten = [one.recipe for one in totals if one not in (*best, *unknown)]
    if beaten:
        yield f"beaten:         {', '.join(beaten)}"
    if unknown:
        names = ", ".join(one.recipe for one in unknown)
        yield f"bits not known: {names}, where a representation has no method stored_bits"


def _described(one: Compared) -> str:
    measures = f"{_bits(one)} bits, error {100 * one.measures.error:.3g} %"
    return f"{one.recipe}: {measures}, {one.measures.sqnr:.1f} dB"


def _bits(one: Compared) -> str:
    if one.bits is None:
        return _UNKNOWN
    return f"{one.bits_per_number:.2f}{_BY_AUTHOR if one.bits_by_author else ''}"


def _table(found: Comparison, width: int) -> Iterator[str]:
    """Yield the totals, with as many columns as fit; a long name has its own line."""
    totals = found.totals
    names = [one.recipe for one in totals]
    longest = max(map(len, ("recipe", *names)))
    columns: list[TextColumn] = []
    for column in _columns(found):
        if longest + width_of([*columns, column]) <= width or len(columns) < _LEAST_COLUMNS:
            columns.append(column)
    room = min(longest, max(width - width_of(columns), len("recipe")))
    yield line_of("recipe", room, [column.heading for column in columns], columns)
    for row, name in enumerate(names):
        if len(name) > room:
            yield name
        cells = [column.cells[row] for column in columns]
        yield line_of(name if len(name) <= room else "", room, cells, columns)
    yield "error: mean relative error; every number counts once"
    headings = {column.heading for column in columns}
    if any(one.bits_by_author for one in totals):
        yield f"{_BY_AUTHOR}: bits that the author of a representation says"
    if headings & {"flushed %", "saturated %"}:
        yield "flushed, saturated: shares of the numbers that are not 0"
    if "saturated %" in headings and any(one.measures.saturated is None for one in totals):
        yield f"{_UNKNOWN}: not known, as a representation counts none"
    if headings & {_WEIGHTED, _OUTPUT}:
        of_all = f"{found.with_inputs:,} of {counted(len(found.tensors), 'tensor')}"
        yield f"weighted, output: relative errors under the inputs of {of_all}; not bit-exact"
    if _LOST in headings:
        became = "or became NaN or infinite; no error counts them"
        yield f"{_LOST}: numbers that are NaN or infinite, {became}"


def _columns(found: Comparison) -> list[TextColumn]:
    """Return all columns, the most important first."""
    totals = found.totals
    measures = [one.measures for one in totals]
    worst = [
        max(found.tensors, key=lambda tensor: tensor.under[index].measures.error)
        for index in range(len(totals))
    ]
    return [
        TextColumn("bits", [_bits(one) for one in totals]),
        TextColumn("error %", [f"{100 * one.error:.3g}" for one in measures]),
        TextColumn("SQNR dB", [f"{one.sqnr:.1f}" for one in measures]),
        *_lost(totals),
        *_on_inputs(found),
        TextColumn("flushed %", [in_percent(one.flushed_share) for one in measures]),
        TextColumn("saturated %", [_saturated(one) for one in measures]),
        TextColumn("MSE", [f"{one.mse:.3g}" for one in measures]),
        TextColumn("largest error", [f"{one.largest:.3g}" for one in measures]),
        TextColumn(
            "worst tensor",
            [
                f"{100 * tensor.under[index].measures.error:.3g} % {_short(tensor.name)}"
                for index, tensor in enumerate(worst)
            ],
        ),
    ]


def _on_inputs(found: Comparison) -> list[TextColumn]:
    """Return the columns of errors under inputs, if a tensor has some."""
    measures = [one.on_inputs for one in found.totals] if found.with_inputs else []
    errors = {
        _WEIGHTED: [one.weighted_error for one in measures],
        _OUTPUT: [one.output_error for one in measures],
    }
    return [
        TextColumn(heading, [f"{100 * error:.3g}" for error in of_recipes])
        for heading, of_recipes in errors.items()
        if of_recipes
    ]


def _saturated(measures: Measures) -> str:
    return _UNKNOWN if measures.saturated is None else in_percent(measures.saturated_share)


def _short(name: str) -> str:
    """Return the end of a name that fits into a column."""
    whole = name_shown(name)
    return whole if len(whole) <= _LETTERS else f"..{whole[2 - _LETTERS :]}"


def _lost(totals: Sequence[Compared]) -> list[TextColumn]:
    """Return a column of elements that are not finite, if there are some."""
    counts = [one.measures.nonfinite for one in totals]
    return [TextColumn(_LOST, [f"{count:,}" for count in counts])] if any(counts) else []
