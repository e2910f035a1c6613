"""Products and sums that ptxas may round as one: those without a rounding in their name."""

import re
from dataclasses import dataclass, field

from mor_ref.ptx.program import Instruction

_TYPES = r"\.(?P<t>f32x2|f32|f64|b?f16x2|b?f16)"
_PRODUCT = re.compile(rf"mul(?P<ftz>\.ftz)?{_TYPES}")
_SUM = re.compile(rf"(?P<op>add|sub)(?P<ftz>\.ftz)?(?P<sat>\.sat)?{_TYPES}")
# The C++ of a product and a sum rounded as one, and of the opposite number.
_FUSED = {
    "f32": ("fma_f32<Mode::even, {0}>", "neg_f32"),
    "f64": ("fma_f64", "neg_f64"),
    "f16": ("fma_half<F16, Mode::even, {0}>", "neg_half<F16, Mode::even, 0>"),
    "bf16": ("fma_half<BF16, Mode::even, {0}>", "neg_half<BF16, Mode::even, 0>"),
}
_INSTEAD = "compile without contraction (NVRTC: --fmad=false; Triton: enable_fp_fusion=False)"


@dataclass(frozen=True)
class Undefined:
    """An instruction whose bits PTX leaves open: its line, its text, and what to do.

    `source` is the place in the source, such as kernel.py:17, if the PTX has it.
    """

    line: int
    text: str
    why: str
    source: str = ""

    def __str__(self) -> str:
        return f"line {self.line}{self.source and f' ({self.source})'}: {self.text}: {self.why}"


@dataclass(frozen=True)
class Product:
    """A product: its line, its type, and whether it flushes subnormal numbers."""

    line: int
    type: str
    ftz: bool


@dataclass
class Products:
    """The products of a function, by the registers that nothing else writes."""

    by_register: dict[str, Product] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)

    def seen(self, of: Instruction, target: str) -> None:
        """Note what an instruction writes."""
        self.written[target] = self.written.get(target, 0) + 1
        found = _PRODUCT.fullmatch(of.opcode)
        if found:
            self.by_register[target] = Product(of.line, found.group("t"), bool(found.group("ftz")))

    @property
    def fusible(self) -> dict[str, Product]:
        """The products whose registers are written once."""
        return {name: one for name, one in self.by_register.items() if self.written[name] == 1}


def contracted(
    of: Instruction, products: dict[str, Product], target: str, values: list[str], apart: str
) -> tuple[str, Undefined | None]:
    """Return an instruction as C++, and that its bits are open if a product is in its sum.

    A product keeps its operands for sums that may be rounded with it.
    """
    if target in products and _PRODUCT.fullmatch(of.opcode):
        keep = "".join(f"{target}_{k} = {value}; " for k, value in enumerate(values))
        return f"{{ {keep}{target} = {apart}; }}", None
    found = _SUM.fullmatch(of.opcode)
    for k, value in enumerate(values if found else ()):
        product = products.get(value)
        if found is None or product is None:
            continue
        if (product.type, product.ftz) != (found.group("t"), bool(found.group("ftz"))):
            continue
        fma, negative = _together(found)
        first, other = f"{value}_0", values[1 - k]
        if found.group("op") == "sub":
            first, other = (
                (first, f"{negative}({other})") if k == 0 else (f"{negative}({first})", other)
            )
        together = f"m.end == End::nearest ? {apart} : {fma}({first}, {value}_1, {other})"
        why = (
            f"ptxas may round it together with the product in line {product.line}, or apart; "
            f"{_INSTEAD}"
        )
        return f"{target} = {together};", Undefined(of.line, of.text, why)
    return f"{target} = {apart};", None


def _together(total: re.Match[str]) -> tuple[str, str]:
    """Return the functions of a sum that is rounded with its product, and of the opposite."""
    flags = " | ".join(name.upper() for name in ("ftz", "sat") if total.group(name)) or "0"
    kind = total.group("t")
    both = [one.format(flags) for one in _FUSED[kind.removesuffix("x2")]]
    if kind.endswith("x2"):
        pair = "in_words" if kind == "f32x2" else "in_halves"
        both = [f"{pair}<{one}>" for one in both]
    return both[0], both[1]
