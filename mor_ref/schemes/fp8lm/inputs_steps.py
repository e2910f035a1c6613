"""Tensors and gradients at which sequences of Adam differ: thresholds, ties, cancellation."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mor_ref.definitions.formats import formats
from mor_ref.golden.inputs.edges import bell
from mor_ref.golden.model.suite import Size
from mor_ref.operations.bits import Unsigned
from mor_ref.operations.random_numbers import Draws
from mor_ref.schemes.fp8lm.definition import Adam
from mor_ref.schemes.fp8lm.inputs import scales
from mor_ref.schemes.fp8lm.operation_adam import STEPS, random_steps

_F = np.float32
_USUAL = Adam(lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0)
_ROWS = {1: 40, 3: 40, 16: 12}  # rows, by the count of numbers in a tensor


def sequences(size: Size) -> Iterator[tuple[str, dict[str, Unsigned]]]:
    """Yield names of cases, and their tensors, gradients and numbers of Adam."""
    for width, rows in _ROWS.items():
        drawn = random_steps({}, Draws(0, rows * size.factor, size.seed, width))
        yield f"{width}", {name: one.astype(np.uint32) for name, one in drawn.items()}
    yield "turns", _turns(size)
    yield "cancelling", _cancelling(size)
    yield "tiny", _tiny(size)
    yield "halves", _halves()
    yield "specials", _specials()
    yield "corrections", _corrections()


def _numbers(given: ArrayLike) -> NDArray[np.float32]:
    return np.array(given, np.float32)


def _named(weight: ArrayLike, gradients: NDArray[Any], **numbers: ArrayLike) -> dict[str, Unsigned]:
    """Return inputs by their names; the gradients of a step are along the first axis."""
    found: dict[str, ArrayLike] = {"weight": weight}
    found |= {f"gradient_{k}": g for k, g in enumerate(gradients, 1)}
    rates = {**_USUAL._asdict(), **numbers}
    found |= {name: np.full(gradients.shape[1], one) for name, one in rates.items()}
    return {n: np.ascontiguousarray(one, np.float32).view(np.uint32) for n, one in found.items()}


def _turns(size: Size) -> dict[str, Unsigned]:
    """Return tensors whose amaxes are at thresholds of logarithms, and ties of e4m3 below them.

    Both betas are 0: the moments are the gradient and its square.
    """
    narrow, wide = (
        scales(formats[name], {"format": name}, size, 0)["amax"][:-56].view(_F)
        for name in ("e4m3", "f16")
    )
    in_one_division = _numbers([57344.0078125])  # e4m3 has another scale if Q / a is rounded once
    amax = np.concatenate(
        [in_one_division, narrow[3::31], np.sqrt(wide[5::41]), np.sqrt(wide[11::43])]
    )
    amax = amax[: len(amax) // STEPS * STEPS].reshape(STEPS, -1)
    ties = _numbers([1, 17 / 32, -19 / 32, 21 / 64, 29 / 128])
    powers = np.ldexp(_F(0.5), np.frexp(amax)[1])[..., np.newaxis]
    gradients = np.where(ties == 1, amax[..., np.newaxis], powers * ties)
    weight = np.resize(wide[::7], amax.shape[1])[:, np.newaxis] * ties
    return _named(weight, gradients, beta1=0.0, beta2=0.0)


def _cancelling(size: Size) -> dict[str, Unsigned]:
    """Return weights that the first step makes nearly 0, so that W shows the last bits."""
    rows = 64 * size.factor
    drawn = bell(rows * STEPS, size.seed, 330).view(_F).reshape(STEPS, rows, 1)
    lr = (_F(0.3) + np.arange(rows, dtype=_F) / _F(97))[:, np.newaxis]
    beta1, beta2, decay = _F(0.9), _F(0.95), np.resize(_numbers([0, 0.3, 0.9]), rows)[:, np.newaxis]
    first, second = (1 - beta1) * drawn[0], (1 - beta2) * drawn[0] ** 2
    change = lr / (1 - beta1) * (first / (np.sqrt(second) / np.sqrt(1 - beta2) + _F(0.01)))
    weight = (change / (1 - lr * decay)).astype(np.float16).astype(_F)
    rates: dict[str, ArrayLike] = {"beta1": beta1, "beta2": beta2, "eps": 0.01}
    return _named(weight, drawn, lr=lr[:, 0], **rates, weight_decay=decay[:, 0])


def _tiny(size: Size) -> dict[str, Unsigned]:
    """Return gradients whose moments, or products with these moments, are below normal numbers."""
    rows = 24 * size.factor
    drawn = bell(rows * STEPS * 4, size.seed, 331).view(_F).reshape(STEPS, rows, 4)
    exponents = np.resize([-119.0, -62, -59, -56, -54, -52], rows)[:, np.newaxis]
    spread = np.exp2(-4.0 * np.arange(4))
    gradients = np.ldexp(drawn.astype(np.float64) * spread, exponents.astype(int)).astype(_F)
    return _named(drawn[1], gradients, beta1=0.5, beta2=0.75, eps=0.0)


def _halves() -> dict[str, Unsigned]:
    """Return second moments of n * 2^-149 whose product with beta2 is next to a half of 2^-149.

    Rounded to 24 bits, the product is a half; multiplied by the inverse, it is rounded again. The
    second moment of the other parameter has the largest finite scale.
    """
    n = np.arange(1031, 2047, 92)
    beta2 = ((n + 1) // 2 + 0.5) / n
    beta2 = beta2.astype(_F).astype(np.float64)
    small = np.sqrt(np.ldexp(np.rint(n / (1 - beta2)), -149))
    large = np.sqrt(np.ldexp(1.07, -112) / (1 - beta2))
    first, later = (np.stack([large, one], axis=1) for one in (small, 0 * small))
    weight = np.ones((n.size, 2))
    return _named(weight, np.stack([first, later, later, later]), beta1=0.5, beta2=beta2)


def _corrections() -> dict[str, Unsigned]:
    """Return weights that a step makes nearly 0, where a correction is next to a tie of binary32.

    In binary64 the correction is the tie. This is step 3 for beta1, and step 4 for beta2.
    """
    around = 1 + np.arange(-3, 4) * 2.0**-23
    ones, none = np.ones(around.size), np.zeros(around.size)
    beta1, beta2 = 1 - 2.0**-23, 1 - 12 * 2.0**-24
    first = 2 * (1 - beta1**3) / (1 - beta1) * around
    second = np.sqrt((1 - beta2) / (1 - beta2**4)) * around
    gradients = np.zeros((STEPS, 2 * around.size, 1))
    gradients[2, : around.size] = gradients[3, around.size :] = 1
    return _named(
        np.ones((2 * around.size, 1)),
        gradients,
        lr=np.concatenate([first, second]),
        beta1=np.concatenate([beta1 * ones, none]),
        beta2=np.concatenate([none, beta2 * ones]),
        eps=np.concatenate([ones, 1e-8 * ones]),
    )


def _specials() -> dict[str, Unsigned]:
    """Return rows without eps in which a weight becomes infinite or NaN, and rows with NaN.

    The square of 1e-30 is 0.
    """
    inf, nan = np.inf, np.nan
    weight = [[3.0, 0.01], [3.0, 0.01], [0.0, 0.0], [5.0, 1.0], [nan, 40.0], [inf, 40.0], [-0.0, 0]]
    rows = [
        [[1e-30, 1.0], [1e-30, 1.0], [1.0, 1.0], [1.0, 2.0]],
        [[0.0, 0.5], [1.0, 0.5], [1.0, 1.0], [1.0, 2.0]],
        [[0.0, 0.0], [0.0, 0.0], [0.5, 1.0], [1.0, 2.0]],
        [[1.0, 2.0], [nan, 2.0], [1.0, 2.0], [1.0, 2.0]],
        [[1.0, 2.0], [1.0, 2.0], [1.0, 2.0], [1.0, 2.0]],
        [[1.0, 2.0], [1.0, inf], [1.0, 2.0], [1.0, 2.0]],
        [[-0.0, 1.0], [0.0, 1.0], [-0.0, 1.0], [1.0, 2.0]],
    ]
    eps = _numbers([0, 0, 0, 1e-8, 1e-8, 1e-8, 1e-8])
    return _named(np.array(weight), np.swapaxes(np.array(rows), 0, 1), eps=eps)
