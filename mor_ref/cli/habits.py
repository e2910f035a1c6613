"""What people type by habit of other programs, and what to type here; for errors alone."""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mor_ref.counts_in_words import joined

# Options of other programs, and those here of which a command has one.
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("-o", "--output", "--outfile", "--output-file", "--save"), ("--out",)),
    **dict.fromkeys(("-f", "--fmt", "--dtype", "--type", "-t"), ("--format", "--recipe")),
    "--format": ("--recipe",),
    **dict.fromkeys(("-r", "--recipes", "--scheme", "--quant"), ("--recipe",)),
    **dict.fromkeys(("--a", "--b", "--lhs", "--rhs"), ("--recipe",)),
    **dict.fromkeys(("-i", "--input", "--in", "--data"), ("--inputs",)),
    **dict.fromkeys(("--rounding-mode", "--round", "--mode", "-m"), ("--rounding",)),
    **dict.fromkeys(("--saturate", "--sat", "--saturation"), ("--overflow",)),
    **dict.fromkeys(("--seed", "--random-seed", "--random"), ("--random-word",)),
    **dict.fromkeys(("--random-bits", "--bits"), ("--n-random-bits",)),
    **dict.fromkeys(("-j", "--jobs", "--workers", "--num-threads"), ("--threads",)),
    **dict.fromkeys(("--filter", "--tensors", "--name", "-k"), ("--include",)),
    **dict.fromkeys(("--block-size", "--block-shape"), ("--block", "--recipe")),
    **dict.fromkeys(("-s", "--suites"), ("--suite",)),
    **dict.fromkeys(("-d", "--dir", "--directory"), ("--out", "--vectors")),
    **dict.fromkeys(("--junit", "--junitxml", "--html"), ("--report",)),
}
_LETTERS = re.compile(r"(-[A-Za-z](=.*)?|--[A-Za-z].*)")  # of no number: -inf has more letters
_WORD_OF_RECIPE = re.compile("[A-Za-z][A-Za-z0-9_:]{0,99}")
# What to add to the name of an option: it is not all that people need.
_MORE = {
    "--inputs": "--inputs FILE",
    "--random-word": "--random-word (the random bits, not a seed) with --n-random-bits",
    "--report": "--report FILE, which ends in .html, .json or .xml",
}
_OF_A_CANDIDATE = ("--entry", "--func", "--function", "--kernel", "--lib", "--symbol")
_A_CANDIDATE = (
    "give CANDIDATE as module:function, a function of (operation, parameters, inputs) in Python, "
    "which may call a library with ctypes"
)

_VECTORS = "mor-ref golden make mxfp8 --out DIR makes golden vectors, of a suite or of a recipe"
_NEIGHBOURS = "mor-ref explain NUMBER --format e4m3 shows the numbers on both sides"
_FORMAT = "mor-ref formats e4m3 shows a format, and mor-ref formats all of them"
_LISTS = "mor-ref formats, recipes, profiles, policies and roundings are the lists"
_VERIFY = "mor-ref verify CANDIDATE verifies an implementation"
_COMPARE = "mor-ref compare FILE --recipe mxfp8 --recipe nvfp4 prints errors and SQNR"
_QUANTIZE = "mor-ref quantize FILE --recipe mxfp8 --out FILE quantizes tensors"
_COMMANDS: Mapping[str, str] = {
    **dict.fromkeys(("list", "ls"), _LISTS),
    **dict.fromkeys(("finfo", "info", "iinfo", "limits", "show", "table", "values"), _FORMAT),
    **dict.fromkeys(("neighbors", "neighbours", "next", "nextafter", "ulp"), _NEIGHBOURS),
    **dict.fromkeys(("generate", "make", "vectors", "goldens"), _VECTORS),
    **dict.fromkeys(("check", "test", "validate", "run"), _VERIFY),
    **dict.fromkeys(("diff", "error", "errors", "metrics", "mse", "sqnr", "stats"), _COMPARE),
    **dict.fromkeys(("cast", "convert", "quant", "fake-quantize"), _QUANTIZE),
    **dict.fromkeys(("round", "roundtrip"), "mor-ref encode NUMBER --format e4m3 shows both"),
    "version": "mor-ref --version prints it",
}


def instead_of_command(name: str) -> str | None:
    """Return a sentence about the command that is meant; None if none is known to be."""
    return _COMMANDS.get(name)


def instead_of_option(given: str, ctx: Any) -> str | None:
    """Return a sentence for an option in front of a command; None if none is known to be meant."""
    return _VECTORS if ctx.info_name == "golden" and given in _OPTIONS else None


def name_of(ctx: Any) -> str:
    """Return the name of a command without that of the program: golden make."""
    return str(ctx.command_path.removeprefix(ctx.find_root().info_name or "").strip())


def refuse_options(typed: Iterable[str], params: Sequence[Any], ctx: Any) -> None:
    """Refuse options that a command does not have, with those that are meant.

    If what is meant is not known, the parser refuses them.
    """
    name = name_of(ctx)
    options = [one for one in params if one.param_type_name == "option"]
    known = [spelt for one in options for spelt in one.opts]
    words = [word.partition("=")[0] for word in typed if _LETTERS.fullmatch(word)]
    unknown = [word for word in dict.fromkeys(words) if word not in known]
    if "--vectors" in known and any(word in _OF_A_CANDIDATE for word in unknown):
        raise ValueError(f"{name} has no option {joined(unknown)}; {_A_CANDIDATE}")
    can_be = {word: _OPTIONS.get(word, ()) for word in unknown}
    if any(one.metavar == "SUITE" for one in params if one.param_type_name == "argument"):
        known.append("SUITE")
        for word, options_meant in can_be.items():
            if "--recipe" in (word, *options_meant):
                can_be[word] = ("SUITE",)
    meant = {word: one for word in unknown for one in can_be[word] if one in known}
    if len(meant) < len(unknown) or not unknown:
        return
    also = {one.opts[0] for one in options if one.required and not {*one.opts} & {*words}}
    if "--recipe" in meant.values() and "--suite" in known and "--inputs" not in words:
        also.add("--inputs")  # which verify takes together
    to_give = list(dict.fromkeys((*meant.values(), *sorted(also))))
    multiple = any(one.multiple for one in options if one.opts[0] == "--recipe")
    each = ", once for each recipe" if multiple and "--recipe" in to_give else ""
    raise ValueError(
        f"{name} has no option {joined(list(meant))}; give "
        f"{joined([_MORE.get(one, one) for one in to_give], 'and')}{each}"
    )


def refuse_letters(
    words: Iterable[str], typed: Iterable[str], params: Sequence[Any], ctx: Any
) -> None:
    """Refuse options among the numbers of a command that takes negative ones."""
    unknown = [word for word in words if _LETTERS.fullmatch(word)]
    if unknown:
        refuse_options(typed, params, ctx)
        given, path = unknown[0].partition("=")[0], ctx.command_path
        raise ValueError(f"{name_of(ctx)} has no option {given}; {path} --help lists its options")


def refuse_misplaced(
    words: Sequence[str], args: Sequence[str], option: Any, path: str, *, otherwise: str
) -> None:
    """Refuse names of formats or recipes among numbers or files, with the call that is meant.

    `option` takes such names. `otherwise` is what to give if no number or file is left.
    """
    spelt = option.opts[0]
    is_name = {"--format": _is_format, "--recipe": _is_recipe}[spelt]
    names = [word for word in words if is_name(word)]
    if not names:
        return
    if not option.multiple:
        names = names[:1]
    rest = list(args)
    for name in names:
        rest.remove(name)
    if len(names) == len(words):
        rest.insert(0, otherwise)
    end = rest.index("--") if "--" in rest else len(rest)  # of the options
    given = [word for name in names for word in (spelt, name)]
    call = [path, *map(shlex.quote, (*rest[:end], *given, *rest[end:]))]
    what = {"--format": "the name of a format", "--recipe": "a recipe"}[spelt]
    raise ValueError(f"{names[0]} is {what}; give it with {spelt}: {' '.join(call)}")


def _is_format(word: str) -> bool:
    from mor_ref.definitions.formats import as_format

    return _is_read(word, as_format)


def _is_recipe(word: str) -> bool:
    if not _WORD_OF_RECIPE.fullmatch(word) or Path(word).exists():
        return False
    from mor_ref.recipes import as_tensor_recipe

    return _is_read(word, as_tensor_recipe)


def _is_read(word: str, read: Callable[[str], Any]) -> bool:
    try:
        read(word)
    except (ValueError, TypeError):
        return False
    return True
