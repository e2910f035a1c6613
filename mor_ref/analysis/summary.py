"""The totals of a comparison as a paper has them: a row for each recipe, with intervals."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version

from mor_ref.analysis.compare_files import Comparison
from mor_ref.analysis.compare_tensor import Compared
from mor_ref.analysis.statistics import Sample, differences
from mor_ref.counts_in_words import counted
from mor_ref.printable import printable

_UNKNOWN = "?"


@dataclass(frozen=True)
class Summary:
    """A recipe on all tensors.

    `sqnr` has the SQNR of each tensor in decibels, and `gain` how much it is above that of the
    first recipe. `weighted` and `output` have the errors of each tensor with inputs, in percent;
    they are None if no tensor has any.
    """

    total: Compared
    is_best: bool
    sqnr: Sample
    gain: Sample | None
    weighted: Sample | None = None
    output: Sample | None = None

    @property
    def recipe(self) -> str:
        """The name of the recipe."""
        return self.total.recipe

    @property
    def bits(self) -> str:
        """The bits of a number, in words of a table."""
        if self.total.bits is None:
            return _UNKNOWN
        return f"{self.total.bits_per_number:.2f}{'*' if self.total.bits_by_author else ''}"


def summaries(comparison: Comparison) -> list[Summary]:
    """Return a summary of each recipe, in their order."""
    best = {one.recipe for one in comparison.best}
    by_recipe = [
        tuple(tensor.under[index].measures.sqnr for tensor in comparison.tensors)
        for index in range(len(comparison.recipes))
    ]
    return [
        Summary(
            total,
            total.recipe in best,
            Sample(sqnr),
            differences(sqnr, by_recipe[0]) if index else None,
            *_errors_on_inputs(comparison, index),
        )
        for index, (total, sqnr) in enumerate(zip(comparison.totals, by_recipe, strict=True))
    ]


def _errors_on_inputs(comparison: Comparison, index: int) -> tuple[Sample | None, Sample | None]:
    """Return the weighted errors and those of outputs under a recipe, in percent."""
    each = (tensor.under[index].on_inputs for tensor in comparison.tensors)
    found = [one for one in each if one.samples]
    if not found:
        return None, None
    return (
        Sample(tuple(100 * one.weighted_error for one in found)),
        Sample(tuple(100 * one.output_error for one in found)),
    )


_INTERVALS = "mean over tensors, 95 %"
_HEADS_ON_INPUTS = (
    "weighted error %",
    f"weighted error % ({_INTERVALS})",
    "output error %",
    f"output error % ({_INTERVALS})",
)


def _heads(comparison: Comparison) -> list[str]:
    return [
        "recipe",
        "bits",
        "error %",
        "SQNR dB",
        f"SQNR dB ({_INTERVALS})",
        f"above {comparison.recipes[0].name} (dB, 95 %)",
        *(_HEADS_ON_INPUTS if comparison.with_inputs else ()),
    ]


def _name(summary: Summary) -> str:
    return printable(summary.recipe).replace("|", "/")


def _numbers(summary: Summary) -> list[str]:
    """Return the cells after the name."""
    measures = summary.total.measures
    return [
        summary.bits,
        f"{100 * measures.error:.3g}",
        f"{measures.sqnr:.1f}",
        _with_interval(summary.sqnr),
        "" if summary.gain is None else _with_interval(summary.gain),
        *_numbers_on_inputs(summary),
    ]


def _numbers_on_inputs(summary: Summary) -> list[str]:
    """Return the cells of the errors under inputs, if there are some."""
    if summary.weighted is None or summary.output is None:
        return []
    total = summary.total.on_inputs
    return [
        f"{100 * total.weighted_error:.3g}",
        _with_interval(summary.weighted, _percent),
        f"{100 * total.output_error:.3g}",
        _with_interval(summary.output, _percent),
    ]


def _decibels(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}"  # not -0.00


def _percent(value: float) -> str:
    return f"{value + 0.0:.3g}"


def _with_interval(sample: Sample, shown: Callable[[float], str] = _decibels) -> str:
    """Return a mean and its interval; the mean of one tensor, and nothing if one is exact."""
    if not all(map(math.isfinite, sample.values)):
        return ""
    if not sample.has_interval:
        return shown(sample.mean)
    low, high = map(shown, sample.interval)
    return f"{shown(sample.mean)} ({low} to {high})"


def markdown_of(comparison: Comparison) -> bytes:
    """Return the totals as a table of Markdown; recipes that none beats are bold."""
    heads = _heads(comparison)
    lines = [heads, ["---", *(["---:"] * (len(heads) - 1))]]
    for summary in summaries(comparison):
        name = f"`{_name(summary)}`"
        lines.append([f"**{name}**" if summary.is_best else name, *_numbers(summary)])
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{table}\n\n{_note(comparison)}\n".encode()


def latex_of(comparison: Comparison) -> bytes:
    """Return the totals as a tabular of LaTeX with rules of booktabs; the same rows are bold."""
    heads = [_escaped(head) for head in _heads(comparison)]
    lines = [f"\\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}", "\\toprule"]
    lines += [f"{' & '.join(heads)} \\\\", "\\midrule"]
    for summary in summaries(comparison):
        name = f"\\texttt{{{_escaped(_name(summary))}}}"
        name = f"\\textbf{{{name}}}" if summary.is_best else name
        cells = [name, *map(_escaped, _numbers(summary))]
        lines.append(f"{' & '.join(cells)} \\\\")
    lines += ["\\bottomrule", "\\end{tabular}", f"% {_note(comparison)}"]
    return ("\n".join(lines) + "\n").encode()


_ESCAPES = str.maketrans(
    {
        "\\": "\\textbackslash{}",
        "~": "\\textasciitilde{}",
        "^": "\\textasciicircum{}",
        **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    }
)


def _escaped(text: str) -> str:
    return text.translate(_ESCAPES)


def _note(comparison: Comparison) -> str:
    numbers = counted(comparison.totals[0].measures.elements, "number")
    bold = "bold: no other recipe beats it in bits, error and SQNR"
    by_author = any(one.bits_by_author for one in comparison.totals)
    said = "; *: bits that the author of a representation says" if by_author else ""
    tensors = counted(len(comparison.tensors), "tensor")
    count = comparison.with_inputs
    inputs = f"; weighted, output: {counted(count, 'tensor')} with inputs" if count else ""
    return f"{tensors}, {numbers}; {bold}{said}{inputs}; mor_ref {version('mor-ref')}"


SUMMARY_WRITERS: Mapping[str, Callable[[Comparison], bytes]] = {
    ".md": markdown_of,
    ".tex": latex_of,
}
