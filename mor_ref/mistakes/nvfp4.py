"""Mistakes of NVFP4: the sites of its steps, and the operators there."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from mor_ref.definitions.nvfp4 import BLOCK_SCALE_RULES, Nvfp4Profile
from mor_ref.exact import nvfp4
from mor_ref.mistakes.mistake import Mistake
from mor_ref.mistakes.operators_of_nvfp4 import OPERATORS_OF_NVFP4, numbers
from mor_ref.mistakes.source import SourceSite, sites_of

_STEPS = (
    nvfp4.global_scale,
    nvfp4.tile_scale,
    nvfp4.tile_number,
    nvfp4.factors,
    nvfp4.four_over_six,
    nvfp4.raised,
    nvfp4.element_error,
    nvfp4.sum_of_errors,
    nvfp4.candidate_value,
    nvfp4.element_code,
    nvfp4.scaled,
    nvfp4.restored,
    nvfp4.packed,
    nvfp4.block_scale_code,
)
# Under whose names the rules of tiles are known.
_LIBRARIES = {
    "NVF-004": "te",
    "NVF-005": "te_2_13",
    "NVF-006": "4 over 6",
    "NVF-007": "torchao",
    "NVF-008": "modelopt",
    "NVF-009": "compressed_tensors",
}
# The same under several.
_SHARED = {
    (nvfp4.factors, "NVF-004"): "te and 4 over 6",
    (nvfp4.tile_number, "NVF-005"): "te_2_13 and 4 over 6",
    (nvfp4.global_scale, "NVF-007"): "torchao and modelopt",
}
# What the names of the source are in the formulas of the rules.
_SYMBOLS = {
    "range": "Q",
    "largest": "Q",
    "six_times_g": "(6 * g)",
    "sixth": "(block_amax / 6)",
    "stored": "(v * w)",
    "of_tensor": "((v * w) * amax)",
    "s_enc": "S_enc",
    "reciprocal": "(1 / max(amax, 2^-126))",
    "max(amax, math.ldexp(1, -126))": "max(amax, 2^-126)",
}
_SYMBOLS_OF_RULES = {
    "NVF-003": {"g": "S_dec"},
    "NVF-004": {
        "multiplier": "(S_enc * (1 / 6))",
        "scale.encode": "S_enc",
        "scale.decode": "S_dec",
    },
    "NVF-005": {"scale.encode": "S_enc"},
    "NVF-007": {"scale.encode": "(1 / g)", "scale.decode": "g"},
    "NVF-008": {"scale.decode": "g"},
    "NVF-009": {"scale.encode": "G", "g": "G"},
    "NVF-010": {"scale.encode": "encode", "scale.decode": "decode", "value": "v"},
}

# What tiles of one row do not show: sums of rows, and bytes.
OF_TENSORS = (
    *(f"NVF-006/sum-{name}" for name in ("rows-in-turn", "rows-by-neighbours", "in-one-thread")),
    "NVF-011/swapped",
)

# Pairs of a site and an operator that are no mistake of their own, each with the reason.
_NORMAL = "The result is never subnormal."
_NO_TIE = "A tie of a quotient needs more bits than its operands have."
_ZERO_ANYWAY = "A subnormal number has the code 0 as well."
_LARGEST_ANYWAY = "A number above 464 has the code of 448 as well."
_EXACT = "v * w has at most 6 bits: the product is exact."
_OF_THE_RULE = "It is the order of the rule itself."
NO_MISTAKES: Mapping[str, str] = {
    **{
        f"{site}-quotient-ties-away": _NO_TIE
        for site in (
            "NVF-003/s-enc",
            "NVF-003/s-dec",
            "NVF-004/encode-scale",
            "NVF-007/inverse",
            "NVF-007/encode-scale",
            "NVF-007/number",
            "NVF-008/number",
            "NVF-009/reciprocal",
            "NVF-009/inverse",
            "NVF-009/decode",
        )
    },
    **{
        f"{site}-quotient-by-reciprocal": "It is a reciprocal already."
        for site in (
            "NVF-003/s-dec",
            "NVF-004/encode-scale",
            "NVF-007/inverse",
            "NVF-009/reciprocal",
            "NVF-009/inverse",
        )
    },
    **dict.fromkeys(
        (
            "NVF-003/s-enc-quotient-flushed",
            "NVF-004/encode-scale-quotient-flushed",
            "NVF-004/multiplier-product-flushed",
            "NVF-007/inverse-quotient-flushed",
            "NVF-007/encode-scale-quotient-flushed",
            "NVF-009/g-product-flushed",
        ),
        _NORMAL,
    ),
    "NVF-004/multiplier-product-ties-away": "No product with RN(1 / 6) is a tie.",
    "NVF-004/multiplier-product-saturated": "S_enc / 6 is finite.",
    "NVF-004/decode-product-saturated": "w * S_dec is at most FLT_MAX / 6.",
    "NVF-007/number-quotient-flushed": "A number below 2^-6 is 2^-6 either way.",
    **{
        f"{site}-product-flushed": _ZERO_ANYWAY
        for site in ("NVF-004/number", "NVF-005/number", "NVF-009/number", "NVF-006/raised")
    },
    **{
        f"{site}-product-saturated": _LARGEST_ANYWAY
        for site in ("NVF-004/number", "NVF-005/number", "NVF-009/number", "NVF-006/raised")
    },
    **{
        f"NVF-006/stored-product-{name}": _EXACT
        for name in ("truncated", "ties-away", "flushed", "saturated")
    },
    **dict.fromkeys(
        (
            "NVF-004/number-multiplier-first",
            "NVF-005/number-sixth-first",
            "NVF-006/number-sixth-first",
            "NVF-007/number-sixth-first",
            "NVF-008/number-divisor-first",
            "NVF-009/number-sixth-first",
        ),
        _OF_THE_RULE,
    ),
    # The same bits as another one, whose words are plainer.
    "NVF-007/sixth-quotient-by-reciprocal": "It is NVF-007/number-by-constant-sixth.",
    "NVF-009/sixth-quotient-by-reciprocal": "It is NVF-009/number-by-constant-sixth.",
    "NVF-007/number-quotient-by-reciprocal": "It is NVF-007/number-by-encode-scale.",
    "NVF-006/raised-product-truncated": "It is NVF-006/raised-over-two-thirds, by a solver.",
    "NVF-006/comparison-two-nonfinite-take-four": (
        "It is NVF-006/comparison-nonfinite-takes-four: if the error of six is NaN, that of four "
        "is not finite, by a solver."
    ),
}


@dataclass(frozen=True)
class _Under:
    """Whether a step, whose first argument is a profile, is called under one rule of tiles."""

    rule: str

    def __call__(self, profile: Nvfp4Profile, *_: object) -> bool:
        return profile.scales.id == self.rule


def mistakes_of_nvfp4() -> list[Mistake]:
    """Return the mistakes of NVFP4, each once."""
    return [
        mistake for mistake in pairs_of_sites_and_operators() if mistake.name not in NO_MISTAKES
    ]


def pairs_of_sites_and_operators() -> Iterator[Mistake]:
    """Yield each operator at each site, under one rule where rules differ."""
    for site in (site for step in _STEPS for site in sites_of(step)):
        if site.kind == "number":
            for rule, library in _LIBRARIES.items():
                there = replace(site, rule=rule, words=f"under {library},", where=_Under(rule))
                (symbol,) = {r.global_scale for r in BLOCK_SCALE_RULES.values() if r.id == rule}
                yield from (Mistake((there,), operator) for operator in numbers(symbol))
        elif site.rule != "NVF-010" or site.kind != "zeros":
            there = replace(site, words=_words(site))
            operators = OPERATORS_OF_NVFP4.get(site.kind, ())
            yield from (Mistake((there,), operator) for operator in operators)


def _words(site: SourceSite) -> str:
    """Return the subject of sentences about a site, in the symbols of its rule."""
    if site.kind == "zeros":
        return (
            "S_enc of a tensor of zeros" if site.rule == "NVF-003" else "the number of a scale of 0"
        )
    if site.kind not in ("division", "product", "limit"):
        return site.words
    symbols = _SYMBOLS | _SYMBOLS_OF_RULES.get(site.rule, {})
    if site.kind == "amax":
        return "for the global scale alone, amax"
    known = "|".join(re.escape(name) for name in sorted(symbols, key=len, reverse=True))
    words = re.sub(rf"(?<![\w.])({known})(?![\w.])", lambda found: symbols[found[0]], site.words)
    library = _SHARED.get((site.step, site.rule), _LIBRARIES.get(site.rule))
    return f"under {library}, {words}" if library else words
