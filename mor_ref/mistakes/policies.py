"""Mistakes of policies: the sites of the steps that decide, and the operators there."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from mor_ref.exact import metrics, policies, unit_sums
from mor_ref.mistakes.mistake import Mistake
from mor_ref.mistakes.operators_of_policies import (
    OF_INTEGERS,
    OPERATORS_OF_POLICIES,
    ZEROS_EVERYWHERE,
    in_units,
)
from mor_ref.mistakes.source import SourceSite, sites_of

_OF_SUMS = (metrics.mean_is_below, metrics.is_not_worse)
_OF_SQUARES = {metrics.is_near: 1, metrics.is_loud: 1, metrics.is_along: 2}
_STEPS = (
    policies.loses_nothing,
    *_OF_SUMS,
    metrics.fits_range,
    policies.amin,
    policies.kept,
    unit_sums.unit_sums,
    metrics.is_measured,
    metrics.is_near,
    metrics.is_loud,
    metrics.is_along,
    metrics.has_small_errors,
)
_METRICS = {"near": "relative_frobenius", "loud": "sqnr", "along": "cosine"}
# What the source says, in the symbols of the rules.
_SYMBOLS = (
    (r"Fraction\((\w+)\) \* ratio", r"\1 * (largest / smallest)"),
    (r"Fraction\(([\w.]+)\)", r"\1"),
    (r"is_measured\(\w+\)", "that each d is finite"),
    (r"yardstick\.sum", "sum of the yardstick"),
    (r"\b(error|sums|row)\.", ""),
    (r"\bratio \* noise <= signal << 23", "R * noise <= 2^23 * signal"),
    (r"limit \* (signal|\*)", r"threshold^2 * \1"),
    (r"limit \*\* 2", "threshold^2"),
    (r"product \*\* 2", "product^2"),
    (r"limit \* nonzero", "T * nonzero"),
    (r"limit \* amax", "threshold * amax"),
    (r"\blargest <|\blargest ==", lambda found: found[0].replace("largest", "d")),
    ("==", "="),
)

_NOUNS = {
    **dict.fromkeys(("comparison", "at-most", "threshold"), "comparison"),
    **dict.fromkeys(("test", "guard"), "test"),
    "multiplied": "product",
}

# Pairs of a site and an operator that are no mistake of their own, each with the reason.
NO_MISTAKES: Mapping[str, str] = {
    "MOR-002/comparison-with-equals": "It is MOR-002/with-equals: if nonzero is 0, so is the sum.",
    "MOR-010/test-left-out": "It is MOR-010/zeros-refused.",
    "MOR-004/test-left-out": "Where nonzero is 0, so are amax and amin: 0 <= 0.",
    "MOR-004/comparison-in-binary64": "Both sides are numbers of binary64.",
}
# What the sums of a unit do not show: its smallest magnitude, and its output.
OF_TENSORS = ("MOR-004/amin-", "MOR-006/")


def mistakes_of_policies() -> list[Mistake]:
    """Return the mistakes of decisions, each once."""
    return [
        mistake for mistake in pairs_of_sites_and_operators() if mistake.name not in NO_MISTAKES
    ]


def pairs_of_sites_and_operators() -> Iterator[Mistake]:
    """Yield each operator at each site, and the refusal of zeros by each metric that has it."""
    sites = [site for step in _STEPS for site in sites_of(step)]
    for site in sites:
        operators = OPERATORS_OF_POLICIES.get(site.kind, ())
        if site.step in _OF_SUMS and site.kind in ("comparison", "at-most"):
            operators += OF_INTEGERS
        if site.step in _OF_SQUARES:
            narrow = in_units(_OF_SQUARES[site.step])
            operators = tuple(narrow if one.name == narrow.name else one for one in operators)
        there = replace(site, words=_words(site))
        yield from (Mistake((there,), operator) for operator in operators)
    of_zeros = tuple(site for site in sites if site.kind in _METRICS)
    yield Mistake(of_zeros, ZEROS_EVERYWHERE)


def _words(site: SourceSite) -> str:
    """Return the subject of sentences about a site, in the symbols of its rule."""
    if site.kind in _METRICS:
        return f"under {_METRICS[site.kind]},"
    noun = _NOUNS.get(site.kind)
    if noun is None:
        return ""
    text = site.text
    for pattern, symbols in _SYMBOLS:
        text = re.sub(pattern, symbols, text)
    return f"the {noun} {text}"
