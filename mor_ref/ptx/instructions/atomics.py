"""Atomic operations on memory: `atom` and `red`."""

from collections.abc import Callable

from mor_ref.ptx.errors import refusal
from mor_ref.ptx.instructions.memory import Access, elements
from mor_ref.ptx.names import WORDS, Names
from mor_ref.ptx.program import WIDTHS, Instruction

_ATOMICS = {
    "add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas", "noftz",
}  # fmt: skip
_INTEGER_CALLS = {"and": "and_", "or": "or_", "xor": "xor_"}
# GPUs flush sums of binary32 in global memory (FADD.FTZ), and those in shared memory not.
_REAL_ADD = {"f32": "sum_f32{is_shared(m, u64(p))}", "f64": "ToNan<add_f64>{m, LINE}"}
_REAL_ADD |= {name: f"add_half<{name.upper()}, Mode::even, 0>" for name in ("f16", "bf16")}
_REAL_ADD |= {f"{name}x2": f"in_halves<{_REAL_ADD[name]}>" for name in ("f16", "bf16")}
_HALVES = ("f16", "bf16", "f16x2", "bf16x2")
# The lengths of vectors.
_VECTORS = {"f16": (2, 4, 8), "bf16": (2, 4, 8), "f16x2": (2, 4), "bf16x2": (2, 4), "f32": (2, 4)}
_MOST_USUAL = 64  # bits; wider ones have few operations
_NEW_VALUES = {
    "exch": "b",
    "cas": "old == b ? c : old",
    "inc": "old >= b ? 0 : old + 1",
    "dec": "!old || old > b ? b : old - 1",
}


def _new_value(operation: str, kind: str, line: int) -> str | None:
    """Return the value that an atomic operation stores, as C++ of `old`, b and c."""
    if WIDTHS[kind] > _MOST_USUAL and operation not in ("exch", "cas"):
        return None
    if operation in _NEW_VALUES:
        return _NEW_VALUES[operation]
    if kind in _REAL_ADD and operation == "add":
        return f"{_REAL_ADD[kind]}(old, b)".replace("LINE", str(line))
    if operation in _INTEGER_CALLS and kind.startswith("b"):
        return f"{_INTEGER_CALLS[operation]}<{WORDS[WIDTHS[kind]]}>(old, b)"
    if operation in ("add", "min", "max") and kind[0] in "us":
        return f"{operation}<{kind}>(old, b)"
    if operation in ("min", "max") and kind in _HALVES:
        of, is_pair = kind.removesuffix("x2").upper(), str(kind.endswith("x2")).lower()
        function = f"{operation}_half<{of}, Mode::even, 0>"
        return f"NotedNan<{of}, {function}, {is_pair}>{{m, {line}}}(old, b)"
    return None


def _is_form(access: Access, operation: str, has_result: bool) -> bool:
    """Return whether PTX has an operation on so many elements in this space."""
    if access.count > 1:
        is_known = access.count in _VECTORS.get(access.type, ())
        is_known &= operation in ("add", *("min", "max") * (access.type in _HALVES))
        return is_known and access.space in ("global", "generic")
    if access.type in _HALVES and operation in ("min", "max"):
        return False
    return has_result or WIDTHS[access.type] <= _MOST_USUAL


def atomic(of: Instruction, names: Names) -> str:
    """Return an atomic operation as C++."""
    access = Access(of, _ATOMICS)
    access.strong = True
    operation = next((word for word in access.words if word != "noftz"), "")
    has_result = of.opcode.startswith("atom")
    address, *rest = of.operands[has_result:]
    targets = elements(of.operands[0]) if has_result else ["_"] * access.count
    kind = access.type
    word = WORDS[WIDTHS[kind]]
    values = [
        [names.value(one, kind, of) for one in elements(each)]
        for each in rest[: 1 + (operation == "cas")]
    ]
    is_form = _is_form(access, operation, has_result)
    wanted = _new_value(operation, kind, of.line) if is_form else None
    if wanted is None or {len(each) for each in (targets, *values)} != {access.count}:
        raise refusal(of.line, of.text, "this atomic operation is not supported")
    kept = "".join(
        f"const {word} {name}s[] = {{{', '.join(those)}}}; "
        for name, those in zip("bc", values, strict=False)
    )
    text = f"{'look(m); ' if has_result else ''}{kept}"
    text += f"auto* p = ({word}*){access.pointer(names, address, writes=True)}; "
    sign = f"({kind})" if kind.startswith("s") else ""
    for k, target in enumerate(targets):
        own = "".join(f"const {word} {name} = {name}s[{k}]; " for name in "bc"[: len(values)])
        store_it = "" if target == "_" else f"{names.result(target, of, kind).name} = "
        found = f"atomic(p + {k}, [&]({word} old) {{ return {word}({wanted}); }})"
        text += f"{{ {own}{store_it}{sign}{found}; }} "
    return f"{{ {text}}}"


HANDLERS: dict[str, Callable[[Instruction, Names], str]] = {"atom": atomic, "red": atomic}
