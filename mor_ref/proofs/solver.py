"""Questions about terms that a solver decides: Bitwuzla, over bits and floating-point numbers."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from bitwuzla import Bitwuzla, Kind, Option, Options, Result, RoundingMode, TermManager

from mor_ref.proofs.terms import Term, in_order

_BINARY32 = (8, 24)
Answer = Literal["never", "open"]
_ROUNDINGS = {
    "nearest": RoundingMode.RNE,
    "away": RoundingMode.RNA,
    "zero": RoundingMode.RTZ,
    "up": RoundingMode.RTP,
    "down": RoundingMode.RTN,
}


def decide(tests: Iterable[Term], seconds: float) -> Mapping[str, int] | Answer:
    """Return bits of the variables with which all tests hold, or that they never hold."""
    manager = TermManager()
    options = Options()
    options.set(Option.PRODUCE_MODELS, True)
    options.set(Option.TIME_LIMIT_PER, int(seconds * 1000))
    solver = Bitwuzla(manager, options)
    translation = _Translation(manager)
    for test in tests:
        solver.assert_formula(translation.of(test))
    for fact in translation.facts:
        solver.assert_formula(fact)
    result = solver.check_sat()
    if result == Result.UNSAT:
        return "never"
    if result != Result.SAT:
        return "open"
    return {
        name: int(solver.get_value(bits).value(10)) for name, bits in translation.variables.items()
    }


class _Translation:
    """Terms of the solver; `facts` hold of the patterns that some of them need."""

    def __init__(self, manager: TermManager) -> None:
        self._manager = manager
        self._word = manager.mk_bv_sort(32)
        self.variables: dict[str, Any] = {}
        self.facts: list[Any] = []
        self._known: dict[Term, Any] = {}

    def of(self, term: Term) -> Any:
        """Return a term of the solver."""
        for each in in_order(term):
            if each not in self._known:
                arguments = [self._known[one] for one in each.arguments]
                self._known[each] = self._made(each, arguments)
        return self._known[term]

    def _made(self, term: Term, arguments: list[Any]) -> Any:
        own = _OWN.get(term.operator)
        if own is not None:
            return own(self, *arguments, *term.data)
        return self.applied(_KINDS[term.operator], *arguments)

    def applied(self, kind: Kind, *arguments: Any, indices: tuple[int, ...] = ()) -> Any:
        """Return an operator of the solver on its terms."""
        return self._manager.mk_term(kind, [*arguments], [*indices])

    def variable(self, name: str) -> Any:
        """Return a number that may be any, by its pattern."""
        bits = self.variables[name] = self._manager.mk_const(self._word, name)
        return self.number_of(bits)

    def number_of(self, bits: Any) -> Any:
        """Return the number of a pattern."""
        return self.applied(Kind.FP_TO_FP_FROM_BV, bits, indices=_BINARY32)

    def rounded(self, kind: Kind, direction: str, *arguments: Any, indices: Any = ()) -> Any:
        """Return an operator that rounds in a direction."""
        mode = self._manager.mk_rm_value(_ROUNDINGS[direction])
        return self.applied(kind, mode, *arguments, indices=indices)

    def in_format(self, x: Any, *widths: int) -> Any:
        """Return a number that was rounded to a narrower format."""
        narrow = self.rounded(Kind.FP_TO_FP_FROM_FP, "nearest", x, indices=widths)
        return self.rounded(Kind.FP_TO_FP_FROM_FP, "nearest", narrow, indices=_BINARY32)

    def word(self, value: int) -> Any:
        """Return a word of 32 bits."""
        return self._manager.mk_bv_value(self._word, value)

    def bits(self, x: Any) -> Any:
        """Return the pattern of a number, about which nothing is known for a NaN."""
        if x.kind() == Kind.FP_TO_FP_FROM_BV:
            return x[0]
        bits = self._manager.mk_const(self._word, f"bits{len(self.facts)}")
        self.facts.append(self.applied(Kind.EQUAL, self.number_of(bits), x))
        return bits

    def true(self) -> Any:
        """Return what always holds."""
        return self._manager.mk_true()


def _rounding(kind: Kind, indices: tuple[int, ...] = ()) -> Callable[..., Any]:
    def run(to: _Translation, *operands: Any) -> Any:
        *arguments, direction = operands
        return to.rounded(kind, direction, *arguments, indices=indices)

    return run


_LESS = {"number": Kind.FP_LT, "word": Kind.BV_ULT}
_OWN: Mapping[str, Callable[..., Any]] = {
    "variable": _Translation.variable,
    "number": lambda to, bits: to.number_of(to.word(bits)),
    "word": _Translation.word,
    "+": _rounding(Kind.FP_ADD),
    "-": _rounding(Kind.FP_SUB),
    "*": _rounding(Kind.FP_MUL),
    "/": _rounding(Kind.FP_DIV),
    "fused": _rounding(Kind.FP_FMA),
    "in_format": _Translation.in_format,
    "less": lambda to, a, b, sort: to.applied(_LESS[sort], a, b),
    "same": lambda to, a, b, _: to.applied(Kind.EQUAL, a, b),
    "choice": lambda to, test, a, b, _: to.applied(Kind.ITE, test, a, b),
    "true": _Translation.true,
    "bits": _Translation.bits,
    "number_of": _Translation.number_of,
    "count": _rounding(Kind.FP_TO_UBV, (32,)),
    "from_count": lambda to, count: to.rounded(
        Kind.FP_TO_FP_FROM_UBV, "nearest", count, indices=_BINARY32
    ),
}
_KINDS = {
    "nan": Kind.FP_IS_NAN,
    "infinite": Kind.FP_IS_INF,
    "zero": Kind.FP_IS_ZERO,
    "subnormal": Kind.FP_IS_SUBNORMAL,
    "signed": Kind.FP_IS_NEG,
    "absolute": Kind.FP_ABS,
    "negative": Kind.FP_NEG,
    "not": Kind.NOT,
    "and": Kind.AND,
    "word+": Kind.BV_ADD,
    "word-": Kind.BV_SUB,
    "word&": Kind.BV_AND,
    "word|": Kind.BV_OR,
    "word<<": Kind.BV_SHL,
    "word>>": Kind.BV_SHR,
}
