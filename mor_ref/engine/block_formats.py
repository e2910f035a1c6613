"""The chapter on block formats: kernels from formulas, which find the scales of all blocks.

A kernel is text with the formulas of one scale; its name is a digest of the text, so that it is
kept on disk as any other. The elements take the loop of all scaled formats (`quantization`).
"""

import dataclasses
import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from textwrap import indent
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Bits, Numbers, code_dtype
from mor_ref.definitions.block_formats import (
    BlockFormat,
    BlockScale,
    check_rows,
    element_rule,
    negative_factor,
    percentiles_of,
)
from mor_ref.definitions.blocks import Partition, partition
from mor_ref.definitions.formula_functions import formula_functions
from mor_ref.definitions.formulas import names_in, parsed
from mor_ref.definitions.scales import (
    NO_SCALES_GIVEN,
    NOTHING_GIVEN,
    GivenScales,
)
from mor_ref.definitions.table_format import TableFormat
from mor_ref.engine import block_steps
from mor_ref.engine.blocks import Part, Sides, parts_of_blocks, words_of
from mor_ref.engine.formulas import Text, can_be_negative, format_rounding
from mor_ref.engine.intrinsics import bits_of, float_of, use_full_vectors
from mor_ref.engine.kernel import kernel, passing_kernel, step
from mor_ref.engine.nearest import elements_of, nearest, one_sided
from mor_ref.engine.parallel import for_each, thread_count
from mor_ref.engine.percentiles import percentiles_of_blocks
from mor_ref.engine.scales import amax_of_blocks, largest_in
from mor_ref.engine.strips import STRIP, TileScales, write_segments
from mor_ref.engine.table_format import code_in_table
from mor_ref.engine.widening import widen

_U = np.uint32
_F = np.float32
_SUMS = 1 << 16  # of rows and blocks that are added up at a time
_PART = 1 << 20  # elements of a part
FACTORS = ("decode", "encode")


class FormatScales(NamedTuple):
    """The codes of the scales by name, and the factors of the blocks as the loops take them."""

    codes: dict[str, Bits]
    blocks: TileScales


class _Outer(NamedTuple):
    """A scale above others: its numbers, the bits of its amaxes, and its parts."""

    numbers: NDArray[np.float32]
    amaxes: NDArray[np.uint32]
    parts: Partition


# ---------------------------------------------------------------------- text of kernels

_HEAD = """
@kernel
def NAME(
    amaxes, others, top, bottom, constants, rows, {above}codes, numbers, decodes, encodes{more}
):
    use_full_vectors()
    negative_decode, negative_encode = U(0), U(0)
"""
_ONE_TRY = """\
    for i in range(top, bottom):
        amaxes_i, codes_i = amaxes[i], codes[i]
{outs}
{row}
        for j in range(amaxes_i.size):
            amax = float_of(amaxes_i[j])
{block}
{tries}
    return negative_decode, negative_encode
"""
_SEVERAL_TRIES = """\
    tried, values = np.empty(({count}, {seen}, STRIP), F), np.empty(({count}, {seen}, together), U)
    sums = np.empty(({count}, together, height), F)
    kept, errors = np.empty(({count}, together, 3), U), np.empty(STRIP, F)
    for i in range(top, bottom):
{row}
        for first in range(first_block, behind_blocks, together):
            behind = min(first + together, behind_blocks)
            for j in range(first, behind):
                amax = float_of(amaxes[i, j])
{block}
{tries}
            sums[:] = F(0)
            end = min(behind * block.columns, columns)
            for left in range(first * block.columns, end, STRIP):
                right = min(left + STRIP, end)
                origin = first * block.columns
                for k in range({count}):
                    for n in range({seen}):
                        of_blocks, of_columns = values[k, n], tried[k, n]
                        write_segments(of_blocks, left - origin, right - origin, block, of_columns)
                for r in range(i * block.rows, min((i + 1) * block.rows, end_row)):
                    start = (r - place.top) * place.stride + left - place.left
                    line, row = x[start : start + right - left], r - i * block.rows
                    for k in range({count}):
                        errors_of_row(line, {tried}rows, grid, nan, {shared}errors)
                        add_from_left(errors, left, right, block, first, row, sums[k])
            for j in range(first, behind):
                best, least_error = 0, add_rows(sums[0, j - first])
                for k in range(1, {count}):
                    error = add_rows(sums[k, j - first])
                    if error < least_error:
                        best, least_error = k, error
                chosen = kept[best, j - first]
                codes[i, j] = chosen[0]
                if decodes is not None:
                    decodes[i, j] = chosen[1]
                if encodes is not None:
                    encodes[i, j] = chosen[2]
    return negative_decode, negative_encode
"""
_ERRORS = """
@step
def errors_of_row(x, {each}rows, grid, nan, {shared}errors):
    use_full_vectors()
    for q in range(x.size):
        bits = widen(x[q], U)
{error}
"""
_MORE = """,
    x, place, first_block, behind_blocks, block, end_row,
    columns, together, height, grid, nan"""
_NAMES: Mapping[str, Any] = {
    "F": _F,
    "U": _U,
    "STRIP": STRIP,
    "np": np,
    "__name__": __name__,
    "kernel": kernel,
    "step": step,
    "float_of": float_of,
    "bits_of": bits_of,
    "widen": widen,
    "nearest": nearest,
    "one_sided": one_sided,
    "code_in_table": code_in_table,
    "write_segments": write_segments,
    "use_full_vectors": use_full_vectors,
    "value_of": block_steps.value_of,
    "add_from_left": block_steps.add_from_left,
    "add_rows": block_steps.add_rows,
    "sign_unless_nan": block_steps.sign_unless_nan,
    "smaller_of": block_steps.smaller_of,
    "larger_of": block_steps.larger_of,
    "magnitude_of": block_steps.magnitude_of,
    "square": block_steps.square,
    "pow2": block_steps.pow2,
    "unless_zero": block_steps.unless_zero,
    "stored_in_binary32": block_steps.stored_in_binary32,
    "to_nearest": block_steps.to_nearest,
    "to_format": block_steps.to_format,
    "to_power_of_two": block_steps.to_power_of_two,
}


class ScaleKernel(NamedTuple):
    """A kernel that finds a scale, and the numbers and formats of its formulas."""

    run: Any
    constants: NDArray[np.float32]
    rows: tuple[Any, ...]
    percents: tuple[Fraction, ...]


class _Errors(NamedTuple):
    """The lines that find the error of an element, and the variables that they read."""

    lines: list[str]
    of_blocks: list[str]
    of_all: list[str]


class InAnySides:
    """A block format as its kernels see it.

    Two are equal if they differ in their names and in the sides of blocks alone: these are numbers
    that kernels are told.
    """

    def __init__(self, record: BlockFormat) -> None:
        scales = tuple(
            (
                own.name,
                own.over if isinstance(own.over, str) else "",
                own.number,
                own.fmt,
                own.rounding,
            )
            for own in record.scales
        )
        rest = (
            getattr(record, field.name)
            for field in dataclasses.fields(record)
            if field.name not in ("name", "element", "scales", "before")
        )
        self.record = record
        self._key = (record.fmt, scales, *rest)
        self._hash = hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InAnySides) and self._key == other._key

    def __hash__(self) -> int:
        return self._hash


in_any_sides = lru_cache(maxsize=1024)(InAnySides)


def kernel_of(record: BlockFormat, at: int, *, is_given: bool = False) -> ScaleKernel:
    """Return the kernel of one of the scales, from its amaxes to its codes and numbers.

    The numbers of a scale may be given in place of its formulas (BLF-008).
    """
    return _kernel_of(in_any_sides(record), at, is_given=is_given)


@lru_cache(maxsize=256)
def _kernel_of(some: InAnySides, at: int, *, is_given: bool) -> ScaleKernel:
    record = some.record
    signed = _signed_names(record)
    text, scale, above = Text(signed), record.scales[at], record.scales[:at]
    is_last = at == len(record.scales) - 1
    tries = record.tries if is_last and not is_given else ("t",)
    names = {"amax": "amax", "t": "t", f"amax_{scale.name}": "amax", scale.name: "s"}
    for n, outer in enumerate(above):
        names |= {outer.name: f"s{n}", f"amax_{outer.name}": f"a{n}"}
    loads = _loads(above)
    percentiles = () if is_given else percentiles_of(record, scale)
    if is_given:
        number = "float_of(others[0, i, j])"
    else:
        for n, percentile in enumerate(percentiles):
            names[percentile.name] = f"p{n}"
            loads["block"] += [f"p{n} = float_of(others[{n}, i, j])"]
        number = text.formula(scale.number, names)
    lines = {**loads, "block": [*loads["block"], f"t = {number}"]}
    arguments = [name for n in range(at) for name in (f"s{n}s", f"a{n}s")]
    arguments += [name for n in range(at) for name in (f"r{n}", f"c{n}")]
    fields: dict[str, Any] = {"above": _listed(arguments), "more": ""}
    source, body, errors = "", _ONE_TRY, None
    if len(tries) > 1:
        errors = _error_lines(record, names, text)
        fields |= {"count": len(tries), "seen": len(errors.of_blocks)}
        fields |= {"shared": _listed(errors.of_all), "more": _MORE}
        fields |= {"each": _listed([f"tried_{name}" for name in errors.of_blocks])}
        fields |= {"tried": _listed([f"tried[k, {n}]" for n in range(len(errors.of_blocks))])}
        source, body = _ERRORS.format(error=_indented(8, errors.lines), **fields), _SEVERAL_TRIES
    factors = [name for name in FACTORS if is_last and getattr(record, name) is not None]
    lines["tries"] = [
        line
        for k, formula in enumerate(tries)
        for line in (
            *_scale_lines(record, scale, formula, factors, names, text, signed),
            *_kept_lines(k, factors, errors, is_last=is_last),
        )
    ]
    written = factors if is_last else ["number"]
    lines["outs"] = [f"{name}s_i = {name}s[i]" for name in written]
    deep = 12 if errors is None else 16
    depths = {"outs": 8, "row": 8, "block": deep, "tries": deep}
    fields |= {name: _indented(depth, lines[name]) for name, depth in depths.items()}
    numbers = [f"{name} = constants[{n}]" for n, name in enumerate(text.variables)]
    source += _HEAD.format(**fields) + _indented(4, [*numbers, *lines["tensor"]]) + "\n"
    percents = tuple(percentile.percent for percentile in percentiles)
    run = _compiled(source + body.format(**fields), tuple(record.functions.items()))
    return ScaleKernel(run, text.constants, text.rows, percents)


def _signed_names(record: BlockFormat) -> set[str]:
    """Return the names that can be negative, for all that their formulas say."""
    signed = {"x", "v", "y"}
    for scale in record.scales:
        if can_be_negative(parsed(scale.number), signed):
            signed |= {scale.name, "t"}
    if any(can_be_negative(parsed(formula), signed) for formula in record.tries):
        signed |= {record.scales[-1].name}
    for name in FACTORS:
        formula = getattr(record, name)
        if formula is not None and can_be_negative(parsed(formula), signed):
            signed |= {name}
    return signed


def _loads(above: Sequence[BlockScale]) -> dict[str, list[str]]:
    """Return the lines that load scales above, and their amaxes, outside of as many loops."""
    lines: dict[str, list[str]] = {"tensor": [], "row": [], "block": []}
    for n, outer in enumerate(above):
        depth = outer.over if outer.over in ("tensor", "row") else "block"
        place = {"tensor": "0, 0", "row": f"i // r{n}, 0"}.get(str(depth), f"i // r{n}, j // c{n}")
        loaded = [f"s{n} = s{n}s[{place}]", f"a{n} = float_of(a{n}s[{place}])"]
        lines[str(depth)] += loaded
    return lines


def _scale_lines(
    record: BlockFormat,
    scale: BlockScale,
    formula: str,
    factors: Sequence[str],
    names: Mapping[str, str],
    text: Text,
    signed: Collection[str],
) -> Iterator[str]:
    """BLF-003: yield the lines that store a try of a scale, and find the factors that follow."""
    rounding = format_rounding(scale.fmt, scale.rounding)
    yield f"code, s = {text.stored(formula, names, scale.fmt, rounding)}"
    for n, name in enumerate(factors):
        known = {**names, **{factor: factor for factor in factors[:n]}}
        yield f"{name} = {text.formula(getattr(record, name), known)}"
        if name in signed:
            yield f"negative_{name} = U(negative_{name} | sign_unless_nan({name}))"


def _kept_lines(
    k: int, factors: Sequence[str], errors: _Errors | None, *, is_last: bool
) -> Iterator[str]:
    """Yield the lines that store a scale, or that keep one of several tries."""
    if errors is None:
        yield "codes_i[j] = code"
        if not is_last:
            yield "numbers_i[j] = s"
        for name in factors:
            yield f"{name}s_i[j] = bits_of({name})"
        return
    of_factors = (f"bits_of({name})" if name in factors else "U(0)" for name in FACTORS)
    for n, word in enumerate(("code", *of_factors)):
        yield f"kept[{k}, j - first, {n}] = {word}"
    for n, name in enumerate(errors.of_blocks):
        yield f"values[{k}, {n}, j - first] = bits_of({name})"


def _error_lines(record: BlockFormat, names: Mapping[str, str], text: Text) -> _Errors:
    """BLF-004 and BLF-005: the lines of the error of an element.

    Its formula is the first that `text` gets.
    """
    own = {name: name for name in ("decode", "encode", "v", "y")}
    error = text.formula(record.error, {**names, **own, "x": "x_q"})
    words = set(names_in(parsed(record.error)))
    is_table = isinstance(record.fmt, TableFormat)
    number = "x_q" if is_table else "magnitude"
    scaled = f"F({number} * encode)" if record.encode else f"F({number} / decode)"
    y = "F(v * decode)" if record.decode else "F(v / encode)"
    read = {"encode" if record.encode else "decode"}
    read |= {"decode" if record.decode else "encode"} if "y" in words else set()
    read |= {{**names, **own}[word] for word in words - {"x", "v", "y"}}
    outer = enumerate(record.scales[:-1])
    alike = {name for n, scale in outer if scale.over == "tensor" for name in (f"s{n}", f"a{n}")}
    of_blocks = sorted(read - alike)
    lines = [f"{name} = tried_{name}[q]" for name in of_blocks]
    lines += ["magnitude, x_q = float_of(U(bits & U(0x7FFFFFFF))), float_of(bits)"]
    if is_table:
        lines += [f"code, v = code_in_table({scaled}, grid)"]
    else:
        lines += [f"scaled = one_sided({scaled}, bits, grid.below_zero)"]
        lines += ["code, value = nearest(scaled, grid)"]
        lines += ["v = value_of(code, value, scaled, bits, grid, nan)"]
    lines += [f"y = {y}"] if "y" in words else []
    lines += [f"errors[q] = {error}"]
    return _Errors(lines, of_blocks, [*sorted(read & alike), *text.variables])


def _listed(names: Sequence[str]) -> str:
    return "".join(f"{name}, " for name in names)


def _indented(depth: int, lines: Sequence[str]) -> str:
    return indent("\n".join(lines), " " * depth)


@lru_cache(maxsize=256)
def _compiled(source: str, functions: tuple[tuple[str, str], ...]) -> Any:
    """Return the kernel of a text, which has nothing but words of this module and of formulas.

    Functions of a user, which are given with their digests, may call what no digest covers, so
    their kernels are not kept.
    """
    name = f"scales_{hashlib.sha256(source.encode()).hexdigest()[:32]}"
    names = {**_NAMES, **{f"own_{word}": formula_functions[word].compiled for word, _ in functions}}
    if functions:
        names["kernel"] = passing_kernel
    exec(compile(source.replace("NAME", name), f"<{name}>", "exec"), names)  # noqa: S102  # see above
    return names[name]


# ---------------------------------------------------------------------- whole tensors


def scales_of(
    numbers: Numbers,
    record: BlockFormat,
    threads: int | None,
    given: GivenScales = NO_SCALES_GIVEN,
) -> FormatScales:
    """Return the scales of a tensor; amaxes or numbers of a scale may be given (BLF-008)."""
    cut = partition(numbers.shape, record.block)
    amaxes = amax_of_blocks(numbers, cut, threads, record.counted)
    return scales_from(amaxes, cut, record, threads, given, numbers)


def scales_from(
    amaxes: NDArray[np.uint32],
    cut: Partition,
    record: BlockFormat,
    threads: int | None,
    given: GivenScales = NO_SCALES_GIVEN,
    numbers: Numbers | None = None,
) -> FormatScales:
    """Return the scales of a tensor from the amaxes of its blocks.

    Several tries and percentiles need numbers.
    """
    codes: dict[str, Bits] = {}
    above: list[_Outer] = []
    for at, scale in enumerate(record.scales[:-1]):
        grouped = cut if cut.group == scale.over else cut.regrouped(scale.over)
        parts = grouped.groups
        words = largest_in(parts, cut, amaxes)
        outer = _Outer(np.empty(words.shape, _F), _with_given(words, scale, given), parts)
        codes[scale.name] = np.empty(words.shape, code_dtype(scale.fmt))
        rule = kernel_of(record, at, is_given=_has_scale(given, scale))
        read = outer.amaxes, _others(given, numbers, parts, record, scale, rule, threads)
        results = codes[scale.name], outer.numbers, None, None
        arguments = (*_outer_arguments(above, parts.block), *results)
        _find(*read, rule, arguments, threads)
        above.append(outer)
    scale = record.scales[-1]
    codes[scale.name] = np.empty(amaxes.shape, code_dtype(scale.fmt))
    decode, encode = (
        np.empty(amaxes.shape, _U) if getattr(record, name) else None for name in FACTORS
    )
    is_given = _has_scale(given, scale)
    rule = kernel_of(record, len(above), is_given=is_given)
    others = _others(given, numbers, cut, record, scale, rule, threads)
    read = _with_given(amaxes, scale, given), others
    arguments = *_outer_arguments(above, cut.block), codes[scale.name], None, decode, encode
    if len(record.tries) > 1 and not is_given and numbers is not None:
        signs = _choose(numbers, record, cut, *read, rule, arguments, threads)
    else:
        signs = _find(*read, rule, arguments, threads)
    for name, sign in zip(FACTORS, signs, strict=True):
        if sign:
            raise ValueError(negative_factor(record, name))
    return FormatScales(codes, TileScales(Sides(*cut.block), encode, decode))


def _has_scale(given: GivenScales, scale: BlockScale) -> bool:
    return given.get(scale.name, NOTHING_GIVEN).scale is not None


def _with_given(
    words: NDArray[np.uint32], scale: BlockScale, given: GivenScales
) -> NDArray[np.uint32]:
    """BLF-008: return the amaxes of a scale, or those that are given."""
    amax = given.get(scale.name, NOTHING_GIVEN).amax
    return words if amax is None else np.full_like(words, _in_rows(amax).view(_U))


def _in_rows(given: Any) -> NDArray[np.float32]:
    """Return a given number, or one for each row or in rows and columns, as rows."""
    numbers = np.asarray(given, _F)
    return numbers.reshape(-1, 1) if numbers.ndim < 2 else numbers  # rows and columns


def _outer_arguments(above: Sequence[_Outer], own: tuple[int, int]) -> list[Any]:
    """Return the numbers and amaxes of each scale above, and then how many parts share one.

    The parts have `own` rows and columns.
    """
    arguments: list[Any] = []
    for outer in above:
        arguments += outer.numbers, outer.amaxes
    for outer in above:
        rows, columns = outer.parts.block
        arguments += -(-rows // own[0]), -(-columns // own[1])
    return arguments


def _others(
    given: GivenScales,
    numbers: Numbers | None,
    parts: Partition,
    record: BlockFormat,
    scale: BlockScale,
    rule: ScaleKernel,
    threads: int | None,
) -> NDArray[np.uint32] | None:
    """Return what the kernel of a scale reads beside the amaxes: as bits, for each part.

    That is its given number, or the percentiles that its formulas have; None if there are none.
    """
    if _has_scale(given, scale):
        return np.full((1, *parts.grid), _in_rows(given[scale.name].scale), _F).view(_U)
    if not rule.percents or numbers is None:
        return None
    return percentiles_of_blocks(numbers, parts, rule.percents, record.counted, threads)


def _find(
    words: NDArray[np.uint32],
    others: NDArray[np.uint32] | None,
    rule: ScaleKernel,
    given: Sequence[Any],
    threads: int | None,
) -> tuple[Any, Any]:
    """Find the scales that follow from numbers of blocks alone; return the signs of the factors."""
    own = rule.constants, rule.rows, *given
    if words.size <= _PART:
        results: tuple[Any, Any] = rule.run(words, others, 0, len(words), *own)
        return results
    signs: list[tuple[Any, Any]] = []

    def find(rows: slice) -> None:
        signs.append(rule.run(words, others, rows.start, rows.stop, *own))

    height = max(1, _PART // max(1, words.shape[1]))
    tops = range(0, len(words), height)
    rows = (slice(top, min(top + height, len(words))) for top in tops)
    for_each(find, rows, thread_count(threads, words.size))
    return _joined(signs)


def _choose(
    numbers: Numbers,
    record: BlockFormat,
    cut: Partition,
    words: NDArray[np.uint32],
    others: NDArray[np.uint32] | None,
    rule: ScaleKernel,
    given: Sequence[Any],
    threads: int | None,
) -> tuple[Any, Any]:
    """Find the scales that depend on every element of a block; return the signs of the factors."""
    block, (rows, columns) = Sides(*cut.block), (cut.rows, cut.columns)
    check_rows(record, block.rows)
    together, height, nan = tries_together(record, block)
    grid = elements_of(element_rule(record))
    signs: list[tuple[Any, Any]] = []

    def choose(blocks: Part) -> None:
        bottom, right = blocks.bottom * block.rows, blocks.right * block.columns
        top, left = blocks.top * block.rows, blocks.left * block.columns
        x = words_of(numbers, columns, Part(top, min(bottom, rows), left, min(right, columns)))
        sides = blocks.left, blocks.right, block, rows, columns
        own = *x, *sides, together, height, grid, nan
        rows_of_blocks = words, others, blocks.top, blocks.bottom
        signs.append(rule.run(*rows_of_blocks, rule.constants, rule.rows, *given, *own))

    for_each(choose, parts_of_blocks(cut, together), thread_count(threads, rows * columns))
    return _joined(signs)


def tries_together(record: BlockFormat, block: Sides) -> tuple[int, int, np.float32]:
    """Return how many blocks are tried at once, the height of their sums, and the NaN of codes."""
    height = 1 << (block.rows - 1).bit_length()
    together = max(1, min(STRIP // block.columns, _SUMS // height))
    grid = elements_of(element_rule(record))
    return together, height, _F(record.fmt.value(int(grid.nan_code)))


def _joined(signs: Sequence[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Return whether a decode is negative, and whether an encode is."""
    return any(decode for decode, _ in signs), any(encode for _, encode in signs)
