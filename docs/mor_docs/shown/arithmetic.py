"""RN32, operation by operation."""

from fractions import Fraction

from mor_docs.shown.markup import binary32, f32_hex, number, table
from mor_ref.exact.arithmetic import product, rn32, total


def fused(*given: str) -> str:
    """Show a * b + c of three numbers at a time, in two operations and in one."""
    numbers = binary32(given)
    rows = []
    for i in range(0, len(numbers), 3):
        a, b, c = numbers[i : i + 3]
        apart = total(product(a, b), c)
        once = rn32(Fraction(a) * Fraction(b) + Fraction(c))
        rows.append(
            [*map(number, (a, b, c)), f32_hex(product(a, b)), f32_hex(apart), f32_hex(once)]
        )
    head = ["a", "b", "c", "RN32(a · b)", "RN32(RN32(a · b) + c)", "in one"]
    return table(head, rows)
