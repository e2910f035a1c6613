"""The chapter on FP8-LM: the numbers of a step of Adam, in loops over tensors."""

from collections.abc import Sequence

import numpy as np

from mor_ref.arrays import Bits
from mor_ref.definitions.formats import formats
from mor_ref.engine.decoding import decoded, layout_of
from mor_ref.engine.intrinsics import bits_of, float_of, use_full_vectors
from mor_ref.engine.kernel import kernel, step
from mor_ref.engine.parallel import for_each_slice, thread_count
from mor_ref.engine.strips import STRIP
from mor_ref.engine.widening import as_binary16, widen
from mor_ref.schemes.fp8lm.definition import FIRST_MOMENT, Adam
from mor_ref.schemes.fp8lm.engine_tensors import Floats, amax_of

_U = np.uint32
_F = np.float32
_MAGNITUDE, _INFINITY = _U(0x7FFFFFFF), _U(0x7F800000)


@step
def moment(value, inverse, beta, term):
    """FLM-012: a moment after a step."""
    old = _F(_F(beta * value) * inverse)
    return _F(old + _F(_F(_F(1) - beta) * term))


@step
def counted(x, end):
    """FLM-014: the magnitude of a number, as bits; 0 if it is beyond the end."""
    magnitude = _U(bits_of(x) & _MAGNITUDE)
    return magnitude if magnitude <= end else _U(0)


@step
def first_moments(gradient, codes, layout, inverse, beta, moments):
    """FLM-012: M of some numbers; returns their largest magnitude (FLM-014)."""
    use_full_vectors()
    largest = _U(0)
    for i in range(gradient.size):
        moments[i] = moment(float_of(decoded(_U(codes[i]), layout)), inverse, beta, gradient[i])
        largest = max(largest, counted(moments[i], _INFINITY))
    return largest


@step
def second_moments(gradient, codes, inverse, beta, moments):
    """FLM-012: V of some numbers; returns their largest magnitude (FLM-014)."""
    use_full_vectors()
    largest = _U(0)
    for i in range(gradient.size):
        square = _F(gradient[i] * gradient[i])
        moments[i] = moment(float_of(widen(codes[i], _U)), inverse, beta, square)
        largest = max(largest, counted(moments[i], _INFINITY))
    return largest


@step
def weights(first, second, codes, inverse, numbers, rate, root, updated):
    """FLM-013: W of some numbers; returns their largest magnitude, also if it is NaN (FLM-014)."""
    use_full_vectors()
    largest, decay = _U(0), _F(_F(1) - _F(numbers.lr * numbers.weight_decay))
    for i in range(first.size):
        u = _F(float_of(widen(codes[i], _U)) * inverse)
        u = _F(u * decay) if numbers.weight_decay != _F(0) else u
        below = _F(_F(np.sqrt(second[i]) / root) + numbers.eps)
        updated[i] = _F(u - _F(rate * _F(first[i] / below)))
        largest = max(largest, counted(updated[i], _MAGNITUDE))
    return largest


@kernel
def moments_and_weights(gradient, codes, layout, inverses, numbers, rate, root, updated):
    """FLM-012 to FLM-014: the numbers after a step, and the bits of their largest magnitudes.

    A loop for each of them, in strips: a loop over so many arrays has no vectors.
    """
    (c1, c2, c3), (new1, new2, new3) = codes, updated
    amax_first, amax_second, amax_master = _U(0), _U(0), _U(0)
    for left in range(0, gradient.size, STRIP):
        part = slice(left, left + STRIP)
        g, m, v = gradient[part], new1[part], new2[part]
        largest = first_moments(g, c1[part], layout, inverses[0], numbers.beta1, m)
        amax_first = max(amax_first, largest)
        amax_second = max(amax_second, second_moments(g, c2[part], inverses[1], numbers.beta2, v))
        largest = weights(m, v, c3[part], inverses[2], numbers, rate, root, new3[part])
        amax_master = max(amax_master, largest)
    return amax_first, amax_second, amax_master


def after_step(
    gradient: Floats,
    codes: Sequence[Bits],
    inverses: Floats,
    numbers: Adam,
    rate: np.float32,
    root: np.float32,
) -> tuple[list[Floats], list[np.float32]]:
    """Return both moments and the weights after a step, as numbers, and the amax of each."""
    g, layout = np.ascontiguousarray(gradient).reshape(-1), layout_of(formats[FIRST_MOMENT])
    first, second, master = (np.ascontiguousarray(array).reshape(-1) for array in codes)
    states = first, as_binary16(second), as_binary16(master)
    updated = [np.empty(g.size, np.float32) for _ in codes]
    amaxes: list[tuple[int, ...]] = []

    def take_step(part: slice) -> None:
        states_of_part, updated_part = (
            tuple(array[part] for array in states),
            tuple(array[part] for array in updated),
        )
        last = numbers, rate, root, updated_part
        amaxes.append(moments_and_weights(g[part], states_of_part, layout, inverses, *last))

    for_each_slice(take_step, g.size, thread_count(None, g.size))
    largest = [amax_of([int(array[k]) for array in amaxes]) for k in range(len(updated))]
    return [array.reshape(gradient.shape) for array in updated], largest
