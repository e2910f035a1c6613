"""Reads PTX: a text becomes a `Program`, and a line that is not understood is refused."""

import re
from bisect import bisect_right
from dataclasses import replace
from itertools import accumulate

from mor_ref.ptx.declarations import declared, size_of, split
from mor_ref.ptx.errors import PtxError, refusal
from mor_ref.ptx.program import Function, Instruction, Label, Program, Scope, Statement, Variable
from mor_ref.ptx.targets import check_version

_COMMENT = re.compile(r'"[^"\n]*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_BRACE = re.compile(r"[{}]")
_SPACE = re.compile(r"\s*")
_LABEL = re.compile(r"([\w$%]+)\s*:(?!:)")
_TARGETS = re.compile(r"\s*\.branchtargets\s+([^;]*);")
_TO_THE_LINE_END = re.compile(r"\.(?:loc|file)\b[^\n]*")
_INSTRUCTION = re.compile(
    r"(?:@(?P<guard>!?\s*[\w$%]+)\s+)?(?P<opcode>[a-z]\w*(?:\s*(?:\.|::)\s*\w+)*)(?P<operands>.*)",
    re.DOTALL,
)
_HEAD = re.compile(r"\.(version|target|address_size)\b\s*")
_HEADS = {
    "version": (re.compile(r"\d+\.\d+"), "8.0"),
    "target": (re.compile(r"sm_\d+[af]?(?:\s*,\s*\w+)*"), "sm_90"),
    "address_size": (re.compile(r"\d+"), "64"),
}
_STRANGE = re.compile(r'"[^"\n]*"|(?P<it>[^\t-\r -~])')
_FUNCTION = re.compile(r"(?:\.(?P<linking>visible|weak|extern)\s+)?\.(?P<kind>entry|func)\b")
_NAME = re.compile(r"\s*([\w$%]+)\s*")
# A kernel that needs one of these is refused by its own line.
_UNUSED = re.compile(r"\.pragma\b[^;]*;|(?:\.\w+\s+)*\.(?:tex|sampler|surf)ref\b[^;]*;")
_ALIAS = re.compile(r"\.alias\s+([\w$%]+)\s*,\s*([\w$%]+)\s*;")
_IGNORED = {"pragma", "maxnreg", "minnctapersm", "noreturn", "unified", "attribute"}
_THREADS = re.compile(r"\.(reqntid|maxntid)\b([^.]*)")
_MOST_SIDES = 3  # of a block


class Text:
    """A PTX text without comments, and its line numbers."""

    def __init__(self, text: str) -> None:
        self.text = _COMMENT.sub(
            _without, text.removeprefix("\ufeff").removesuffix("\0")
        )  # a mark, and NVRTC's end
        self._ends = list(accumulate(len(line) + 1 for line in self.text.split("\n")))
        for found in _STRANGE.finditer(self.text):
            if found.group("it"):
                line, letter = self.line(found.start()), found.group("it")
                raise refusal(line, ascii(letter), "PTX has ASCII characters alone")

    def line(self, at: int) -> int:
        """Return the number of the line of a place, from 1."""
        return bisect_right(self._ends, at) + 1

    def to(self, end: str, at: int) -> int:
        """Return the place of the next such character."""
        found = self.text.find(end, at)
        if found < 0:
            raise refusal(self.line(at), self.text[at : at + 60], f"no {end!r} follows")
        return found

    def past_braces(self, at: int) -> int:
        """Return the place behind the brace that closes the one here."""
        depth = 0
        for brace in _BRACE.finditer(self.text, at):
            depth += 1 if brace.group() == "{" else -1
            if not depth:
                return brace.end()
        raise refusal(self.line(at), self.text[at : at + 60], "no brace closes this one")


def _without(comment: re.Match[str]) -> str:
    """Return a string as it is, and a comment as blanks on the same lines."""
    found = comment.group()
    return found if found.startswith('"') else re.sub(r"[^\n]", " ", found)


def parsed(text: str) -> Program:
    """Return the program of a PTX text."""
    source, at = Text(text), 0
    head: dict[str, str] = {}
    variables: dict[str, Variable] = {}
    functions: dict[str, Function] = {}
    defined, aliases = set[str](), list[re.Match[str]]()
    while (at := _skipped(source, at)) < len(source.text):
        if found := _HEAD.match(source.text, at):
            at = _take_head(source, found, head)
        elif found := _TO_THE_LINE_END.match(source.text, at) or _UNUSED.match(source.text, at):
            at = found.end()
        elif found := _ALIAS.match(source.text, at):
            aliases.append(found)
            at = found.end()
        elif source.text.startswith(".section", at):
            at = source.past_braces(source.to("{", at))
        elif found := _FUNCTION.match(source.text, at):
            function, at = _function(source, found)
            is_defined = source.text[at - 1] == "}"
            _take_function(function, functions, defined, is_defined=is_defined)
        else:
            end = source.to(";", at)
            for variable in declared(source.line(at), source.text[at:end]):
                _take_variable(variable, variables, source.text[at:end])
            at = end + 1
    _take_aliases(source, aliases, functions, defined)
    if missing := [f".{name}" for name in ("version", "target") if name not in head]:
        raise PtxError(f"the text has no {' and no '.join(missing)}; give a whole PTX module")
    if head.get("address_size", "64") != "64":
        raise PtxError(f"addresses are of {head['address_size']} bits; compile for 64")
    check_version(head["target"], head["version"])
    return Program(head["version"], head["target"], variables, functions)


def _take_head(source: Text, found: re.Match[str], head: dict[str, str]) -> int:
    """Note the version, the target or the size of addresses; return the place behind it."""
    name, line = found.group(1), source.line(found.start())
    pattern, example = _HEADS[name]
    value = pattern.match(source.text, found.end())
    if value is None or name in head:
        text = source.text[found.start() : found.start() + 60].split("\n")[0]
        raise refusal(line, text, f"a module has one .{name}, such as .{name} {example}")
    head[name] = value.group()
    return value.end()


def _take_function(
    function: Function, functions: dict[str, Function], defined: set[str], *, is_defined: bool
) -> None:
    """Add a function: a definition, or a declaration."""
    name, text = function.name, f".{'entry' if function.is_entry else 'func'} {function.name}"
    other = functions.get(name, function)
    if name in defined:
        raise refusal(function.line, text, "the module has another one of this name")
    if is_defined and "extern" in (function.linking, other.linking):
        raise refusal(function.line, text, "an .extern function is defined in another module")
    if function.linking not in ("", other.linking):
        why = f"line {other.line} declares it without .{function.linking}"
        raise refusal(function.line, text, why)
    if is_defined:
        defined.add(name)
    if is_defined or name not in functions:
        functions[name] = replace(function, first=other.first or function.line)


def _take_aliases(
    source: Text, aliases: list[re.Match[str]], functions: dict[str, Function], defined: set[str]
) -> None:
    """Add functions of another name: of those that are defined anywhere in the module."""
    for alias in aliases:
        name, of = alias.groups()
        line, text = source.line(alias.start()), alias.group()
        if of not in defined or functions[of].is_entry:
            raise refusal(line, text, f"the module has no function {of}")
        if name in defined:
            raise refusal(line, text, "the module has another one of this name")
        functions[name] = replace(functions[of], name=name)


def _take_variable(variable: Variable, variables: dict[str, Variable], text: str) -> None:
    """Add a variable: one definition, and declarations of it as `.extern`."""
    name, other = variable.name, variables.get(variable.name, variable)
    before, now = ((one.space, one.type, one.size) for one in (other, variable))
    is_again = name in variables and "extern" not in (variable.linking, other.linking)
    is_resolved = other.linking != "extern" or variable.linking != ""
    if before != now or is_again or not is_resolved:
        raise refusal(variable.line, text, f"{name} is in line {other.line}, too")
    kept = other if variable.linking == "extern" else variable
    variables[name] = replace(kept, first=other.first or variable.line)


def _skipped(source: Text, at: int) -> int:
    found = _SPACE.match(source.text, at)
    return found.end() if found else at


def _function(source: Text, found: re.Match[str]) -> tuple[Function, int]:
    """Return a function, and the place behind it."""
    line, at = source.line(found.start()), _skipped(source, found.end())
    results, at = _parameters(source, at)
    name = _NAME.match(source.text, at)
    if not name:
        raise refusal(line, source.text[at : at + 60], "give the name of the function here")
    parameters, at = _parameters(source, name.end())
    opening, ending = source.text.find("{", at), source.text.find(";", at)
    is_declared = ending >= 0 and (opening < 0 or ending < opening)
    directives = source.text[at : ending if is_declared else opening]
    while not is_declared and ".pragma" in directives and directives.count('"') % 2:
        opening = source.text.find("{", opening + 1)
        directives = source.text[at:opening]
    if ".pragma" in directives and is_declared and opening >= 0:  # its ; ends no declaration
        is_declared, directives = False, source.text[at:opening]
    end = ending + 1 if is_declared else source.past_braces(opening)
    function = Function(
        line, name.group(1), found["kind"] == "entry", results, parameters, (),
        linking=found["linking"] or "",
    )  # fmt: skip
    try:
        required, most = _threads(line, directives)
        statements = () if is_declared else _statements(source, opening + 1, end - 1)
    except PtxError as error:  # other functions of the module can run
        return replace(function, refused=str(error)), end
    return replace(
        function, statements=tuple(statements), required_threads=required, most_threads=most
    ), end


def _parameters(source: Text, at: int) -> tuple[tuple[Variable, ...], int]:
    if not source.text.startswith("(", at):
        return (), at
    end = source.to(")", at)
    texts = [part for part in source.text[at + 1 : end].split(",") if part.strip()]
    found = tuple(one for part in texts for one in declared(source.line(at), part))
    return found, _skipped(source, end + 1)


def _threads(line: int, directives: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the number of threads that a kernel requires, and the most that it takes."""
    found = dict[str, tuple[int, ...]]()
    for word, numbers in _THREADS.findall(directives):
        text = f".{word}{numbers.rstrip()}"
        sides = tuple(size_of(line, text, each.strip()) for each in numbers.split(","))
        if len(sides) > _MOST_SIDES or not all(sides):
            raise refusal(line, text, "give one to three whole numbers above 0")
        found[word] = sides
    rest = re.sub(r'"[^"]*"', "", _THREADS.sub(" ", directives))
    for word in re.findall(r"\.(\w+)", rest):
        if word not in _IGNORED:
            raise refusal(line, directives, f".{word} is not supported")
    return found.get("reqntid", ()), found.get("maxntid", ())


def _statements(source: Text, at: int, end: int) -> list[Statement]:
    text, found, depth = source.text, list[Statement](), 0
    while (at := _skipped(source, at)) < end:
        line = source.line(at)
        if text[at] in "{}":
            found.append(Scope(line, text[at] == "{"))
            depth += 1 if text[at] == "{" else -1
            if depth < 0:
                raise refusal(line, text[at : at + 60].split("\n")[0], "no brace opens this one")
            at += 1
        elif label := _LABEL.match(text, at):
            at = label.end()
            targets = _TARGETS.match(text, at)
            if targets:
                at = targets.end()
            names = tuple(word.strip() for word in targets.group(1).split(",")) if targets else ()
            found.append(Label(line, label.group(1), names))
        elif loc := _TO_THE_LINE_END.match(text, at):
            at = loc.end()
        else:
            stop = source.to(";", at)
            if stop > end:
                raise refusal(line, text[at:end], "no ';' follows")
            found += _statement(line, text[at:stop].strip())
            at = stop + 1
    return found


def _statement(line: int, text: str) -> list[Statement]:
    if not text or text.startswith(".pragma"):
        return []
    if text.startswith("."):
        return [*declared(line, text)]
    found = _INSTRUCTION.fullmatch(text)
    if not found:
        raise refusal(line, text, "this is not an instruction")
    guard = "".join((found.group("guard") or "").split())
    opcode = "".join(found.group("opcode").split())
    plain = " ".join(text.split())
    if text.count("{") != text.count("}"):
        raise refusal(line, plain, "its braces are not closed")
    return [Instruction(line, plain, guard, opcode, split(found.group("operands")))]
