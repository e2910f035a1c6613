"""Casts, an all-reduce and a step of Adam of FP8-LM next to eager torch."""

import functools

import numpy as np

from benchmarks import eager_schemes, inputs, peers
from benchmarks.rows import OURS, Contender, Difference, Ratio, Row
from mor_ref import fp8lm
from mor_ref.engine.parallel import one_thread
from mor_ref.schemes.fp8lm.definition import Adam
from mor_ref.schemes.fp8lm.engine import rate_and_root

USUAL = 24
LIMITS = (Ratio(("eager torch",), at_least=5),)
SCALE = 64.0
RANKS = 4
NUMBERS = Adam(*np.array([1e-3, 0.9, 0.999, 1e-8, 0], np.float32).tolist())
ROUNDS_ROOTS = Difference("takes square roots that are not always the nearest", 1 << USUAL - 4)


def alone(call):
    """Return a call on one thread."""

    def on_one_thread():
        with one_thread():
            return call()

    return on_one_thread


def cast_in_torch():
    """Return a contender: the codes of a cast."""

    def prepare(x):
        peers.torch()
        tensor = peers.as_tensor(x)
        return lambda: eager_schemes.torch_fp8lm(tensor, SCALE)

    return Contender(prepare, lambda found: (codes_of(found[0]),), needs="torch")


def codes_of(tensor):
    """Return codes of torch as integers, in one row."""
    return peers.codes_of(tensor).reshape(-1)


def ranks_of(x):
    """Return tensors of ranks, whose scales differ."""
    return [np.ldexp(part, k) for k, part in enumerate(x.reshape(RANKS, -1))]


def ranks_in_torch():
    """Return a contender: the codes of the mean of ranks, and those of each."""

    def prepare(ranks):
        peers.torch()
        tensors = [peers.as_tensor(one) for one in ranks]
        return lambda: eager_schemes.torch_shared_scale(tensors)

    def bits(found):
        return codes_of(found[0]), np.concatenate([codes_of(one) for one in found[5]])

    return Contender(prepare, bits, needs="torch", given=ranks_of)


@functools.lru_cache(maxsize=1)
def first_state(size):
    """Return the state of Adam after a first step of as many weights."""
    random = np.random.default_rng(5)
    weights, gradient = (random.standard_normal(size, dtype=np.float32) for _ in range(2))
    return fp8lm.adam(fp8lm.begin_adam(weights * np.float32(0.02)), gradient)


def parts_of(state):
    """Return both moments and the weights of a state."""
    return state.first, state.second, state.master


def read_by_step(x):
    """Return a gradient, and the codes of the state, which are read as well."""
    return x.reshape(-1), *(one.codes for one in parts_of(first_state(x.size)))


def step_in_torch():
    """Return a contender: the codes of both moments and of the weights after a step of Adam."""

    def prepare(read):
        t = peers.torch()
        gradient, parts = peers.as_tensor(read[0]), parts_of(first_state(read[0].size))
        dtypes = (t.float8_e4m3fn, t.float16, t.float16)
        signed = [one.codes.view(f"i{one.codes.itemsize}") for one in parts]
        state = [
            (t.from_numpy(codes).view(dtype), float(one.scale_inv))
            for codes, dtype, one in zip(signed, dtypes, parts, strict=True)
        ]
        rates = map(float, rate_and_root(*NUMBERS[:3], 2))
        return functools.partial(eager_schemes.torch_adam, state, gradient, NUMBERS, *rates)

    def bits(found):
        return tuple(codes_of(one[0]) for one in found)

    return Contender(prepare, bits, differs=ROUNDS_ROOTS, needs="torch", given=read_by_step)


def step_of_ours(read):
    """Return our step of Adam."""
    state = first_state(read[0].size)
    return alone(lambda: fp8lm.adam(state, read[0]))


def rows():
    """Yield rows of tensors of binary32."""
    x = inputs.normal(USUAL)
    cast = Contender(
        lambda x: alone(lambda: fp8lm.cast(x, SCALE)), lambda found: (found.codes.reshape(-1),)
    )
    contenders = {OURS: cast, "eager torch": cast_in_torch()}
    yield Row("FP8-LM cast of f32", x, contenders, LIMITS, compared="codes")
    reduced = Contender(
        lambda ranks: alone(lambda: fp8lm.shared_scale(ranks)),
        lambda found: (found.codes.reshape(-1), found.rank_codes.reshape(-1)),
        given=ranks_of,
    )
    contenders = {OURS: reduced, "eager torch": ranks_in_torch()}
    yield Row("FP8-LM all-reduce of f32, 4 ranks", x, contenders, LIMITS, compared="codes")
    stepped = Contender(
        step_of_ours,
        lambda found: tuple(one.codes for one in parts_of(found)),
        given=read_by_step,
    )
    contenders = {OURS: stepped, "eager torch": step_in_torch()}
    yield Row("FP8-LM step of Adam, f32", x, contenders, LIMITS, compared="codes")


ROWS = [*rows()]
