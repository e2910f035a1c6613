"""Products and sums that ptxas may round as one: those without a rounding in their names."""

import re
from dataclasses import dataclass, field

from mor_ref.ptx.program import WIDTHS, Instruction
from mor_ref.ptx.remarks import NO_CONTRACTION, Undefined

_TYPES = r"\.(?P<t>f32x2|f32|f64|b?f16x2|b?f16)"
# ptxas 13.0 makes one of a product and a sum of f32x2 even with .rn; 13.4 does not.
_RN = r"(?:\.rn(?=[.\w]*\.f32x2))?"
_PRODUCT = re.compile(rf"mul{_RN}(?P<ftz>\.ftz)?{_TYPES}")
# A power of two from 1/8 to 8, which a product of binary32 may have before it is rounded.
_SCALING = re.compile(r"mul(?:\.rn)?(?P<ftz>\.ftz)?(?P<sat>\.sat)?\.f32")
SCALES = {0x3F800000 + (k << 23) for k in (-3, -2, -1, 1, 2, 3)}
_SUM = re.compile(rf"(?P<op>add|sub){_RN}(?P<ftz>\.ftz)?(?P<sat>\.sat)?{_TYPES}")
_OF_PAIRS = "ptxas 13.0 does so even with .rn; write mul.rn.f32 and add.rn.f32 for each number"
# The C++ of a product and a sum rounded as one.
_FUSED = {
    "f32": "fma_f32<Mode::even, {0}>",
    "f64": "fma_f64",
    "f16": "fma_half<F16, Mode::even, {0}>",
    "bf16": "fma_half<BF16, Mode::even, {0}>",
}


@dataclass(frozen=True)
class Product:
    """A product: its line, its type, whether it flushes subnormal numbers, and its number.

    A product of two numbers in a register has a number for each.
    """

    line: int
    type: str
    ftz: bool
    number: int


Key = tuple[str, Instruction]  # in a function


@dataclass
class Flow:
    """The products that sums of a kernel may be rounded with, and the number of all."""

    products: dict[Key, Product] = field(default_factory=dict)
    sums: dict[Key, tuple[list[Product], ...]] = field(default_factory=dict)  # of each operand
    count: int = 0


def is_product(opcode: str) -> bool:
    """Return whether an instruction is a product that does not say how it is rounded."""
    return _PRODUCT.fullmatch(opcode) is not None


def is_sum(opcode: str) -> bool:
    """Return whether an instruction is a sum that does not say how it is rounded."""
    return _SUM.fullmatch(opcode) is not None


def is_scaling(opcode: str) -> bool:
    """Return whether an instruction may multiply a product by a power of two."""
    return _SCALING.fullmatch(opcode) is not None


def product_of(of: Instruction, number: int) -> Product:
    """Return a product by its instruction."""
    found = _PRODUCT.fullmatch(of.opcode)
    kind = found["t"] if found else ""
    return Product(of.line, kind, bool(found and found["ftz"]), number)


def can_be_one(total: Instruction, product: Product) -> bool:
    """Return whether a sum, or a scaling, may be rounded together with such a product."""
    if is_scaling(total.opcode):  # it decides alone whether both are flushed
        return product.type == "f32"
    found = _SUM.fullmatch(total.opcode)
    single = product.type.removesuffix("x2")
    return found is not None and (found["t"].removesuffix("x2"), bool(found["ftz"])) == (
        single,
        product.ftz,
    )


def lanes_of(kind: str) -> int:
    """Return how many numbers a register of a type has."""
    return 2 if kind.endswith("x2") else 1


def held(product: Product, target: str, values: list[str], apart: str) -> str:
    """Return a product as C++ that keeps its operands, for sums that may be rounded with it."""
    width, lanes = WIDTHS[product.type] // lanes_of(product.type), lanes_of(product.type)
    arguments = f"{product.number}, {values[0]}, {values[1]}, x"
    return f"const auto x = {apart}; hold<{width}, {lanes}>(m, {arguments}); {target} = x;"


def contracted(
    of: Instruction, products: tuple[list[Product], ...], values: list[str], apart: str
) -> tuple[str, str]:
    """Return C++ that names products, and a sum or a scaling, apart or together with one of them.

    `products` lists, for each operand, the products that it may be.
    """
    sides = ""
    for letter, those in zip("xy", products, strict=True):
        numbers = [str(one.number + k) for one in those for k in range(lanes_of(one.type))]
        sides += f"static const std::initializer_list<u32> of_{letter} = {{{', '.join(numbers)}}}; "
    given = f"(m, {of.line}, of_x, of_y, {', '.join(values)}, {apart})"
    found = _SCALING.fullmatch(of.opcode) or _SUM.fullmatch(of.opcode)
    words = found.groupdict() if found else {}
    flags = " | ".join(name.upper() for name in ("ftz", "sat") if words[name]) or "0"
    if is_scaling(of.opcode):
        return sides, f"scaled<scaled_f32<{flags}>>{given}"
    kind = words["t"]
    fused, lanes = _FUSED[kind.removesuffix("x2")].format(flags), lanes_of(kind)
    shape = f"{fused}, {WIDTHS[kind] // lanes}, {lanes}, {str(words['op'] == 'sub').lower()}"
    return sides, f"contracted<{shape}>{given}"


def open_sum(of: Instruction, products: tuple[list[Product], ...]) -> Undefined:
    """Return that the bits of a sum are open."""
    lines = sorted({one.line for those in products for one in those})
    many = f"s in lines {', '.join(map(str, lines))}" if len(lines) > 1 else f" in line {lines[0]}"
    advice = _OF_PAIRS if of.opcode.endswith("f32x2") else NO_CONTRACTION
    why = f"ptxas may round it together with the product{many}, or apart; {advice}"
    return Undefined(of.line, of.text, why)
