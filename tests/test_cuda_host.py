"""The kernels on a CPU: every suite in any order of threads, and errors for undefined behaviour."""

import ctypes
import os
import platform
import sys

import numpy as np
import pytest
from extras import skip_without
from inputs import differences, edges, exact_codes, roundings_of
from kernels import needed, suites
from kernels.sources import exported, with_wrong_ones
from kernels.suites import Names, Schedule
from kernels.tensors import (
    CODES,
    DTYPES,
    added_up,
    bits,
    converted,
    encoded,
    encoded_at_random,
    multiplied,
    numbers,
    quantized,
    stepped,
)
from test_encoding import decisive_words, stochastic

from mor_ref import Format, exact, formats
from mor_ref.cuda import decoding, host, mx, quantization, source
from mor_ref.cuda.cache import cached_file
from mor_ref.cuda.host import Host, HostError
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.encoding import OVERFLOWS, SpecialCases
from mor_ref.representations import RandomNvfp4


@pytest.fixture(scope="module", autouse=True)
def _compiler():
    needed.compiler()


# ---------------------------------------------------------------------- suites

SCHEDULES = {
    "ascending": (Schedule(), suites.copied),
    "descending in one block": (Schedule(order=1, filling=0, blocks=1), suites.copied),
    "shuffled for workers": (Schedule(order=2, filling=0x5A, workers=3, blocks=5), suites.copied),
    "shuffled unaligned": (Schedule(order=77, filling=0x80, blocks=3), suites.unaligned),
}


def suites_by_schedule():
    """Yield each suite on each; large tensors in an order are of the tier exhaustive."""
    for suite in suites.manifest():
        for schedule in SCHEDULES:
            is_long = suite.endswith("_large") and "shuffled" not in schedule
            tier = "exhaustive" if is_long else "full"
            yield pytest.param(suite, schedule, marks=pytest.mark.tier(tier, but_one_in=12))


@pytest.mark.tier("full", but_one_in=18)
@pytest.mark.parametrize(("suite", "schedule"), [*suites_by_schedule()])
def test_suites(suite, schedule):
    """Every field that kernels give, on any grid, whatever lies in shared memory before."""
    device, place = SCHEDULES[schedule]
    found, compared = suites.wrong(device, suite, place)
    assert found == []
    assert compared >= len(suites.cases(suite))


@pytest.mark.tier("full")
def test_suites_and_the_tests_below_reach_every_kernel():
    device = Names()
    for suite in suites.manifest():
        assert list(suites.answers(device, suite))
    for dtype in DTYPES:
        x = bits(numbers(dtype))
        assert [*quantized(device, x), *converted(device, x), *multiplied(device)]
    assert list(added_up(device))
    every = {(name, kernel) for name in source.program_names() for kernel in exported(name)}
    assert every == device.seen


# ---------------------------------------------------------------------- what suites do not have


@pytest.mark.parametrize("name", [name for name in DTYPES if name != "f32"])
def test_every_source_is_taken_as_binary32(name):
    """QNT-004: in blocks of every size, by teams of every size."""
    device, x = Schedule(order=3, blocks=2), numbers(name)
    with np.errstate(over="ignore", under="ignore"):
        same = quantized(device, bits(x.astype(np.float32)))
    for ours, theirs in zip(quantized(device, bits(x)), same, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("profile", "tile"), [("te", (16, 16)), ("te_row", (1, 16))])
def test_nvfp4_at_random(profile, tile):
    """TRN-008: y of the kernels is that of the exact model, with the same random words."""
    random = np.random.default_rng(5)
    x = random.standard_normal((21, 37)) * 2.0 ** random.integers(-9, 9, (21, 37))
    x[0, :5] = [0.0, -0.0, 1e-40, -3e38, 1e-45]
    x = x.astype(np.float32)
    found = RandomNvfp4(profile, tile, (3, 1, 4, 1, 5))
    rule = found.cuda(Schedule(order=3, blocks=2), bits(x), None)
    expected = [[e.y for e in row] for row in found.exact(x.tolist(), "fp32", None)]
    assert rule.kept.tolist() == np.array(expected, np.float32).view(np.uint32).tolist()


def test_dot_products_on_any_grid():
    """DOT-001 and GEM-001: also of families that suites have not."""
    device = Schedule(order=2, filling=0x5A, workers=2, blocks=3)
    for every in (added_up, multiplied):
        for ours, theirs in zip(every(device), every(Host()), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_long_blocks_of_mx():
    """MXS-002, MXS-007 and MXS-008: as short ones that have the same amax."""
    x = np.random.default_rng(6).uniform(-1, 1, (3, 2 * 2048 + 96)).astype(np.float32)
    x[:, ::32] = 1.5
    x *= np.exp2(np.arange(x.shape[1]) // 2048 * 3).astype(np.float32)
    device, e4m3 = Schedule(order=4, blocks=2), formats["e4m3"]
    short, long = (mx.mx(device, bits(x), e4m3, "rceil", side) for side in (32, 2048))
    np.testing.assert_array_equal(long.codes, short.codes)
    np.testing.assert_array_equal(long.scale, short.scale[:, ::64])
    np.testing.assert_array_equal(long.error, short.error)
    np.testing.assert_array_equal(
        mx.dequantize(device, long, e4m3, 2048),
        mx.dequantize(device, short, e4m3, 32),
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("columns", [16384, 16388, 16386, 16387])
def test_blocks_of_more_columns_than_a_piece(columns, dtype):
    """Loads of 16 bytes end with a block, and do not begin in the middle of one."""
    x = np.random.default_rng(7).standard_normal((2, 2 * columns)).astype(dtype)
    found = in_blocks(x, (1, columns))
    alone = [in_blocks(block.copy(), "tensor") for block in x.reshape(-1, 1, columns)]
    np.testing.assert_array_equal(
        found.codes.reshape(-1, 1, columns), [block.codes for block in alone]
    )
    for ours, theirs in zip(
        found.error, zip(*(block.error for block in alone), strict=True), strict=True
    ):
        np.testing.assert_array_equal(ours.ravel(), np.ravel(theirs))


def in_blocks(x, block):
    parts = partition(x.shape, block)
    return quantization.quantize(Host(), bits(x), formats["e5m2"], "fp32", parts)


def test_the_smallest_number_that_bfloat16_loses():
    """ERR-003: y decides, not x."""
    x = np.arange(0x7F7F7F00, 0x7F7F8100, dtype=np.uint32).view(np.float32).reshape(1, -1)
    parts = partition(x.shape, (1, 1))
    found = quantization.quantize(Host(), bits(x), formats["e4m3"], "fp32", parts)
    y = quantization.dequantize(Host(), found, formats["e4m3"], parts)
    assert {0x7F7F7FFF, 0x7F7F8000} <= set(y.ravel().tolist())
    np.testing.assert_array_equal(found.error.nonfinite, y >= 0x7F7F8000)


@pytest.mark.parametrize("count", [1, 13, 32])
@pytest.mark.parametrize("fmt", CODES)
@pytest.mark.parametrize("name", DTYPES)
def test_stochastic_rounding_of_every_source(name, fmt, count):
    """ENC-005: with the words at which the decision turns."""
    x = numbers(name).ravel()[:300]
    words = decisive_words(x, formats[fmt], count)
    found = encoded_at_random(Host(), bits(x), formats[fmt], words, count)
    assert differences(x, found, stochastic(x, formats[fmt], words, count)) == []


@pytest.mark.parametrize("fmt", CODES)
@pytest.mark.parametrize("name", DTYPES)
def test_every_source_to_codes_of_every_width(name, fmt):
    """ENC-001 to ENC-012."""
    x = numbers(name).ravel()[:300]
    found = encoded(Host(), bits(x), formats[fmt])
    assert differences(x, found, exact_codes(x, formats[fmt], "rne")) == []


OWN_FORMATS = [
    Format("ue4m3", exponent_bits=4, mantissa_bits=3, bias=7, specials="fn", sign="none"),
    Format("e1m6", exponent_bits=1, mantissa_bits=6, bias=1, specials="fnuz"),
    Format(
        "int5", exponent_bits=0, mantissa_bits=4, bias=20, specials="none", sign="twos-complement"
    ),
    Format("tall", exponent_bits=3, mantissa_bits=2, bias=-20),
    Format("ue4m0", exponent_bits=4, mantissa_bits=0, bias=3, specials="none", sign="none"),
    Format("e5m9", exponent_bits=5, mantissa_bits=9, bias=15),
]


@pytest.mark.tier("full", but=["[int5]"])
@pytest.mark.parametrize("fmt", OWN_FORMATS, ids=lambda fmt: fmt.name)
def test_formats_of_users(fmt):
    """ENC-001 to ENC-012, DEC-001 to DEC-003: formats that the catalogue does not have."""
    for dtype in (np.float32, np.float64):
        x = edges(fmt, dtype)
        x = np.concatenate([x[:: max(1, x.size // 400)], dtype([np.nan, -np.nan, np.inf, -np.inf])])
        for rounding in roundings_of(fmt):
            for overflow in OVERFLOWS:
                special = SpecialCases(overflow=overflow, nan="signed")
                found = encoded(Host(), bits(x), fmt, rounding, special)
                assert differences(x, found, exact_codes(x, fmt, rounding, special)) == []
    codes = np.arange(fmt.code_count, dtype=np.uint32)[:: max(1, fmt.code_count // 3000)]
    narrow = codes.astype(np.uint8 if fmt.bits <= 8 else np.uint16)
    found = decoding.decode(Host(), narrow, fmt)
    assert differences(codes, found, [exact.decode(code, fmt) for code in codes.tolist()]) == []


# ---------------------------------------------------------------------- what a GPU defines


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return with_wrong_ones(tmp_path_factory.mktemp("wrong") / "kernels")


@pytest.fixture(scope="module")
def wrong(directory):
    """Return a function that launches a kernel of wrong.cu."""

    def run(kernel, *arguments, threads=64, blocks=1, **how):
        Host(directory=directory, **how).launch("wrong", kernel, blocks, threads, arguments)

    return run


def words(count):
    return np.zeros(count, np.uint32)


MISUSE = {
    "different_barriers": (0, "threads of a block wait at different barriers"),
    "barrier_for_some": (0, "64 of 64 threads wait for ever, 32 of them at a barrier"),
    "shuffle_from_the_ended": (64, "a shuffle reads a lane that has ended"),
    "different_calls": (64, "lanes of a warp meet in different calls"),
    "different_masks": (64, "64 of 64 threads wait for ever, .* lanes 0x.* of its mask do not"),
    "not_in_its_mask": (64, "a lane is not in its own mask"),
    "shuffle_from_outside": (64, "a shuffle reads a lane that is not in its mask"),
}


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("kernel", MISUSE)
def test_misuse_is_an_error(wrong, kernel, order):
    size, message = MISUSE[kernel]
    arguments = [words(size)] if size else []
    for _ in range(2):  # a launch that was left in the middle does not disturb the next
        with pytest.raises(HostError, match=f"kernel {kernel}: {message}"):
            wrong(kernel, *arguments, order=order)
    ended = words(1)
    wrong("ended_threads_leave_barriers", ended, np.uint32(64), order=order)
    assert ended[0] == 64


@pytest.mark.parametrize("order", [0, 1, 2])
def test_lanes_that_have_ended_are_not_waited_for(wrong, order):
    out = words(64)
    wrong("lanes_that_have_ended", out, order=order)
    expected = [0xFFFF + (k ^ 1) if k % 32 < 16 else 0 for k in range(64)]
    assert out.tolist() == expected


def test_an_error_says_where_it_was(wrong, directory):
    lines = (directory / "wrong.cu").read_text().splitlines()
    line = 1 + next(k for k, text in enumerate(lines) if "__ballot_sync(1, 1)" in text)
    message = rf"its own mask \(wrong.cu:{line}, block 0,0,0, thread 1\)"
    with pytest.raises(HostError, match=message):
        wrong("not_in_its_mask", words(64))


@pytest.mark.parametrize(("blocks", "threads"), [(0, 32), (1, 0), (1, 1025)])
def test_grids_that_no_gpu_takes(wrong, blocks, threads):
    with pytest.raises(HostError, match="a grid has at least one block, and a block 1 to 1024"):
        wrong(
            "ended_threads_leave_barriers", words(1), np.uint32(1), blocks=blocks, threads=threads
        )


def order_of(wrong, order):
    out = words(3 * 40)
    wrong("order_of_threads", words(1), out, threads=40, blocks=3, order=order)
    return out.tolist()


def test_orders_of_threads_and_blocks(wrong):
    """Each is one, and those of other blocks are others."""
    assert order_of(wrong, 0) == list(range(120))
    assert order_of(wrong, 1) == list(range(120))[::-1]
    one, other = order_of(wrong, 2), order_of(wrong, 77)
    assert one != other
    for order in (one, other):
        blocks = [order[start : start + 40] for start in (0, 40, 80)]
        assert [sorted(block) for block in blocks] == np.arange(120).reshape(3, 40).tolist()
        assert [thread - 40 for thread in blocks[1]] != blocks[0] != list(range(40))


@pytest.mark.parametrize("filling", [0, 0x5A, 0xFF])
def test_old_values_of_shared_memory_do_not_last(wrong, filling):
    """Not even in the first block of all, nor from one block to the next."""
    for _ in range(2):
        out = words(3 * 64)
        wrong("old_values", out, threads=32, blocks=3, filling=filling)
        assert set(out.tolist()) == {filling * 0x01010101}


def test_threads_that_end_leave_barriers(wrong):
    for order in (0, 1, 2):
        for count in (1, 31, 37, 100):
            out = words(1)
            wrong("ended_threads_leave_barriers", out, np.uint32(count), threads=100, order=order)
            assert out[0] == count


@pytest.mark.parametrize("order", [0, 1, 2])
def test_meetings(wrong, order):
    out = np.zeros((64, 6), np.uint64)
    wrong("meetings", out, order=order)
    thirds = sum(1 << lane for lane in range(0, 32, 3))
    odd = sum(1 << lane for lane in range(17, 32, 2))
    for thread, row in enumerate(out.tolist()):
        lane = thread % 32
        other = lane ^ 5
        within = lane ^ 6 if lane ^ 6 <= lane | 3 else lane
        half = 0xFFFF if lane < 16 else odd
        assert row == [thirds, thread >= 32, other << 40 | other, within, 1, half]


def test_atomics(wrong):
    for workers in (1, 4):
        total, seen, largest, smallest = words(1), words(1), words(1), words(1) + np.uint32(99)
        wrong("integer_atomics", total, seen, largest, smallest, blocks=8, workers=workers)
        found = [int(array[0]) for array in (total, seen, largest, smallest)]
        assert found == [8 * 63 * 32, 0xFFFFFFFF, 63, 0]


@pytest.mark.tier("full")
def test_sums_of_real_numbers_are_refused(directory):
    """They depend on the order of threads."""
    (directory / "real.cu").write_text(
        '#include "prelude.cuh"\n'
        'extern "C" __global__ void add(float* sum) { atomicAdd(sum, 1.0f); }\nMOR_EXPORT(add)\n'
    )
    with pytest.raises(HostError, match="floating-point sums depend on their order"):
        host.library("real", directory)


@pytest.mark.parametrize("workers", [1, 2])
def test_arithmetic_is_plain(wrong, directory, workers, monkeypatch):
    """Nothing is fused, and nothing flushed, whatever modes the calling thread has.

    `Host` refuses such a thread; a program that calls the compiled kernels itself does not.
    """
    monkeypatch.setattr(host, "check_processor", lambda: None)
    x = np.array([2.0**-100, 2.0**-40, 1 + 2.0**-12, 1 + 2.0**-12, -1 - 2.0**-11], np.float32)
    out, control = np.zeros(2, np.float32), host.library("wrong", directory)
    if platform.machine() == "x86_64":
        control.set_control(0x9FC0)
        flushed = np.float32(2.0**-100) * np.float32(2.0**-40)
    try:
        wrong("plain_arithmetic", x, out, workers=workers)
    finally:
        if platform.machine() == "x86_64":
            assert control.set_control(0x1F80) & 0x9FC0 == 0x9FC0
            assert flushed == 0
    assert out.tolist() == [2.0**-140, 0.0]


# ---------------------------------------------------------------------- the compiler


def test_a_compiler_that_is_not_there(monkeypatch):
    monkeypatch.setenv("CXX", "no_such_compiler -O3")
    with pytest.raises(HostError, match="CXX is 'no_such_compiler -O3', which was not found; name"):
        host.compiler.__wrapped__()
    monkeypatch.delenv("CXX")
    monkeypatch.setattr(host.shutil, "which", lambda _: None)
    monkeypatch.setattr(host, "find_spec", lambda _: None)
    with pytest.raises(HostError, match="install g\\+\\+ or clang\\+\\+, or pip install ziglang"):
        host.compiler.__wrapped__()


COMPILERS = {
    "clang++": ("clang++",),
    "ziglang": (sys.executable, "-m", "ziglang", "c++"),
}


def assert_same_bits(name, monkeypatch, run):
    """Compare the results of kernels that another compiler made with those of the usual one."""
    skip_without(name)
    expected = [*run(Host())]
    monkeypatch.setattr(host, "compiler", lambda: COMPILERS[name])
    own = Host(extra=("-DMOR_OTHER_COMPILER",))  # libraries are known by their compiler
    for ours, theirs in zip(run(own), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


# ziglang is a clang++ as well, and takes nine times as long.
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("clang++", marks=pytest.mark.tier("full")),
        pytest.param("ziglang", marks=pytest.mark.tier("exhaustive")),
    ],
)
def test_other_compilers(name, monkeypatch):
    """They make the same bits of the kernels; ziglang is for where no other is installed."""
    x = bits(numbers("f32"))
    assert_same_bits(name, monkeypatch, lambda device: [*converted(device, x), *stepped(device)])


@pytest.mark.tier("full")
def test_ziglang_compiles_codes(monkeypatch):
    """The kernels of one program, of all that the tier exhaustive has."""
    x = bits(numbers("f32"))
    e4m3 = formats["e4m3"]
    assert_same_bits("ziglang", monkeypatch, lambda device: [encoded(device, x, e4m3)])


def test_a_source_that_does_not_compile(tmp_path, monkeypatch):
    monkeypatch.setenv("MOR_REF_CACHE", str(tmp_path))
    (tmp_path / "broken.cu").write_text("not C++\n")
    with pytest.raises(HostError, match="cannot compile broken.cu: "):
        host.library("broken", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["broken.cu"]


@pytest.mark.tier("full")
def test_kernels_are_compiled_once(tmp_path, monkeypatch):
    monkeypatch.setenv("MOR_REF_CACHE", str(tmp_path))
    host.library.__wrapped__("scales")
    (made,) = tmp_path.iterdir()
    before = made.stat().st_mtime_ns
    host.library.__wrapped__("scales")
    assert [path.stat().st_mtime_ns for path in tmp_path.iterdir()] == [before]
    assert isinstance(host.library("scales"), ctypes.CDLL)


def test_kernels_are_compiled_again_by_another_version_of_the_compiler(tmp_path, monkeypatch):
    """Whatever its command is."""
    monkeypatch.setenv("MOR_REF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(host, "compiled", lambda *_: b"a library")
    own = tmp_path / "own_compiler"
    monkeypatch.setattr(host, "compiler", lambda: (str(own),))
    names = []
    for version in (1, 2):
        own.write_text(f"#!/bin/sh\necho own {version}\n")
        own.chmod(0o755)
        host.compiler_version.cache_clear()
        names.append(host.library_file("scales").name)
    host.compiler_version.cache_clear()
    assert len(set(names)) == 2


def test_a_library_that_cannot_be_loaded(tmp_path, monkeypatch):
    """Such as one in a directory whose programs may not be run."""
    monkeypatch.setenv("MOR_REF_CACHE", str(tmp_path))
    monkeypatch.setattr(host, "compiled", lambda *_: b"no library")
    with pytest.raises(HostError, match=r"scales-.*\.so cannot be loaded \(.*\); delete it"):
        host.library.__wrapped__("scales")


def flipped(content):
    """Return the content with a wrong bit in its middle."""
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize("ending", ["so", "cubin", "ptx.z"])
@pytest.mark.parametrize(
    "damage",
    [flipped, lambda content: content[:-1], lambda _: b"", lambda content: content + b"\0"],
    ids=["flipped", "cut", "empty", "longer"],
)
def test_damaged_files_of_the_cache_are_made_anew(tmp_path, monkeypatch, damage, ending):
    """To run one could end the process, or compute something else."""
    monkeypatch.setenv("MOR_REF_CACHE", str(tmp_path))
    content, makes = bytes(range(256)), []

    def make():
        makes.append(len(makes))
        return content

    made = cached_file(f"kernel.{ending}", make)
    made.write_bytes(damage(content))
    for _ in range(2):
        assert cached_file(f"kernel.{ending}", make).read_bytes() == content
    assert makes == [0, 1]
    assert made.name.endswith(f".{ending}")


def test_a_file_of_the_cache_at_the_place_of_another_is_made_anew(tmp_path, monkeypatch):
    monkeypatch.setenv("MOR_REF_CACHE", str(tmp_path))
    one, other = (cached_file(name, name.encode) for name in ("encoding.so", "decoding.so"))
    other.write_bytes(one.read_bytes())
    one.rename(tmp_path / one.name.replace("encoding", "decoding"))
    assert cached_file("decoding.so", lambda: b"decoding.so").read_bytes() == b"decoding.so"


@pytest.mark.skipif(os.name != "posix", reason="only POSIX has modes of files")
@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o002, 0o664), (0o077, 0o600)])
def test_files_of_the_cache_are_as_open_as_others(tmp_path, monkeypatch, mask, mode):
    """A directory that people share is of use to all of them."""
    monkeypatch.setenv("MOR_REF_CACHE", str(tmp_path))
    before = os.umask(mask)
    try:
        made = cached_file("kernel", lambda: b"a kernel")
    finally:
        os.umask(before)
    assert made.stat().st_mode & 0o777 == mode
    assert list(tmp_path.iterdir()) == [made]
