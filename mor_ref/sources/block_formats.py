"""Block formats as headers in C99, C++17 and CUDA: their formulas, and functions that use them.

The steps that all headers share, such as the rounding to a format, are in `c/mor_ref_blocks.h`.
"""

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction

from mor_ref.definitions.before_blocks import in_words
from mor_ref.definitions.block_formats import BlockFormat, BlockScale, percentiles_of
from mor_ref.definitions.blocks import NamedCut
from mor_ref.definitions.encoding import Rounding, SpecialCases, rounding_for
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.formulas import (
    Apply,
    Formula,
    Name,
    Number,
    Percentile,
    names_in,
    parsed,
    percentiles_in,
)
from mor_ref.definitions.table_format import ElementFormat, TableFormat, limits_in_binary32
from mor_ref.exact.arithmetic import rn32

_FUNCTIONS = {
    "+": "MOR_ADD", "-": "MOR_SUBTRACT", "*": "MOR_MULTIPLY", "/": "MOR_DIVIDE", "<": "mor_less",
    ">": "mor_greater", "or": "mor_or", "if": "mor_if", "min": "mor_min", "max": "mor_max",
    "abs": "mor_abs", "square": "mor_square", "pow2": "mor_pow2",
}  # fmt: skip
_SPECIALS = {"ieee": "MOR_IEEE", "fn": "MOR_FN", "fnuz": "MOR_FNUZ", "none": "MOR_NONE"}
_SIGNS = {
    "sign-magnitude": "MOR_SIGN_MAGNITUDE",
    "none": "MOR_UNSIGNED",
    "twos-complement": "MOR_TWOS_COMPLEMENT",
}
_COUNTED = {"finite": "MOR_COUNT_FINITE", "not nan": "MOR_COUNT_NOT_NAN", "all": "MOR_COUNT_ALL"}
_SIDES: Mapping[NamedCut, tuple[int, int]] = {"tensor": (0, 0), "row": (1, 0), "column": (0, 1)}
_FACTORS = ("decode", "encode")
_SHORT = 10  # characters of a number that is written in decimals, if these are all of it
Lines = list[str]


def identifier(record: BlockFormat) -> str:
    """Return the name of a block format as the functions of its header have it."""
    return record.name.replace("-", "_")


def header(record: BlockFormat) -> str:
    r"""Return the header of a block format.

    >>> scale = BlockScale("s", (1, 32), "amax / 448 or 1", "e8m0")
    >>> text = header(BlockFormat("mine", "e4m3", (scale,), decode="s"))
    >>> print("\n".join(line for line in text.splitlines() if "448.0f" in line))
        return mor_or(MOR_DIVIDE(amax, 448.0f), 1.0f);
    """
    return "\n\n".join(_Header(record).parts()) + "\n"


def _element_of(record: BlockFormat) -> ElementFormat:
    """Return the format of the elements; refuse functions of a user, and steps."""
    if record.functions:
        raise ValueError(
            f"block format {record.name!r} calls {' and '.join(record.functions)}, which "
            "is code of its author; write the header of one whose formulas have no functions"
        )
    if record.before:
        raise ValueError(
            f"block format {record.name!r} has {in_words(record.before)} before its blocks, which "
            "headers do not have; write the header of one without steps, and apply them before"
        )
    return record.fmt


# ---------------------------------------------------------------------- templates

_HEAD = """
/* @NAME@: a block format in C99, C++17 and CUDA, which mor-ref sources wrote from its text:
 *
 * @text@
 */
#ifndef MOR_BLOCK_FORMAT_@ID@
#define MOR_BLOCK_FORMAT_@ID@

#include "mor_ref_blocks.h"

/* ---- Formulas: each operation is one rounding to binary32 (BLF-002) ---- */
"""
_FORMULA = """
/* @meaning@ */
MOR_FUNCTION float mor_@ID@_@name@(@arguments@) {
    return @expression@;
}
"""
_SCALES = """
/* ---- Scales and elements ---- */

/* The amaxes, numbers and codes of all scales of a block, and its factors. */
typedef struct {
    @members@
} mor_@ID@_scales;
"""
_STORE = """
/* BLF-003: store t as the number of scale @scale@@meaning@. */
MOR_FUNCTION @type@ mor_@ID@_store_@scale@(mor_@ID@_scales *n, float t) {
    @lines@
}
"""
_FIND = """
/* @rules@: find scale @scale@ of a part@meaning@. */
MOR_FUNCTION @type@ mor_@ID@_find_@scale@(mor_@ID@_scales *n, mor_part part) {
    @lines@
}
"""
_TABLE = """
/* BLF-009: the code of a number: that of the largest value for NaN. */
MOR_FUNCTION uint32_t mor_@ID@_code_in_table(float x) {
    const float limits[] = {
        @limits@
    };
    const uint8_t codes[] = {
        @codes@
    };
    uint32_t below = 0;
    if (x != x) return @largest@;
    while (below < @count@ && limits[below] < x) below++;
    return codes[below];
}

/* BLF-009: the value of a code. */
MOR_FUNCTION float mor_@ID@_value_in_table(uint32_t code) {
    const float values[] = {
        @values@
    };
    return values[code];
}
"""
_ELEMENT = """
/* BLF-004: the element of x. */
MOR_FUNCTION mor_block_element mor_@ID@_element(const mor_@ID@_scales *n, float x) {
    @element@
    mor_block_element found;
    @scaled@
    found.code = @code@;
    found.v = @value@;
    found.y = mor_one_nan(@y@);
    return found;
}
"""
_ERROR = """
/* BLF-005: the errors of a block, added up along rows from the left, then the rows in halves. */
MOR_FUNCTION float mor_@ID@_block_error(const mor_@ID@_scales *n, mor_part block) {
    const uint32_t whole = mor_padded_rows(block.rows);
    mor_row_sums sums;
    sums.rows = 0;
    sums.top = 0;
    for (uint32_t k = 0; k < whole; k++) {
        const size_t row = mor_row_in_halves(k, whole);
        float sum = 0.0f;
        for (size_t j = 0; row < block.rows && j < block.columns; j++) {
            const float x = block.x[row * block.stride + j];
            @element@
            sum = MOR_ADD(sum, @error@);
        }
        mor_add_row(&sums, sum);
    }
    return sums.sums[0];
}
"""
_FIRST_TRY = """
mor_@ID@_scales tried = *n;
bool is_right = mor_@ID@_store_@scale@(n, @call@);
float least = mor_@ID@_block_error(n, part), error;
"""
_TRY = """
is_right &= mor_@ID@_store_@scale@(&tried, @call@);
error = mor_@ID@_block_error(&tried, part);
if (error < least) {
    least = error;
    *n = tried;
}
"""
_FIELDS = """
/* ---- Tensors ---- */

/* The fields of a tensor, row by row: of elements, of the parts of each scale, and of blocks. */
typedef struct {
    @members@
} mor_@ID@_fields;
"""
_QUANTIZE = """
/* Quantize rows * columns numbers. All pointers are needed. -1: the specification refuses them. */
MOR_FUNCTION int mor_@ID@_quantize(const float *x, size_t rows, size_t columns,
                                   const mor_@ID@_fields *to) {
    @cuts@
    bool is_right = true;
    @limit@
    @loops@
    return is_right ? 0 : -1;
}

#endif
"""
_LOOP = """
for (size_t i = 0; i < cut_@scale@.down; i++)
    for (size_t j = 0; j < cut_@scale@.across; j++) {
        const mor_part part = mor_part_at(x, &cut_@scale@, i, j);
        const size_t at = i * cut_@scale@.across + j;
        mor_@ID@_scales n;
        @above@
        @find@
        @store@
    }
"""
_ELEMENTS = """
for (size_t r = 0; r < part.rows; r++)
    for (size_t c = 0; c < part.columns; c++) {
        const size_t place = (size_t)(part.x - x) + r * columns + c;
        const mor_block_element found = mor_@ID@_element(&n, x[place]);
        to->code[place] = (@integer@)found.code;
        to->y[place] = found.y;
    }
"""


# ---------------------------------------------------------------------- functions


class _Header:
    """The functions of a block format, in the words of its record."""

    def __init__(self, record: BlockFormat) -> None:
        self.record, self.element = record, _element_of(record)
        self.factors = [name for name in _FACTORS if getattr(record, name) is not None]
        # What formulas name: as arguments of their functions, and where the callers have it.
        self.arguments = {name: name for name in ("amax", "t", "x", "v", "y", *self.factors)}
        last = record.scales[-1].name
        self.places = {"t": "t", "x": "x", "v": "found.v", "y": "found.y"}
        self.places |= {"amax": f"n->amax_{last}", **{name: f"n->{name}" for name in self.factors}}
        for scale in record.scales:
            for name, field in (
                (scale.name, f"scale_{scale.name}"),
                (f"amax_{scale.name}", f"amax_{scale.name}"),
            ):
                self.arguments[name], self.places[name] = field, f"n->{field}"
        percentiles = (one for scale in record.scales for one in percentiles_of(record, scale))
        for k, percentile in enumerate(dict.fromkeys(percentiles)):
            self.arguments[percentile.name] = self.places[percentile.name] = f"percentile_{k}"

    def parts(self) -> Iterator[str]:
        """Yield the parts of the header; empty lines go between them."""
        record = self.record
        yield self._filled(_HEAD, NAME=record.name, text=record.text.splitlines())
        for scale in record.scales:
            meaning = f"The number of scale {scale.name}"
            yield self._function(f"number_{scale.name}", scale.number, meaning)
        for k, formula in enumerate(record.tries):
            yield self._function(f"try_{k}", formula, f"Try {k}")
        for name in self.factors:
            yield self._function(name, getattr(record, name), f"The factor {name}")
        if len(record.tries) > 1:
            yield self._function("error", record.error, "The error of an element")
        yield self._filled(_SCALES, members=self._members())
        for scale in record.scales[:-1]:
            yield from (self._store(scale, []), self._find(scale))
        yield self._store(record.scales[-1], self.factors)
        if isinstance(self.element, TableFormat):
            yield self._table(self.element)
        yield self._element()
        if len(record.tries) > 1:
            yield self._error()
        yield self._find(record.scales[-1])
        yield self._filled(_FIELDS, members=self._fields())
        yield self._quantize()

    def _filled(self, template: str, **texts: "str | Lines") -> str:
        """Return a template with texts; lists are lines, with the indentation of their place."""
        for name, text in {"ID": identifier(self.record), **texts}.items():
            if isinstance(text, str):
                template = template.replace(f"@{name}@", text)
                continue
            (before,) = re.findall(rf"^(.*)@{name}@\n", template, re.MULTILINE)
            lines = "".join(f"{before}{line}".rstrip() + "\n" for line in text)
            template = template.replace(f"{before}@{name}@\n", lines)
        return template.strip("\n")

    def _function(self, name: str, text: str, meaning: str) -> str:
        """BLF-002: return a formula as a function of what it names."""
        arguments = ", ".join(f"float {self.arguments[word]}" for word in _words(text))
        return self._filled(
            _FORMULA,
            meaning=f"{meaning}: {' '.join(text.split())}",
            name=name,
            arguments=arguments or "void",
            expression=self._expression(parsed(text)),
        )

    def _expression(self, formula: Formula) -> str:
        match formula:
            case Number(value):
                return _literal(value)
            case Name(text):
                return self.arguments[text]
            case Percentile() as percentile:
                return self.arguments[percentile.name]
            case Apply(operator, (argument,)) if operator in formats:
                fmt, number = formats[operator], self._expression(argument)
                if fmt == formats["f32"]:
                    return number
                return f"mor_rounded({number}, {_format(fmt)}, {_rounding(fmt)})"
            case Apply(operator, arguments):
                return f"{_FUNCTIONS[operator]}({', '.join(map(self._expression, arguments))})"

    def _call(self, name: str, text: str, **places: str) -> str:
        """Return a call of the function of a formula."""
        found = {**self.places, **places}
        return f"mor_{identifier(self.record)}_{name}({', '.join(found[n] for n in _words(text))})"

    def _members(self) -> Lines:
        lines: Lines = []
        for scale in self.record.scales:
            lines += [f"float amax_{scale.name}, scale_{scale.name};"]
            lines += [f"uint32_t code_{scale.name};"] if _has_codes(scale) else []
        return [*lines, f"float {', '.join(self.factors)};"]

    def _store(self, scale: BlockScale, factors: Lines) -> str:
        name = scale.name
        lines = [f"n->scale_{name} = mor_one_nan(t);"]
        if _has_codes(scale):
            lines = [
                f"const mor_format stored = {_format(scale.fmt)};",
                f"n->code_{name} = mor_code_of(t, stored, {_rounding(scale.fmt, scale.rounding)});",
                f"n->scale_{name} = mor_number_of(n->code_{name}, stored);",
            ]
        if not factors:
            return self._filled(_STORE, scale=name, meaning="", type="void", lines=lines)
        for factor in factors:
            formula = self._call(factor, getattr(self.record, factor))
            lines += [f"n->{factor} = mor_one_nan({formula});"]
        right = " && ".join(f"!mor_is_negative(n->{factor})" for factor in factors)
        meaning = ", and find the factors (BLF-004); false if one is negative"
        lines += [f"return {right};"]
        return self._filled(_STORE, scale=name, meaning=meaning, type="bool", lines=lines)

    def _find(self, scale: BlockScale) -> str:
        """BLF-003, BLF-005 and BLF-007: return the function that finds a scale."""
        counted, name = _COUNTED[self.record.counted], scale.name
        amax = {"amax": f"n->amax_{name}"}
        lines = [f"n->amax_{name} = mor_amax_of(&part, {counted});"]
        for percentile in percentiles_of(self.record, scale):
            call = f"mor_percentile_of(&part, {counted}, {int(percentile.percent * 10_000)})"
            lines += [f"const float {self.places[percentile.name]} = {call};"]
        lines += [f"const float t = {self._call(f'number_{name}', scale.number, **amax)};"]
        store = f"mor_{identifier(self.record)}_store_{name}"
        texts = {"rules": "BLF-003", "scale": name, "type": "bool"}
        texts["meaning"] = ", given the scales above; false if a factor is negative"
        if scale != self.record.scales[-1]:
            lines += [f"{store}(n, t);"]
            texts |= {"type": "void", "meaning": ", given the scales above"}
            return self._filled(_FIND, **texts, lines=lines)
        calls = [self._call(f"try_{k}", text) for k, text in enumerate(self.record.tries)]
        if not calls[1:]:
            return self._filled(_FIND, **texts, lines=[*lines, f"return {store}(n, {calls[0]});"])
        lines += self._filled(_FIRST_TRY, scale=name, call=calls[0]).split("\n")
        for call in calls[1:]:
            lines += self._filled(_TRY, scale=name, call=call).split("\n")
        texts["rules"] = "BLF-003, BLF-005"
        return self._filled(_FIND, **texts, lines=[*lines, "return is_right;"])

    def _element(self) -> str:
        record = self.record
        scaled = "MOR_MULTIPLY(x, n->encode)" if record.encode else "MOR_DIVIDE(x, n->decode)"
        y = "MOR_MULTIPLY(found.v, n->decode)"
        lines, element = [f"float xs = {scaled};"], list[str]()
        if isinstance(self.element, TableFormat):
            code, value = (
                f"mor_{identifier(record)}_{name}_in_table({given})"
                for name, given in (("code", "xs"), ("value", "found.code"))
            )
        else:
            element = [f"const mor_format element = {_format(self.element)};"]
            code = f"mor_code_of(xs, element, MOR_{record.rounding.upper()})"
            value = "mor_number_of(found.code, element)"
            if not record.has_negative_zero:
                code = f"mor_without_negative_zero({code}, element)"
            if self.element.sign == "none":
                lines += ["if (xs < 0.0f) xs = 0.0f;"]
        return self._filled(
            _ELEMENT,
            element=element,
            scaled=lines,
            code=f"xs == 0.0f ? 0 : {code}" if record.drops_sign_of_zero else code,
            value=value,
            y=y if record.decode else "MOR_DIVIDE(found.v, n->encode)",
        )

    def _table(self, table: TableFormat) -> str:
        """BLF-009: a number is above a limit if it is above the number of binary32 below it."""
        limits = [_literal(Fraction(limit)) for limit in limits_in_binary32(table)]
        values = [
            _literal(Fraction(value)) if value else repr(value) + "f" for value in table.values
        ]
        return self._filled(
            _TABLE,
            limits=_in_rows(limits),
            codes=_in_rows(list(map(str, table.order))),
            values=_in_rows(values),
            largest=str(table.largest_code),
            count=str(len(limits)),
        )

    def _error(self) -> str:
        call = f"mor_{identifier(self.record)}_element(n, x)"
        is_needed = {"v", "y"} & set(_words(self.record.error))
        return self._filled(
            _ERROR,
            element=[f"const mor_block_element found = {call};"] if is_needed else [],
            error=self._call("error", self.record.error),
        )

    def _fields(self) -> Lines:
        lines = [f"{_integer(self.element)} *code;", "float *y;"]
        for scale in self.record.scales:
            lines += [f"float *amax_{scale.name}, *scale_{scale.name};"]
            lines += [f"{_integer(scale.fmt)} *code_{scale.name};"] if _has_codes(scale) else []
        return [*lines, f"float {', '.join(f'*{factor}' for factor in self.factors)};"]

    def _quantize(self) -> str:
        record, (*outer, last) = self.record, self.record.scales
        cuts = []
        for scale in record.scales:
            cut = scale.over
            height, width = _SIDES[cut] if isinstance(cut, str) else cut
            parts = f"mor_parts_of(rows, columns, {height}, {width})"
            cuts += [f"const mor_parts cut_{scale.name} = {parts};"]
        has_limit = len(record.tries) > 1
        return self._filled(
            _QUANTIZE,
            cuts=cuts,
            limit=[f"if (cut_{last.name}.height > MOR_MOST_ROWS) return -1;"] if has_limit else [],
            loops=[line for k in range(len(outer) + 1) for line in self._loop(k)],
        )

    def _loop(self, k: int) -> Lines:
        """Return the loop over the parts of a scale."""
        *outer, scale = self.record.scales[: k + 1]
        above: Lines = []
        for each in outer:
            name = each.name
            at = f"mor_part_above(&cut_{scale.name}, i, j, &cut_{name})"
            above += [f"const size_t above_{name} = {at};"]
            above += [f"n.{field} = to->{field}[above_{name}];" for field in _names(each)]
        store = [f"to->{field}[at] = n.{field};" for field in _names(scale)]
        if _has_codes(scale):
            code = f"code_{scale.name}"
            store += [f"to->{code}[at] = ({_integer(scale.fmt)})n.{code};"]
        find = f"mor_{identifier(self.record)}_find_{scale.name}(&n, part);"
        if scale == self.record.scales[-1]:
            find = f"is_right &= {find}"
            store += [f"to->{factor}[at] = n.{factor};" for factor in self.factors]
            store += self._filled(_ELEMENTS, integer=_integer(self.element)).split("\n")
        texts = {"scale": scale.name, "find": find}
        return self._filled(_LOOP, **texts, above=above, store=store).split("\n")


# ---------------------------------------------------------------------- words of C


def _words(text: str) -> Lines:
    """Return the names and percentiles of a formula, each once."""
    formula = parsed(text)
    percentiles = (percentile.name for percentile in percentiles_in(formula))
    return list(dict.fromkeys((*names_in(formula), *percentiles)))


def _in_rows(entries: Lines) -> Lines:
    """Return the entries of an array in lines of eight."""
    rows = (entries[k : k + 8] for k in range(0, len(entries), 8))
    return [f"{', '.join(row)}," for row in rows]


def _names(scale: BlockScale) -> tuple[str, str]:
    return f"amax_{scale.name}", f"scale_{scale.name}"


def _has_codes(scale: BlockScale) -> bool:
    return scale.fmt != formats["f32"]


def _format(fmt: Format) -> str:
    numbers = f"{fmt.exponent_bits}, {fmt.mantissa_bits}, {fmt.bias}"
    return f"mor_format_of({numbers}, {_SPECIALS[fmt.specials]}, {_SIGNS[fmt.sign]})"


def _rounding(fmt: Format, rounding: Rounding | None = None) -> str:
    return f"MOR_{rounding_for(fmt, rounding, SpecialCases()).upper()}"


def _integer(fmt: ElementFormat) -> str:
    """Return the smallest type that has the codes of a format."""
    return f"uint{next(width for width in (8, 16, 32) if fmt.bits <= width)}_t"


def _literal(value: Fraction) -> str:
    """Return a number, rounded to binary32 once."""
    number = rn32(value)
    if number in (float("inf"), -float("inf")):
        return f"mor_float_of_bits(0x{'7' if number > 0 else 'F'}F800000u)"
    if len(repr(number)) <= _SHORT and Fraction(repr(number)) == Fraction(number):
        return f"{number!r}f"
    digits, exponent = number.hex().split("p")
    return f"{digits.rstrip('0').rstrip('.')}p{exponent}f"
