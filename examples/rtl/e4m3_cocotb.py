"""Compares e4m3_encode with mor_ref, in a simulator that cocotb drives; README.md says how."""

import os
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import Timer

import mor_ref


@cocotb.test()
async def codes_are_those_of_mor_ref(dut: Any) -> None:
    """Apply random bits, and numbers near the range of e4m3."""
    random = np.random.default_rng(int(os.environ.get("SEED", "1")))
    x = random.integers(1 << 32, size=2000, dtype=np.uint32)
    x[::2] = random.normal(size=1000).astype(np.float32).view(np.uint32)
    x[::4] &= np.uint32(0xFFF80000)  # many ties
    expected = mor_ref.encode(x.view(np.float32), "e4m3")
    for bits, code in zip(x.tolist(), expected.tolist(), strict=True):
        dut.x.value = bits
        await Timer(1, "step")
        if int(dut.code.value) != code:
            raise AssertionError(f"x is {bits:08x}, and the code is {dut.code.value}")
