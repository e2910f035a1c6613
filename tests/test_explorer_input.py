"""The inputs of the format explorer, in Chromium: codes, powers, fractions, lists, and links."""

import html
import re
from fractions import Fraction
from urllib.parse import parse_qsl

import numpy as np
import pytest
from explorer_browser import ROOT, context_of, opened, written
from extras import needs
from mor_docs.shown import one_tensor

import mor_ref
from mor_ref import exact, formats
from mor_ref.explanations.numerals import parse_number

pytestmark = [needs("chromium", "playwright"), pytest.mark.tier("full")]


CODES = (
    ("e4m3", "0x2A"),
    ("e5m2", "0x7C"),
    ("e5m2", "0xfd"),
    ("e4m3", "0xFF"),
    ("int8_mx", "0x80"),
)


@pytest.mark.parametrize(("name", "code"), [*CODES, ("e2m1", "0x5"), ("bf16", "0x3E9A")])
def test_a_code_is_a_number_of_its_format(browser, name, code):
    """The code that was typed is shown, also if its number is encoded as another one."""
    fmt, typed = formats[name], int(code, 16)
    with opened(browser, x=code, format=name) as page:
        assert page.locator("#answer strong").text_content() == written(typed, fmt)
        other = exact.encode(fmt.value(typed), fmt)
        assert page.locator("#code-note").count() == (other != typed)
        bits = page.locator("#source-bits code").first.text_content()
        if fmt.value(typed) == fmt.value(typed):
            assert bits == f"0x{exact.decode(typed, fmt):08X}"
        page.locator("#code-0").click()
        assert page.locator("#answer strong").text_content() == written(typed ^ 1, fmt)


def test_a_code_with_too_many_bits_is_refused(browser):
    with opened(browser, x="0x2A", format="e2m1") as page:
        said = page.locator("#x-error").text_content()
        assert said == "0x2A is not a code of e2m1, whose codes are 0x0 to 0xF."
        page.locator("#format").select_option("f32")
        assert "8 for binary32" in page.locator("#x-error").text_content()


def test_another_format_of_the_table_keeps_the_number(browser):
    """A code that was typed is that of its format alone: the row has the number's own."""
    with opened(browser, x="0x2A", format="e4m3") as page:
        page.locator("#pick-e5m2").click()
        assert page.locator("#answer strong").text_content() == "0x35"
        assert page.get_by_label("Number", exact=True).input_value() == "0.3125"


TYPED = {
    "2^-9": Fraction(1, 512),
    "-2**10": Fraction(-1024),
    "1.5 * 2^-3": Fraction(3, 16),
    "2^(-1074)": Fraction(1, 2**1074),
    "-1/3": Fraction(-1 / 3),
    "22 / 7": Fraction(22 / 7),
    "\N{MINUS SIGN}2^\N{MINUS SIGN}2": Fraction(-1, 4),
}


def test_powers_and_fractions(page):
    for text, expected in TYPED.items():
        page.get_by_label("Number", exact=True).fill(text)
        assert page.locator("#x-error").text_content() == "", text
        bits = page.locator("#number-facts code").text_content()
        assert Fraction(parse_number(bits)) == expected, text
    for text in ("2^1024", "2^-1075", "1/0", "1/3/5", "3^2", "1.5 *", "2^"):
        page.get_by_label("Number", exact=True).fill(text)
        assert page.locator("#x-error").text_content().endswith("."), text


PASTED = {
    "[1.0, -2.5]": ["1", "\N{MINUS SIGN}2.5"],
    "array([[1., 2.],\n       [3., 4.]], dtype=float32)": ["1", "2", "3", "4"],
    "tensor([0.5, -inf], device='cuda:0')": ["0.5", "\N{MINUS SIGN}\N{INFINITY}"],
    "np.float32(0.25) {1e3}": ["0.25", "1000"],
    "2^-3, 1/4 1.5 * 2^2": ["0.125", "0.25", "6"],
}


def test_rows_as_programs_print_them(page):
    page.get_by_role("tab", name="A row").click()
    for text, expected in PASTED.items():
        page.get_by_label("Up to 32 numbers").fill(text)
        cells = "rows => rows.map(row => row.cells[1].innerText.split('\\n')[0])"
        assert page.eval_on_selector_all(".elements tbody tr", cells) == expected, text


def test_how_many_numbers_were_read(page):
    page.get_by_role("tab", name="A row").click()
    row, said = page.get_by_label("Up to 32 numbers"), page.locator("#row-count")
    row.fill("0,5 1,5")
    assert said.text_content().startswith("4 numbers read: 0; 5; 1; 5. A comma separates numbers")
    row.fill("0.5, 1.5")
    assert said.text_content() == "2 numbers read: 0.5; 1.5."
    row.fill("1 2 3 4 5 6 7")
    assert said.text_content() == "7 numbers read: 1; 2; 3; 4; 5; 6; \N{HORIZONTAL ELLIPSIS}"
    row.fill("x")
    assert said.text_content() == ""


@pytest.mark.parametrize("name", ["e4m3", "e5m2", "e8m0", "e2m1", "int8_mx", "e4m3fnuz"])
def test_a_code_is_decoded(browser, name):
    """FMT-001 to FMT-008: the number, its kind and rule, and the binary32 pattern (DEC-001)."""
    fmt = formats[name]
    with opened(browser, view="code", format=name) as page:
        for code in {0, 1, fmt.largest_code, fmt.code_count // 2, fmt.code_count - 1}:
            page.get_by_label("Code", exact=True).fill(bin(code))
            assert page.locator("#code-answer strong").text_content() == written(code, fmt)
            shown = page.locator("#code-answer").text_content()
            assert f"0x{exact.decode(code, fmt):08X}" in shown
            special = any(code in codes for codes in fmt.nan_codes)
            assert "kind FMT-00" in shown, (name, code)
            assert ("NaN" in shown) == special, (name, code)


def test_ways_to_write_a_code_and_to_step(page):
    page.get_by_role("tab", name="One code").click()
    field, shown = page.get_by_label("Code", exact=True), page.locator("#code-answer strong")
    for text in ("0x2a", "0b0010_1010", "0b0 0101 010", "42", "8'h2A", "'b101010", "8'd42"):
        field.fill(text)
        assert shown.text_content() == "0x2A", text
    page.locator("#code-after").click()
    assert (field.input_value(), shown.text_content()) == ("0x2B", "0x2B")
    page.locator("#pattern-bits-7").click()
    assert shown.text_content() == "0xAB"
    page.locator("#decode-e5m2").click()
    assert page.locator("#code-answer .result").text_content() == "0xAB= \N{MINUS SIGN}0.0546875"
    page.locator("#encode-it").click()
    assert page.get_by_label("Number", exact=True).input_value() == "-0.0546875"
    assert page.locator("#answer strong").text_content() == "0xAB"
    page.get_by_role("tab", name="One code").click()
    for text in ("", "x", "0x", "256", "-1", "0b2"):
        field.fill(text)
        assert page.locator("#pattern-error").text_content().endswith("."), text


def test_two_quick_clicks_are_two_steps(page):
    page.evaluate(
        "for (const name of ['code', 'row']) document.querySelector(`#tab-${name}`).click()"
    )
    page.wait_for_function("location.hash === '#view=row'")
    page.go_back()
    page.wait_for_function("location.hash === '#view=code'")


def test_back_goes_back(page):
    """Through choices and clicks; all that is typed at a time is one step."""
    number, code = page.get_by_label("Number", exact=True), page.locator("#answer strong")
    page.locator("#pick-e5m2").click()
    page.wait_for_function("location.hash === '#format=e5m2'")
    number.press("End")
    for key, shown in (("7", "0.37"), ("5", "0.375")):
        number.press(key)
        page.wait_for_function(
            "shown => new RegExp(`x=${shown}(&|$)`).test(location.hash)", arg=shown
        )
    page.get_by_role("tab", name="A row").click()
    page.wait_for_function("location.hash.includes('view=row')")
    page.go_back()
    page.locator("#view-number").wait_for()
    assert (number.input_value(), code.text_content()) == ("0.375", "0x36")
    page.go_back()
    page.wait_for_function("document.querySelector('#x').value === '0.3'")
    assert page.locator("#format").input_value() == "e5m2"
    page.go_back()
    page.wait_for_function("document.querySelector('#format').value === 'e4m3'")
    page.go_forward()
    page.wait_for_function("document.querySelector('#format').value === 'e5m2'")


def test_unknown_parts_of_a_link_are_named(browser):
    with opened(browser, x="2", format="e9m9", strange="1") as page:
        said = page.locator("#address-error")
        assert said.text_content().startswith("The link has format=e9m9, strange, which this page")
        assert page.locator("#answer strong").text_content() == "0x40"
        page.get_by_label("Rounding").select_option("rtz")
        assert said.text_content() == ""


def links_of_pages():
    """Return the states in the links of all pages to the explorer."""
    texts = [path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md")]
    found = re.findall(r'explorer/index\.html#([^"]+)"', "".join([*texts, one_tensor.links()]))
    return [dict(parse_qsl(html.unescape(state))) for state in found]


def test_links_of_the_pages_are_known(browser):
    states = links_of_pages()
    assert len(states) >= 13
    for state in states:
        with opened(browser, **state) as page:
            assert page.locator(".error:not(:empty)").count() == 0, state


def test_the_links_of_one_tensor_show_its_codes(browser):
    """As the engine has them, block by block."""
    x = np.float32([[2.5, -1, 0.75, 0], [0.125, -0.3125, -0.4375, 2**-18]])
    links = [state for state in links_of_pages() if state.get("row", "").startswith("2.5 ")]
    for name, state in zip(("e4m3", "e5m2"), links, strict=False):
        found = mor_ref.quantize(x, name, block=(2, 2)).codes
        codes = found.reshape(2, 2, 2).swapaxes(0, 1).ravel().tolist()
        with opened(browser, **state) as page:
            cells = "rows => rows.map(row => row.cells[3].querySelector('code').textContent)"
            shown = page.eval_on_selector_all(".elements tbody tr", cells)
            assert [int(code, 16) for code in shown] == codes


def test_the_link_is_copied(browser):
    context = context_of(browser, permissions=["clipboard-read", "clipboard-write"])
    with opened(browser) as other:
        address = other.url.partition("#")[0]
    page = context.new_page()
    page.goto(address)
    page.get_by_label("Number", exact=True).fill("464")
    page.get_by_role("button", name="Copy link").click()
    page.wait_for_function("document.querySelector('#copy-status').textContent === 'Copied.'")
    assert page.evaluate("navigator.clipboard.readText()") == f"{address}#x=464"
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject() }")
    page.get_by_role("button", name="Copy link").click()
    page.wait_for_function("/address bar/.test(document.querySelector('#copy-status').textContent)")
    context.close()


def test_the_tab_key_has_few_stops(page):
    """A group of buttons is one stop, and the arrow keys move inside of it."""
    stops = page.evaluate("""[...document.querySelectorAll("a, button, input, select, textarea")]
        .filter(each => each.tabIndex === 0 && !each.disabled && each.checkVisibility()).length""")
    assert stops <= 45
    page.locator("#number-examples button").first.focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.textContent") == "inf"
