"""Two declarations of one name in a module: which of them ptxas takes."""

import itertools

import ptxas
import pytest
from ptx_programs import HEADER

from mor_ref.ptx import Module, PtxError
from mor_ref.ptx.parsing import parsed

KERNEL = ".visible .entry run() { ret; }\n"
LINKING = ("", ".visible ", ".weak ", ".extern ", ".common ")
VARIABLES = [f"{one}.global .b32 x;" for one in LINKING]
DECLARED = [f"{one}.func f;" for one in LINKING[:4]]
DEFINED = [f"{one}.func f {{ ret; }}" for one in LINKING[:4]]
PAIRS = [
    *itertools.product(VARIABLES, VARIABLES),
    *itertools.product(DEFINED, DECLARED),
    *itertools.product([*DECLARED, *DEFINED], DEFINED),
]
MESSAGES = {
    (".visible .global .b32 x;", ".weak .global .b32 x;"): "x is in line 4, too",
    (".extern .global .b32 x;", ".global .b32 x;"): "x is in line 4, too",
    (".func f { ret; }", ".func f;"): "the module has another one of this name",
    (".extern .func f;", ".visible .func f { ret; }"): "function is defined in another module",
    (".func f;", ".weak .func f { ret; }"): "line 4 declares it without .weak",
}


def text_of(pair):
    return HEADER + "\n".join(pair) + "\n" + KERNEL


@pytest.mark.tier("full", but_one_in=8)
@pytest.mark.parametrize("pair", PAIRS, ids=" ".join)
def test_two_declarations_are_taken_where_ptxas_takes_them(pair):
    ptxas.needed()
    text = text_of(pair)
    if ptxas.assembled(text) is None:
        with pytest.raises(PtxError, match="^line [45]: "):
            parsed(text)
    else:
        parsed(text)


@pytest.mark.parametrize("pair", MESSAGES, ids=" ".join)
def test_the_second_of_two_names_is_refused_in_words(pair):
    with pytest.raises(PtxError, match=f"^line 5: .*{MESSAGES[pair]}"):
        parsed(text_of(pair))


def test_the_definition_counts_and_not_what_is_declared_after_it():
    text = f"{HEADER}.visible .global .b32 x = 7;\n.extern .global .b32 x;\n{KERNEL}"
    assert parsed(text).variables["x"].initial == ((0, "7"),)
    text = f"{HEADER}.extern .global .b32 x;\n.visible .global .b32 x = 7;\n{KERNEL}"
    assert parsed(text).variables["x"].initial == ((0, "7"),)


@pytest.mark.parametrize("space", ["global", "const"])
def test_a_kernel_that_reads_a_variable_of_another_module_is_refused(space):
    reads = f".visible .entry reads() {{ .reg .b32 %r<1>; ld.{space}.b32 %r0, [x]; ret; }}\n"
    module = Module(f"{HEADER}.extern .{space} .b32 x;\n{KERNEL}{reads}")
    module["run"][1, 1]()
    words = f"line 4: .extern .{space} x: this module does not define it; give a module that does"
    with pytest.raises(PtxError, match=words):
        module["reads"][1, 1]()
