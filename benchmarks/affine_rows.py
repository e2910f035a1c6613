"""Integers with zero points next to eager torch and torchao."""

import functools
import importlib

import mor_ref
from benchmarks import eager, eager_schemes, inputs, peers
from benchmarks.rows import OURS, Contender, Ratio, Row

USUAL = 24
COMPARED = "codes, scales"
LIMITS = (Ratio(("eager torch",), at_least=5),)
GROUP, GROUPS_OF_PEG = 32, 8


def ours(grid, **how):
    """Return our contender."""
    return Contender(
        lambda x: lambda: mor_ref.quantize_affine(x, grid, threads=1, **how),
        lambda found: (found.codes, found.scale.reshape(-1)),
    )


def in_torch(blocked, symmetric, steps):
    """Return a contender: eager torch, on rows that `blocked` makes of a tensor."""
    return of_torch(lambda tensor: eager.torch_integers(tensor, symmetric, steps), blocked)


def of_torch(call, blocked=lambda tensor: tensor):
    """Return a contender whose first results are codes and scales."""

    def prepare(x):
        peers.torch()
        tensor = blocked(peers.as_tensor(x))
        return lambda: call(tensor)

    def bits(found):
        codes, scale = found[:2]
        return codes.numpy().reshape(1 << USUAL // 2, -1), scale.numpy().reshape(-1)

    return Contender(prepare, bits, needs="torch")


def torchao():
    """Return a contender: the functions of torchao, of each row."""

    def prepare(x):
        ao = importlib.import_module("torchao.quantization.quant_primitives")
        t = peers.torch()
        tensor, block = peers.as_tensor(x), (1, x.shape[1])

        def quantize():
            found = ao.choose_qparams_affine(tensor, ao.MappingType.SYMMETRIC, block, t.int8)
            codes = ao.quantize_affine(tensor, block, *found, t.int8)
            return codes, found[0], ao.dequantize_affine(codes, block, *found, t.int8)

        return quantize

    return Contender(prepare, lambda f: (f[0].numpy(), f[1].numpy()), needs="torchao")


def rows():
    """Yield rows of a tensor, its rows and its groups of 32 numbers."""
    x = inputs.normal(USUAL)
    whole = functools.partial(in_torch, lambda t: t.reshape(1, -1))
    contenders = {
        OURS: ours("uint8", symmetric=False),
        "eager torch": whole(symmetric=False, steps=255),
    }
    yield Row("uint8 of f32 with zero points", x, contenders, LIMITS, compared=COMPARED)
    contenders = {
        OURS: ours("int8", profile="torchao_0_18", block="row"),
        "eager torch": in_torch(lambda t: t, symmetric=True, steps=127.5),
        "torchao": torchao(),
    }
    yield Row("int8 of f32, rows", x, contenders, LIMITS, compared=COMPARED)
    contenders = {
        OURS: ours("int4", block=(1, GROUP)),
        "eager torch": in_torch(lambda t: t.reshape(-1, GROUP), symmetric=True, steps=7.5),
    }
    yield Row("int4 of f32, groups of 32", x, contenders, LIMITS, compared=COMPARED)
    how = {"profile": "peg", "groups": GROUPS_OF_PEG, "permute": "range", "symmetric": False}
    contenders = {
        OURS: ours("uint8", **how),
        "eager torch": of_torch(lambda t: eager_schemes.torch_groups(t, GROUPS_OF_PEG, 255.0)),
    }
    yield Row("uint8 of f32, 8 permuted groups", x, contenders, LIMITS, compared=COMPARED)


ROWS = [*rows()]
