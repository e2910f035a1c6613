"""Codes that are clicked in the format explorer, bit by bit, in Chromium."""

from math import copysign, isinf, isnan
from random import Random

import pytest
from explorer_browser import opened, written
from extras import needs

from mor_ref import exact, formats
from mor_ref.definitions.encoding import NANS, OVERFLOWS
from mor_ref.definitions.formats import encoding_profiles
from mor_ref.explanations.numerals import parse_number

pytestmark = [needs("chromium", "playwright"), pytest.mark.tier("full")]


# Clicks one bit after another, and says after each what the page shows.
CLICKS = """bits => bits.map(bit => {
    document.getElementById(`code-${bit}`).click();
    const text = selector => document.querySelector(selector)?.textContent ?? "";
    return { x: document.getElementById("x").value, code: text("#answer strong"),
             value: text("#answer .result span"), note: text("#code-note"),
             bits: [...document.querySelectorAll("#code .bit")].map(each => each.innerText) };
})"""


def codes_clicked(page, bits):
    """Yield the code after each click, and the texts of the page."""
    code = int(page.locator("#answer strong").text_content(), 16)
    for bit, shown in zip(bits, page.evaluate(CLICKS, list(bits)), strict=True):
        code ^= 1 << bit
        yield code, shown


def same_number(a, b):
    """Return whether two numbers have the same bits, of a zero too, or both are NaN."""
    return (isnan(a) and isnan(b)) or (a, copysign(1, a)) == (b, copysign(1, b))


def is_shown_as_clicked(shown, code, fmt):
    """Check the code, its bits and number, and the code to which the number rounds."""
    value = fmt.value(code)
    assert shown["code"] == written(code, fmt)
    assert int("".join(shown["bits"]), 2) == code
    assert same_number(parse_number(shown["x"]), value), (fmt.name, code)
    assert ("NaN" in shown["value"], "\N{INFINITY}" in shown["value"]) == (
        isnan(value),
        isinf(value),
    )


def gray(bits):
    """Return the bit to flip for each next one of all 2^bits codes; each code comes once."""
    return [(n & -n).bit_length() - 1 for n in range(1, 1 << bits)] + [bits - 1]


@pytest.mark.tier("full", one_in=3)
@pytest.mark.parametrize("name", [name for name, fmt in formats.items() if fmt.bits <= 8])
def test_every_code_that_is_clicked_is_shown(page, name):
    """Also one that its number is not encoded as: an infinity, a NaN, -2 as int8_mx 0x80."""
    fmt = formats[name]
    page.locator(f"#pick-{name}").click()
    seen = set()
    for code, shown in codes_clicked(page, gray(fmt.bits)):
        seen.add(code)
        is_shown_as_clicked(shown, code, fmt)
        other = exact.encode(parse_number(shown["x"]), fmt)
        said = f"which is encoded as {written(other, fmt)}." if other != code else ""
        assert shown["note"].endswith(said)
        assert bool(shown["note"]) == bool(said)
    assert seen == set(range(1 << fmt.bits))


@pytest.mark.tier("full")
@pytest.mark.parametrize("name", [name for name, fmt in formats.items() if fmt.bits > 8])
def test_codes_of_wide_formats_that_are_clicked_are_shown(page, name):
    """Also those of NaN, whose payload x does not lose."""
    fmt, random = formats[name], Random(name)  # noqa: S311
    page.locator(f"#pick-{name}").click()
    for start in ("inf", "-inf", "nan", "-nan", "0", "-0", "1", "-1e300"):
        page.get_by_label("Number", exact=True).fill(start)
        mantissa = [random.randrange(fmt.mantissa_bits) for _ in range(12)]
        bits = [*mantissa, fmt.bits - 1, *mantissa, *(random.randrange(fmt.bits) for _ in range(6))]
        for code, shown in codes_clicked(page, bits):
            is_shown_as_clicked(shown, code, fmt)


@pytest.mark.tier("full")
def test_codes_that_are_clicked_are_shown_under_every_profile(page):
    """ENC-016: and under every rule for overflow and NaN."""
    chosen = [{"Encoder profile": profile} for profile in encoding_profiles]
    chosen += [{"Overflow": overflow, "NaN": nan} for overflow in OVERFLOWS for nan in NANS]
    for choice in chosen:
        page.get_by_label("Encoder profile").select_option("")
        for label, value in choice.items():
            page.get_by_label(label, exact=True).select_option(value)
        own = "e5m2", "e4m3", "int8_mx", "e8m0"
        for name in encoding_profiles.get(choice.get("Encoder profile"), own):
            fmt = formats[name]
            page.locator(f"#pick-{name}").click()
            page.get_by_label("Number", exact=True).fill("nan")
            for code, shown in codes_clicked(page, [*gray(3), *range(fmt.bits)]):
                is_shown_as_clicked(shown, code, fmt)


def test_another_question_ends_what_was_clicked(page):
    """But not another part of the page, and the address keeps it."""
    number, code = page.get_by_label("Number", exact=True), page.locator("#answer strong")
    page.locator("#pick-e5m2").click()
    number.fill("57344")
    for bit in (0, 1, 2):
        page.locator(f"#code-{bit}").click()
    assert (number.input_value(), code.text_content()) == ("inf", "0x7C")
    said = "0x7C is \N{INFINITY}, which is encoded as 0x7B."
    assert page.locator("#number-summary").text_content().startswith(said)
    page.get_by_role("tab", name="A row").click()
    page.get_by_role("tab", name="One number").click()
    assert code.text_content() == "0x7C"
    # The address comes a moment later, and may still be of the other part of the page.
    page.wait_for_function("/code=0x7C/.test(location.hash) && !/view=/.test(location.hash)")
    page.reload()
    assert code.text_content() == "0x7C"
    page.get_by_label("Rounding").select_option("rtz")
    assert code.text_content() == "0x7B"
    page.locator("#code-0").click()
    page.locator("#code-0").click()
    assert code.text_content() == "0x7B"
    page.get_by_label("Overflow").select_option("ieee")
    assert code.text_content() == "0x7B"


@pytest.mark.parametrize("code", ["0x7D", "0x7c", "124", "0x17C", "-0x7C", "x", "0x", "0xFD"])
def test_a_code_in_the_address_that_is_not_of_its_number(browser, code):
    """It is not shown in the place of the number's."""
    with opened(browser, x="inf", format="e5m2", code=code) as page:
        assert page.locator("#answer strong").text_content() == "0x7B"
