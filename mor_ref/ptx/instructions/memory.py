"""Loads, stores, atomics, moves, and addresses."""

import re
from collections.abc import Callable

from mor_ref.ptx.constants import constant_of
from mor_ref.ptx.errors import refusal
from mor_ref.ptx.names import WORDS, Names
from mor_ref.ptx.program import WIDTHS, Instruction

_SPACES = {"global", "shared", "local", "const", "param"}
_STRONG = {"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"}
_WITHOUT_MEANING = {
    "weak", "cta", "cluster", "gpu", "sys", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc",
    "evict_last", "evict_first", "unified",
}  # fmt: skip
_ADDRESS = re.compile(
    r"\[\s*(?P<base>[A-Za-z_$%][\w$%]*)\s*(?:\+\s*(?P<offset>.*?))?\s*\]", re.DOTALL
)
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}


class Access:
    """The words of a load, a store or an atomic: its space, its type, and how many there are."""

    def __init__(self, of: Instruction, known: set[str] = frozenset()) -> None:  # type: ignore[assignment]
        self.of, self.space, self.count, self.strong = of, "generic", 1, False
        self.type, self.words = "", list[str]()
        for word in of.opcode.split(".")[1:]:
            self._take(word, known)
        if self.type not in WIDTHS:
            raise refusal(of.line, of.text, "its type is not supported")

    def _take(self, word: str, known: set[str]) -> None:
        base = word.partition("::")[0]
        if word in known:
            self.words.append(word)
        elif word in WIDTHS:
            self.type = word
        elif word in _VECTORS:
            self.count = _VECTORS[word]
        elif base in _SPACES and word != "shared::cluster":
            self.space = base
        elif base in ("L1", "L2", "level") or word in _WITHOUT_MEANING:
            pass
        elif word in _STRONG:
            self.strong = True
        else:
            raise refusal(self.of.line, self.of.text, f".{word} is not supported")

    @property
    def element(self) -> str:
        """The C++ type of an element in memory."""
        bits = WIDTHS[self.type]
        return f"s{bits}" if self.type.startswith("s") else WORDS[bits]

    def pointer(self, names: Names, address: str, writes: bool, written: str = "") -> str:
        """Return the C++ expression of a pointer that was checked; `written` is an array."""
        space = self.space
        base, offset = base_of(self.of, address)
        place = names.place(base, self.of)
        if place is not None and space == "param" and place.space == "frame":
            at = f"u64({place.address}), {place.size}"
            where = names.moved(place.address, offset, self.of)
            return self._call("inside", f"{at}, ", where, "")
        if space == "param" and writes:
            raise refusal(self.of.line, self.of.text, "a kernel only reads its parameters")
        where = address_of(self.of, names, address)
        touch = ("strong_" if self.strong else "") + ("write" if writes else "read")
        if space in ("shared", "generic"):
            return self._call(space, "", where, f", Touch::{touch}", written)
        if space in ("global", "const"):
            return self._call("device", "", where, f", {str(writes).lower()}")
        if space == "local":
            return self._call(space, "", where, f", {str(writes).lower()}")
        return self._call("parameter", "", where, "")

    def _call(self, function: str, inside: str, where: str, more: str, last: str = "") -> str:
        size = WIDTHS[self.type] // 8 * self.count
        bounds = inside.rstrip(", ")
        arguments = f"{where}, {bounds}" if bounds else where
        end = f", {last}" if last else ""
        return f"{function}<{self.element}, {size}>(m, {arguments}{more}, {self.of.line}{end})"


def base_of(of: Instruction, address: str) -> tuple[str, str]:
    """Return the register or the memory that an address in brackets begins at, and its offset."""
    match = _ADDRESS.fullmatch(address)
    if match:
        return match["base"], match["offset"] or ("0" if match["offset"] is None else "")
    inner = address[1:-1].strip()
    if ".local" in of.opcode and address[:1] == "[" and constant_of(inner) is not None:
        return inner, "0"
    raise refusal(of.line, of.text, f"address {address!r} is not supported")


def address_of(of: Instruction, names: Names, text: str) -> str:
    """Return an address in brackets as C++, unchecked; in shared memory it is an offset."""
    base, offset = base_of(of, text)
    place = names.place(base, of)
    return names.moved(place.address if place is not None else names.address(base, of), offset, of)


def load(of: Instruction, names: Names) -> str:
    """Return a load as C++."""
    access = Access(of)
    targets = elements(of.operands[0])
    if len(targets) != access.count:
        raise refusal(of.line, of.text, f"it names {len(targets)} registers")
    stores = [
        f"{names.result(target, of, access.type).name} = p[{k}];"
        for k, target in enumerate(targets)
        if target != "_"
    ]
    pointer = access.pointer(names, of.operands[1], writes=False)
    # The address may be in one of the registers that are written.
    look = "look(m); " if access.strong else ""
    see = f"see(m, p, u64(p[0]), {of.line}); " if access.strong else ""
    return f"{{ {look}const auto* p = {pointer}; {see}{' '.join(stores)} }}"


def store(of: Instruction, names: Names) -> str:
    """Return a store as C++."""
    access = Access(of)
    values = [names.value(each, access.type, of) for each in elements(of.operands[1])]
    if len(values) != access.count:
        raise refusal(of.line, of.text, f"it names {len(values)} registers")
    written = ", ".join(f"{access.element}({each})" for each in values)
    stores = " ".join(f"p[{k}] = v[{k}];" for k in range(len(values)))
    pointer = access.pointer(names, of.operands[0], writes=True, written="v")
    moved = "" if access.space in ("local", "param") else "m.seen_at = 0; "
    text = f"const {access.element} v[] = {{{written}}}; auto* p = {pointer}; {stores}"
    return f"{{ {moved}{text} }}"


def move(of: Instruction, names: Names) -> str:
    """Return a move as C++: also of an address, and of registers in pieces."""
    kind = of.opcode.partition(".")[2]
    if kind not in WIDTHS:
        raise refusal(of.line, of.text, f".{kind} is not supported")
    target, source = of.operands
    most = max(len(elements(each)) for each in of.operands)
    if most > 1 and WIDTHS[kind] // most not in WORDS:
        raise refusal(of.line, of.text, f".{kind} has no {most} registers")
    if target.startswith("{"):
        pieces = elements(target)
        bits = WIDTHS[kind] // len(pieces)
        stores = [
            f"{names.result(piece, of, f'b{bits}').name} = {WORDS[bits]}(x >> {k * bits});"
            for k, piece in enumerate(pieces)
            if piece != "_"
        ]
        return f"{{ auto x = {names.value(source, kind, of)}; {' '.join(stores)} }}"
    if source.startswith("{"):
        pieces = elements(source)
        bits, word = WIDTHS[kind] // len(pieces), WORDS[WIDTHS[kind]]
        parts = [
            f"{word}({names.value(piece, f'b{bits}', of)}) << {k * bits}"
            for k, piece in enumerate(pieces)
        ]
        return f"{names.result(target, of, kind).name} = {word}({' | '.join(parts)});"
    return f"{names.result(target, of, kind).name} = {names.value(source, kind, of)};"


def convert_address(of: Instruction, names: Names) -> str:
    """Return the conversion of an address to or from the generic space as C++."""
    _, *words = of.opcode.split(".")
    space = next((word.partition("::")[0] for word in words if word != "to"), "")
    if words[-1:] != ["u64"] or space not in _SPACES:
        raise refusal(of.line, of.text, "it is not supported")
    value = names.value(of.operands[1], "b64", of)
    if space in ("shared", "local"):
        value = f"{value} {'-' if 'to' in words else '+'} m.{space}"
    return f"{names.result(of.operands[0], of, 'b64').name} = {value};"


def policy(of: Instruction, names: Names) -> str:
    """Return a policy of caches as C++: it changes no result."""
    return f"{names.result(of.operands[0], of).name} = 0;"


def is_in_space(of: Instruction, names: Names) -> str:
    """Return the question about the space of an address as C++."""
    space = of.opcode.split(".")[1].partition("::")[0]
    value = names.value(of.operands[1], "b64", of)
    found = {
        "shared": f"is_shared(m, {value})", "local": f"is_local(m, {value})",
        "param": f"is_parameter(m, {value})",
        "global": f"!is_shared(m, {value}) && !is_local(m, {value}) && !is_parameter(m, {value})",
    }.get(space)  # fmt: skip
    if found is None:
        raise refusal(of.line, of.text, "it is not supported")
    return f"{names.result(of.operands[0], of, 'pred').name} = {found};"


def elements(text: str) -> list[str]:
    """Return the parts of an operand: those in braces, or itself."""
    if not text.startswith("{"):
        return [text]
    return [part.strip() for part in text[1:-1].split(",")]


HANDLERS: dict[str, Callable[[Instruction, Names], str]] = {
    "ld": load,
    "ldu": load,
    "st": store,
    "mov": move,
    "cvta": convert_address,
    "isspacep": is_in_space,
    "createpolicy": policy,
}
