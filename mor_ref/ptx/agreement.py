"""Which registers and constants an operand of a type may be, as PTX has it."""

from mor_ref.ptx.constants import Constant
from mor_ref.ptx.program import WIDTHS

# Their registers may be wider than the type.
_CONVERTING = {"cvt", "ld", "ldu", "st"}
_HALVES = {"f16", "bf16", "f16x2", "bf16x2"}


def _class(kind: str) -> str:
    """Return the class of a type: integers, bits, predicates or real numbers."""
    if kind in ("pred", "b8", "b16", "b32", "b64", "b128"):
        return kind.rstrip("0123456789")
    return "integers" if kind[0] in "us" else "real"


def is_register(register: str, kind: str, opcode: str) -> bool:
    """Return whether a register of a type may be an operand of a type: bits are of any class."""
    own, wanted = WIDTHS[register], WIDTHS[kind]
    is_wider = own > wanted > 1 and opcode.split(".", maxsplit=1)[0] in _CONVERTING
    classes = {_class(register), _class(kind)}
    if "pred" in classes or (own != wanted and not is_wider):
        return classes == {"pred"}
    return len(classes) == 1 or "b" in classes


def type_of_constants(kind: str, opcode: str) -> str:
    """Return the type of constants of an operand: halves are in registers of bits."""
    last = opcode.rpartition(".")[2]
    return last if last in _HALVES else kind


def is_constant(constant: Constant, kind: str) -> bool:
    """Return whether a constant may be an operand of a type; PTX has no halves."""
    if kind in _HALVES:
        return False
    if constant.type == "f64":
        return kind in ("f32", "f64", "b64")
    if constant.type == "b32":
        return kind in ("f32", "b32")
    return _class(kind) != "real"


def is_initial_value(constant: Constant, kind: str) -> bool:
    """Return whether a constant may be the initial value of a variable of a type."""
    is_rounded = constant.type == "f64" and kind == "b32"
    return is_rounded or is_constant(constant, kind)
