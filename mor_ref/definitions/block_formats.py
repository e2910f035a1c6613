"""Block formats as data: elements in blocks, and scales whose formulas say each rounding."""

import functools
import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, fields
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from mor_ref.argument_checks import check_name, known_name
from mor_ref.definitions.before_blocks import Step, step_of, table_of_step, wrong_steps
from mor_ref.definitions.blocks import Cut, as_cut, in_parameters
from mor_ref.definitions.elements import ElementRule
from mor_ref.definitions.encoding import (
    DETERMINISTIC_ROUNDINGS,
    ELEMENT_ROUNDINGS,
    ElementRounding,
    Rounding,
    SpecialCases,
    rounding_for,
)
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import as_format, formats
from mor_ref.definitions.formula_functions import formula_functions
from mor_ref.definitions.formulas import (
    Apply,
    FormulaError,
    Name,
    Number,
    Percentile,
    check_formula,
    names_in,
    own_words_in,
    parsed,
    percentiles_in,
    reserved_words,
)
from mor_ref.definitions.table_format import ElementFormat, TableFormat, as_element_format
from mor_ref.definitions.tables import FrozenTable

Counted = Literal["finite", "not nan", "all"]
_COUNTED = ("finite", "not nan", "all")
_OWN_NAMES = frozenset({"amax", "t", "x", "v", "y", "decode", "encode"})
_WIDEST_ELEMENT = 16
_MOST_EXPONENT_BITS = 7
_MOST_ROWS = 1 << 24  # of blocks with several tries


class BlockFormatError(ValueError):
    """A block format that cannot exist was asked for."""


class MissingFunctionError(ValueError):
    """Formulas call a function of their author that is not here."""

    def __init__(self, block_format: str, function: str) -> None:
        super().__init__(block_format, function)
        self.function = function

    def __str__(self) -> str:
        block_format, function = self.args
        return (
            f"block format {block_format!r} calls a function {function} of its author, which is "
            "not here; import the module that gives it to mor_ref.formula_functions, in commands "
            "with --rows MODULE"
        )


@dataclass(frozen=True)
class BlockScale:
    """A scale: the numbers that share it, its formula, and how it is stored (BLF-001).

    `number` is a formula of amax and percentiles, and of the scales above and their amaxes (NAME
    and amax_NAME).

    >>> BlockScale("s", (1, 32), "amax / 448", "e8m0", "rtp").fmt.name
    'e8m0'
    """

    name: str
    over: Cut
    number: str
    stored: str | Format = "f32"
    rounding: Rounding | None = None  # that of the format

    def __post_init__(self) -> None:
        object.__setattr__(self, "over", as_cut("over", self.over))
        object.__setattr__(self, "stored", as_format(self.stored))
        rounding = rounding_for(self.fmt, self.rounding, SpecialCases())
        known_name("rounding", rounding, DETERMINISTIC_ROUNDINGS)
        if self.fmt == formats["f32"] and rounding != "rne":
            raise BlockFormatError(
                f"scale {self.name!r} has the rounding {rounding!r}, but it is stored in f32, as "
                "numbers of formulas are, so that nothing is rounded; omit it, or give a format"
            )
        object.__setattr__(self, "rounding", rounding)

    @property
    def fmt(self) -> Format:
        """The format that it is stored in."""
        return as_format(self.stored)


@dataclass(frozen=True)
class BlockFormat:
    """Elements in blocks, under scales (BLF-001).

    The last scale is that of the blocks, and each lies in the one before it. Numbers are multiplied
    by `encode`, or divided by `decode` if there is no `encode`; values of codes are multiplied by
    `decode`, or divided by `encode`. `counted` says which numbers an amax counts; with "all", it is
    NaN if one of them is. Of several `tries`, formulas of the number t of the last scale, the one
    of least error is stored, and the first of equals. `error` is that of a number x whose code
    stands for v, and y; a block adds it up in binary32, from the left, and then the rows in halves.
    `rounding` says where elements halfway between two numbers go: to the even one (rne), away from
    zero (rna), or toward zero (rnz). With `drops_sign_of_zero`, a scaled -0 has the code 0; without
    `has_negative_zero`, so has each number that becomes zero. `functions` has the digests of
    functions of a user that its formulas call; it is found if it is not given. `before` are the
    steps before the blocks, in their order (BLF-011).

    >>> scale = BlockScale("s", (1, 32), "amax / 448", "e8m0", "rtp")
    >>> BlockFormat("mine", "e4m3", (scale,), decode="s").block
    (1, 32)
    """

    name: str
    element: str | ElementFormat
    scales: tuple[BlockScale, ...]
    _: KW_ONLY
    decode: str | None = None
    encode: str | None = None
    counted: Counted = "not nan"
    tries: tuple[str, ...] = ("t",)
    error: str = "square(y - x)"
    rounding: ElementRounding = "rne"
    drops_sign_of_zero: bool = False
    has_negative_zero: bool = True
    functions: Mapping[str, str] = FrozenTable({})
    before: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        check_name(self.name)
        object.__setattr__(self, "element", as_element_format(self.element))
        self._check(_no_sequence, _fault_of_zero_signs)
        object.__setattr__(self, "scales", tuple(self.scales))
        object.__setattr__(self, "tries", tuple(self.tries))
        object.__setattr__(self, "before", _steps(self.before))
        self._check(_wrong_field, _wrong_scales, _wrong_formula)
        object.__setattr__(self, "functions", FrozenTable(_digests(self)))

    def _check(self, *faults: "Callable[[BlockFormat], str | None]") -> None:
        for fault in faults:
            problem = fault(self)
            if problem:
                raise BlockFormatError(f"block format {self.name!r} cannot exist: {problem}")

    def __hash__(self) -> int:
        return hash(self.text)

    @functools.cached_property
    def has_functions(self) -> bool:
        """Whether its formulas have functions of a user."""
        return bool(self.functions)

    @functools.cached_property
    def fmt(self) -> ElementFormat:
        """The format of the elements."""
        return as_element_format(self.element)

    @property
    def block(self) -> Cut:
        """The cut of the blocks."""
        return self.scales[-1].over

    @functools.cached_property
    def text(self) -> str:
        """The record as TOML; equal records have equal texts (BLF-006)."""
        return toml_document(table_of_block_format(self), "scales")

    @functools.cached_property
    def digest(self) -> str:
        """The SHA-256 of the text (BLF-006)."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def _steps(given: object) -> tuple[Any, ...]:
    """Return steps as a tuple; one alone may be given."""
    return tuple(given) if isinstance(given, list | tuple) else (given,)


def formulas_of(record: BlockFormat) -> Iterator[str]:
    """Yield the formulas of a block format."""
    yield from (scale.number for scale in record.scales)
    yield from record.tries
    yield from (text for text in (record.decode, record.encode) if text is not None)
    yield record.error


def element_rule(record: BlockFormat) -> ElementRule:
    """Return how scaled numbers become codes (BLF-004, BLF-014)."""
    zeros = record.drops_sign_of_zero, record.has_negative_zero
    return ElementRule(record.fmt, record.rounding, *zeros)


def check_functions(record: BlockFormat) -> None:
    """BLF-010: refuse to compute with a block format whose functions are not here."""
    for name, digest in record.functions.items():
        own = formula_functions.known(name)
        if own is None:
            raise MissingFunctionError(record.name, name)
        if own.digest != digest:
            raise ValueError(_other_function(record, name, digest, own.digest))


def _other_function(record: BlockFormat, name: str, digest: str, own: str) -> str:
    return (
        f"block format {record.name!r} calls a function {name} with the digest {digest}, and that "
        f"of mor_ref.formula_functions has {own}; give the function that it was made with, or make "
        "it again"
    )


def scale_named(record: BlockFormat, name: str) -> BlockScale:
    """Return the scale of that name."""
    return next(scale for scale in record.scales if scale.name == name)


class FactorAbove(NamedTuple):
    """The scale above that the number of the last scale is multiplied by, or divided by, if any."""

    name: str
    divides: bool = False


def split_factor(record: BlockFormat) -> FactorAbove | None:
    """Return what `decode` has besides the number of the last scale, as MX or NVFP4 (GEM-003).

    None if the scale is not in e8m0 or e4m3, or if `decode` is another formula.

    >>> scales = BlockScale("S", "tensor", "amax / 6"), BlockScale("s", (1, 16), "amax / S", "e4m3")
    >>> split_factor(BlockFormat("mine", "e2m1", scales, decode="s * (1 / S)"))
    FactorAbove(name='S', divides=True)
    """
    last = record.scales[-1]
    if record.decode is None or last.fmt not in (formats["e8m0"], formats["e4m3"]):
        return None
    own, one = Name(last.name), Number(Fraction(1))
    tree = parsed(record.decode)
    if tree == own:
        return FactorAbove("")
    if last.fmt == formats["e8m0"]:
        return None
    whole = {scale.name for scale in record.scales[:-1] if scale.over in ("tensor", "row")}
    match tree:
        case Apply("/", (a, Name(name))) if a == own and name in whole:
            return FactorAbove(name, divides=True)
        case Apply("*", (a, b)) if own in (a, b):
            match b if a == own else a:
                case Name(name) if name in whole:
                    return FactorAbove(name)
                case Apply("/", (first, Name(name))) if first == one and name in whole:
                    return FactorAbove(name, divides=True)
    return None


def place_of_amax(record: BlockFormat, name: str) -> str | None:
    """Return the formula, other than that of its number, which has the amax of a scale (BLF-008).

    It is described for messages.
    """
    is_last = name == record.scales[-1].name
    places = [
        *((f"number of scale {own.name}", own.number) for own in record.scales if own.name != name),
        *(("a try", formula) for formula in record.tries if not is_last),
        ("decode", record.decode),
        ("encode", record.encode),
        ("error", record.error if len(record.tries) > 1 and not is_last else None),
    ]
    for place, formula in places:
        if formula is not None and f"amax_{name}" in names_in(parsed(formula)):
            return f"{place}, {formula!r},"
    return None


def percentiles_of(record: BlockFormat, scale: BlockScale) -> tuple[Percentile, ...]:
    """Return the percentiles in the formulas of a scale, each once (BLF-007)."""
    tries = record.tries if scale == record.scales[-1] else ()
    formulas = map(parsed, (scale.number, *tries))
    percentiles = (percentile for formula in formulas for percentile in percentiles_in(formula))
    return tuple(dict.fromkeys(percentiles))


def reads_amax(record: BlockFormat, scale: BlockScale) -> bool:
    """Return whether a formula has the amax of a scale: it may have percentiles alone (BLF-007)."""
    is_last = scale == record.scales[-1]
    own = (scale.number, *(record.tries if is_last else ()))
    names = {name for formula in own for name in names_in(parsed(formula))}
    return bool(names & {"amax", f"amax_{scale.name}"} or place_of_amax(record, scale.name))


def negative_factor(record: BlockFormat, name: str) -> str:
    """Return why a tensor cannot be quantized: a factor of a block is negative."""
    return (
        f"{name} of block format {record.name!r} is {getattr(record, name)!r}, which is negative "
        "for a block of this tensor; give a formula whose numbers are not negative"
    )


def check_rows(record: BlockFormat, rows: int) -> None:
    """BLF-005: refuse blocks of so many rows that the sums of their errors have no room."""
    if len(record.tries) > 1 and rows > _MOST_ROWS:
        raise ValueError(
            f"block format {record.name!r} has several tries, and its blocks have {rows:,} rows in "
            f"this tensor; give blocks of at most {_MOST_ROWS:,} rows"
        )


# ---------------------------------------------------------------------- texts


def block_format_of(table: Mapping[str, Any]) -> BlockFormat:
    """Return the block format of a table, such as that of its text."""
    given = _keys_checked("a block format", table, BlockFormat)
    scales = given.pop("scales", ())
    if not isinstance(scales, list | tuple):
        raise BlockFormatError(f"scales is {scales!r}; give tables, as [[scales]] of TOML")
    given["element"] = _element_of(given.get("element"))
    if isinstance(given.get("before"), list | tuple):
        given["before"] = tuple(map(step_of, given["before"]))
    return BlockFormat(scales=tuple(map(_scale_of, scales)), **given)


def parameters_of_blocks(record: BlockFormat) -> dict[str, Any]:
    """Return the parameters of the operation `blocks`: the text, and how its scales cut a tensor.

    `group` is that of the outermost scale.
    """
    block, group = in_parameters(record.block), in_parameters(record.scales[0].over)
    return {"block_format": record.text, "block": block, "group": group}


_NEEDED: Mapping[type, tuple[str, ...]] = {
    BlockFormat: ("name", "element", "scales"),
    BlockScale: ("name", "over", "number"),
    Format: ("name", "exponent_bits", "mantissa_bits", "bias"),
    TableFormat: ("name", "values"),
}


def _scale_of(table: object) -> BlockScale:
    given = _keys_checked("a scale", table, BlockScale)
    over: Any = given.get("over")
    given["over"] = tuple(over) if isinstance(over, list) else over
    if "stored" in given:
        given["stored"] = _format_of(given["stored"])
    return BlockScale(**given)


def _keys_checked(place: str, table: object, record: type) -> dict[str, Any]:
    if not isinstance(table, Mapping):
        raise BlockFormatError(f"{place} is {table!r}; give a table")
    names = [field.name for field in fields(record)]
    if record is BlockScale and "counted" in table:
        raise BlockFormatError(
            f"scale {table.get('name')!r} has counted; give it to the block format, as all of its "
            "scales count the same numbers"
        )
    for name in table:
        if name in ("amax", "scale") and not isinstance(table[name], list | tuple):  # [[scale]]
            raise BlockFormatError(
                f"{place} has {name}, which is no part of it; give {name} to mor_ref.quantize, or "
                "at the top of a recipe for mor-ref quantize and mor-ref verify --inputs"
            )
        known_name(f"a key of {place}", name, names)
    needed = _NEEDED[record]
    for name in needed:
        if name not in table:
            raise BlockFormatError(f"{place} has no {name}; give {', '.join(needed)}")
    return dict(table)


def _element_of(given: object) -> ElementFormat:
    """Return the format of elements of a name or a table."""
    if isinstance(given, Mapping) and "values" in given:
        return TableFormat(**_keys_checked("a format", given, TableFormat))
    return given if isinstance(given, TableFormat) else _format_of(given)


def _format_of(given: object) -> Format:
    """Return the format of a name or a table."""
    if isinstance(given, Mapping):
        return Format(**_keys_checked("a format", given, Format))
    return as_format(given)


def table_of_block_format(record: BlockFormat) -> dict[str, Any]:
    """Return the fields that differ from the usual, as TOML has them."""
    return {**_table_of(record), "scales": list(map(_table_of, record.scales))}


def _table_of(record: BlockFormat | BlockScale) -> dict[str, Any]:
    """Return the fields that differ from the usual, as TOML has them, without the scales."""
    table = {
        field.name: getattr(record, field.name)
        for field in fields(record)
        if field.name != "scales" and getattr(record, field.name) != field.default
    }
    if isinstance(record, BlockScale):
        table["over"] = in_parameters(record.over)
        if record.fmt == formats["f32"]:
            del table["stored"]
        if record.rounding == rounding_for(record.fmt, None, SpecialCases()):
            del table["rounding"]
    return {name: _as_inline_toml(value) for name, value in table.items()}


def _as_inline_toml(value: object) -> object:
    if isinstance(value, Format):
        if value.name in formats.specified and formats[value.name] == value:
            return value.name
        return {key.name: getattr(value, key.name) for key in fields(value)}
    if isinstance(value, TableFormat):
        limits = {} if value.limits is None else {"limits": list(value.limits)}
        return {"name": value.name, "values": list(value.values), **limits}
    if isinstance(value, Step):
        return {key: _as_inline_toml(own) for key, own in table_of_step(value).items()}
    return list(map(_as_inline_toml, value)) if isinstance(value, tuple) else value


def toml_document(table: Mapping[str, Any], tables: str) -> str:
    """Return a table as a document of TOML, in which one key has a list of tables, at its end."""
    lines = [f"{key} = {inline_toml(table[key])}" for key in table if key != tables]
    for own in table[tables]:
        lines += ["", f"[[{tables}]]"]
        lines += [f"{key} = {inline_toml(own[key])}" for key in own]
    return "\n".join(lines) + "\n"


def inline_toml(value: object) -> str:
    """Return a value in one line of TOML."""
    if isinstance(value, Mapping):
        pairs = (f"{_key(key)} = {inline_toml(own)}" for key, own in value.items())
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(inline_toml, value))}]"
    return json.dumps(value)


def _key(name: str) -> str:
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else json.dumps(name)


# ---------------------------------------------------------------------- what cannot exist


def _no_sequence(record: BlockFormat) -> str | None:
    """Return the fault of scales and tries that are no sequences of their kind."""
    scales, tries = record.scales, record.tries
    if not _is_sequence(scales) or not all(isinstance(scale, BlockScale) for scale in scales):
        return f"scales is {scales!r}; give a tuple of BlockScale"
    if not _is_sequence(tries):
        return f"tries is {tries!r}; give a list of formulas, such as ['t', '1.5 * t']"
    return None


def _is_sequence(given: object) -> bool:
    return isinstance(given, Iterable) and not isinstance(given, str | Mapping)


def _fault_of_zero_signs(record: BlockFormat) -> str | None:
    for name in ("drops_sign_of_zero", "has_negative_zero"):
        if not isinstance(getattr(record, name), bool):
            return f"{name} is {getattr(record, name)!r}; give true or false"
    return None


def _wrong_field(record: BlockFormat) -> str | None:
    element = record.fmt
    if isinstance(element, TableFormat):
        if record.drops_sign_of_zero:
            return f"it drops the sign of zero, and {element.name} is a table; leave that out"
        if record.rounding != "rne" or not record.has_negative_zero:
            return (
                f"it has ties or zeros of its own, and {element.name} is a table; give the table "
                "limits and values that say so"
            )
        return _wrong_choice(record)
    if element.bits > _WIDEST_ELEMENT or element.is_power_of_two:
        return (
            f"its elements are {element.name}, of {element.bits} bits and {element.mantissa_bits} "
            f"mantissa bits; give a format of at most {_WIDEST_ELEMENT} bits that has a mantissa"
        )
    if element.exponent_bits > _MOST_EXPONENT_BITS:
        return (
            f"its elements are {element.name}, whose exponents are all those of binary32, so that "
            f"it needs no scale; give a format of at most {_MOST_EXPONENT_BITS} exponent bits"
        )
    return _wrong_zeros(record, element) or _wrong_choice(record)


def _wrong_zeros(record: BlockFormat, element: Format) -> str | None:
    """Return the fault of a record without -0, which has to have one otherwise."""
    if record.has_negative_zero:
        return None
    if record.drops_sign_of_zero:
        return "it has no -0, and drops its sign; leave drops_sign_of_zero out"
    if element.sign != "sign-magnitude" or element.specials == "fnuz":
        return f"its elements are {element.name}, which has no -0; leave has_negative_zero out"
    return None


def _wrong_choice(record: BlockFormat) -> str | None:
    """Return the fault of what is counted, of the factors, or of the tries."""
    if record.counted not in _COUNTED:
        return f"counted is {record.counted!r}; give one of {', '.join(_COUNTED)}"
    if record.rounding not in ELEMENT_ROUNDINGS:
        return (
            f"rounding is {record.rounding!r}; elements are rounded to nearest: give one of "
            f"{', '.join(ELEMENT_ROUNDINGS)}, whose ties go to even, away from zero, toward zero"
        )
    if record.decode is None and record.encode is None:
        return "it has neither decode nor encode; give the factor of its numbers, or of its codes"
    if not record.tries:
        return "it has no tries; give ('t',) for one"
    if not isinstance(record.functions, Mapping):
        return f"functions is {record.functions!r}; give a table of names and digests, or omit it"
    return wrong_steps(record.before)


def _wrong_scales(record: BlockFormat) -> str | None:
    """Return the fault of the scales, apart from their formulas."""
    if not record.scales:
        return "it has no scales; give one at least"
    seen: set[str] = set()
    for above, scale in zip((None, *record.scales), record.scales, strict=False):
        taken = seen | _OWN_NAMES | reserved_words()
        if not _is_word(scale.name) or scale.name in taken:
            return (
                f"a scale has the name {scale.name!r}; give a word of letters and digits that no "
                "other scale, format or function has"
            )
        seen |= {scale.name, f"amax_{scale.name}"}
        if above is not None and not _is_made_of(above.over, scale.over):
            return (
                f"scale {scale.name} is over {scale.over!r}, which does not lie in {above.over!r}, "
                f"as scale {above.name} has it; give sides that divide those above"
            )
    return None


def _digests(record: BlockFormat) -> dict[str, str]:
    """Return the digests of the functions that are called; refuse others than those here."""
    own = {word for formula in formulas_of(record) for word in own_words_in(parsed(formula))}
    digests = {}
    for name in sorted(own):
        here = formula_functions.known(name)
        digests[name] = record.functions.get(name) or (here.digest if here else "")
        if here is not None and digests[name] != here.digest:
            problem = _other_function(record, name, digests[name], here.digest)
            raise BlockFormatError(problem)
    return digests


def _is_word(name: object) -> bool:
    return isinstance(name, str) and name.isidentifier() and name.isascii()


def _is_made_of(outer: Cut, inner: Cut) -> bool:
    """Return whether whole parts of one cut are the parts of another, for tensors of any shape."""
    if outer in ("tensor", inner):
        return True
    if isinstance(inner, str):
        return False
    if isinstance(outer, str):
        return inner[outer == "column"] == 1
    return all(above % side == 0 for above, side in zip(outer, inner, strict=True))


def _wrong_formula(record: BlockFormat) -> str | None:
    """Return the fault of the first formula that cannot be read, or has an unknown name."""
    known = ["amax"]
    functions = record.functions
    try:
        for scale in record.scales:
            own = f"amax_{scale.name}"
            _check(f"number of scale {scale.name}", scale.number, [*known, own], functions)
            known += [scale.name, own]
        own = record.scales[-1].name  # not known yet: t is what it becomes
        for formula in record.tries:
            _check("a try", formula, [*(name for name in known if name != own), "t"], functions)
        for name in ("decode", "encode"):
            if getattr(record, name) is not None:
                _check(name, getattr(record, name), known, functions, of_part=False)
                known += [name]
        _check("error", record.error, [*known, "x", "v", "y"], functions, of_part=False)
    except FormulaError as error:
        return str(error)
    return None


def _check(
    place: str,
    formula: object,
    known: Collection[str],
    functions: Collection[str],
    *,
    of_part: bool = True,
) -> None:
    if not isinstance(formula, str):
        raise FormulaError(f"{place} is {formula!r}; give a formula as text")
    check_formula(place, formula, known, functions, of_part=of_part)
