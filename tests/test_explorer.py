"""The page of the format explorer, in Chromium: what it shows, and how it is used."""

import json
import re
from fractions import Fraction
from functools import partial
from itertools import cycle
from urllib.parse import urlencode

import pytest
from explorer_browser import ADDRESS, EXPLORER, ROOT, context_of, opened, written
from mor_docs.trace import rules_of

from mor_ref import exact, formats
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.encoding import (
    DETERMINISTIC_ROUNDINGS,
    NANS,
    OVERFLOWS,
    POWER_OF_TWO_ROUNDINGS,
    ROUNDINGS,
    SpecialCases,
)
from mor_ref.definitions.formats import encoding_profiles
from mor_ref.definitions.integer_grids import integer_grid
from mor_ref.definitions.mx import SCALE_RULES
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.definitions.scales import SCALINGS
from mor_ref.exact.arithmetic import rn32_of_binary64
from mor_ref.exact.mx import mx as exact_mx
from mor_ref.exact.nvfp4 import nvfp4 as exact_nvfp4
from mor_ref.exact.quantization import quantize
from mor_ref.explanations.encoding import explain
from mor_ref.explanations.numerals import parse_number
from mor_ref.operations.bits import f32_bits
from mor_ref.schemes.affine import exact as affine
from mor_ref.schemes.affine.definition import AFFINE_PROFILES
from mor_ref.schemes.levels.definition import ARITHMETICS, LEVEL_KINDS
from mor_ref.schemes.levels.exact import level_row
from mor_ref.schemes.mixed.definition import MIXTURES
from mor_ref.schemes.mixed.exact import mixed as exact_mixed
from mor_ref.schemes.mixed.representation import mixture
from mor_ref.schemes.shared.definition import SHARED_KINDS, SHARED_PROFILES
from mor_ref.schemes.shared.exact import shared as exact_shared

NUMBERS = ("0.3", "464", "-1e-5", "70000", "-0", "inf", "-nan", "0x1.8p-9", "0x00000001", "1e300")
CHAPTERS = {rule.id: rule.chapter for rule in rules_of(ROOT / "spec")}
ABSENT = "\N{EN DASH}"
ROWS = (
    "1.5 -1 0.75 0.5 0.25 -0.125 0.0625 1.25 1.8 0.9 -0.45 0.3 0.2 -0.1 0.05 1.7 3 0.003",
    "0 -0",
    "nan 1 2",
    "inf -3",
    "30000 0.001 7 -0.25 0.00002",
)

pytestmark = pytest.mark.tier("full")


def table(page, holder):
    """Return the texts of a table: its rows by first cells, each by the heads of its columns."""
    cells = page.eval_on_selector_all(
        f"{holder} tr", "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    heads, *rows = cells
    return {row[0]: dict(zip(heads[1:], row[1:], strict=True)) for row in rows}


def expected_code(x, fmt, rounding, special):
    """Return the code of a number as the page writes it; sr takes the word 128 of 8 bits."""
    if fmt.is_power_of_two and rounding not in (*POWER_OF_TWO_ROUNDINGS, "rne"):
        return ABSENT
    random = {"random_word": 128, "n_random_bits": 8} if rounding == "sr" else {}
    return written(exact.encode(x, fmt, rounding, special, **random), fmt)


def test_a_number_in_every_format_under_every_rounding(page):
    for text in NUMBERS:
        page.get_by_label("Number", exact=True).fill(text)
        shown = table(page, "#every-format")
        assert list(shown) == list(formats)
        for name, fmt in formats.items():
            codes = {
                r: expected_code(parse_number(text), fmt, r, SpecialCases()) for r in ROUNDINGS
            }
            assert {r: shown[name][r] for r in ROUNDINGS} == codes, (text, name)


def test_a_number_under_every_convention(page):
    """ENC-006 to ENC-010, ENC-016."""
    own = {
        f"{overflow}, {nan}": SpecialCases(overflow=overflow, nan=nan)
        for overflow in OVERFLOWS
        for nan in NANS
    }
    for name, fmt in formats.items():
        page.locator(f"#pick-{name}").click()
        known = own | {profile: rows.get(name) for profile, rows in encoding_profiles.items()}
        for text in ("464", "-nan", "-inf"):
            page.get_by_label("Number", exact=True).fill(text)
            shown = table(page, "#every-convention")
            assert list(shown) == list(known)
            for convention, special in known.items():
                codes = {
                    r: ABSENT
                    if special is None
                    else expected_code(parse_number(text), fmt, r, special)
                    for r in ROUNDINGS
                }
                assert shown[convention] == codes, (name, text, convention)


def fraction_of(found):
    """Return a number of the page's arithmetic, or None if it is not finite."""
    if not found or found["kind"] != "finite":
        return None
    sign = -1 if found["negative"] else 1
    ratio = Fraction(int(found["numerator"]), int(found["denominator"]))
    return sign * ratio * Fraction(2) ** found["exponent"]


EXPLAIN = """cases => JSON.stringify(cases.map(([text, name, rounding, overflow]) => {
    const special = { ...Explorer.catalogue.ours, overflow };
    const x = Explorer.numerals.parseNumber(text);
    return Explorer.explain.explain(x, Explorer.catalogue.formats[name], rounding, special);
}), (_, value) => (typeof value === "bigint" ? String(value) : value))"""


def test_explanations(page):
    """The neighbours, the midpoint, the error and the rule of mor-ref explain."""
    cases = [
        (text, name, rounding, overflow)
        for text in (*NUMBERS, "5", "-448")
        for name, fmt in formats.items()
        for rounding in DETERMINISTIC_ROUNDINGS
        for overflow in OVERFLOWS
        if not fmt.is_power_of_two or rounding in POWER_OF_TWO_ROUNDINGS
    ]
    for case, found in zip(cases, json.loads(page.evaluate(EXPLAIN, cases)), strict=True):
        text, name, rounding, overflow = case
        special = SpecialCases(overflow=overflow)
        expected = explain(parse_number(text), formats[name], rounding, special)
        assert (found["code"], found["rule"]) == (expected.code, expected.rule), case
        if expected.midpoint is not None and not found["isExact"]:
            places_agree(found, expected, case)


def places_agree(found, expected, case):
    sides = (("near", expected.nearer_zero), ("far", expected.farther_from_zero))
    for side, neighbour in sides:
        assert found[side]["code"] == neighbour.code, case
        assert fraction_of(found[side]["value"]) == neighbour.value, case
    assert fraction_of(found["midpoint"]) == expected.midpoint, case
    if expected.error_in_ulp is not None:
        x = Fraction(expected.x)
        error = Fraction(expected.value) - (abs(x) if expected.fmt.sign == "none" else x)
        assert fraction_of(found["errorInUlp"]) == expected.error_in_ulp, case
        assert fraction_of(found["relativeError"]) == error / abs(x), case


ANSWERS = ("source-bits", "number-facts", "answer", "every-format", "every-convention")


def strengths(page, names):
    """Return how opaque the parts of the page are."""
    each = (page.locator(f"#{name}") for name in names)
    return {part.evaluate("part => getComputedStyle(part).opacity") for part in each}


def test_what_is_no_number_is_said(page):
    """And the answer to another is not left as if it were this one's."""
    number, error = page.get_by_label("Number", exact=True), page.locator("#x-error")
    for text in ("", "0.3.1", "1e400", "-1e-400", "0x3f8", "-0x2A", "0x1.00000000000001p0", "--1"):
        number.fill(text)
        assert error.text_content().endswith("."), text
        assert number.get_attribute("aria-invalid") == "true"
        assert strengths(page, ANSWERS) == {"0.3"}
        assert page.locator("#number-summary").text_content() == ""
    number.fill("1")
    assert error.text_content() == ""
    assert strengths(page, ANSWERS) == {"1"}
    page.get_by_label("sr: word r").fill("256")
    assert "0 ≤ r < 2^n" in page.locator("#random-error").text_content()
    assert table(page, "#every-format")["e4m3"]["sr"] == ABSENT


def test_bits_are_clicked(page):
    number, code = page.get_by_label("Number", exact=True), page.locator("#answer strong")
    source = page.get_by_role("group", name="Bits of the binary32 pattern")
    source.get_by_role("button", name="sign bit 31").click()
    assert number.input_value() == "-0.30000001192092896"
    assert code.text_content() == "0xAA"
    code_bits = page.get_by_role("group", name="Bits of the e4m3 code")
    code_bits.get_by_role("button", name="mantissa bit 0").click()
    assert (number.input_value(), code.text_content()) == ("-0.34375", "0xAB")
    page.locator("#pick-int8_mx").click()
    number.fill("0")
    page.locator("#code-7").click()
    assert (number.input_value(), code.text_content()) == ("-2", "0x80")
    assert (
        page.locator("#code-note").text_content()
        == "0x80 is \N{MINUS SIGN}2, which is encoded as 0x81."
    )
    number.fill("inf")
    page.locator("#source-0").click()
    assert number.input_value() == "0x7F800001"
    page.locator("#source-31").click()
    assert number.input_value() == "0xFF800001"
    number.fill("0x7FF0000000000001")
    assert page.locator("#source-bits code").first.text_content() == "0x7F800001"


def test_the_chosen_rounding_is_marked(page):
    """ENC-013: a format of powers of two has a default of its own."""

    def marked(name):
        row = page.locator("#every-format tr").filter(has=page.locator(f"#pick-{name}"))
        return row.locator(".chosen").all_text_contents()

    assert (marked("e4m3"), marked("e8m0")) == (["0x2A"], ["0x7E"])
    page.get_by_label("Encoder profile").select_option("ml_dtypes")
    assert (marked("e4m3"), marked("e8m0"), marked("f16")) == (["0x2A"], ["0x7D"], [])
    page.get_by_label("Rounding").select_option("rtz")
    assert (marked("e4m3"), marked("e8m0")) == (["0x29"], ["0x7D"])
    page.get_by_label("Rounding").select_option("rto")
    assert marked("e8m0") == []
    page.locator("#pick-e8m0").click()
    assert "admits rtp, rtz, rna and rne only" in page.locator("#answer").text_content()


# The outline of a radio button is that of the text next to it.
OUTLINED = """[document.activeElement, document.activeElement.nextElementSibling]
    .some(each => each && getComputedStyle(each).outlineStyle === "solid")"""


def test_the_keyboard_is_enough(page):
    """From the top of the page: a number, a bit, a format, and a row under another recipe."""

    def tab_to(selector, limit=40):
        for _ in range(limit):
            page.keyboard.press("Tab")
            if page.evaluate("selector => document.activeElement.matches(selector)", selector):
                assert page.evaluate(OUTLINED)
                return
        raise AssertionError(f"the Tab key does not come to {selector}")

    tab_to("#x")
    page.keyboard.press("Control+A")
    page.keyboard.type("448")
    tab_to("#source-31")
    page.keyboard.press("Space")
    assert page.locator("#x").input_value() == "-448"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    assert page.locator("#x").input_value() == "-448.0000305175781"
    assert page.evaluate("document.activeElement.id") == "source-0"
    page.keyboard.press("Shift+Tab")
    tab_to("#rounding")
    page.keyboard.press("ArrowDown")
    tab_to("#pick-e4m3")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "pick-e5m2"
    page.locator("#tab-number").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    tab_to("#row")
    page.keyboard.press("Control+A")
    page.keyboard.type("1 2 3")
    tab_to("#recipes input")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert "Scale code" in page.locator("#row-summary").text_content()
    assert page.locator("#view-row .panel table").count() == 2


def test_the_address_keeps_the_state(browser, page):
    page.get_by_label("Number", exact=True).fill("1e-40")
    page.locator("#pick-e5m2").click()
    page.get_by_label("Rounding").select_option("rtp")
    page.get_by_label("Encoder profile").select_option("torch")
    page.get_by_role("tab", name="A row").click()
    page.get_by_label("Up to 32 numbers").fill("1, 2\n+3")
    page.get_by_role("radio", name="NVFP4").check()
    page.get_by_label("Profile", exact=True).select_option("torchao")
    assert page.locator("#overflow").is_disabled()
    page.wait_for_function("location.hash.includes('profile=torchao')")
    shown = page.locator("#row-results").text_content()
    with opened(browser) as other:
        other.goto("about:blank")
        other.goto(page.url)
        assert other.locator("#row-results").text_content() == shown
        other.get_by_role("tab", name="One number").click()
        assert other.locator("#answer strong").text_content() == "0x01"
        other.evaluate("location.hash = 'x=2&format=e2m1&rounding=none&strange=1&view=x'")
        other.wait_for_function("document.querySelector('#answer strong').textContent === '0x4'")
        assert other.locator("#rounding").input_value() == ""


def test_names_that_objects_have_anyway_are_no_state(browser):
    with opened(browser) as page:
        page.goto("about:blank")
        page.goto(f"{ADDRESS}#__proto__=1&constructor=2&x=2")
        assert page.locator("#answer strong").text_content() == "0x40"


def test_what_is_no_number_does_not_stick_out(browser):
    """However long it is, a row of errors is as wide as the page."""
    for state in ({"x": "9" * 400}, {"view": "row", "row": "a" * 400}):
        with opened(browser, width=320, **state) as page:
            assert page.locator(".error:visible").count() == 1
            nothing_sticks_out(page)


RECIPES = ("scaled", "nvfp4", "mx", "mor", "integers", "shared", "levels", "mixed")
STATES = (
    {"x": "-0.3", "format": "f32"},
    {"x": "nan", "format": "e8m0"},
    {"x": "-1e300", "format": "bf16", "preset": "ml_dtypes"},
    {"view": "code", "pattern": "0xFF"},
    *({"view": "row", "recipe": recipe} for recipe in RECIPES),
)


@pytest.mark.parametrize("state", STATES, ids=lambda state: "-".join(state.values()))
def test_every_view(browser, state):
    with opened(browser, width=360, **state) as page:
        page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        nothing_sticks_out(page)
        everything_has_a_name(page)
        rules_are_linked(page)


def nothing_sticks_out(page):
    """Check that on a narrow screen wide content scrolls in its own frame."""
    for width in (360, 320):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def everything_has_a_name(page):
    """Check that each control has a label, and that changes are announced."""
    unnamed = page.eval_on_selector_all(
        "input, select, textarea, button",
        """all => all.filter(each => !(each.labels?.length || each.ariaLabel
            || each.textContent.trim())).map(each => each.outerHTML)""",
    )
    assert unnamed == []
    assert page.locator("output[aria-live=polite]").count() == 3
    ids = page.eval_on_selector_all("[id]", "all => all.map(each => each.id)")
    assert len(ids) == len(set(ids))


def rules_are_linked(page):
    """Check that each shown id is a rule with a link to its chapter."""
    links = page.eval_on_selector_all(
        "a.rule", "all => all.map(each => [each.textContent, each.getAttribute('href')])"
    )
    assert links
    assert all(href == f"../spec/{CHAPTERS[name]}.html#{name}" for name, href in links)


def shown_elements(page):
    """Return the code and the bits of y of each element."""
    cells = page.eval_on_selector_all(
        "[aria-label=Elements] tbody tr",
        "rows => rows.map(row => [...row.cells].map(cell => cell.innerText))",
    )
    return [(int(row[3].split()[-1], 16), int(row[4].split()[-1], 16)) for row in cells]


def recipes():
    """Yield each recipe with its options, and the exact model's function for a row."""
    for scaling in SCALINGS:
        for name in ("e4m3", "e5m2"):
            options = {"recipe": "scaled", "element": name, "scaling": scaling, "length": "8"}
            yield options, partial(in_blocks, fmt=formats[name], scaling=scaling)
    for name, profile in PROFILES.items():
        options = {"recipe": "nvfp4", "profile": name}
        yield options, lambda x, p=profile: exact_nvfp4([x], p, (1, 16)).elements
    for rule in SCALE_RULES:
        for name in ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "int8_mx"):
            options = {"recipe": "mx", "mxelement": name, "rule": rule}
            yield options, lambda x, n=name, r=rule: exact_mx([x], formats[n], r, 32).elements

    yield from recipes_of_representations()


def recipes_of_representations():
    """Yield the recipes of integers, shared exponents, levels and mixtures."""
    for n, name in enumerate(AFFINE_PROFILES):
        zeros = "symmetric" if n % 2 or AFFINE_PROFILES[name].stores_amax else "asymmetric"
        grid = "int8" if AFFINE_PROFILES[name].stores_amax else ("uint8", "int4", "uint3")[n % 3]
        options = {"recipe": "integers", "grid": grid, "integers": name, "zeros": zeros}
        yield options, partial(in_integers, grid=grid, name=name, symmetric=zeros == "symmetric")
    for kind in SHARED_KINDS:
        for name, profile in SHARED_PROFILES.items():
            options = {"recipe": "shared", "sharedkind": kind, "sharedprofile": name}
            of = SHARED_KINDS[kind], profile
            yield options, lambda x, of=of: exact_shared([x], *of).elements
    for name, kind in LEVEL_KINDS.items():
        for arithmetic in ARITHMETICS:
            options = {"recipe": "levels", "levelkind": name, "arithmetic": arithmetic}
            of = kind, None, arithmetic
            yield options, lambda x, of=of: [level_row(x, *of).elements]
    for name in MIXTURES:
        options = {"recipe": "mixed", "mixture": name, "length": "8"}
        yield options, partial(in_mixture, name=name)


def in_integers(x, grid, name, symmetric):
    """Return the elements with codes as bits of two's complement."""
    how = affine.Choices(AFFINE_PROFILES[name], integer_grid(grid), symmetric, "f32")
    found = affine.affine([x], how, partition((1, len(x)), (1, 8))).elements
    mask = (1 << how.grid.bits) - 1
    return [[element._replace(code=element.code & mask) for element in found[0]]]


def in_mixture(x, name):
    return exact_mixed([x], mixture(name).candidates, partition((1, len(x)), (1, 8))).elements


def in_blocks(x, fmt, scaling):
    return quantize([x], fmt, scaling, partition((1, len(x)), (1, 8), "tensor")).elements


def test_rows_under_every_recipe(page):
    """Codes and y as the exact model has them."""
    for (options, made), row in zip(recipes(), cycle(ROWS), strict=False):
        x = [rn32_of_binary64(parse_number(word)) for word in row.split()]
        expected = [(element.code, f32_bits(element.y)) for element in made(x)[0]]
        address = urlencode({"view": "row", "row": row, **options})
        page.evaluate(
            """address => new Promise(done => {
                addEventListener("hashchange", done, { once: true });
                location.hash = address;
            })""",
            address,
        )
        assert shown_elements(page) == expected, (row, options)


def test_a_row_that_cannot_be(browser):
    with opened(browser, view="row", row=" ".join(["1"] * 33)) as page:
        error = page.locator("#row-error")
        assert "33 numbers" in error.text_content()
        page.get_by_label("Up to 32 numbers").fill("1 x")
        assert '"x" is not a number' in error.text_content()
        page.get_by_label("Up to 32 numbers").fill("8 -16")
        assert error.text_content() == ""
        assert strengths(page, ["row-results"]) == {"1"}
        page.get_by_label("Group amax").fill("15")
        assert page.locator("#group-error").text_content() == "amax is at least the row's, 16."
        assert strengths(page, ["row-results"]) == {"0.3"}
        assert page.locator("#row-summary").text_content() == ""
        page.get_by_label("Group amax").fill("29")
        assert "yes" in page.locator("#row-results").text_content()
        page.get_by_role("radio", name="MoR").check()
        page.get_by_label("e4m3 threshold").fill("2")
        assert "threshold" in page.locator("#threshold-error").text_content()
        page.get_by_role("radio", name="Integers").check()
        page.locator("#integers").select_option("bnb_int8_row")
        page.locator("#zeros").select_option("asymmetric")
        assert "has no zero points" in page.locator("#grid-error").text_content()
        page.get_by_role("radio", name="Levels").check()
        page.locator("#alpha").fill("x")
        assert '"x" is not a number' in page.locator("#alpha-error").text_content()


def test_decisions_are_shown(browser):
    with opened(
        browser, view="row", recipe="mor", row="10000 0.00002 7 -0.25 0.003 -55 0.0006 0.00017"
    ) as page:
        summary = page.locator("#row-summary").text_content()
        assert summary.startswith("tensor takes ")
        assert "three_way takes e5m2" in summary
        panel = page.get_by_role("region", name="Policy three_way")
        assert "would" not in panel.text_content()
        assert "T = 377487" in page.locator("#row-results").text_content()
    with opened(browser, view="row", recipe="mor", row="0 -0") as page:
        shown = page.get_by_role("region", name="Policy tensor").text_content()
        assert "accepts" in shown  # as nonzero is 0 (MOR-002)
        assert "≥" not in shown
        assert "nonzero = 0T = 377487" in shown


def test_a_new_format_needs_no_new_script(browser):
    """A row more in the catalogue, here e2m3 under another name with another bias."""
    text = (EXPLORER / "catalogue.js").read_text()
    (row,) = re.findall(r'    "e2m3": \{.*\},\n', text)
    more = row.replace("e2m3", "mine").replace('"bias": 1', '"bias": 2')
    more = more.replace('"smallestExponent": 0', '"smallestExponent": -1')
    with opened(browser, routes={"**/catalogue.js": text.replace(row, row + more)}) as page:
        page.get_by_label("Number", exact=True).fill("3.75")
        assert table(page, "#every-format")["mine"]["rne"] == "0x1F"
        page.locator("#pick-mine").click()
        assert page.locator("#answer .result").text_content() == "0x1F= 3.75"
        for options in ("element", "mxelement"):
            assert page.locator(f"#{options} option[value=mine]").count() == 1


def test_the_theme_of_the_site_is_followed(browser):
    ground = "getComputedStyle(document.body).backgroundColor"
    for scheme, color in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(19, 20, 22)")):
        context = context_of(browser, color_scheme=scheme)
        page = context.new_page()
        page.goto(ADDRESS)
        assert page.evaluate(ground) == color
        page.evaluate("localStorage.setItem('theme', 'dark')")
        page.reload()
        assert page.evaluate(ground) == "rgb(19, 20, 22)"
        context.close()
