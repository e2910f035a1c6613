"""Matrix instructions of four warps: products of matrices in shared memory.

A product is computed where it is begun. So fences and waits do nothing here, and a missing one is
not found.
"""

import re
from collections.abc import Callable

from mor_ref.ptx.constants import number_of
from mor_ref.ptx.errors import refusal
from mor_ref.ptx.instructions.matrices import FP8, WIDTHS, cut_rule, integer_rule, profile_of
from mor_ref.ptx.instructions.memory import elements
from mor_ref.ptx.names import Names
from mor_ref.ptx.program import Instruction

_MMA = re.compile(
    r"wgmma\.mma_async\.sync\.aligned\.m64n(?P<n>\d+)k(?P<k>\d+)(?P<clamped>\.satfinite)?"
    r"\.(?P<d>f32|f16|s32)\.(?P<a>\w+)\.(?P<b>\w+)"
)
_WAITS = re.compile(r"wgmma\.(?:fence|commit_group|wait_group)\.sync\.aligned")
_INTEGERS = ("s8", "u8")


def multiply(of: Instruction, names: Names) -> str:
    """Return `wgmma` as C++: each lane has two numbers of each eight columns, for two rows."""
    if _WAITS.fullmatch(of.opcode):
        return ";"
    match = _MMA.fullmatch(of.opcode)
    width = WIDTHS.get(match["a"], 0) if match else 0
    is_integer = match is not None and {match["a"], match["b"]} <= {*_INTEGERS}
    alike = match is not None and (
        match["a"] == match["b"] or {match["a"], match["b"]} <= {*FP8} or is_integer
    )
    if not match or not alike or not names.target.startswith("sm_90a"):
        raise refusal(of.line, of.text, "this matrix instruction is not supported")
    n, k = int(match["n"]), int(match["k"])
    if k * width != 256 or n not in range(8, 257, 8):
        raise refusal(of.line, of.text, "its shape is not supported")
    if is_integer and match["d"] == "s32":
        rule = integer_rule(match["a"], match["b"], bool(match["clamped"]))
        call = f"multiply_integers_of_group<{n}>(m, {rule}, from, d, {of.line});"
    else:
        profile = profile_of("hopper", match["a"], k, match["d"])
        if profile is None or match["clamped"]:
            raise refusal(of.line, of.text, "no profile of dot products has these types")
        shape = f"{match['a'].upper()}, {match['b'].upper()}, {n}, {k}"
        signs = f"{_is_minus(of, 4)}, {_is_minus(of, 5)}"
        call = f"multiply_group<{shape}>(m, {cut_rule(profile)}, from, {signs}, d, {of.line});"
    count = n // 4 if match["d"] == "f16" else n // 2
    return _with_operands(of, names, call, count, can_be_across=width == 16)


def _with_operands(
    of: Instruction, names: Names, call: str, count: int, *, can_be_across: bool
) -> str:
    """Return a call with the sums in d before and after, and with where a and b are."""
    targets, a = elements(of.operands[0]), elements(of.operands[1])
    has_registers = of.operands[1].startswith("{")
    is_integer = "integers" in call
    across = list(of.operands[6:]) if can_be_across else []
    wanted = 4 if is_integer else 6 + (2 - has_registers if can_be_across else 0)
    if len(targets) != count or len(a) != (4 if has_registers else 1) or len(of.operands) != wanted:
        raise refusal(of.line, of.text, "its operands are not those of its shape")
    bits = [str(number_of(text, "b32") == 1).lower() for text in across]
    bits = ["false"] * (2 - len(bits)) + bits
    values = ", ".join(names.value(one, "b32", of) for one in a) if has_registers else "0"
    place = "0" if has_registers else names.value(a[0], "b64", of)
    begins = [f"is_added ? {names.value(one, 'b32', of)} : 0" for one in targets]
    stores = [f"{names.result(one, of).name} = d[{n}];" for n, one in enumerate(targets)]
    return (
        f"{{ const bool is_added = {names.predicate(of.operands[3], of)}; "
        f"const u32 a[] = {{{values}}}; u32 d[] = {{{', '.join(begins)}}}; "
        f"const GroupOperands from = {{{'a' if has_registers else 'nullptr'}, {place}, "
        f"{names.value(of.operands[2], 'b64', of)}, {', '.join(bits)}}}; "
        f"{call} {' '.join(stores)} }}"
    )


def _is_minus(of: Instruction, place: int) -> str:
    """Return whether a factor of 1 or -1 is -1, as C++."""
    number = number_of(of.operands[place], "b32") if len(of.operands) > place else None
    if number not in (1, (1 << 32) - 1):
        raise refusal(of.line, of.text, "the factor of an operand is 1 or -1")
    return str(number != 1).lower()


HANDLERS: dict[str, Callable[[Instruction, Names], str]] = {"wgmma": multiply}
