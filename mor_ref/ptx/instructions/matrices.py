"""Matrix instructions of a warp: products of fragments, and their loads from shared memory."""

import re
from collections.abc import Callable

from mor_ref.definitions.dot import DOT_PROFILES, DotProfile
from mor_ref.ptx.errors import refusal
from mor_ref.ptx.instructions.memory import address_of, elements
from mor_ref.ptx.names import Names
from mor_ref.ptx.program import Instruction

_MMA = re.compile(
    r"mma\.sync\.aligned\.m16n8k(?P<k>\d+)\.row\.col(?:\.kind::f8f6f4)?"
    r"\.(?P<d>f32|f16)\.(?P<a>\w+)\.(?P<b>\w+)\.(?P<c>f32|f16)"
)
_LDMATRIX = re.compile(
    r"ldmatrix\.sync\.aligned\.m8n8\.x(?P<n>[124])(?P<trans>\.trans)?(?:\.shared(?:::cta)?)?\.b16"
)
# The first compute capability of each processor of the chapter on dot products.
_PROCESSORS = (
    (120, "rtx_blackwell"), (100, "blackwell"), (90, "hopper"), (89, "ada"), (80, "ampere"),
    (75, "turing"),
)  # fmt: skip
_LETTERS = {"f16": "fp16", "bf16": "bf16", "tf32": "tf32", "e4m3": "fp8", "e5m2": "fp8"}
_LAYOUTS = {"f16": "F16", "bf16": "BF16", "tf32": "TF32", "e4m3": "E4M3", "e5m2": "E5M2"}
_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8}
_NARROW_ON = ("ada", "rtx_blackwell")  # others compute mma of 8 bits by other instructions


def profile_of(target: str, kind: str, k: int, result: str) -> DotProfile | None:
    """Return the profile of a matrix instruction of so many products, if the chapter has it."""
    number = re.match(r"sm_(\d+)", target)
    capability = int(number.group(1)) if number else 0
    processor = next((name for first, name in _PROCESSORS if capability >= first), "")
    letters = _LETTERS.get(kind, "")
    if letters == "fp8" and processor not in _NARROW_ON:
        return None
    name = f"{processor}_{letters}{'_f16' if result == 'f16' else ''}"
    return next((DOT_PROFILES[one] for one in (f"{name}_k{k}", name) if one in DOT_PROFILES), None)


def multiply(of: Instruction, names: Names) -> str:
    """Return `mma.sync` as C++: each lane has four numbers of the result."""
    match = _MMA.fullmatch(of.opcode)
    if not match:
        raise refusal(of.line, of.text, "this matrix instruction is not supported")
    a, b, k, result = match.group("a"), match.group("b"), int(match.group("k")), match.group("d")
    profile = profile_of(names.target, a, k, result)
    if profile is None or _LETTERS.get(a) != _LETTERS.get(b) or match.group("c") != result:
        raise refusal(
            of.line, of.text,
            f"no profile of dot products has these types on {names.target.split(',')[0]}",
        )  # fmt: skip
    counts = k * _BITS[a] // 64, k * _BITS[a] // 128, 4 if result == "f32" else 2
    targets, *groups = (elements(operand) for operand in of.operands)
    if not counts[1] or [len(one) for one in (*groups, targets)] != [*counts, counts[2]]:
        raise refusal(of.line, of.text, "its registers are not those of its shape")
    values = [
        f"const u32 {letter}[] = {{{', '.join(names.value(one, 'b32', of) for one in group)}}};"
        for letter, group in zip("abc", groups, strict=True)
    ]
    stores = [f"{names.result(one, of).name} = d[{n}];" for n, one in enumerate(targets)]
    rule = (
        f"CutRule{{{profile.chunk}, {profile.fraction_bits}, {profile.zero_exponent}, "
        f"{profile.kept_bits}, {str(result == 'f16').lower()}}}"
    )
    call = f"multiply<{_LAYOUTS[a]}, {_LAYOUTS[b]}, {k}>(m, {rule}, a, b, c, d, {of.line});"
    return f"{{ {' '.join(values)} u32 d[{counts[2]}]; {call} {' '.join(stores)} }}"


def load_matrices(of: Instruction, names: Names) -> str:
    """Return `ldmatrix` as C++: each lane has a pair of each matrix."""
    match = _LDMATRIX.fullmatch(of.opcode)
    targets = elements(of.operands[0])
    if not match or len(targets) != int(match.group("n")):
        raise refusal(of.line, of.text, "this load of matrices is not supported")
    address = address_of(of, names, of.operands[1])
    if ".shared" not in of.opcode:
        address = f"{address} - m.shared"
    stores = " ".join(f"{names.result(one, of).name} = d[{n}];" for n, one in enumerate(targets))
    transposed = "true" if match.group("trans") else "false"
    call = f"load_matrices<{len(targets)}, {transposed}>(m, {address}, d, {of.line});"
    return f"{{ u32 d[{len(targets)}]; {call} {stores} }}"


HANDLERS: dict[str, Callable[[Instruction, Names], str]] = {
    "mma": multiply,
    "ldmatrix": load_matrices,
}
