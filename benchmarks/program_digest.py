"""A digest of a program in C++ that names of local variables, comments and spaces do not change.

In each function, a local variable or a parameter counts as its number, in order of appearance. All
other tokens count as they are. So two programs of the same digest differ in nothing but such names,
and in a function each name of one program stands for one name of the other. A name that may be more
than a local variable of its function keeps its text.
"""

import hashlib
import re

_COMMENT = re.compile(r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|//[^\n]*|/\*.*?\*/""", re.DOTALL)
_TOKEN = re.compile(
    r"""^[ \t]*\#[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\.?\d(?:[eEpP][+-]|[\w.'])*|\w+"""
    r"""|<<=|>>=|->\*?|\.\.\.|::|\#\#|&&|\|\||<<|>>|\+\+|--|[-+*/%&|^<>=!]=|\S""",
    re.MULTILINE,
)
_MACRO = re.compile(r"\s*#\s*define\s+(\w+\(?)(.*)")
_TYPE = re.compile(r"\b(?:class|enum|struct|typename|union) (\w+)|\btypedef [^;]*\b(\w+) ;")
_BUILT_IN = {"auto", "bool", "double", "float", "int"}
# What is before a name that is declared: its type, or a comma after another name of that type.
_AFTER_TYPE = re.compile(r".*\b(\w+)(?: <[^;(){}:]*>)?(?: const| [*&]| &&)*( \( &)?")
_AFTER_COMMA = re.compile(r".*,(?: [*&])*")
_PAIRS = {"(": ")", "{": "}"}


def program_digest(text):
    """Return the digest of a program that has its headers in their places."""
    lists = _token_lists(text)
    called = {tokens[0][:-1] for tokens in lists[1:] if tokens[0].endswith("(")}
    declared = _TYPE.findall(" ".join(word for tokens in lists for word in tokens))
    types = _BUILT_IN.union(*declared)
    outside, members = set(), set()
    functions = [found for tokens in lists for found in _functions(tokens, outside, members)]
    for tokens, start, end, is_member in functions:
        kept = outside | members if is_member else outside
        tokens[start:end] = _numbered(tokens[start:end], kept, types, called)
    return hashlib.sha256("\n\n".join(map("\n".join, lists)).encode()).hexdigest()


def _token_lists(text):
    """Return the tokens of the program, and those of each macro: its name, parameters and body."""
    program, macros = [], []
    for word in _TOKEN.findall(_COMMENT.sub(r"\1 ", text.replace("\\\n", ""))):
        macro = _MACRO.fullmatch(word)
        if macro:
            macros.append([macro[1], *_TOKEN.findall(macro[2])])
            program.append("#define")
        elif not word.lstrip().startswith("#line"):
            program.append(" ".join(word.split()) if word.lstrip().startswith("#") else word)
    return [program, *macros]


def _functions(tokens, outside, members):
    """Yield where functions are, from their parameters on; add all other tokens to the sets."""
    in_structures, start, i = [], 0, 0
    while i < len(tokens):
        end = _end_of_function(tokens, i)
        if end:
            yield tokens, i, end, any(in_structures)
            i = end
            continue
        (members if any(in_structures) else outside).add(tokens[i])
        if tokens[i] == "{":
            in_structures.append(not {"struct", "union"}.isdisjoint(tokens[start:i]))
        elif tokens[i] == "}":
            del in_structures[-1:]
        i += 1
        if tokens[i - 1] in {";", "{", "}"}:
            start = i


def _end_of_function(tokens, i):
    """Return the end of the function whose parameters begin at `i`, or 0 if there is none."""
    is_named = tokens[i - 1].isidentifier() or tokens[i - 3 : i] == ["operator", "(", ")"]
    if tokens[i] != "(" or not is_named or tokens[i - 1] in {"if", "constexpr", "for", "while"}:
        return 0
    body = _after(tokens, i)
    body += tokens[body : body + 1] == ["const"]
    return _after(tokens, body) if tokens[body : body + 1] == ["{"] else 0


def _after(tokens, i):
    """Return the index after the bracket that closes the one at `i`, or 0 if none does."""
    depth = 0
    for j in range(i, len(tokens)):
        depth += (tokens[j] == tokens[i]) - (tokens[j] == _PAIRS[tokens[i]])
        if depth == 0:
            return j + 1
    return 0


def _numbered(tokens, kept, types, macros):
    """Return a function with numbers for its own names."""
    if not {"struct", "class", "union"}.isdisjoint(tokens):
        return tokens
    kept, places = set(kept), {}
    for i, word in enumerate(tokens):
        if not word.isidentifier() or tokens[i - 1] in {".", "->", "::"}:
            continue
        places.setdefault(word, []).append(i)
        if tokens[i + 1] == "(" or "##" in {tokens[i - 1], tokens[i + 1]}:
            kept.add(word)  # a function, or a part of a name
            if word in macros:
                kept.update(tokens[i : _after(tokens, i + 1)])
    numbered, number = list(tokens), 0
    for word, its_places in places.items():
        if word not in kept and _is_declared(tokens, its_places[0], types):
            for i in its_places:
                numbered[i] = f"@{number}"
            number += 1
    return numbered


def _is_declared(tokens, i, types):
    """Return whether the name at `i` is declared there."""
    if tokens[i] in {"const", "volatile"}:
        return False
    before, after = " ".join(tokens[max(i - 20, 0) : i]), tokens[i + 1]
    if _AFTER_COMMA.fullmatch(before):
        return after in {"=", ";", "["}
    type_before = _AFTER_TYPE.fullmatch(before)
    is_one = after in {"=", ";", ",", ")", "[", "{", ":"}
    return bool(is_one and type_before and type_before[1] in types)
