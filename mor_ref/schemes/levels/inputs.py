"""Weights at which implementations of levels differ: at ties and limits of the ratio."""

from collections.abc import Iterator

import numpy as np

from mor_ref.exact.arithmetic import product
from mor_ref.golden.inputs.edges import Bits, narrowed
from mor_ref.golden.inputs.tensors import Tensor
from mor_ref.golden.model.suite import Size
from mor_ref.operations.bits import f32_array, f32_bits
from mor_ref.operations.random_numbers import Draws
from mor_ref.operations.random_words import random_words
from mor_ref.schemes.levels.definition import LevelKind
from mor_ref.schemes.levels.operation import points_of, random_element

_TOPS = (1.0, 0.1, 1.3, 7.0, 3e-5, 1.1e-5, 5e-6, 2.0**-140, 3e38, 0.0)  # max|w| of rows
_ALPHAS = (1.0, 0.1, 1 / 3, 0.7, 1e-5, 1.5e-5, 3.0)
_STEPS = (0, 1, -1, 2, 0x8000, -0x8000, 0x7FFF)
# Numbers whose mean is next to a tie of binary32 and of bfloat16; 2^-60 is beyond the 53 bits of
# binary64.
_NEXT_TO_A_TIE = (4.0, -(2.0**-6), 2.0**-22, 2.0**-60)
_COLUMNS = 22


def elements(kind: LevelKind, arithmetic: str, size: Size, count: int) -> dict[str, Bits]:
    """Return weights and alphas: ties and limits, steps to each side, and random ones."""
    pairs = []
    for alpha in f32_array(_ALPHAS).view(np.float32).tolist():
        for point in points_of(kind):
            at = f32_bits(abs(product(float(np.float32(point)), alpha)))
            sign = (point < 0) << 31
            pairs += [(max(at + step, 0) | sign, f32_bits(alpha)) for step in _STEPS]
    own = np.array(pairs, np.uint32)
    parameters = {"kind": kind.name, "arithmetic": arithmetic}
    drawn = random_element(parameters, Draws(0, count * size.factor, size.seed))
    return {
        "x": np.concatenate([own[:, 0], drawn["x"].astype(np.uint32)]),
        "alpha": np.concatenate([own[:, 1], drawn["alpha"].astype(np.uint32)]),
    }


def matrices(kind: LevelKind, size: Size) -> Iterator[Tensor]:
    """Yield rows with every maximum of interest, and weights at ties of their alpha."""
    points = points_of(kind)
    divisor = kind.divisor or 1
    words = random_words(len(_TOPS) * _COLUMNS, size.seed, 400).reshape(len(_TOPS), -1)
    rows = []
    for n, top in enumerate(f32_array(_TOPS).view(np.float32).tolist()):
        row = []
        for word in words[n].tolist():
            point = float(np.float32(points[word % len(points)] / divisor))
            at = min(f32_bits(abs(product(point, top))), f32_bits(top))
            step = (word >> 20) % 5 - 2
            row.append(min(max(at + step, 0), f32_bits(top)) | (word >> 40 & 1) << 31)
        row[(7 * n) % _COLUMNS] = f32_bits(top) | (n & 1) << 31
        row[(7 * n + 3) % _COLUMNS] = 0x80000000
        rows.append(row)
    alike = f32_bits(float(np.float32(1.2)))  # the mean of equal magnitudes
    rows.append([alike | k % 2 << 31 for k in range(_COLUMNS)])
    x = np.array(rows, np.uint32)
    special = x[:4, :19].copy()
    special[0, 3], special[1, 18], special[2, 5] = 0x7FC00000, 0xFF800000, 0xFFC12345
    special[3, 0], special[3, 7] = 0x7F800000, 0x7FE00001
    for source in ("f32", "bf16", "f16"):
        yield Tensor(f"rows.{source}", source, narrowed(x, source))
        yield Tensor(f"special.{source}", source, narrowed(special, source))
    if kind.name == "elastic1":
        ties = np.array([_NEXT_TO_A_TIE, _NEXT_TO_A_TIE[::-1]], np.float32).view(np.uint32)
        for source in ("f32", "bf16"):
            yield Tensor(f"ties.{source}", source, narrowed(ties, source))
