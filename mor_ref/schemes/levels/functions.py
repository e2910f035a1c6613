"""Levels of ParetoQ: the public function and its record."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.border import public
from mor_ref.api.dequantization import WithY
from mor_ref.api.packing import bit_by_bit, in_digits
from mor_ref.arrays import Numbers, numbers_from
from mor_ref.counts_in_words import counted
from mor_ref.definitions.blocks import rows_and_columns
from mor_ref.former_names import FormerAttribute, with_former_name
from mor_ref.schemes.levels.definition import (
    TERNARY_DIGITS,
    LevelKind,
    known_arithmetic,
    level_kind,
)
from mor_ref.tracing import untraced

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False, repr=False)
class Levels(WithY):
    """Weights as few levels, with an alpha for each row.

    `ratio`, `clipped`, `level`, `codes`, `y`, `alpha_term` and `inside` have the shape of w, and
    `alpha` has an entry for each row. y is `level * alpha`. For a gradient dy of y, the gradient of
    a weight is `inside * dy`. That of alpha is `gradient_scale` times the sum of `alpha_term * dy`
    of its row, which `alpha_sums` computes exactly.

    So `alpha` multiplies the levels.

    >>> import mor_ref, numpy as np
    >>> levels = mor_ref.quantize_levels(np.float32([[0.3, -1.1]]), "seq2")
    >>> (levels.level * levels.alpha[:, np.newaxis]).tolist() == np.asarray(levels).tolist()
    True
    """

    representation: str
    arithmetic: str
    alpha: NDArray[np.float32]
    ratio: NDArray[np.float32]
    clipped: NDArray[np.float32]
    level: NDArray[np.float32]
    y: NDArray[np.float32]
    alpha_term: NDArray[np.float32]
    inside: NDArray[np.uint8]
    codes: NDArray[np.uint8]

    kind = FormerAttribute("representation")

    @property
    @public
    def gradient_scale(self) -> float:
        """1 / sqrt(numbers * Qp) in binary64, as the authors compute it (LVL-007)."""
        if not self.y.size:
            raise ValueError(
                "the gradient of alpha has a scale only if there are weights, and shape is "
                f"{self.y.shape}; leave out tensors without elements"
            )
        return 1.0 / math.sqrt(self.y.size * level_kind(self.representation).gradient_divisor)

    @public
    def alpha_sums(self, dy: "ArrayLike") -> list[Fraction]:
        """Return the exact sum of `alpha_term * dy` of each row; all of them have to be finite."""
        rows, columns = rows_and_columns(self.y.shape)
        gradient = np.asarray(dy, np.float64)
        if gradient.shape != self.y.shape:
            raise ValueError(
                f"dy has the shape {gradient.shape}; give the shape of the weights, {self.y.shape}"
            )
        if not (np.isfinite(gradient).all() and np.isfinite(self.alpha_term).all()):
            raise ValueError(
                "dy or alpha_term holds NaN or an infinity, which no exact sum has; leave out "
                "these rows"
            )
        pairs = zip(
            self.alpha_term.reshape(rows, columns).tolist(),
            gradient.reshape(rows, columns).tolist(),
            strict=True,
        )
        return [
            sum((Fraction(t) * Fraction(d) for t, d in zip(*row, strict=True)), Fraction(0))
            for row in pairs
        ]

    @property
    @untraced
    def packed(self) -> NDArray[np.uint8]:
        """The bytes of each row of codes: of 4, 3 or 2 bits, or five to the base 3 (LVL-008)."""
        rows, columns = rows_and_columns(self.codes.shape)
        codes, bits = self.codes.reshape(rows, columns), level_kind(self.representation).bits
        return bit_by_bit(codes, bits) if bits else in_digits(codes, 3, TERNARY_DIGITS)

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.codes.shape)) or "scalar"
        rows = counted(self.alpha.size, "row")
        return f"<{shape} as {self.representation} in {self.arithmetic}: {rows}>"


@with_former_name("kind", "representation")
@public
def quantize_levels(
    w: "ArrayLike",
    representation: str,
    *,
    alpha: "ArrayLike | None" = None,
    arithmetic: str = "f32",
    threads: int | None = None,
) -> Levels:
    """Quantize weights to few levels, as ParetoQ does.

    `representation` is lsq4, lsq3, seq2, seq1.58 or elastic1. `alpha` has a number for each row;
    without it, each row has the one that training begins with. With `arithmetic="bf16"` each
    operation is rounded to bfloat16.

    >>> import mor_ref, numpy as np
    >>> levels = mor_ref.quantize_levels(np.array([[0.9, -0.2, 0.1, -1.0]], np.float32), "seq2")
    >>> levels
    <1x4 as seq2 in f32: 1 row>
    >>> levels.alpha.tolist(), levels.level.tolist(), levels.codes.tolist()
    ([1.0], [[0.75, -0.25, 0.25, -0.75]], [[3, 1, 2, 0]])
    """
    row, checked = level_kind(representation), known_arithmetic(arithmetic)
    return levels(numbers_from(w, "w"), row, alpha, checked, threads)


def levels(
    numbers: Numbers,
    kind: LevelKind,
    alpha: "ArrayLike | None",
    arithmetic: str,
    threads: int | None,
) -> Levels:
    """Quantize weights; without alphas, each row takes its first one."""
    from mor_ref.schemes.levels import engine as levels
    from mor_ref.schemes.levels.engine_alphas import first_alphas, words_of

    sides = rows_and_columns(numbers.shape)
    words = words_of(numbers, arithmetic)
    start = _given_alphas(alpha, sides[0], arithmetic)
    if start is None:
        start = first_alphas(words, sides, kind, arithmetic)
    alphas, fields = levels.quantize_levels(words, sides, kind, start, arithmetic, threads)

    def shaped(bits: NDArray[np.uint32]) -> NDArray[np.float32]:
        return bits.view(np.float32).reshape(numbers.shape)

    return Levels(
        kind.name,
        arithmetic,
        alphas.view(np.float32),
        shaped(fields.ratio),
        shaped(fields.clipped),
        shaped(fields.level),
        shaped(fields.y),
        shaped(fields.alpha_term),
        fields.inside.reshape(numbers.shape),
        fields.code.reshape(numbers.shape),
    )


def _given_alphas(
    alpha: "ArrayLike | None", rows: int, arithmetic: str
) -> NDArray[np.uint32] | None:
    """Return the alphas that are given, as the arithmetic has them, or None."""
    from mor_ref.engine.blocks import binary32_words  # imports Numba
    from mor_ref.schemes.levels.engine_alphas import in_arithmetic

    if alpha is None:
        return None
    numbers = numbers_from(alpha, "alpha")
    if numbers.bits.size != rows:
        raise ValueError(
            f"alpha has {numbers.bits.size} numbers; give one for each of the {rows} rows of w"
        )
    return in_arithmetic(binary32_words(numbers), arithmetic)
