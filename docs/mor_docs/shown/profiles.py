"""How often block quantizers differ: the engine counts it on bell-shaped numbers."""

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import mor_ref
from mor_docs.shown.markup import table
from mor_ref.definitions.nvfp4 import PROFILES

Array = NDArray[Any]


def disagreement(tile: str) -> str:
    """Count the scales (above the diagonal) and codes (below) that differ between profiles."""
    rows, columns = map(int, tile.split("x"))
    names = [profile.name for profile in PROFILES.values() if (rows, columns) in profile.tiles]
    counted = differences(bell_shaped(), names, {"tile": (rows, columns)})
    lines = []
    for i, a in enumerate(names):
        codes = [counted[f"{b} {a}"][1] for b in names[:i]]
        scales = [counted[f"{a} {b}"][0] for b in names[i + 1 :]]
        lines.append([f"**{i + 1}** {a}", *codes, "·", *scales])
    head = ["", *(f"**{i + 1}**" for i in range(len(names)))]
    return f":::{{div}} codes\n{table(head, lines)}:::\n"


def bell_shaped() -> Array:
    """Draw sixteen nearly Gaussian tensors in bfloat16: sums of twelve uniform whole numbers."""
    words = np.random.PCG64(2024).random_raw(16 * 128 * 128 * 3)
    uniform = words.astype("<u8").view("<u2").reshape(16, 128, 128, 12)
    sums = uniform.sum(-1, dtype=np.int64) - 6 * 65535
    found: Array = (sums / 65536).astype(ml_dtypes.bfloat16)
    return found


def differences(
    tensors: Iterable[Array], names: Sequence[str], how: dict[str, Any]
) -> dict[str, list[int]]:
    """Count the scales and the codes of each pair that differ in some tensors, together."""
    counts = {pair: [0, 0] for pair in pairs_of(names)}
    for x in tensors:
        found = {name: quantized(x, name, **how) for name in names}
        for pair, both in counts.items():
            a, b = (found[name] for name in pair.split())
            both[0] += int((a[1] != b[1]).sum())
            both[1] += int((a[0] != b[0]).sum())
    return counts


def pairs_of(names: Sequence[str]) -> list[str]:
    """Return each two of them, in their order."""
    return [f"{a} {b}" for a, b in combinations(names, 2)]


def quantized(x: Array, name: str, **how: Any) -> tuple[Array, Array]:
    """Return codes and scales from the engine: under an MX rule with a format, or a profile."""
    if "fmt" in how:
        mx = mor_ref.quantize_mx(x, scale_rule=name, **how)
        return mx.codes, mx.scale
    nvfp4 = mor_ref.quantize_nvfp4(x, profile=name, **how)
    return nvfp4.codes, nvfp4.block_scale
