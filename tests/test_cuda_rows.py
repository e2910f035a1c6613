"""The structures that kernels take are the same in Python and in C++, to compilers of both."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
from kernels import needed

from mor_ref.cuda import host, nvrtc, source
from mor_ref.cuda import structures as rows
from mor_ref.cuda.nvrtc import NvrtcError
from mor_ref.definitions.formats import formats

STRUCTURES = {name: dtype for name, dtype in vars(rows).items() if isinstance(dtype, np.dtype)}
TYPES = {"i4": "i32", "u4": "u32", "f4": "float"}  # a field of 8 bytes is a number or a pointer


def in_source(name):
    """Return the name in the sources, such as ByScale for BY_SCALE."""
    return "".join(word.capitalize() for word in name.split("_"))


def facts(structure, dtype):
    """Yield facts that must hold for a structure and for each field."""
    yield f"sizeof({structure}) == {dtype.itemsize}"
    for name, (field, offset) in dtype.fields.items():
        yield f"__builtin_offsetof({structure}, {name}) == {offset}"
        yield f"sizeof({structure}::{name}) == {field.itemsize}"
        kind = TYPES.get(field.base.str[1:])
        if kind:
            count = f"[{field.shape[0]}]" if field.shape else ""
            yield f"Same<decltype({structure}::{name}), {kind}{count}>::value"


def compile_on_cpu(folder):
    command = [*needed.compiler(), "-std=c++17", "-fsyntax-only", f"-I{source.ON_CPU}"]
    command += ["-x", "c++", folder / "facts.cu"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


def compile_for_gpu(folder):
    needed.library()
    try:
        nvrtc.compiled(source.flattened("facts", folder), "compute_90", "facts")
    except NvrtcError as error:
        return str(error)
    return ""


@pytest.fixture(params=[compile_on_cpu, compile_for_gpu], ids=["cpu", "gpu"])
def refused(request, tmp_path):
    """Return a function that compiles facts about structures and returns the errors."""
    folder = shutil.copytree(source.KERNELS, tmp_path / "kernels")
    headers = sorted(path.name for path in folder.glob("*.cuh"))

    def said(all_facts):
        lines = [
            *(f'#include "{name}"' for name in (*headers, "nvfp4.cu")),
            "template <class A, class B> struct Same { static constexpr bool value = false; };",
            "template <class A> struct Same<A, A> { static constexpr bool value = true; };",
            *(f'static_assert({fact}, "it is not so");' for fact in all_facts),
        ]
        (folder / "facts.cu").write_text("\n".join(lines) + "\n")
        return request.param(folder)

    return said


@pytest.mark.tier("full")
def test_every_structure_is_the_same(refused):
    every = [fact for name, dtype in STRUCTURES.items() for fact in facts(in_source(name), dtype)]
    assert len(STRUCTURES) == 17
    assert refused(every) == ""


@pytest.mark.tier("full", but=["[gpu-fields1]"])
@pytest.mark.parametrize(
    "fields",
    [
        [("sum", "u8"), ("nonzero", "u8")],
        [("sum", "u8"), ("nonfinite", "u8"), ("nonzero", "u8")],
        [("sum", "u8"), ("nonzero", "u4"), ("nonfinite", "u8")],
    ],
)
def test_other_structures_are_refused(refused, fields):
    assert "it is not so" in refused(facts("ErrorSums", np.dtype(fields, align=True)))


@pytest.mark.tier("full", but=["[gpu]"])
def test_other_types_are_refused(refused):
    fields = [("metric", "u4"), ("own", "u4"), ("yardstick", "u4"), ("limit", "i4")]
    other = np.dtype([*fields, ("largest", "f4"), ("smallest", "f4")], align=True)
    assert "it is not so" in refused(facts("Rung", other))


@pytest.mark.tier("full")
def test_what_is_launched_is_the_same(tmp_path):
    """The structure of a launch on a CPU, which ctypes makes."""
    launch = host.Launch
    places = [
        f"__builtin_offsetof(mor_host::Launch, {name}) == {getattr(launch, name).offset} && "
        f"sizeof(mor_host::Launch::{name}) == {getattr(launch, name).size}"
        for name, _ in launch._fields_
    ]
    size = f"sizeof(mor_host::Launch) == {ctypes.sizeof(launch)}"
    (tmp_path / "facts.cu").write_text(
        '#include "language.h"\n'
        + "".join(f'static_assert({one}, "");\n' for one in [size, *places])
    )
    assert compile_on_cpu(tmp_path) == ""


def test_every_field_has_to_be_given():
    with pytest.raises(TypeError, match="the structure has .*, and .* are given"):
        rows.row(rows.ERROR_SUMS, sum=1, nonzero=2)


def test_what_follows_from_a_format_is_made_once():
    """And stays as it is: launches share it."""
    for make in (rows.scaled, rows.nearest, rows.decoding):
        found = make(formats["e4m3"])
        assert found is make(formats["e4m3"])
        with pytest.raises(ValueError, match="read-only"):
            found[0] = 0
    assert rows.scaled(formats["e4m3"]) != rows.scaled(formats["e5m2"])
