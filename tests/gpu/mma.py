"""Kernels of one matrix instruction each, with the profile whose numbers it should have.

The registers of a warp hold 16 rows of A and 8 columns of B. The manual of PTX has the places in
elements; in bytes of K they are the same for all types. In `wgmma`, each of four warps has 16 rows
of its own. In kinds of 8, 6 and 4 bits a code has a byte: FP6 in its low bits, and FP4 in its bits
2 to 5. Kinds of FP4 alone have two codes in a byte, the even one in the low bits.

The scales of a row are the bytes of one register. Of four lanes with one row of A, the first and
the third have the scales of this row, and the others those of the row 8 below. With the selectors
0, the instruction reads the first two lanes for A, and the first one for B.

`tcgen05` of Blackwell, which keeps sums in a memory of its own, is left out. So is Volta, for which
NVRTC 13 does not compile.
"""

from dataclasses import dataclass

import numpy as np

from mor_ref.cuda import nvrtc

ARCHITECTURES = {
    "turing": (75,),
    "ampere": (80, 86, 87),
    "ada": (89,),
    "hopper": (90,),
    "blackwell": (100, 103),
    "rtx_blackwell": (120, 121),
}
_FP8 = ("e4m3", "e5m2")
_NARROW = ("e2m3", "e3m2", "e2m1")
# Each format with itself and with FP8, on both sides.
_WITH_NARROW = [pair for fmt in _NARROW for pair in ((fmt, fmt), ("e4m3", fmt), (fmt, "e5m2"))]
_WORD_BYTES = 4


@dataclass(frozen=True)
class Instruction:
    """An instruction, its profile, and the formats of its operands; K has 16 or 32 bytes.

    `sums` are numbers of this type. `scales` are the format of scales and the length of a block, if
    it takes them. If it `packs`, a byte has two codes.
    """

    profile: str
    formats: tuple[str, str]
    text: str
    row_bytes: int
    sums: str = "f32"
    scales: tuple[str, int] | None = None
    packs: bool = False

    @property
    def has_f16_sums(self):
        """Whether a word has two sums."""
        return self.sums == "f16"

    @property
    def is_of_four_warps(self):
        """Whether it is `wgmma`."""
        return self.text.startswith("wgmma")

    @property
    def rows(self):
        """The rows of A of a tile."""
        return 64 if self.is_of_four_warps else 16

    @property
    def name(self):
        """The profile, the instruction's shape and the formats, for the name of a test."""
        shape = next(part for part in self.text.split(".") if part.startswith(("m16", "m64")))
        words = (self.profile, shape, *self.formats)
        if self.scales:
            words += (self.text.split("::")[1].split(".")[0], *map(str, self.scales))
        return "-".join(words)

    def stored(self, codes, fmt):
        """Return the bytes of codes as registers hold them."""
        if self.packs:
            return codes[..., ::2] | codes[..., 1::2] << np.uint8(4)
        is_in_the_middle = fmt == "e2m1"
        return codes << np.uint8(2) if is_in_the_middle else codes


def _mma(profile, formats, shape, row_bytes, kind=""):
    to = "f16" if "_f16" in profile.split("_fp", 1)[-1] else "f32"
    a, b = ({"f32": "tf32"}.get(fmt, fmt) for fmt in formats)
    text = f"mma.sync.aligned.{shape}.row.col{kind}.{to}.{a}.{b}.{to}"
    return Instruction(profile, formats, text, row_bytes, to)


def _wgmma(profile, formats, shape):
    to = "f16" if "_f16" in profile.split("_fp", 1)[-1] else "f32"
    a, b = ({"f32": "tf32"}.get(fmt, fmt) for fmt in formats)
    text = f"wgmma.mma_async.sync.aligned.{shape}.{to}.{a}.{b}"
    return Instruction(profile, formats, text, 32, to)


def _of_usual_types(name, shorter):
    """Return instructions of fp16, bf16 and tf32; a `shorter` one can have its own profile."""
    f16, bf16, f32 = ("f16", "f16"), ("bf16", "bf16"), ("f32", "f32")
    eight, four = ("_k8", "_k4") if shorter else ("", "")
    yield _mma(f"{name}_fp16{eight}", f16, "m16n8k8", 16)
    yield _mma(f"{name}_fp16_f16{eight}", f16, "m16n8k8", 16)
    if name == "turing":
        return
    yield _mma(f"{name}_fp16", f16, "m16n8k16", 32)
    yield _mma(f"{name}_fp16_f16", f16, "m16n8k16", 32)
    yield _mma(f"{name}_bf16{eight}", bf16, "m16n8k8", 16)
    yield _mma(f"{name}_bf16", bf16, "m16n8k16", 32)
    yield _mma(f"{name}_tf32{four}", f32, "m16n8k4", 16)
    yield _mma(f"{name}_tf32", f32, "m16n8k8", 32)


def _of_fp8(name):
    pairs = [(a, b) for a in _FP8 for b in _FP8]
    for pair in pairs:
        for to in ("", "_f16"):
            if name == "ada":
                yield _mma(f"ada_fp8{to}", pair, "m16n8k32", 32)
                yield _mma(f"ada_fp8{to}", pair, "m16n8k16", 16)
            elif name == "hopper":
                yield _wgmma(f"hopper_fp8{to}", pair, "m64n8k32")
            elif name == "rtx_blackwell":
                kind = ".kind::f8f6f4"
                yield _mma(f"rtx_blackwell_fp8{to}", pair, "m16n8k32", 32, kind)
                yield _mma(f"rtx_blackwell_fp8{to}_k16", pair, "m16n8k16", 16)


def _of_narrow_types(name):
    """Return instructions of FP6 and FP4, and those with scales."""
    for pair in _WITH_NARROW:
        for to in ("", "_f16"):
            yield _mma(f"{name}_fp8{to}", pair, "m16n8k32", 32, ".kind::f8f6f4")
    for pair in [(a, b) for a in _FP8 for b in _FP8] + _WITH_NARROW:
        yield _scaled(f"{name}_mxfp8", pair, "m16n8k32", "mxf8f6f4", ("e8m0", 32))
    pair = ("e2m1", "e2m1")
    for kind, scales in (
        ("mxf4", ("e8m0", 32)), ("mxf4nvf4", ("e8m0", 32)),
        ("mxf4nvf4", ("e8m0", 16)), ("mxf4nvf4", ("e4m3", 16)),
    ):  # fmt: skip
        profile = f"{name}_{'mxfp4' if scales[0] == 'e8m0' else 'nvfp4'}"
        yield _scaled(profile, pair, "m16n8k64", kind, scales)


def _scaled(profile, formats, shape, kind, scales):
    count = int(shape.rpartition("k")[2]) // scales[1]
    ending = f"kind::{kind}.block_scale.scale_vec::{count}X"
    a, b = formats
    text = f"mma.sync.aligned.{shape}.row.col.{ending}.f32.{a}.{b}.f32.u{scales[0]}"
    return Instruction(profile, formats, text, 32, scales=scales, packs=kind != "mxf8f6f4")


def instructions_of(capability):
    """Return the instructions of a GPU; none if its family has no profiles."""
    names = [name for name, known in ARCHITECTURES.items() if capability in known]
    found = []
    for name in names:
        found += _of_usual_types(name, name in ("hopper", "blackwell", "rtx_blackwell"))
        found += _of_fp8(name)
        if name == "rtx_blackwell":
            found += _of_narrow_types(name)
        if name == "hopper":
            for fmt, shape in (("f16", "m64n8k16"), ("bf16", "m64n8k16"), ("f32", "m64n8k8")):
                usual = {"f16": "fp16", "f32": "tf32"}.get(fmt, fmt)
                found.append(_wgmma(f"hopper_{usual}", (fmt, fmt), shape))
            found.append(_wgmma("hopper_fp16_f16", ("f16", "f16"), "m64n8k16"))
    return found


def integer_instructions_of(capability):
    """Return the instructions of a GPU that multiply signed integers of 8 bits."""
    if not any(capability in known for name, known in ARCHITECTURES.items() if name != "turing"):
        return []
    return [
        Instruction("int32", ("s8", "s8"), f"mma.sync.aligned.{shape}.row.col.s32.s8.s8.s32",
                    row_bytes, "s32")
        for shape, row_bytes in (("m16n8k16", 16), ("m16n8k32", 32))
    ]  # fmt: skip


def all_instructions_of(capability):
    """Return the instructions of a GPU, of numbers and of integers."""
    return [*instructions_of(capability), *integer_instructions_of(capability)]


def architecture(capability):
    """Return the architecture to compile for; `wgmma` and kinds need the "a" of its family."""
    return f"sm_{capability}{'a' if capability >= 90 else ''}"


_SOURCE = """
// A tile of A has ROWS rows, and one of B 8 columns; both have WORDS words of 4 bytes along K.
extern "C" __global__ void run(const unsigned* a, const unsigned* b, const SUM* c, SUM* d,
                               unsigned tiles{parameters}) {{
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const unsigned row = lane / 4, column = lane % 4;
  for (unsigned tile = blockIdx.x; tile < tiles; tile += gridDim.x) {{
    const unsigned top = tile * ROWS + 16 * warp;
    unsigned x[WORDS / 2], y[WORDS / 4];
    for (int r = 0; r < WORDS / 2; r++)
      x[r] = a[(top + row + 8 * (r % 2)) * WORDS + 4 * (r / 2) + column];
    for (int r = 0; r < WORDS / 4; r++) y[r] = b[(tile * 8 + row) * WORDS + 4 * r + column];
    SUM sum[SUMS];
    for (int r = 0; r < SUMS; r++) sum[r] = c[PLACE];
    {multiply}
    for (int r = 0; r < SUMS; r++) d[PLACE] = sum[r];
  }}
}}
"""
# Columns of B lie in shared memory: 16 bytes of each of the 8 columns, and then the next 16 bytes.
# Both strides of the descriptor are of 128 bytes.
_SHARED = """
    __shared__ __align__(128) unsigned columns[8 * WORDS];
    __syncthreads();
    if (warp == 0)
      for (int r = 0; r < WORDS / 4; r++) columns[32 * r + 4 * row + column] = y[r];
    __syncthreads();
    const unsigned long long place = __cvta_generic_to_shared(columns);
    const unsigned long long descriptor = (place >> 4 & 0x3FFF) | 8ull << 16 | 8ull << 32;
    asm volatile("fence.proxy.async;" ::: "memory");
    {instruction}
"""

# One statement, so that the compiler reads no sum before it is there.
_ONE_AFTER_THE_OTHER = (
    "{{ .reg .pred p; setp.eq.u32 p, 0, 0; wgmma.fence.sync.aligned; {} "
    "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; }}"
)


def source_of(one):
    """Return a kernel that runs an instruction on tiles."""
    words, sums = one.row_bytes // _WORD_BYTES, 2 if one.has_f16_sums else 4
    kind, place = ("float", "(top + row + 8 * (r / 2)) * 8 + 2 * column + r % 2")
    if one.sums == "s32":
        kind = "int"
    if one.has_f16_sums:  # two in a word
        kind, place = ("unsigned", "(top + row + 8 * r) * 4 + column")
    of_sum = "f" if one.sums == "f32" else "r"
    sums_at = ", ".join(f"%{r}" for r in range(sums))
    a_at = ", ".join(f"%{sums + r}" for r in range(words // 2))
    inputs = [f'"r"(x[{r}])' for r in range(words // 2)]
    parameters = ", const unsigned* scale_a, const unsigned* scale_b" if one.scales else ""
    outputs = ", ".join(f'"+{of_sum}"(sum[{r}])' for r in range(sums))
    if one.is_of_four_warps:
        last = f"%{sums + words // 2}"
        scales = "1, 1, 1, 0" if one.formats[0] in ("f16", "bf16") else "1, 1, 1"
        scales = scales.replace("1", "p", 1)
        text = f"{one.text} {{{sums_at}}}, {{{a_at}}}, {last}, {scales};"
        text = _ONE_AFTER_THE_OTHER.format(text)
        inputs.append('"l"(descriptor)')
        run = f'asm volatile("{text}" : {outputs} : {", ".join(inputs)} : "memory");'
        multiply = _SHARED.format(instruction=run)
    else:
        first = sums + words // 2
        b_at = ", ".join(f"%{first + r}" for r in range(words // 4))
        inputs += [f'"r"(y[{r}])' for r in range(words // 4)]
        ending = ""
        if one.scales:
            last = first + words // 4
            ending = f", {{%{last}}}, {{0, 0}}, {{%{last + 1}}}, {{0, 0}}"
            inputs += ['"r"(scale_a[top + row + 8 * (column % 2)])', '"r"(scale_b[tile * 8 + row])']
        text = f"{one.text} {{{sums_at}}}, {{{a_at}}}, {{{b_at}}}, {{{sums_at}}}{ending};"
        multiply = f'asm volatile("{text}" : {outputs} : {", ".join(inputs)});'
    named = {"ROWS": one.rows, "WORDS": words, "SUMS": sums, "SUM": kind, "PLACE": place}
    defined = "".join(f"#define {name} {value}\n" for name, value in named.items())
    return defined + _SOURCE.format(multiply=multiply, parameters=parameters)


def compiled(one, capability):
    """Return PTX and a cubin of an instruction."""
    return nvrtc.compiled(source_of(one), architecture(capability), "mma", nvrtc.ARITHMETIC)
