"""Philox 4x32, the words of Transformer Engine's kernels, and its rounding without `cvt.rs`."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from extras import needs, skip_without

import mor_ref
from mor_ref import exact
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.definitions.formats import formats, random_bits
from mor_ref.definitions.nvfp4 import PROFILES, TE_KERNELS
from mor_ref.exact import philox
from mor_ref.exact.encoding import random_words
from mor_ref.exact.nvfp4 import nvfp4
from mor_ref.exact.quantization import RandomWords

ONES = 0xFFFFFFFF
PI = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0)
# kat_vectors of Random123: rounds, counter, key and block.
KNOWN_ANSWERS = [
    (7, (0,) * 4, (0,) * 2, (0x5F6FB709, 0x0D893F64, 0x4F121F81, 0x4F730A48)),
    (7, (ONES,) * 4, (ONES,) * 2, (0x5207DDC2, 0x45165E59, 0x4D8EE751, 0x8C52F662)),
    (7, *PI, (0x4DFCCABA, 0x190A87F0, 0xC47362BA, 0xB6B5242A)),
    (10, (0,) * 4, (0,) * 2, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    (10, (ONES,) * 4, (ONES,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (10, *PI, (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
]
OUTPUTS = [
    (name, outputs, transposed)
    for name, kernel in TE_KERNELS.items()
    for outputs in kernel.outputs
    for transposed in {"rows": (False,), "columns": (True,), "both": (False, True)}[outputs]
]


@pytest.mark.parametrize(("rounds", "counter", "key", "block"), KNOWN_ANSWERS)
def test_blocks_are_those_of_the_authors(rounds, counter, key, block):
    """NVF-015."""
    assert philox.philox(counter, key, rounds) == block
    assert mor_ref.philox4x32(counter, key, rounds=rounds).tolist() == [*block]


@needs("torch")
@pytest.mark.parametrize("rounds", [6, 10])
def test_streams_are_those_of_torch(rounds, tmp_path):
    """NVF-016: a million words of the engine in its headers, also where an offset carries."""
    skip_without("g++")
    import torch

    source = tmp_path / "words.cpp"
    source.write_text(
        """#include <ATen/core/PhiloxRNGEngine.h>
#include <cstdio>
#include <cstdlib>
int main(int, char **given) {
  const uint64_t seed = strtoull(given[1], 0, 0), first = strtoull(given[2], 0, 0);
  const uint64_t offset = strtoull(given[3], 0, 0);
  const int streams = atoi(given[4]), words = atoi(given[5]), rounds = atoi(given[6]);
  for (int i = 0; i < streams; ++i) {
    at::Philox4_32 engine(seed, first + i, offset);
    for (int k = 0; k < words; ++k) {
      const uint32_t word = engine(rounds);
      fwrite(&word, 4, 1, stdout);
    }
  }
}
"""
    )
    program = tmp_path / "words"
    include = Path(torch.__file__).parent / "include"
    subprocess.run(
        [shutil.which("g++"), "-std=c++20", "-O1", f"-I{include}", str(source), "-o", str(program)],
        check=True,
    )
    streams, words = 4096, 64
    for seed, first, offset in (
        (0, 0, 0),
        (0x123456789ABCDEF, 77, 1024),
        (2**64 - 1, 2**32 - 5, 2**32 - 3),
        (5, 2**63, 2**64 - 20),
    ):
        given = [str(n) for n in (seed, first, offset, streams, words, rounds)]
        output = subprocess.run([str(program), *given], check=True, capture_output=True).stdout
        theirs = np.frombuffer(output, "<u4").reshape(streams, words)
        numbers = [
            ((first + i) << 64) + offset + block
            for i in range(streams)
            for block in range(words // 4)
        ]
        counters = np.array(
            [[n >> 32 * place & ONES for place in range(4)] for n in numbers], np.uint32
        )
        ours = mor_ref.philox4x32(counters, [seed & ONES, seed >> 32], rounds=rounds)
        assert np.array_equal(ours.reshape(streams, words), theirs)
        for i, w in ((0, 0), (9, 63), (4095, 41)):
            assert philox.stream_word(seed, first + i, offset, w, rounds) == theirs[i, w]


class Thread:
    """The state of a thread of a kernel: it draws the words of a stream one after the other."""

    def __init__(self, seed, subsequence, offset):
        self.stream, self.drawn = (seed, subsequence, offset), 0

    def draw(self):
        self.drawn += 1
        return philox.stream_word(*self.stream, self.drawn - 1)


def threads_of(rows, columns, seed, offset, count):
    """Yield the first row and column of each chunk, with the number of each of its threads."""
    across = -(-columns // 128)
    for chunk in range(-(-rows // 128) * across):
        for number in range(count):
            thread = Thread(seed, chunk * count + number, offset)
            yield chunk // across * 128, chunk % across * 128, number, thread


def drawn_by_tuned_1d(rows, columns, seed, offset, outputs):
    """Return the words of elements of x and of its transpose, in the loops of the kernel."""
    of_rows, of_columns = {}, {}
    for first_row, first_column, number, thread in threads_of(rows, columns, seed, offset, 128):
        warp, lane = divmod(number, 32)
        for stage in range(4):
            top, left = first_row + stage // 2 * 64, first_column + stage % 2 * 64
            for repeat, wave, four in np.ndindex(2, 2, 2):
                half = (wave + lane // 16) % 2
                row, column = top + number // 4 + 32 * repeat, left + number % 4 * 16 + half * 8
                of_rows[row, column + 4 * four] = thread.draw()
            if outputs == "both":
                block = (lane // 2 + warp) % 4
                for one_of_pair, four in np.ndindex(2, 4):
                    element = top + 16 * block + 4 * four, left + 2 * lane + one_of_pair
                    of_columns[element] = thread.draw()
    return of_rows, of_columns


def drawn_by_vector_blockwise(rows, columns, seed, offset, outputs):
    """Return the words of elements of x and of its transpose, in the loops of the kernel."""
    of_rows, of_columns = {}, {}
    for top, left, number, thread in threads_of(rows, columns, seed, offset, 256):
        group, place = divmod(number, 8)
        if outputs != "columns":
            for repeat, four in np.ndindex(4, 4):
                row, column = top + group + 32 * repeat, left + place * 16 + 4 * four
                of_rows[row, column] = thread.draw()
        if outputs != "rows":
            for repeat, one_of_pair, four in np.ndindex(2, 2, 4):
                row, column = top + place * 16 + 4 * four, left + 2 * (group + 32 * repeat)
                of_columns[row, column + one_of_pair] = thread.draw()
    return of_rows, of_columns


@pytest.mark.parametrize(("name", "outputs", "transposed"), OUTPUTS)
def test_words_are_those_that_threads_draw(name, outputs, transposed):
    """NVF-017: of a matrix with whole and smaller chunks, and for an offset that carries."""
    drawn_by = {"tuned_1d": drawn_by_tuned_1d, "vector_blockwise": drawn_by_vector_blockwise}[name]
    rows, columns, seed, offset = 160, 192, (7 << 40) + 5, 2**64 - 2
    of_rows, of_columns = drawn_by(rows, columns, seed, offset, outputs)
    if transposed:
        lines = [[of_columns[i, j] for i in range(0, rows, 4)] for j in range(columns)]
    else:
        lines = [[of_rows[i, j] for j in range(0, columns, 4)] for i in range(rows)]
    given = {"kernel": name, "outputs": outputs, "transposed": transposed}
    found = mor_ref.te_random_words((rows, columns), seed, offset, **given)
    assert found.tolist() == lines
    own = philox.te_random_words(
        (32, columns), seed, offset, TE_KERNELS[name], outputs, transposed=transposed, rounds=7
    )
    given = {**given, "rounds": 7}
    assert mor_ref.te_random_words((32, columns), seed, offset, **given).tolist() == own


def rounded_in_software(x, shared):
    """Return numbers of e2m1 as Transformer Engine rounds without `cvt.rs`, in float32."""
    bytes_of = (shared[:, None] >> np.uint32([0, 8, 16, 24]) & np.uint32(0xFF)).reshape(x.shape)
    size = np.abs(x)

    def step(number):
        return np.where(number >= 4, 2, np.where(number >= 2, 1, 0.5)).astype(np.float32)

    share = bytes_of.astype(np.float32) * np.float32(1 / 256)
    with np.errstate(all="ignore"):
        total = share * step(size) + size
        down = np.floor(total / step(total)) * step(total)
        found = np.fmin(down, np.float32(6))
    return np.copysign(found, np.where(np.isnan(x), np.float32(1), x))


def near_the_turns():
    """Return numbers next to those that a byte takes to the next number of e2m1, and others."""
    turns = np.concatenate(
        [low + step * np.arange(257) / 256 for low, step in ((0, 0.5), (0.5, 0.5), (1, 0.5),
         (1.5, 0.5), (2, 1), (3, 1), (4, 2), (6, 2))]
    ).astype(np.float32)  # fmt: skip
    bits = turns.view(np.uint32)[:, None] + np.arange(-4, 5).astype(np.uint32)
    random = np.random.default_rng(3)
    small = random.integers(0, 0x3F000000, 200_000, np.uint32)
    others = np.uint32([0, 1, 0x7FFFFF, 0x800000, 0x7F800000, 0x7FC00000, 0x7F7FFFFF])
    found = np.concatenate([bits[turns > 0].ravel(), small, others])
    return np.concatenate([found, found | np.uint32(1 << 31)]).view(np.float32)


def test_te_rounds_as_its_software_does():
    """ENC-017: more than a million numbers, each next to where its byte turns or at random."""
    numbers = np.resize(near_the_turns(), (4, len(near_the_turns()) // 4 * 4))
    shared = np.random.default_rng(4).integers(0, 1 << 32, numbers.size // 4, np.uint32)
    place = numbers.view(np.uint32).astype(np.int64)
    # The byte that is the turn of the number, and its neighbours, in most words.
    size = np.abs(np.nan_to_num(numbers.astype(np.float64), nan=0, posinf=0, neginf=0))
    step = np.where(size >= 4, 2, np.where(size >= 2, 1, 0.5))
    turn = (256 - np.rint(256 * (size % step) / step)).astype(np.int64)
    byte = ((turn + place % 3 - 1) & 0xFF).astype(np.uint32).reshape(-1, 4)
    at_turns = (byte << np.uint32([0, 8, 16, 24])).sum(axis=1, dtype=np.uint32)
    for words in (shared, at_turns):
        expected = rounded_in_software(numbers.reshape(-1), words)
        codes = mor_ref.encode(
            numbers.reshape(-1), "e2m1", rounding="sr", random_bits=words, n_random_bits="te"
        )
        found = mor_ref.decode(codes, "e2m1")
        assert np.array_equal(found.view(np.uint32), expected.view(np.uint32))
    assert 2 * numbers.size > 1_000_000


def test_the_last_bit_of_te_decides():
    """ENC-017, by hand: 2^-9 - 2^-26 and 255 / 512 add to 1/2 in binary32; 2^-33 less do not."""
    x = np.float32([2**-9, 2**-9 - 2**-33, 2**-9 - 2**-26, 2**-9 - 2**-26 - 2**-33])
    words = np.uint32([ONES])
    codes = mor_ref.encode(x, "e2m1", rounding="sr", random_bits=words, n_random_bits="te")
    eight = mor_ref.encode(x, "e2m1", rounding="sr", random_bits=np.full(4, 255), n_random_bits=8)
    assert (codes.tolist(), eight.tolist()) == ([1, 1, 1, 0], [1, 0, 0, 0])
    assert random_words(ONES - 1, random_bits["te"]["e2m1"])[:2] == [0x1FC0001, 0x1FE0001]
    wide = exact.encode(
        float(x[2]), formats["e2m1"], "sr", SpecialCases(), random_word=0x1FE0001, n_random_bits=25
    )
    assert wide == 1


@pytest.mark.parametrize("profile", ["te", "te_2_13"])
@pytest.mark.parametrize("bits", ["te", "cuda"])
def test_tensors_are_those_of_the_exact_model(profile, bits):
    """NVF-017 and ENC-017."""
    random = np.random.default_rng(8)
    x = (random.standard_normal((32, 64)) * np.exp2(random.integers(-5, 5, (32, 64)))).astype("f4")
    x[0, :5] = [0.0, -0.0, 1e-40, -3e38, 1e-45]
    shared = mor_ref.te_random_words(x.shape, 99, 1024)
    found = mor_ref.quantize_nvfp4(x, profile=profile, random_bits=shared, n_random_bits=bits)
    row = random_bits[bits]["e2m1"]
    words = [
        [word for four in line for word in random_words(four, row)] for line in shared.tolist()
    ]
    right = nvfp4(x.tolist(), PROFILES[profile], (1, 16), words=RandomWords(words, row.count))
    assert found.codes.tolist() == [[element.code for element in line] for line in right.elements]
    by_name = mor_ref.quantize(x, profile, random_bits=shared, n_random_bits=bits)
    assert np.array_equal(by_name.codes, found.codes)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel": "tuned"}, "kernel is 'tuned'"),
        (
            {"outputs": "columns"},
            "kernel 'tuned_1d' does not write; take one of rows, both",
        ),
        ({"transposed": True}, "transposed is True, but outputs is 'rows'; give transposed=False"),
        ({"shape": (48, 64)}, r"shape is \(48, 64\), with 48 rows .* give multiples of 32"),
        ({"seed": 1 << 64}, "seed is 18446744073709551616"),
        ({"rounds": 0}, "rounds is 0; give an int from 1 to 64"),
    ],
)
def test_refusals_of_words(arguments, message):
    with pytest.raises(ValueError, match=message):
        mor_ref.te_random_words(**{"shape": (64, 64), "seed": 0, **arguments})


def test_refusals_of_blocks():
    with pytest.raises(ValueError, match=r"counter has shape \(3,\); give 4 words in its last"):
        mor_ref.philox4x32([0, 0, 0], [0, 0])
    with pytest.raises(ValueError, match=r"key has shape \(4,\); give 2 words"):
        mor_ref.philox4x32([0, 0, 0, 0], [0, 0, 0, 0])
    with pytest.raises(ValueError, match="counter holds 4294967296"):
        mor_ref.philox4x32([0, 0, 0, 1 << 32], [0, 0])
