"""Launches of PTX that are recorded and repeated on a GPU; here a CPU is in its place."""

import io
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from gpu import ptx_launches, ptx_repeats
from kernels import needed
from ptx_programs import HEADER, program

from mor_ref.ptx import Kernel, Module

THIRD = 0x3EAAAAAB
SUM = """.visible .entry run(.param .u64 out, .param .align 4 .b8 three[12]) {
  .reg .b32 %r<4>; .reg .b64 %d<3>; ld.param.u64 %d0, [out]; ld.param.u32 %r1, [three+8];
  ld.global.u32 %r2, [%d0]; add.s32 %r3, %r1, %r2; st.global.u32 [%d0], %r3; ret; }"""


@pytest.fixture(scope="module", autouse=True)
def _compiler():
    needed.compiler()


class Array:
    def __init__(self, host):
        self.host, self.size = host, host.size
        self.data = SimpleNamespace(ptr=host.ctypes.data)

    def set(self, host):
        self.host[:] = host

    def get(self):
        return self.host


class Cupy:
    """The parts of CuPy that repeating needs; `change` is of the text of a module."""

    def __init__(self, change):
        self.change, self.arrays = change, []
        runtime = SimpleNamespace(driverGetVersion=lambda: 13000)
        device = lambda: SimpleNamespace(synchronize=lambda: None)  # noqa: E731
        self.cuda = SimpleNamespace(runtime=runtime, Device=device)

    def empty(self, size, dtype):
        self.arrays.append(np.empty(size, dtype))
        return Array(self.arrays[-1])

    def RawModule(self, *, path):  # noqa: N802
        text = self.change(Path(path).read_text("utf-8"))
        assert ".version 9.0\n" in text
        return SimpleNamespace(get_function=Module(text, undefined="nearest").__getitem__)


@pytest.fixture
def repeated(monkeypatch):
    """Return a function that records calls, and returns what repeating them says."""

    def said_of(call, change=lambda text: text):
        recorder, cupy, out = ptx_launches.Recorder(), Cupy(change), io.StringIO()
        with monkeypatch.context() as patched:
            patched.setattr(ptx_launches.Configured, "__call__", recorder.method())
            call()

        def on_gpu(kernel, grid, block, values, *, shared_mem):
            assert isinstance(values, tuple)
            values = [np.void(value.tobytes()) for value in values]
            kernel[grid, block, shared_mem](*values, memory=cupy.arrays)

        monkeypatch.setattr(ptx_repeats, "cupy", lambda: cupy)
        monkeypatch.setattr(Kernel, "__call__", on_gpu, raising=False)
        ptx_repeats.run_here(enumerate(recorder.sessions), out)
        found = ptx_repeats.Report()
        for line in map(json.loads, out.getvalue().splitlines()):
            found.add(line)
        return found

    return said_of


def launched(text, *values):
    def call():
        out = np.array([5, 7], np.uint64)
        Module(text, undefined="nearest")["run"][1, 1](out[1:], *values)

    return call


def test_a_launch_is_repeated_and_a_difference_is_named(repeated):
    three = np.zeros(1, [("x", "u4", 3)])
    three["x"] = 1, 2, 3
    call = launched(HEADER + SUM, three)
    assert (repeated(call).compared, repeated(call).wrong) == (1, [])
    (wrong,) = repeated(call, lambda text: text.replace("add.s32", "sub.s32")).wrong
    assert "run: add.s32 %r3, %r1, %r2" in wrong
    assert "byte 8: of 7: GPU fffffffc, CPU a" in wrong


@pytest.mark.parametrize(("instead", "differ"), [("rcp.rn", 0), ("sqrt.rn", 1)])
def test_a_bounded_result_is_between_its_ends(repeated, instead, differ):
    call = launched(program("rcp.approx.f32", ("f32", "f32")), np.array([THIRD], np.uint64))
    found = repeated(call, lambda text: text.replace("rcp.approx", instead))
    assert (found.compared, found.opened, len(found.wrong)) == (1, 1, differ)


def test_what_depends_on_the_order_of_threads_is_left_out(repeated):
    last = """.visible .entry run(.param .u64 out) { .reg .b32 %r<3>; .reg .b64 %d<1>;
  ld.param.u64 %d0, [out]; mov.u32 %r1, %tid.x; atom.global.exch.b32 %r2, [%d0], %r1; ret; }"""
    found = repeated(lambda: Module(HEADER + last)["run"][1, 64](np.zeros(1, np.uint32)))
    assert (found.compared, found.wrong) == (0, [])


def test_what_a_driver_refuses_is_counted(repeated, monkeypatch):
    """With the first line that the driver writes, if it writes one."""
    monkeypatch.setattr(ptx_repeats, "why_refused", lambda _: "error : Unknown symbol")
    found = repeated(launched(HEADER + SUM, np.zeros(1, [("x", "u4", 3)])), lambda text: text + "x")
    assert (found.compared, found.refused) == (0, {"error : Unknown symbol": 1})
