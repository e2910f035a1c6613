"""Products of matrices in e4m3, and MMA-Sim on a part of them."""

import functools
import importlib
import sys
from dataclasses import replace
from types import ModuleType

import numpy as np

import mor_ref
from benchmarks.rows import OURS, Arrays, Call, Contender, Ratio, Row

SIDE, PART = 512, 64  # MMA-Sim takes a minute for all
CHUNK = 32  # products of an instruction
MMASIM = "MMA-Sim, 64 rows and columns"


def operands(side: int = SIDE) -> np.ndarray:
    """Return the codes of two matrices, each with K along its rows."""
    x = np.random.default_rng(5).standard_normal((2, side, side)).astype(np.float32)
    return mor_ref.encode(x, "e4m3")


def multiplying(profile: str, side: int = SIDE) -> Contender:
    """Return a contender: the first rows and columns of the product, on one thread."""

    def prepare(x: np.ndarray) -> Call:
        dtype = importlib.import_module("ml_dtypes").float8_e4m3fn
        a, b = (codes[:side, :side].copy().view(dtype) for codes in x)
        return functools.partial(
            mor_ref.matmul, a, mor_ref.transposed(b), profile=profile, threads=1
        )

    return Contender(prepare, lambda found: (found,), elements=side**3, makes_numbers=True)


def simulated(x: np.ndarray) -> Call:
    """Return MMA-Sim's dot products of the first rows and columns, on one thread."""
    torch = importlib.import_module("torch")
    # Only the profiles of binary64 need the C++ code of this module.
    stub = ModuleType("mmasim.arithmetic.fma")
    stub.MMA_FMA = object  # type: ignore[attr-defined]
    sys.modules.setdefault("mmasim.arithmetic.fma", stub)
    instruction = importlib.import_module("mmasim.nv_ptx.sim").WGMMA(
        "Hopper", f"m64n8k{CHUNK}.f32.e4m3.e4m3"
    )
    rows = np.repeat(x[0, :PART], PART, axis=0), np.tile(x[1, :PART], (PART, 1))
    a, b = (torch.from_numpy(codes).view(torch.float8_e4m3fn) for codes in rows)
    torch.set_num_threads(1)

    def multiply() -> np.ndarray:
        sums = torch.zeros(PART * PART)
        for k in range(0, SIDE, CHUNK):
            sums = instruction.dpa(a[:, k : k + CHUNK], b[:, k : k + CHUNK], sums)
        found: np.ndarray = sums.numpy().reshape(PART, PART)
        return found

    return multiply


def part_of_product() -> Arrays:
    """Return our bits of the part that MMA-Sim computes."""
    return (multiplying("hopper_fp8").prepare(operands())()[:PART, :PART],)


def by_profile():
    """Yield the rows of a product under an instruction, and of the exact one."""
    elements = PART * PART * SIDE
    peer = Contender(
        simulated,
        lambda found: (found,),
        expected=part_of_product,
        needs="mmasim",
        elements=elements,
        makes_numbers=True,
    )
    # Of another profile: its times alone are of interest.
    timed = Contender(simulated, needs="mmasim", elements=elements, makes_numbers=True)
    for profile, contender, at_least in (("hopper_fp8", peer, 20), ("exact", timed, 5)):
        contenders = {OURS: multiplying(profile), MMASIM: contender}
        limits = (Ratio((MMASIM,), at_least=at_least),)
        yield Row(f"matmul of e4m3, {profile}", operands, contenders, limits, compared="bits")


def of_sizes():
    """Yield the row that shows that a product of matrices is linear in the number of products."""
    smaller = {  # other products, whose times alone are of interest
        f"{side}^3": replace(multiplying("hopper_fp8", side), bits=None) for side in (128, 256)
    }
    limits = (Ratio((OURS,), over="128^3", at_most=1.5),)
    contenders = {OURS: multiplying("hopper_fp8")} | smaller
    name = "matmul of e4m3, hopper_fp8, from 128^3 to 512^3"
    yield Row(name, operands, contenders, limits, compared="bits")


ROWS = [*by_profile(), *of_sizes()]
