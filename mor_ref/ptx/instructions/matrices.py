"""Matrix instructions of a warp: products of fragments, and their loads from shared memory."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from mor_ref.definitions.dot import DOT_PROFILES, DotProfile
from mor_ref.ptx.constants import number_of
from mor_ref.ptx.errors import refusal
from mor_ref.ptx.instructions.memory import address_of, elements
from mor_ref.ptx.names import WORDS, Names
from mor_ref.ptx.program import WIDTHS as BITS
from mor_ref.ptx.program import Instruction
from mor_ref.ptx.rows import MODES

_SHAPE = re.compile(
    r"mma\.sync\.aligned\.m(?P<m>16|8)n8k(?P<k>\d+)\.row\.col"
    r"\.(?P<d>\w+)\.(?P<a>\w+)\.(?P<b>\w+)\.(?P<c>\w+)(?:\.(?P<scales>ue8m0|ue4m3))?"
)
_DOUBLES = re.compile(
    r"mma\.sync\.aligned\.m(?P<m>16|8)n8k(?P<k>4|8|16)\.row\.col(?:\.(?P<mode>rn|rz|rm|rp))?(?:\.f64){4}"
)
_BITS = re.compile(
    r"mma\.sync\.aligned\.m(?P<m>16|8)n8k(?P<k>128|256)\.row\.col\.s32\.b1\.b1\.s32\.(?P<join>and|xor)\.popc"
)
_MOVED = re.compile(
    r"(?P<way>ld|st)matrix\.sync\.aligned\.m8n8\.x(?P<n>[124])(?P<trans>\.trans)?(?:\.shared(?:::cta)?)?\.b16"
)
_MOVED_BYTES = re.compile(
    r"ldmatrix\.sync\.aligned\.(?:m16n16\.x(?P<wide>[12])\.trans(?:\.shared(?:::cta)?)?\.(?:b8|(?P<packed>PACKED))"
    r"|m8n16\.x(?P<n>[124])(?:\.shared(?:::cta)?)?\.(?P<kind>PACKED))"
    r"|stmatrix\.sync\.aligned\.m16n8\.x(?P<stored>[124])\.trans(?:\.shared(?:::cta)?)?\.b8".replace(
        "PACKED", r"b8x16\.b(?:6x16_p32|4x16_p64)"
    )
)
_OF_A_FAMILY = re.compile(r"sm_1\d\d[af]\b")
# The first compute capability of each processor of the chapter on dot products.
_PROCESSORS = (
    (120, "rtx_blackwell"), (100, "blackwell"), (90, "hopper"), (89, "ada"), (80, "ampere"),
    (75, "turing"),
)  # fmt: skip
FP8 = ("e4m3", "e5m2")
_NARROW = (*FP8, "e2m3", "e3m2", "e2m1")
_LETTERS = {"f16": "fp16", "bf16": "bf16", "tf32": "tf32", **dict.fromkeys(_NARROW, "fp8")}
WIDTHS = {"f16": 16, "bf16": 16, "tf32": 32, "s8": 8, "u8": 8, "s4": 4, "u4": 4}
WIDTHS |= dict.fromkeys(_NARROW, 8)
_NARROW_ON = ("ada", "rtx_blackwell")  # others compute mma of 8 bits by other instructions
# By kind, type of scales and number of scales of a row: the profile behind rtx_blackwell_.
_SCALED = {
    ("mxf8f6f4", "ue8m0", 1): "mxfp8",
    ("mxf4", "ue8m0", 2): "mxfp4",
    ("mxf4nvf4", "ue8m0", 2): "mxfp4",
    ("mxf4nvf4", "ue8m0", 4): "mxfp4",
    ("mxf4nvf4", "ue4m3", 4): "nvfp4",
}
_USUAL_COUNT = {"mxf8f6f4": 1, "mxf4": 2}
_INTEGER_SHAPES = {(8, 16, 8), (16, 16, 8), (16, 32, 8), (8, 32, 4), (16, 32, 4), (16, 64, 4)}


@dataclass(frozen=True)
class Multiplication:
    """The words of an `mma.sync`: its shape, its types, and its scales."""

    m: int
    k: int
    a: str
    b: str
    result: str
    kind: str
    is_clamped: bool
    scales: str
    count: int  # of the scales of a row

    @property
    def width(self) -> int:
        """The bits of an element in its register."""
        return 4 if self.kind.startswith("mxf4") else WIDTHS[self.a]


def processor_of(target: str) -> str:
    """Return the processor of the chapter on dot products for a target such as sm_90a, or ""."""
    number = re.match(r"sm_(\d+)", target)
    capability = int(number.group(1)) if number else 0
    return next((name for first, name in _PROCESSORS if capability >= first), "")


def profile_of(processor: str, kind: str, k: int, result: str) -> DotProfile | None:
    """Return the profile of a matrix instruction of so many products, if the chapter has it."""
    name = f"{processor}_{_LETTERS.get(kind, '')}{'_f16' if result == 'f16' else ''}"
    return next((DOT_PROFILES[one] for one in (f"{name}_k{k}", name) if one in DOT_PROFILES), None)


def multiplication(of: Instruction) -> Multiplication:
    """Read an `mma.sync`; kinds and scales may be before or behind the shape."""
    words = of.opcode.split(".")
    more = [word for word in words if "::" in word or word in ("block_scale", "satfinite")]
    found = _SHAPE.fullmatch(".".join(word for word in words if word not in more))
    named = dict(word.split("::") for word in more if "::" in word)
    if not found or found["d"] != found["c"] or not {*named} <= {"kind", "scale_vec"}:
        raise refusal(of.line, of.text, "this matrix instruction is not supported")
    if found["a"] not in WIDTHS or WIDTHS.get(found["b"]) != WIDTHS[found["a"]]:
        raise refusal(of.line, of.text, "its types of a and b are not supported")
    kind = named.get("kind", "")
    count = int(named["scale_vec"][:1]) if "scale_vec" in named else _USUAL_COUNT.get(kind, 0)
    return Multiplication(
        int(found["m"]), int(found["k"]), found["a"], found["b"], found["d"], kind,
        "satfinite" in more, found["scales"] or "", count if "block_scale" in more else 0,
    )  # fmt: skip


def multiply(of: Instruction, names: Names) -> str:
    """Return `mma.sync` as C++: each lane has two numbers of the result for each eight rows."""
    doubles = _DOUBLES.fullmatch(of.opcode)
    if doubles:
        return _of_doubles(of, names, int(doubles["m"]), int(doubles["k"]), doubles["mode"] or "rn")
    bits = _BITS.fullmatch(of.opcode)
    if bits:
        return _of_bits(of, names, int(bits["m"]), int(bits["k"]), bits["join"])
    one = multiplication(of)
    counts = one.m * one.k * one.width // 1024, one.k * one.width // 128, one.m // 4
    is_integer = one.a[0] in "su"
    call = _integers(of, one) if is_integer else _scaled(of, names, one) or _plain(of, names, one)
    if one.result == "f16":
        counts = *counts[:2], 2
    return _of_fragments(of, names, "b32", counts, call)


def _of_doubles(of: Instruction, names: Names, m: int, k: int, mode: str) -> str:
    """Return a product of numbers of binary64 as C++."""
    if m == 8 and k != 4:
        raise refusal(of.line, of.text, "this matrix instruction is not supported")
    fused = "fma_f64" if mode == "rn" else f"fma_directed<Mode::{MODES[mode]}>"
    call = f"multiply_doubles<{m}, {k}, {fused}>(m, a, b, c, d, {of.line});"
    return _of_fragments(of, names, "f64", (m * k // 32, k // 4, m // 4), call)


def _of_bits(of: Instruction, names: Names, m: int, k: int, join: str) -> str:
    """Return a product of single bits as C++: how many ones a row and a column have together."""
    if m == 8 and k != 128:
        raise refusal(of.line, of.text, "this matrix instruction is not supported")
    call = f"multiply_bits<{m}, {k}, {join}_<u32>>(m, a, b, c, d, {of.line});"
    return _of_fragments(of, names, "b32", (m * k // 1024, k // 128, m // 4), call)


def _of_fragments(
    of: Instruction, names: Names, kind: str, counts: tuple[int, ...], call: str
) -> str:
    """Return a call with the registers of a, b and c in arrays, and those of d from another."""
    targets, *groups = (elements(operand) for operand in of.operands[:4])
    if [len(group) for group in (*groups, targets)] != [*counts, counts[2]]:
        raise refusal(of.line, of.text, "its registers are not those of its shape")
    word = WORDS[BITS[kind]]
    values = [
        f"const {word} {letter}[] = {{{', '.join(names.value(one, kind, of) for one in group)}}};"
        for letter, group in zip("abc", groups, strict=True)
    ]
    stores = [f"{names.result(one, of).name} = d[{n}];" for n, one in enumerate(targets)]
    return f"{{ {' '.join(values)} {word} d[{counts[2]}]; {call} {' '.join(stores)} }}"


def _integers(of: Instruction, one: Multiplication) -> str:
    """Return the call of a product of integers."""
    if one.result != "s32" or one.kind or (one.m, one.k, one.width) not in _INTEGER_SHAPES:
        raise refusal(of.line, of.text, "this matrix instruction is not supported")
    rule = integer_rule(one.a, one.b, one.is_clamped)
    return f"multiply_integers<{one.m}, {one.k}, {one.width}>(m, {rule}, a, b, c, d, {of.line});"


def integer_rule(a: str, b: str, is_clamped: bool) -> str:
    """Return which operands have a sign, and whether sums are clamped, as C++."""
    flags = (a.startswith("s"), b.startswith("s"), is_clamped)
    return f"IntegerRule{{{', '.join(str(flag).lower() for flag in flags)}}}"


def _plain(of: Instruction, names: Names, one: Multiplication) -> str:
    """Return the call of a product of floating-point numbers without scales."""
    processor = processor_of(names.target)
    profile = profile_of(processor, one.a, one.k, one.result)
    is_narrow = one.a in _NARROW
    admitted = _NARROW if one.kind == "f8f6f4" and processor == "rtx_blackwell" else FP8
    if is_narrow and (processor not in _NARROW_ON or not {one.a, one.b} <= {*admitted}):
        profile = None
    alike = is_narrow or one.a == one.b
    sizes = (128, 256)  # bits of a row of a
    if profile is None or not alike or one.m != 16 or one.k * one.width not in sizes:
        raise refusal(
            of.line, of.text,
            f"no profile of dot products has these types on {names.target.split(',')[0]}",
        )  # fmt: skip
    shape = f"{one.a.upper()}, {one.b.upper()}, {one.k}, {one.width}"
    return f"multiply<{shape}>(m, {cut_rule(profile)}, a, b, c, d, {of.line});"


def cut_rule(profile: DotProfile) -> str:
    """Return the numbers of a profile as C++."""
    return (
        f"CutRule{{{profile.chunk}, {profile.fraction_bits}, {profile.zero_exponent}, "
        f"{profile.kept_bits}, {str(profile.result == 'f16').lower()}}}"
    )


def _scaled(of: Instruction, names: Names, one: Multiplication) -> str:
    """Return the call of a product with scales of blocks, or "" if it has none."""
    if not one.scales:
        return ""
    name = f"rtx_blackwell_{_SCALED.get((one.kind, one.scales, one.count), '')}"
    if processor_of(names.target) != "rtx_blackwell" or name not in DOT_PROFILES:
        raise refusal(of.line, of.text, "no profile of dot products has these scales")
    profile = DOT_PROFILES[name]
    if one.k * one.width != 256 or one.m != 16 or not {one.a, one.b} <= {*profile.formats}:
        raise refusal(of.line, of.text, "its types are not those of its kind")
    of_a, of_b = (_selected(of, k, one.count, lanes) for k, lanes in ((5, 2), (7, 4)))
    scales = ", ".join(names.value(of.operands[k], "b32", of) for k in (4, 6))
    shape = f"{one.a.upper()}, {one.b.upper()}, {one.k}, {one.width}, {one.count}"
    rule, kind = cut_rule(profile), f"Scale::{one.scales}"
    return (
        f"const u32 scales[] = {{{scales}}}; multiply_scaled<{shape}>(m, {rule}, a, b, c, d, "
        f"{kind}, scales, {of_a}, {of_b}, {of.line});"
    )


def _selected(of: Instruction, place: int, count: int, lanes: int) -> str:
    """Return which bytes and lanes have the scales, as C++."""
    given = elements(of.operands[place]) if len(of.operands) == 8 else []
    numbers = [number_of(text, "b16") for text in given]
    byte, lane = numbers if len(numbers) == 2 else (None, None)
    if byte not in range(0, 5 - count, count) or lane not in range(lanes):
        raise refusal(of.line, of.text, "its selectors of scales are not defined")
    return f"Selected{{{byte}, {lane}}}"


def load_matrices(of: Instruction, names: Names) -> str:
    """Return `ldmatrix` as C++: each lane has a pair of each matrix."""
    targets = elements(of.operands[0])
    call = _moved(of, names, of.operands[1], len(targets))
    stores = " ".join(f"{names.result(one, of).name} = d[{n}];" for n, one in enumerate(targets))
    return f"{{ u32 d[{len(targets)}]; load_{call} {stores} }}"


def store_matrices(of: Instruction, names: Names) -> str:
    """Return `stmatrix` as C++: each lane has a pair of each matrix."""
    pairs = elements(of.operands[1])
    values = ", ".join(names.value(one, "b32", of) for one in pairs)
    call = _moved(of, names, of.operands[0], len(pairs))
    return f"{{ const u32 d[] = {{{values}}}; store_{call} }}"


def _moved(of: Instruction, names: Names, place: str, count: int) -> str:
    """Return the call that loads or stores matrices."""
    call = _of_pairs(of, count) or (
        _of_bytes(of, count) if _OF_A_FAMILY.match(names.target) else ""
    )
    if not call:
        raise refusal(of.line, of.text, "this move of matrices is not supported")
    address = address_of(of, names, place)
    if ".shared" not in of.opcode:
        address = f"{address} - m.shared"
    return f"{call}(m, {address}, d, {of.line});"


def _of_pairs(of: Instruction, count: int) -> str:
    """Return the end of the name of a function that moves numbers of 16 bits, or an empty text."""
    match = _MOVED.fullmatch(of.opcode)
    if not match or count != int(match["n"]):
        return ""
    return f"matrices<{count}, {'true' if match['trans'] else 'false'}>"


def _of_bytes(of: Instruction, count: int) -> str:
    """Return that of a function that moves numbers of 8 bits or fewer, or an empty text."""
    match = _MOVED_BYTES.fullmatch(of.opcode)
    if not match or count != 2 * int(match["wide"] or 0) + int(match["n"] or match["stored"] or 0):
        return ""
    if match["stored"]:
        return f"bytes<{count}>"
    kind = match["packed"] or match["kind"] or ""
    bits = 6 if "b6" in kind else 4 if "b4" in kind else 8
    return f"bytes<{count}, {bits}, {'true' if match['wide'] else 'false'}>"


def transpose(of: Instruction, names: Names) -> str:
    """Return `movmatrix` as C++: a matrix of eight rows of eight numbers, transposed."""
    if of.opcode != "movmatrix.sync.aligned.m8n8.trans.b16":
        raise refusal(of.line, of.text, "this move of matrices is not supported")
    value = names.value(of.operands[1], "b32", of)
    return f"{names.result(of.operands[0], of).name} = transposed(m, {value}, {of.line});"


HANDLERS: dict[str, Callable[[Instruction, Names], str]] = {
    "mma": multiply,
    "ldmatrix": load_matrices,
    "stmatrix": store_matrices,
    "movmatrix": transpose,
}
