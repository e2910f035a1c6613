"""Sites in the source of the exact model: expressions and arguments of its steps.

They are found in the syntax tree of a step. A site is a step, the text of an expression, and the
count of its twins, so it stays the same when other lines change. Its rule is named by a comment on
its line, else by the docstring.
"""

import ast
import functools
import inspect
import itertools
import operator
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from mor_ref.deviations.deviation import Change, Function, everywhere
from mor_ref.exact.step import Step
from mor_ref.mistakes.mistake import Operator

_HOOK, _RIGHT, _WHOLE = "__wrong__", "__right__", "__whole__"
_STEP_ITSELF = 0  # the first node of its tree
_RULE = re.compile(r"[A-Z]{3}-\d{3}")
_CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*")
# What a call, an argument or a result is, by its name: a part of the names of mistakes.
_CALLS = {
    "of": "quotient",
    "units_next_to": "significand",
    "min": "limit",
    "quotient": "division",
    "product": "product",
    "value": "value",
    "copysign": "sign",
    "with_sign": "signed",
    "infinite_code": "infinity",
    "clamped": "clamp",
}
_ARGUMENTS = {
    "ideal": "ideal",
    "shared_mantissa": "shared",
    "amax": "amax",
    "group_amax": "amax",
    "random_word": "word",
}
_ARITHMETIC = ("division", "product")
_INPUTS = ("numbers", "x")
_PASSED_ON = {"special": "special"}  # what a step is told, and tells others
_RESULTS = {
    "ideal_scale": "result",
    "amax": "measured",
    "amax_of": "measured",
    "scale_code": "code",
    "shared_exponent": "exponent",
    "restored": "restored",
    "encode": "encoded",
    "code_goes_up": "goes-up",
    "goes_up_at_random": "goes-up-at-random",
    "overflow_code": "overflow",
    "infinite_code": "infinite",
    "nan_code": "nan-code",
    "power_of_two_code": "power-of-two",
    "decode": "decoded",
    "nan_bits": "nan-bits",
    "global_scale": "global",
    "tile_number": "number",
    "factors": "factors",
    "raised": "raised",
    "element_error": "element-error",
    "sum_of_errors": "sum-of-errors",
    "candidate_value": "stored-number",
    "scaled": "scaled",
    "element_code": "element",
    "packed": "packed",
    "block_scale_code": "tile-code",
    "mean_is_below": "mean",
    "fits_range": "range",
    "is_near": "near",
    "is_loud": "loud",
    "is_along": "along",
    "has_small_errors": "small",
    "is_measured": "all-measured",
    "loses_nothing": "lossless",
    "amin": "smallest",
    "kept": "kept",
    "unit_sums": "unit-sums",
}
# What a product or a quotient is that a step returns.
_RETURNED = {
    "tile_number": "number",
    "raised": "raised",
    "candidate_value": "value",
    "element_error": "square",
    "scaled": "xs",
    "restored": "y",
}
_OPERATIONS: dict[str, Function] = {
    "Lt": operator.lt,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "LtE": operator.le,
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Is": operator.is_,
    "IsNot": operator.is_not,
    "In": lambda item, items: item in items,
    "NotIn": lambda item, items: item not in items,
    "Add": operator.add,
    "Sub": operator.sub,
    "Mult": operator.mul,
    "FloorDiv": operator.floordiv,
}
# Kinds whose operators say what is wrong: these add nothing to names and sentences.
_SILENT = (
    *("result", "exponent", "stored-code", "code", "restored", "value"),
    *("encoded", "signed", "special", "goes-up", "goes-up-at-random", "overflow", "infinite"),
    *("nan-code", "power-of-two", "decoded", "nan-bits"),
    *("global", "number", "factors", "raised", "element-error", "sum-of-errors", "stored-number"),
    *("scaled", "element", "packed", "tile-code", "clamp"),
    *("mean", "range", "near", "loud", "along", "small", "all-measured", "lossless", "smallest"),
    *("kept", "unit-sums", "test", "guard", "at-most", "multiplied"),
)
_NOUNS = {
    "order": "limit-",
    "measured": "amax-",
    "division": "quotient-",
    "zero-code": "zeros-",
    "code-limit": "limit-",
    "largest-code": "limit-",
    "units": "fraction-",
    **dict.fromkeys(_SILENT, ""),
    **{kind: f"{kind}-" for kind in ("global", "number", "raised", "element", "clamp", "factors")},
    **{kind: f"{kind}-" for kind in ("test", "guard")},
    "sum-of-errors": "sum-",
    "tile-code": "scale-",
    "stored-number": "value-",
    "element-error": "error-",
    "at-most": "comparison-",
    "multiplied": "product-",
    "smallest": "amin-",
}
_SUBJECTS = {
    "significand": "the significand of the quotient",
    "ideal": "the ideal scale",
    "mantissa": "the mantissa",
    "shared": "the mantissa of the group",
    "zeros": "the scale of a block of zeros",
    "stored": "the stored exponent",
    "measured": "amax or block_amax",
    "inputs": "an input",
    "zero-code": "the scale code of a block of zeros",
    "power": "the power of two of a scale code",
    "nan-test": "the test for a scale of NaN",
    "largest": "the exponent of the largest number",
    "largest-code": "the test for an overflow",
    "sign": "the sign of a number",
    "infinity": "an infinity",
    "units": "the fraction that decides a rounding",
    "fraction": "F",
    "sum": "F + r",
    "word": "the random word",
    "zero-scale": "the scale of a tile whose code becomes 0",
    **dict.fromkeys((*_SILENT, "threshold"), ""),
}


@dataclass(frozen=True)
class SourceSite:
    """An expression, an argument or the result of a step.

    `node` is its number in the tree of the step, and `kind` says which operators it has. `words`
    are the subject of sentences about it. It counts in the calls for which `where` is true.
    `target` is the variable that a product or a quotient is assigned to.
    """

    step: Step
    kind: str
    text: str
    twin: int
    rule: str
    words: str
    node: int
    where: Callable[..., bool] = everywhere
    target: str = ""

    @property
    def at(self) -> str:
        """Its rule, the first part of a name."""
        return self.rule

    @property
    def noun(self) -> str:
        """Its kind, before the name of the operator."""
        noun = _NOUNS.get(self.kind, f"{self.kind}-")
        return f"{self.target}-{noun}" if self.target else noun

    def change(self, operator: Operator) -> Change:
        """Return the change that computes with an operator in place of what is here."""
        if self.node == _STEP_ITSELF:  # other changes of the step may come before
            return Change(self.step, operator.wrong, self.where)
        return hooked({self: operator.wrong})


def hooked(hooks: dict[SourceSite, Function]) -> Change:
    """Return the change that puts hooks at some sites of one step.

    A hook is called with the right function and its operands, and returns what is used instead. At
    an argument, the function returns its first operand; the others are the other arguments.
    """
    ((step, where),) = {(site.step, site.where) for site in hooks}
    return Change(step, _Hooked(step, {site.node: hook for site, hook in hooks.items()}), where)


@dataclass(frozen=True, eq=False)
class _Hooked:
    """A step with hooks at some of its nodes, by their numbers."""

    step: Step
    hooks: Mapping[int, Function]

    def __call__(self, reference: Function, *arguments: Any, **named: Any) -> Any:
        """Run in place of the step. Another change that was made before is made as well."""
        if isinstance(reference, functools.partial) and isinstance(reference.func, Change):
            before, (right,) = reference.func, reference.args
            if not before.where(*arguments, **named):
                return self(right, *arguments, **named)
            if isinstance(before.function, _Hooked):
                return self._after(before.function)(right, *arguments, **named)
            return before.function(functools.partial(self, right), *arguments, **named)
        return self._wrong(*arguments, **named)

    @functools.cached_property  # most mistakes that there are never run
    def _wrong(self) -> Function:
        plain: Any = inspect.unwrap(self.step)
        names = {_HOOK: self._hook, _RIGHT: {**_OPERATIONS, "": _first}}
        code, known = _compiled(self.step, tuple(self.hooks)), {**plain.__globals__, **names}
        function = FunctionType(code, known, plain.__name__, plain.__defaults__)
        function.__kwdefaults__ = plain.__kwdefaults__
        return function

    def _hook(self, node: int, right: Function, *operands: Any, **named: Any) -> Any:
        return self.hooks[node](right, *operands, **named)

    @functools.cache  # noqa: B019 - there are as many as mistakes
    def _after(self, before: "_Hooked") -> "_Hooked":
        """Return the step with the hooks of both; at the same node, that of another is right."""

        def in_turn(node: int) -> Function:
            first, second = before.hooks.get(node), self.hooks.get(node)
            if first is None or second is None:
                return first or second or _first
            return lambda right, *rest, **named: second(
                functools.partial(first, right), *rest, **named
            )

        return _Hooked(self.step, {node: in_turn(node) for node in {*before.hooks, *self.hooks}})


def _first(operand: Any, *_: Any) -> Any:
    return operand


@functools.cache
def sites_of(step: Step) -> tuple[SourceSite, ...]:
    """Return the sites of a step, in the order of its lines."""
    lines, tree = _source(step)
    of_docstring = _RULE.findall(ast.get_docstring(tree) or "")
    known = inspect.unwrap(step).__globals__
    kinds, targets, twins, found = _kinds(tree), _targets(tree), Counter[str](), []
    for number, node in enumerate(ast.walk(tree)):
        kind = kinds.get(node)
        if kind is not None:
            text = ast.unparse(node).split("\n")[0]
            line = lines[getattr(node, "lineno", 1) - 1]
            rule, *_ = (*_RULE.findall(line), *of_docstring)
            words = _subject(kind, node, known)
            target = targets.get(node, "") if kind in _ARITHMETIC else ""
            found.append(
                SourceSite(step, kind, text, twins[text], rule, words, number, target=target)
            )
            twins[text] += 1
    return tuple(found)


def alike(sites: Iterable[SourceSite]) -> Iterator[tuple[SourceSite, ...]]:
    """Yield sites of several steps that are the same in words: who has one wrong, has all wrong."""

    def key(site: SourceSite) -> tuple[str, str]:
        return site.kind, site.words

    for _, group in itertools.groupby(sorted(sites, key=key), key):
        same = tuple(group)
        if len({site.step for site in same}) == len(same) > 1:
            yield same


def _targets(tree: ast.FunctionDef) -> dict[ast.AST, str]:
    """Return what expressions are, by the variables that they are assigned to."""
    found = dict[ast.AST, str]()
    for node in ast.walk(tree):
        match node:
            case ast.Assign([ast.Name(id=name)], value):
                found[value] = name.replace("_", "-")
            case ast.Return(ast.Call(args=[_, ast.Name() | ast.Attribute()]) as value):
                found[value] = _RETURNED.get(tree.name, "")
    return found


def _source(step: Step) -> tuple[list[str], ast.FunctionDef]:
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(step)))
    (tree,) = (node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef))
    return source.splitlines(), tree


def _kinds(tree: ast.FunctionDef) -> dict[ast.AST, str]:
    """Return what the nodes of a tree are, of those that are sites."""
    found = dict[ast.AST, str | None]()
    for node in ast.walk(tree):
        found |= _kinds_inside(node)
        match node:
            case ast.arg(arg=name) if name in _INPUTS:
                found[node] = None if _RESULTS.get(tree.name) == "measured" else "inputs"
            case ast.arg(arg=name) if name in _PASSED_ON:
                found[node] = _PASSED_ON[name]
            case ast.arg(arg=name) if not _is_passed_on(node, tree):
                found[node] = _ARGUMENTS.get(name)
            case ast.FunctionDef(name=name):
                found[node] = _RESULTS.get(name)
            case ast.expr() | ast.AugAssign():
                found.setdefault(node, _kind_of_operation(node))
    return {node: kind for node, kind in found.items() if kind is not None}


def _kinds_inside(node: ast.AST) -> dict[ast.AST, str]:
    """Return what parts of a node are, which they would not be elsewhere."""
    match node:
        case ast.Assign(value=ast.Constant() as value) | ast.IfExp(body=ast.Constant() as value):
            return {value: "zeros"}
        case ast.If(ast.Compare(ops=[ast.Eq()]), [ast.Return(ast.Constant() as value)]):
            return {value: "zero-code"}
        case ast.If(body=[*statements]):
            return dict.fromkeys(_late(statements), "order")
        case ast.BoolOp(op, [ast.Compare() | ast.Call() as first, _]):
            return {first: "test" if isinstance(op, ast.Or) else "guard"}
    return {}


def _kind_of_operation(node: ast.AST) -> str | None:
    match node:
        case ast.Attribute(value=ast.Call(), attr="mantissa"):
            return "mantissa"
        case ast.Call():
            return _kind_of_call(node)
        case ast.Compare():
            return _kind_of_comparison(node)
        case ast.BinOp():
            return _kind_of_sum(node)
        case ast.AugAssign(op=ast.Sub()):
            return "decrement"
    return None


def _kind_of_comparison(node: ast.Compare) -> str | None:
    match node:
        case ast.Compare(ops=[ast.Lt()], comparators=[ast.Name(id=name)]) if _is_constant(name):
            return "floor"
        case ast.Compare(ops=[ast.Gt()], comparators=[ast.Attribute(attr="largest_code")]):
            return "largest-code"
        case ast.Compare(ops=[ast.Lt() | ast.Gt()]):
            return "comparison"
        case ast.Compare(ops=[ast.LtE()]):
            return "at-most"
        case ast.Compare(ops=[ast.GtE()]):
            return "threshold"
        case ast.Compare(ops=[ast.Eq()], comparators=[ast.Name(id=name)]) if _is_constant(name):
            return "nan-test"
    return None


def _kind_of_sum(node: ast.BinOp) -> str | None:
    match node:
        case ast.BinOp(op=ast.Sub(), right=ast.Call(ast.Name("floor_log2"))):
            return "largest"
        case ast.BinOp(op=ast.Add(), right=ast.Name(id=name)) if _is_constant(name):
            return "stored"
        case ast.BinOp(op=ast.Add(), right=ast.Name("random_word")):
            return "sum"
        case ast.BinOp(op=ast.FloorDiv()):
            return "fraction"
        case ast.BinOp(op=ast.Mult(), left=ast.Name("limit"), right=ast.Attribute(attr="nonzero")):
            return "multiplied"
    return None


def _kind_of_call(node: ast.Call) -> str | None:
    match node:
        case ast.Call(ast.Name("min"), [ast.Call(ast.Name("max")), _]):
            return "code-limit"
        case ast.Call(ast.Name("max"), [_, _]):
            return "lower-limit"
        case ast.Call(ast.Name("min"), [_]):  # the smallest of many
            return None
        case ast.Call(ast.Name("block_scale_code"), [ast.Constant()]):
            return "zero-scale"
        case ast.Call(ast.Name("encode"), [_, ast.Name(id=fmt), *_]):
            return "stored-code" if _is_constant(fmt) else None
        case ast.Call(ast.Name("in_units_of"), [_, ast.Call(ast.Name("abs"))]):
            return "units"
        case ast.Call(ast.Attribute(attr="ldexp"), [_, ast.BinOp()]):
            return "power"
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return _CALLS.get(name)
    return None


def _is_constant(name: str) -> bool:
    return _CONSTANT.fullmatch(name) is not None


def _is_passed_on(argument: ast.arg, tree: ast.FunctionDef) -> bool:
    """Return whether a step gives an argument to functions, and does nothing else with it."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    given = {
        operand
        for call in calls
        for operand in call.args
        if not ast.unparse(call.func)[:1].isupper() or isinstance(call.func, ast.Attribute)
    }
    uses = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return all(use in given for use in uses if use.id == argument.arg)


def _late(statements: Iterable[ast.stmt]) -> Sequence[ast.stmt]:
    """Return the assignments behind a condition that changes the same variable."""
    one, found = None, []
    for statement in statements:
        match one, statement:
            case ast.If(body=[ast.AugAssign(target=ast.Name(a))]), ast.Assign([ast.Name(b)]):
                found += [statement] if a == b else []
        one = statement
    return found


def _subject(kind: str, node: ast.AST, known: Mapping[str, Any]) -> str:
    match node:
        case ast.Call(args=[a, b]) if kind in ("quotient", "division"):
            return f"the quotient {_named(a)} / {_named(b)}"
        case ast.Call(args=[a, b]) if kind == "product":
            return _product(a, b)
        case ast.Call(args=[_, ast.Name(id=limit)]) if "limit" in kind:
            return f"the limit {_shown(limit, known)}"
        case ast.Call(args=[_, limit]) if kind == "lower-limit":
            return f"the limit {ast.unparse(limit)}"
        case ast.Compare(ast.Name(id=name), comparators=[ast.Name(id=limit)]) if kind == "floor":
            return f"the floor {_shown(limit, known)} of the {name}"
        case ast.Compare() if kind == "comparison":
            return f"the comparison {re.sub('[._]', ' ', ast.unparse(node))}"
        case ast.AugAssign(target=ast.Name(id=name)):
            return f"the decrement of the {name}"
        case ast.Assign(value=ast.Call(args=[_, ast.Name(id=limit)])):
            return f"the limit {_shown(limit, known)}"
        case ast.arg(arg=name) if kind == "amax":
            return f"the {name.replace('_', ' ')}"
    return _SUBJECTS[kind]


def _product(a: ast.expr, b: ast.expr) -> str:
    if isinstance(b, ast.Call):
        return f"the product of {_named(a)} and a power of two"
    return f"the product {_named(a)} * {_named(b)}"


def _named(operand: ast.expr) -> str:
    """Return an operand as a reader knows it."""
    text = re.sub(r"\b(fmt|profile)\.", "", ast.unparse(operand)).replace("_SIXTH", "(1 / 6)")
    return re.sub(r"\.0\b", "", text)


def _shown(constant: str, known: Mapping[str, Any]) -> str:
    """Return a constant as a reader knows it: an integer as its digits."""
    value = known[constant]
    return str(value) if isinstance(value, int) else constant


# ---------------------------------------------------------------------- other code


@functools.cache
def _compiled(step: Step, numbers: tuple[int, ...]) -> CodeType:
    """Return the code of a step that calls the hook at some of its nodes."""
    _, tree = _source(step)
    nodes = list(ast.walk(tree))
    tree.decorator_list, tree.returns = [], None
    tree = _Hooks({nodes[number]: number for number in numbers}).visit(tree)
    for part in ast.walk(tree):
        if isinstance(part, ast.arg):
            part.annotation = None
    whole = compile(ast.fix_missing_locations(ast.Module([tree], [])), "<a wrong step>", "exec")
    return next(one for one in whole.co_consts if isinstance(one, CodeType))


class _Hooks(ast.NodeTransformer):
    """Puts calls of the hook in place of nodes."""

    def __init__(self, numbers: dict[ast.AST, int]) -> None:
        self._numbers = numbers

    def visit(self, node: ast.AST) -> Any:
        """Return a node with hooks inside, or in a call of the hook."""
        number = self._numbers.get(node)
        if isinstance(node, ast.If):
            for place, statement in enumerate(node.body):
                if isinstance(statement, ast.Assign) and statement in self._numbers:
                    node.body[place - 1 : place + 1] = [statement, node.body[place - 1]]
        node = self.generic_visit(node)
        match node:
            case ast.FunctionDef():
                return self._with_arguments(node, number)
            case _ if number is None:
                return node
            case ast.Call(func, operands, keywords):
                return _call(number, func, operands, keywords)
            case ast.Compare(left, [op], [right]) | ast.BinOp(left, op, right):
                return _call(number, _right(type(op).__name__), [left, right])
            case ast.AugAssign(ast.Name(id=name) as target, op, value):
                operands = [ast.Name(name, ast.Load()), value]
                return ast.Assign([target], _call(number, _right(type(op).__name__), operands))
            case ast.Constant() | ast.Attribute():
                return _call(number, _right(""), [node])
        return node  # a statement that is exchanged, or an argument

    def _with_arguments(self, tree: ast.FunctionDef, number: int | None) -> ast.FunctionDef:
        """Return a function with hooks at some arguments, or in place of all that it does."""
        arguments = tree.args.args
        if number is not None:
            inner = ast.FunctionDef(_WHOLE, tree.args, tree.body, [])
            operands = [ast.Name(one.arg, ast.Load()) for one in arguments]
            named = [
                ast.keyword(one.arg, ast.Name(one.arg, ast.Load())) for one in tree.args.kwonlyargs
            ]
            whole = ast.Name(_WHOLE, ast.Load())
            tree.body = [inner, ast.Return(_call(number, whole, operands, named))]
        for one in arguments:
            if one in self._numbers:
                names = [one.arg, *(other.arg for other in arguments if other is not one)]
                operands = [ast.Name(name, ast.Load()) for name in names]
                changed = _call(self._numbers[one], _right(""), operands)
                tree.body.insert(0, ast.Assign([ast.Name(one.arg, ast.Store())], changed))
        return tree


def _call(
    number: int,
    right: ast.expr,
    operands: Iterable[ast.expr],
    keywords: Iterable[ast.keyword] = (),
) -> ast.Call:
    given = [ast.Constant(number), right, *operands]
    return ast.Call(ast.Name(_HOOK, ast.Load()), given, [*keywords])


def _right(name: str) -> ast.expr:
    return ast.Subscript(ast.Name(_RIGHT, ast.Load()), ast.Constant(name), ast.Load())
