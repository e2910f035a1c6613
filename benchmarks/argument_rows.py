"""The functions under their other arguments: scalings, blocks, profiles, rules, special cases."""

import functools

import numpy as np

import mor_ref
from benchmarks import eager, inputs, peers
from benchmarks.conversion_rows import argument, encoding
from benchmarks.quantizing_rows import in_torch, mx, nvfp4, untiled
from benchmarks.rows import OURS, Contender, Row
from mor_ref.definitions.formats import encoding_profiles
from mor_ref.definitions.mx import SCALE_RULES
from mor_ref.definitions.nvfp4 import PROFILES

USUAL, SMALL = 22, 20
BLOCKS = ("tensor", "row", "column", (1, 128))
MX_FORMATS = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "int8_mx")
POLICIES = ("two_way", "three_way", "nvfp4")


def of_encoding():
    """Yield rows of special cases: other libraries' profiles, overflow to NaN, signed NaN."""
    for fmt in ("e4m3", "e5m2"):
        others = {
            f"profile {name}": argument(encoding(fmt, profile=name))
            for name, covered in encoding_profiles.items()
            if fmt in covered
        }
        others["overflow ieee"] = argument(encoding(fmt, overflow="ieee"))
        others["nan signed"] = argument(encoding(fmt, nan="signed"))
        contenders = {OURS: encoding(fmt)} | others
        yield Row(f"encode f32 to {fmt}, other arguments", inputs.normal(USUAL), contenders)


def quantizing(fmt="e4m3", **arguments):
    """Return our contender."""
    chosen = {"block": (128, 128), "threads": 1} | arguments
    return Contender(lambda x: lambda: mor_ref.quantize(x, fmt, **chosen), lambda q: (q.codes,))


def of_quantizing():
    """Yield rows of the other scalings next to eager torch, and of the other blocks."""
    x = inputs.normal(USUAL, inputs.BF16)
    for scaling in ("fp32", "e8m0"):
        contenders = {
            OURS: quantizing(scaling=scaling),
            "eager torch": in_torch(
                functools.partial(eager.torch_quantize, scaling=scaling),
                lambda q: (untiled(peers.codes_of(q[0])),),
            ),
        }
        yield Row(f"quantize bf16 to e4m3, {scaling} scales", x, contenders)
    others = {f"block {block}": argument(quantizing(block=block)) for block in BLOCKS}
    others |= {f"to {fmt}": argument(quantizing(fmt)) for fmt in ("e5m2", "e2m1", "e3m4")}
    yield Row("quantize bf16 to e4m3, other arguments", x, {OURS: quantizing()} | others)


def mor_under(policy):
    """Return our contender."""
    return Contender(lambda x: lambda: mor_ref.mor(x, policy, threads=1), lambda m: (m.output,))


def of_mor():
    """Yield rows of MoR on f32, next to eager torch and under every policy."""
    contenders = {
        OURS: mor_under("tensor"),
        "eager torch": in_torch(eager.torch_mor, lambda m: (peers.codes_of(m[1]),)),
    }
    others = {f"policy {name}": argument(mor_under(name)) for name in POLICIES}
    everyone = contenders | others
    yield Row("mor of f32, tensor", inputs.normal(USUAL, np.float32), everyone, compared="outputs")


def of_nvfp4():
    """Yield a row of every profile."""
    others = {f"profile {name}": argument(nvfp4(name)) for name in PROFILES if name != "te"}
    x = inputs.normal(USUAL, inputs.BF16)
    yield Row("NVFP4 of bf16, other profiles", x, {OURS: nvfp4("te")} | others)


def of_mx():
    """Yield a row of every format under every rule."""
    pairs = [(fmt, rule) for fmt in MX_FORMATS for rule in SCALE_RULES]
    others = {f"{fmt} {rule}": argument(mx(fmt, rule)) for fmt, rule in pairs[1:]}
    x = inputs.normal(SMALL, inputs.BF16)
    yield Row("MX of bf16, every format and rule", x, {OURS: mx(*pairs[0])} | others)


ROWS = [*of_encoding(), *of_quantizing(), *of_mor(), *of_nvfp4(), *of_mx()]
