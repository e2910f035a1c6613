"""A digest of a program: the names of local variables do not change it, and all else does."""

import re

import pytest
from extras import of_benchmarks

from mor_ref.cuda import source

program_digest = of_benchmarks("program_digest").program_digest

PROGRAM = """\
#define PASTED(name) which_##name
#define REST total - factor
#define KERNEL(suffix, Type) \\
  __global__ void twice_##suffix(const Type* x, u64 count, Type* y) { \\
    for (u64 i = 0; i < count; i++) y[i] = x[i] + x[0]; \\
  }
typedef unsigned int u32;
typedef unsigned long long u64;
constexpr u32 LIMIT = 7;
struct Pair {
  u32 low, high;
  u32 scaled(u32 scale) const { return scale * low + high / scale; }
};
template <class Type, u32 N> u32 sum_of(const Type (&numbers)[N], const Pair& pair, u32 warp) {
  u32 sum = 0, index = 1;
  const auto add = [&](u32 number) { sum += number * index - warpSize; };
  for (const Type& low : numbers)
    if (low < LIMIT) add(fminf(low, pair.low));
  { u32 high = 2, which_a = 3; sum -= high + PASTED(a) - which_a; }
  return sum << index | pair.high * warp;
}
u32 unlike() { struct { u32 first, second; } two = {1, 2}; return two.first; }
KERNEL(f32, float)
"""
RENAMED = """\
#define PASTED(name)   which_##name  // a comment
#define REST total - factor
#define KERNEL(suffix, Type) \\
  __global__ void twice_##suffix(const Type* numbers, u64 count, Type* twice) { \\
    for (u64 n = 0; n < count; n++) twice[n] = numbers[n] + numbers[0]; }
typedef unsigned /* 32 bits */ int u32;
typedef unsigned long long u64;
constexpr u32 LIMIT = 7;
struct Pair {
  u32 low, high;
  u32 scaled(u32 by) const { return by * low + high / by; } };
#line 3 "elsewhere"
template <class Type, u32 N>
u32 sum_of(const Type (&x)[N], const Pair& two, u32 lanes) {
  u32 total_sum = 0, sum = 1;
  const auto add = [&](u32 addend) {
    total_sum += addend * sum - warpSize;
  };
  for (const Type& magnitude : x) if (magnitude < LIMIT) add(fminf(magnitude, two.low));
  {
    u32 above = 2, which_a = 3;
    total_sum -= above + PASTED(a) - which_a;
  }
  return total_sum << sum | two.high * lanes;
}
u32 unlike() { struct { u32 first, second; } two = {1, 2}; return two.first; }
KERNEL(f32, float)
"""
TOKEN = re.compile(r"\w+|[^\w\s\\]")


def test_comments_white_space_and_local_names_do_not_change_it():
    assert program_digest(PROGRAM) == program_digest(RENAMED)


def whole_words(text, **names):
    return re.sub(r"\w+", lambda word: names.get(word[0], word[0]), text)


@pytest.mark.parametrize(
    "names",
    [
        {"index": "sum"},  # two variables become one
        {"number": "index"},
        {"x": "y"},
        {"low": "high", "high": "low"},  # members, which exchange their places
        {"sum_of": "total_of"},
        {"add": "add_up"},  # a variable that is called may be another function
        {"fminf": "fmaxf"},
        {"warpSize": "warp"},
        {"warpSize": "laneSize"},
        {"LIMIT": "BOUND"},
        {"Type": "Kind"},
        {"u32": "u16"},
        {"unsigned": "signed"},
        {"a": "b"},  # a macro makes a name of it
        {"index": "LIMIT"},  # a name from outside, which it hides
        {"sum": "total"},  # a name in a macro that others may use
        {"scale": "factor"},
        {"scale": "low"},
        {"first": "second", "second": "first"},
        {"f32": "f64"},
    ],
    ids=str,
)
def test_other_names_change_it(names):
    assert program_digest(whole_words(PROGRAM, **names)) != program_digest(PROGRAM)


@pytest.mark.parametrize(
    ("text", "name", "other"),
    [
        ("struct S { u32 a, b; u32 f() { { u32 $ = 1; g(2 + $); } return $; } };", "a", "b"),
        ("#define MAX(name) max_##name(1)\nu32 f() { u32 $ = 1; return $ + MAX($); }", "a", "b"),
        ("#define F(s) u32 f_##s() { u32 $ = 1; return $ + $##s(2); }\nF(a)", "g_", "h_"),
        ("u32 f(u32 n) { return n * $; }", "warpSize", "laneSize"),
        ("u32 f(u32 n) { return g(n, $, n); }", "warpSize", "laneSize"),
        ("u32 f(const u32* $ x) { return *x; }", "__restrict__", "__device__"),
        ("u32 f() { return g<u32 $, u32>(1); }", "const", "volatile"),
        ("u32 f() { return g(1)->$; }", "low", "high"),
    ],
)
def test_names_that_may_come_from_outside_change_it(text, name, other):
    texts = [f"typedef unsigned int u32;\n{text.replace('$', each)}" for each in (name, other)]
    assert program_digest(texts[0]) != program_digest(texts[1])


@pytest.mark.parametrize("text", [PROGRAM, (source.KERNELS / "packing.cu").read_text("utf-8")])
def test_any_other_token_changes_it(text):
    """One that is left out, exchanged with the next, or another name or number of the program."""
    text = re.sub(r"//[^\n]*", "", text)
    digest, tokens = program_digest(text), list(TOKEN.finditer(text))
    words = sorted(set(re.findall(r"\w+", text)))
    for place, (this, after) in enumerate(zip(tokens, [*tokens[1:], tokens[0]], strict=True)):
        start, end = this.span()
        others = {"", "~", words[place % len(words)], words[place * 7 % len(words)]} - {this[0]}
        if not this[0].isidentifier():
            others -= set(words)
        changed = [f"{text[:start]} {other} {text[end:]}" for other in others]
        if this[0] != after[0] and end <= after.start():
            between = text[end : after.start()]
            changed.append(f"{text[:start]}{after[0]} {between} {this[0]}{text[after.end() :]}")
        for other in changed:
            assert program_digest(other) != digest, (this[0], other)
