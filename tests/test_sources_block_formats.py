"""Headers of block formats: each field, in C99, C++ and CUDA, is that of the exact model."""

import dataclasses
import functools
import platform
import re
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from extras import skip_without
from kernels import needed
from test_block_formats import FORMATS as OWN_FORMATS
from test_block_formats import tensor

import mor_ref
from mor_ref import BlockFormat, BlockScale, Format, TableFormat
from mor_ref.arrays import code_dtype
from mor_ref.cuda import nvrtc, ptx
from mor_ref.definitions.block_formulas import mx_formulas, nvfp4_formulas, scaled_formulas
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.formats import formats
from mor_ref.definitions.formulas import words_in
from mor_ref.definitions.mx import SCALE_RULES
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.exact.block_formats import Blocks, quantize
from mor_ref.golden.inputs.edges import SPECIALS, amaxes
from mor_ref.golden.inputs.formula_blocks import next_to_choices, next_to_turns
from mor_ref.golden.inputs.shapes_of_blocks import in_each_shape, parts_of
from mor_ref.golden.model.suite import Size
from mor_ref.operations.bits import f32_array, numbers_of
from mor_ref.ptx import Module
from mor_ref.representations.mx import STANDARD_NAMES
from mor_ref.schemes.fp4.definition import FP4_PROFILES, fp4_formulas
from mor_ref.schemes.fp8.definition import FP8_PROFILES, fp8_formulas
from mor_ref.sources import write_sources
from mor_ref.sources.block_formats import header, identifier

STRICT = ["-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]
SANITIZED = ["-O0", "-fsanitize=undefined,address", "-fno-sanitize-recover=all"]
Bits = np.ndarray


def _blocks(element: str | Format, number: str, **fields: object) -> BlockFormat:
    """Return blocks of 2x5 under a scale of rows."""
    above = BlockScale("g", "row", "amax or 2")
    scale = BlockScale("s", (1, 5), number, fields.pop("stored", "f32"))
    return BlockFormat("any", element, (above, scale), **{"decode": "s", **fields})


NF4 = TableFormat("nf4", (
    -1, -0.6961928, -0.52507305, -0.3949175, -0.28444138, -0.18477343, -0.091050036, 0,
    0.0795803, 0.1609302, 0.2461123, 0.33791524, 0.44070983, 0.562617, 0.72295684, 1,
))  # fmt: skip
E4M7 = Format("e4m7", exponent_bits=4, mantissa_bits=7, bias=7, specials="ieee")
E5M5 = Format("e5m5", exponent_bits=5, mantissa_bits=5, bias=20, specials="fnuz")
# Each word of BLF-002, and orders that other precedences would change.
FORMULAS = {
    "precedence": "amax - g / 3 * amax + (amax - g) * (0.1 - amax) / 7",
    "choices": "(amax < 1) * 2 + (amax > g / 2) if g - amax else amax or 2**-20",
    "least and most": "max(min(amax / 3, MAX), 2**-126) + min(abs(g - 4), square(amax))",
    "powers": "pow2(amax * 3, 1.75) / pow2(g, 2) + pow2(g - amax, 1 + 2**-23)",
    "infinity": "min(amax, 2**128) + 2**-149 * (amax < 2**130)",
    "formats": "e4m3(amax / 6) + e8m0(g) * e5m2fnuz(amax / 3) - int8_mx(e2m3(amax)) + f32(g)",
    "wide formats": "bf16(amax / 6) + f16(amax)",
    "percentiles": "percentile(33.3333) + percentile(50) * percentile(100) or percentile(99)",
}
OTHERS = {
    **{name: _blocks("e4m3", f"abs({formula})") for name, formula in FORMULAS.items()},
    "keywords": BlockFormat(
        "int", "e2m1", (
            BlockScale("float", "column", "amax or 1"),
            BlockScale("register", (300, 1), "amax / float", "e5m2"),
        ), decode="register * float", tries=("t", "t * 0.75", "t / 3"), counted="all",
        error="abs(y - x)",
    ),
    "errors of x": _blocks("int8_mx", "amax / 2", tries=("t", "2 * t"), error="x * amax_g - s"),
    "percentiles of two scales": BlockFormat(
        "percentiles", "e2m1", (
            BlockScale("g", "row", "percentile(25) + percentile(75) or 1"),
            BlockScale("s", (1, 5), "percentile(75) / (6 * g) + percentile(25)"),
        ), decode="s", tries=("t", "percentile(80) / 6"),
    ),
    "twelve bits": _blocks(E4M7, "amax / 480", stored=E5M5),
    **{
        f"{stored}, {rounding}": BlockFormat(
            "stored", "e2m1", (BlockScale("s", (1, 3), "amax - 1.25", stored, rounding),),
            encode="square(s)", counted="finite",
        )
        for stored, rounding in (("e8m0", "rna"), ("e8m0", "rtz"), *(
            ("e2m3", rounding) for rounding in ("rna", "rtz", "rtp", "rtn", "rto", "rne")
        ))
    },
    "negative": _blocks("e2m1", "amax - 1", decode="s + 0.5"),
    "long": BlockFormat(
        "long", "e2m1", (BlockScale("s", "column", "amax / 6"),), decode="s", tries=("t", "t / 2")
    ),
    "table": _blocks(NF4, "amax"),
    "table with limits, in any order": _blocks(
        TableFormat("odd", (6, -0.0, 0.5, 0, -1, 3e38, 1e-45), (-0.7, 0, 1e-45, 0.25, 1, 1e38)),
        "amax / 7", tries=("t", "t / 3"),
    ),
    "hyphens-and_more": _blocks("e2m3", "amax / 7.5", encode="1 / decode", stored="e8m0"),
}  # fmt: skip
BUILT_IN = {
    **{
        f"mx {element} {rule}": mx_formulas(formats[element], rule, 32)
        for element in STANDARD_NAMES
        for rule in SCALE_RULES
    },
    **{f"nvfp4 {name}": nvfp4_formulas(profile, (1, 16)) for name, profile in PROFILES.items()},
    "nvfp4 square": nvfp4_formulas(PROFILES["te_4over6_mae"], (16, 16)),
    **{
        f"{scaling} {element}": scaled_formulas(formats[element], scaling, (4, 12), (8, 30))
        for scaling in ("gam", "fp32", "e8m0")
        for element in ("e4m3", "e5m2", "e2m1", "int8_mx", "e4m3fnuz")
    },
    "gam tensor": scaled_formulas(formats["e4m3"], "gam", "row", "tensor"),
    **{f"fp8 {name}": fp8_formulas(profile, (1, 40)) for name, profile in FP8_PROFILES.items()},
    **{f"fp4 {name}": fp4_formulas(profile, (1, 16)) for name, profile in FP4_PROFILES.items()},
}
RECORDS = {**BUILT_IN, **OWN_FORMATS, **OTHERS}


def is_wide(record: BlockFormat) -> bool:
    """Return whether a format has many codes: the exact model takes seconds for a table of them."""
    texts = [*record.tries, *(scale.number for scale in record.scales)]
    named = [formats[word] for text in texts for word in words_in(text) if word in formats]
    own = [record.fmt, *(scale.fmt for scale in record.scales), *named]
    return any(12 < fmt.bits < 32 for fmt in own)


WIDE = {name for name, record in RECORDS.items() if is_wide(record)}
SOME_OF_LIBRARIES = (
    "fp8 sgl_kernel", "fp8 te_block",
    "fp4 quark_mxfp4", "fp4 modelopt_mxfp4", "fp4 llama_cpp_nvfp4", "fp4 te_4over6_mae_fast",
)  # fmt: skip
USUAL = [
    name
    for name in RECORDS
    if name not in WIDE and (not name.startswith(("fp8", "fp4")) or name in SOME_OF_LIBRARIES)
]
# Other names, as several have the same one.
NAMED = {
    name: dataclasses.replace(record, name=f"{record.name}-{k}")
    for k, (name, record) in enumerate(RECORDS.items())
}


# ---------------------------------------------------------------------- inputs


@functools.cache
def inputs(name: str) -> list[Bits]:
    """Return tensors of odd shapes, of special numbers, and of amaxes at their limits."""
    record = RECORDS[name]
    made = [
        tensor.x for tensor in in_each_shape(parts_of(record), Size(1, 0)) if tensor.source == "f32"
    ]
    specials = np.resize(np.array(SPECIALS, np.uint32), (3, 70))
    own = [tensor(*shape).view(np.uint32) for shape in ((7, 90), (310, 6), (2, 600))]
    steps = np.arange(-256, 256, dtype=np.float32).reshape(16, 32) / 32
    empty = [np.zeros(shape, np.uint32) for shape in ((0, 5), (5, 0))]
    return [
        *(x for x in made if x.size < 4096),
        specials,
        *own,
        *empty,
        *limits(),
        steps.view(np.uint32),
    ]


@functools.cache
def limits() -> list[Bits]:
    """Return rows below amaxes of all magnitudes: simple parts of them, and the numbers next."""
    rng = np.random.default_rng(0)
    largest = amaxes().view(np.float32)[:, np.newaxis]
    parts = rng.integers(0, 65, (len(largest), 48)).astype(np.float32) / 64
    bits = (largest * parts).view(np.uint32).astype(np.int64) + rng.integers(-1, 2, parts.shape)
    bits = np.clip(bits, 0, largest.view(np.uint32)).astype(np.uint32)
    bits[:, ::16] = largest.view(np.uint32)
    bits |= rng.integers(0, 2, parts.shape, np.uint32) << np.uint32(31)
    return np.array_split(bits, 8)


@functools.cache
def next_to(name: str) -> list[Bits]:
    """Return tensors next to turns of scales, to ties, and to other tries."""
    record, size = RECORDS[name], Size(1, 0)
    return [tensor.x for make in (next_to_turns, next_to_choices) for tensor in make(record, size)]


def fields_of(record: BlockFormat, blocks: Blocks) -> Iterator[tuple[str, Bits]]:
    """Yield the fields that the header has, in its order."""
    yield "code", np.array(blocks.codes, code_dtype(record.fmt))
    yield "y", canonical(blocks.y)
    for scale in record.scales:
        own = blocks.scales[scale.name]
        yield f"amax_{scale.name}", canonical(own.numbers["amax"])
        yield f"scale_{scale.name}", canonical(own.numbers[scale.name])
        if scale.fmt != formats["f32"]:
            yield f"code_{scale.name}", np.array(own.codes, code_dtype(scale.fmt))
    for factor in factors(record):
        yield factor, canonical(own.numbers[factor])


@functools.cache
def expected(
    name: str, tensors: Callable[[str], list[Bits]] = inputs
) -> list[tuple[int, dict[str, Bits]]]:
    """Return the status and the fields of each tensor; one that is refused has none."""
    record, found = RECORDS[name], []
    for x in tensors(name):
        try:
            blocks = quantize(numbers_of(x, "f32"), x.shape, record)
        except ValueError:
            found.append((-1, {}))
        else:
            found.append((0, dict(fields_of(record, blocks))))
    return found


def canonical(numbers: Any) -> Bits:
    """Return the bits of numbers, with one NaN."""
    bits = f32_array(numbers)
    bits[(bits & 0x7FFFFFFF) > 0x7F800000] = 0x7FFFFFFF
    return bits


# ---------------------------------------------------------------------- programs

MAIN = """
static uint32_t word(void) {
    uint32_t found;
    if (fread(&found, sizeof found, 1, stdin) != 1) exit(0);
    return found;
}
static void *room(size_t count, size_t size) {
    void *made = malloc(count * size + 1);
    if (!made) exit(3);
    return made;
}
static void write_field(void *field, size_t count, size_t size, int is_written) {
    if (is_written) fwrite(field, size, count, stdout);
    free(field);
}
@functions@
int main(void) {
    for (;;) {
        const uint32_t which = word();
        const size_t rows = word(), columns = word();
        size_t counts[4];
        for (int k = 0; k < 4; k++) counts[k] = word();
        float *x = (float *)room(rows * columns, sizeof *x);
        if (fread(x, sizeof *x, rows * columns, stdin) != rows * columns) exit(2);
        switch (which) {
@cases@
        }
        free(x);
    }
}
"""
FUNCTION = """
static void run_{k}(const float *x, size_t rows, size_t columns, const size_t *counts) {{
    mor_{id}_fields to;
    {rooms}
    const int32_t status = mor_{id}_quantize(x, rows, columns, &to);
    fwrite(&status, sizeof status, 1, stdout);
    {writes}
}}
"""


def fields_in_c(record: BlockFormat) -> dict[str, tuple[str, str]]:
    """Return the type of each field, and how many numbers it has."""
    fields = {"code": (integer(record.fmt), "rows * columns"), "y": ("float", "rows * columns")}
    for n, scale in enumerate(record.scales):
        fields |= {f"{word}_{scale.name}": ("float", f"counts[{n}]") for word in ("amax", "scale")}
        if scale.fmt != formats["f32"]:
            fields[f"code_{scale.name}"] = (integer(scale.fmt), f"counts[{n}]")
    return fields | dict.fromkeys(factors(record), ("float", f"counts[{n}]"))


def integer(fmt: Format) -> str:
    return f"{code_dtype(fmt).name}_t"


def factors(record: BlockFormat) -> list[str]:
    return [name for name in ("decode", "encode") if getattr(record, name) is not None]


def program_text(prelude: str) -> str:
    """Return a program that answers tensors with the fields of all block formats."""
    functions, cases = [], []
    for k, record in enumerate(NAMED.values()):
        rooms, writes = [], []
        for field, (kind, count) in fields_in_c(record).items():
            rooms += [f"to.{field} = ({kind} *)room({count}, sizeof *to.{field});"]
            writes += [f"write_field(to.{field}, {count}, sizeof *to.{field}, status == 0);"]
        lines = {"rooms": "\n    ".join(rooms), "writes": "\n    ".join(writes)}
        functions += [FUNCTION.format(k=k, id=identifier(record), **lines)]
        cases += [f"        case {k}: run_{k}(x, rows, columns, counts); break;"]
    includes = [f'#include "{name}"' for name in (f"{one.name}.h" for one in NAMED.values())]
    main = MAIN.replace("@functions@", "".join(functions)).replace("@cases@", "\n".join(cases))
    return "\n".join(["#include <stdio.h>", "#include <stdlib.h>", prelude, *includes, main])


def built(directory: Path, *options: str, prelude: str = "") -> Path:
    """Compile all headers into one program, and return its path."""
    skip_without(options[0])
    write_sources(directory, NAMED.values())
    (directory / "it.c").write_text(program_text(prelude))
    command = [*options, "-o", "it", "it.c"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return directory / "it"


def differing(program: Path, name: str, tensors: Callable[[str], list[Bits]] = inputs) -> list[str]:
    """Return the fields of a block format that differ from those of the exact model."""
    record, which = RECORDS[name], list(RECORDS).index(name)
    asked = []
    for x in tensors(name):
        grids = [partition(x.shape, scale.over).grid for scale in record.scales]
        counts = [rows * columns for rows, columns in grids] + [0] * (4 - len(grids))
        asked.append(struct.pack("=7I", which, *x.shape, *counts) + x.tobytes())
    done = subprocess.run([program], input=b"".join(asked), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    found, at = [], 0
    for x, (status, fields) in zip(tensors(name), expected(name, tensors), strict=True):
        answer = int.from_bytes(done.stdout[at : at + 4], sys.byteorder, signed=True)
        assert answer == status, x.shape
        at += 4
        for field, bits in fields.items():
            own = np.frombuffer(done.stdout, bits.dtype, bits.size, at)
            found += [] if np.array_equal(own, bits) else [f"{x.shape}: {field}"]
            at += bits.nbytes
    assert at == len(done.stdout)
    return found


# ---------------------------------------------------------------------- in C and C++


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile all headers in C99 with sanitizers."""
    return built(tmp_path_factory.mktemp("c99"), "gcc", "-std=c99", *STRICT, *SANITIZED)


@pytest.mark.tier("full", but=[f"[{name}]" for name in USUAL])
@pytest.mark.parametrize("name", RECORDS)
def test_every_field_is_that_of_the_exact_model(program: Path, name: str) -> None:
    """BLF-002 to BLF-005 and BLF-007."""
    assert differing(program, name) == []


@pytest.mark.tier("full", but=["[mx e2m1 even]", "[nvfp4 te]", "[fp32 e4m3]"])
@pytest.mark.parametrize("name", [*BUILT_IN, *OWN_FORMATS])
def test_every_field_next_to_turns_and_choices(program: Path, name: str) -> None:
    """BLF-002 to BLF-005 and BLF-007."""
    assert differing(program, name, next_to) == []


def test_tensors_that_cannot_be_quantized_are_refused(program: Path) -> None:
    """BLF-004 and BLF-005: a factor that is negative, and blocks of too many rows."""
    assert {status for status, _ in expected("negative")} == {0, -1}
    assert [status for status, _ in expected("long", too_long)] == [0, -1]
    assert differing(program, "long", too_long) == []


def too_long(_: str) -> list[Bits]:
    """Return a tensor of as many rows as a block can have, and one of more."""
    return [np.zeros((rows, 0), np.uint32) for rows in (2**24, 2**24 + 1)]


COMPILERS = {
    "g++": ("g++", "-x", "c++", "-std=c++17", *STRICT),
    "gcc that fuses": ("gcc", "-std=gnu11", "-O3", "-march=native", "-ffp-contract=fast"),
    "g++ that fuses": ("g++", "-x", "c++", "-O3", "-march=native"),
    "clang": ("clang", "-std=c99", *STRICT),
    "clang that fuses": ("clang", "-O1", "-march=native", "-ffp-contract=fast", *STRICT),
    "clang++": ("clang++", "-x", "c++", "-std=c++17", "-O1", *STRICT),
}


@pytest.mark.tier("full", but=["[g++]"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_other_compilers_give_the_same_bits(tmp_path: Path, compiler: str) -> None:
    program = built(tmp_path, *COMPILERS[compiler])
    narrow = [name for name in RECORDS if name not in WIDE]
    assert [name for name in narrow if differing(program, name)] == []


# ---------------------------------------------------------------------- texts


def test_formats_that_differ_in_constants_have_headers_that_differ_there() -> None:
    mine = _blocks("e2m1", "percentile(99.5) / 6 + 2**-3", tries=("t", "t * 1.5"))
    other = _blocks("e2m1", "percentile(97) / 448 + 1e-3", tries=("t", "t * 0.3"))
    assert header(mine) != header(other)
    numbers = re.compile(r"\b(0x)?[0-9][0-9a-fp.*+-]*")
    assert numbers.sub("N", header(mine)) == numbers.sub("N", header(other))


def test_names_that_cannot_be_those_of_headers_are_refused(tmp_path: Path) -> None:
    named = functools.partial(dataclasses.replace, OTHERS["long"])
    for name in ("mor_ref", "nvfp4", "dpi", "block"):
        with pytest.raises(ValueError, match=f"block format '{name}' has a name that names of"):
            write_sources(tmp_path, [named(name=name)])
    with pytest.raises(ValueError, match="two block formats have the name 'a_b'; give them other"):
        write_sources(tmp_path, [named(name="A-b"), named(name="a_b", decode="s * 2")])
    assert list(tmp_path.iterdir()) == []
    written = write_sources(tmp_path, [named(name="a"), named(name="a"), "mxfp4", "e4m3:gam:4x4"])
    names = [path.name for path in written]
    assert {"a.h", "mx_e2m1_floor_32.h", "e4m3_gam.h"} < {*names}
    assert names == sorted(names) == sorted(path.name for path in tmp_path.iterdir())


# ---------------------------------------------------------------------- options of compilers


def assembly(directory: Path, *options: str) -> str:
    """Return what a compiler makes of a header, with instructions that fuse."""
    if platform.machine() != "x86_64":
        pytest.skip("the option -mfma is of x86-64")
    skip_without(options[0])
    write_sources(directory, ["nvfp4:te_4over6_mse"])
    call = "return mor_nvfp4_te_4over6_mse_quantize(x, r, c, to);"
    (directory / "it.c").write_text(
        '#include "nvfp4_te_4over6_mse.h"\n#ifdef FUSED\n#undef MOR_MULTIPLY\n'
        "#define MOR_MULTIPLY(a, b) ((a) * (b))\n#endif\n"
        "int it(const float *x, size_t r, size_t c, const mor_nvfp4_te_4over6_mse_fields *to);\n"
        "int it(const float *x, size_t r, size_t c, const mor_nvfp4_te_4over6_mse_fields *to) "
        f"{{ {call} }}\nfloat sum(float a, float b, float c);\n"
        "float sum(float a, float b, float c) { return MOR_ADD(MOR_MULTIPLY(a, b), c); }\n"
    )
    command = [*options, "-O3", "-mfma", "-ffp-contract=fast", "-S", "-o", "-", "it.c"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_no_option_fuses_a_product_with_a_sum(tmp_path: Path, compiler: str) -> None:
    """ART-002."""
    assert re.search(r"vfn?m(add|sub)", assembly(tmp_path, compiler, "-DFUSED"))
    assert not re.search(r"vfn?m(add|sub)", assembly(tmp_path, compiler))


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("-ffast-math", "leave out -ffast-math and its parts"),
        ("-freciprocal-math", "leave out -ffast-math and its parts"),
        ("-ffinite-math-only", "leave out -ffinite-math-only"),
        ("-mfpmath=387", "give -msse2 -mfpmath=sse"),
    ],
)
def test_options_that_change_operations_are_refused(tmp_path: Path, option: str, said: str) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("the options are of x86-64")
    skip_without("gcc")
    write_sources(tmp_path, ["mxfp8"])
    (tmp_path / "it.c").write_text('#include "mx_e4m3_floor_32.h"\n')
    command = ["gcc", "-std=c99", option, "-fsyntax-only", "it.c"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert said in done.stderr


# ---------------------------------------------------------------------- CUDA

PRELUDE = """
#define __CUDACC__
#define __CUDA_ARCH__ 900
#define __host__
#define __device__
#include <string.h>
static unsigned long uses;
static inline float __fadd_rn(float a, float b) { uses++; return a + b; }
static inline float __fsub_rn(float a, float b) { uses++; return a - b; }
static inline float __fmul_rn(float a, float b) { uses++; return a * b; }
static inline float __fdiv_rn(float a, float b) { uses++; return a / b; }
static inline unsigned __float_as_uint(float a) { unsigned b; memcpy(&b, &a, 4); return b; }
static inline float __uint_as_float(unsigned a) { float b; memcpy(&b, &a, 4); return b; }
"""
KERNEL_PRELUDE = """
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned uint32_t;
typedef long long int64_t; typedef unsigned long long uint64_t;
#define UINT32_C(n) n##u
"""


def test_the_branch_of_cuda_has_the_same_bits(tmp_path: Path) -> None:
    """The words of CUDA are functions of C++ here."""
    program = built(
        tmp_path, "g++", "-x", "c++", "-std=c++17", "-ffp-contract=off", prelude=PRELUDE
    )
    narrow = [name for name in RECORDS if name not in WIDE]
    assert [name for name in narrow if differing(program, name)] == []


def flat(directory: Path, file: str) -> str:
    """Return a header with those that it includes, but for headers of the language."""
    text = (directory / file).read_text("ascii")
    text = re.sub(r'#include "(.+)"', lambda found: flat(directory, found[1]), text)
    return re.sub("#include <.+>", "", text)


@pytest.mark.tier("full", but=["[nvfp4 te_4over6_mse]"])
@pytest.mark.parametrize("name", ["nvfp4 te_4over6_mse", "formats", "powers", "keywords"])
def test_kernels_of_nvrtc_have_the_same_bits(tmp_path: Path, name: str) -> None:
    """As PTX, which runs on the processor."""
    needed.library()
    needed.compiler()
    record, fields = NAMED[name], fields_in_c(NAMED[name])
    write_sources(tmp_path, [record])
    taken = ", ".join(f"{kind} *{field}" for field, (kind, _) in fields.items())
    copies = " ".join(f"to.{field} = {field};" for field in fields)
    text = f"""{KERNEL_PRELUDE}{flat(tmp_path, f"{record.name}.h")}
    extern "C" __global__ void run(const float *x, size_t rows, size_t columns, int *status,
                                   {taken}) {{
        mor_{identifier(record)}_fields to;
        {copies}
        *status = mor_{identifier(record)}_quantize(x, rows, columns, &to);
    }}
    """
    compiled = nvrtc.compiled(text, "compute_90", "block_format", ("--fmad=true",))
    assert ptx.violations(compiled.ptx) == []
    kernel = Module(compiled.ptx)["run"]
    for x, (status, fields_expected) in zip(inputs(name)[:24], expected(name), strict=False):
        found = {field: np.zeros_like(bits) for field, bits in fields_expected.items()}
        answered = np.zeros(1, np.int32)
        kernel[1, 1](x.view(np.float32), *x.shape, answered, *map(as_taken, found.items()))
        assert answered == status
        for field, bits in fields_expected.items():
            np.testing.assert_array_equal(found[field], bits, field)


def as_taken(field: tuple[str, Bits]) -> Bits:
    """Return the array of a field as a kernel takes it."""
    return field[1] if field[0].startswith("code") else field[1].view(np.float32)


def test_what_has_no_text_is_refused(tmp_path: Path) -> None:
    scale = BlockScale("s", (1, 32), "twice(amax)")
    mor_ref.formula_functions["twice"] = mor_ref.FormulaFunction(lambda t: 2 * t, "twice")
    try:
        own = BlockFormat("own", "e2m1", (scale,), decode="s")
        with pytest.raises(ValueError, match="calls twice, which is code of its author"):
            write_sources(tmp_path, recipes=[own.text])
    finally:
        del mor_ref.formula_functions["twice"]
    assert not any(tmp_path.iterdir())
