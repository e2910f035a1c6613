"""The sentences on the page of speed follow from the measurements."""

from pathlib import Path

import pytest
from extras import of_benchmarks

page = of_benchmarks("page")
table = of_benchmarks("table")
machine_code = of_benchmarks("machine_code")
golden = of_benchmarks("golden")
small_calls = of_benchmarks("small_calls")


def loop(kernel, widest=512, share=1.0):
    widths = {str(widest): 8}
    figures = {"numbers": "uint32", "instructions": 8, "widths": widths, "divisions": 0}
    return figures | {"kernel": kernel, "widest": widest, "share_of_widest": share}


def code(*loops, **others):
    figures = {"log2_size": 22, "log2_size_in_cache": 18, "nanoseconds_of_a_division": 0.3}
    found = {"cpu": "a processor", "is_read": True, "findings": 3, "pipelines": []}
    return figures | found | {"without_loop": [], "not_called": [], "loops": list(loops)} | others


def results(cpu="a processor"):
    machine = {"cpu": {"brand_raw": cpu}, "cores": 2, "system": "Linux", "versions": {}}
    return table.Results(machine | {"load": 0, "load_after": 0, "python_version": "3.11"}, [])


def test_what_is_said_of_narrow_loops_follows_from_them():
    loops = [
        loop("encode_array"),
        loop("find_extremes", 256),
        loop("render_part"),
        loop("square_part", share=0.4),
        loop("look_up", 0),
    ]
    said = page.narrow_kernels({"loops": loops})
    assert said == "`find_extremes`,\n`look_up`,\n`square_part`"
    assert page.narrow_kernels({"loops": loops[:1]}) == "none"


def test_what_is_said_of_a_kernel_is_said_only_if_it_was_read():
    assert "made of formulas" in page.loops_in_words(code(loop("encode_array")))


def test_a_kernel_that_ran_is_not_said_not_to_have():
    said = page.loops_in_words(code(loop("encode_array"), without_loop=["b"], not_called=["c"]))
    assert "No loop was found in `b`." in said
    assert "no pipeline runs them: `c`." in said
    assert "no pipeline runs them" not in page.loops_in_words(code(loop("encode_array")))


def test_of_a_processor_that_is_not_read_nothing_is_said():
    said = page.speed_page(results(), code(is_read=False))
    assert "not read on this processor" in said
    assert "full vectors, or with less" not in said


def test_figures_in_the_text_are_those_that_are_used(monkeypatch):
    monkeypatch.setattr(page, "DIVIDING", 0.25)
    monkeypatch.setattr(page, "WAITING", 0.75)
    monkeypatch.setattr(page, "SHOWN", 5)
    said = page.speed_page(results(), code(loop("encode_array")))
    for text in ("more than 25% of", "than\n75% of", "slowest 5", "found 3 times"):
        assert text in said


def test_two_machines_make_no_page():
    with pytest.raises(ValueError, match="of 'another', and the machine code of 'a processor'"):
        page.speed_page(results("another"), code(loop("encode_array")))


@pytest.mark.parametrize(
    ("large", "in_cache", "dividing", "bound"),
    [
        (1.0, 0.5, None, "memory"),
        (1.0, 0.9, None, "not clear"),
        (1.0, 0.9, 0.5, "division"),
        (1.0, 0.9, 0.4, "instructions"),
    ],
)
def test_bounds(large, in_cache, dividing, bound):
    assert machine_code.bound_of(large, in_cache, dividing) == bound


def test_a_bound_that_is_not_the_same_each_time_is_not_clear():
    assert machine_code.agreed([("k", "memory")] * 3) == "memory"
    assert machine_code.agreed([("k", "memory"), ("k", "division")]) == "not clear"
    assert machine_code.agreed([("k", "memory"), ("other", "memory")]) == "not clear"


def test_loops_of_other_processors_are_not_read(monkeypatch):
    monkeypatch.setattr(machine_code.platform, "machine", lambda: "aarch64")
    assert machine_code.loops() == []


def test_what_is_compared_is_said_of_each_row_with_peers():
    """Numbers where the row is about them; scales where there are such of blocks."""
    from benchmarks.all_rows import ROWS

    for row in ROWS:
        name = row.operation
        if "decode" in name or "dequantize" in name or "back" in name:
            assert row.compared == "numbers", name
        elif name.startswith("mor"):
            assert "outputs" in row.compared or "eager torch" not in row.contenders, name
        elif name.startswith(("NVFP4", "MX", "int4", "int8 of", "uint")):
            peers = {n for n, c in row.contenders.items() if c.needs}
            assert "scales" in row.compared or not peers, name
        else:
            assert row.compared == ("bits" if name.startswith("matmul") else "codes"), name


def test_the_cost_of_golden_vectors_is_the_last_section():
    docs = Path(__file__).parent.parent / "docs"
    text, results = (docs / golden.PAGE).read_text(encoding="utf-8"), golden.read(docs)
    assert golden.with_section(text, results) == text
    results["seconds"]["golden make"]["processor"] = 1234.5
    other = golden.with_section(text, results)
    assert "| 1234 s |" in other
    assert golden.with_section(other, golden.read(docs)) == text


def test_the_section_on_small_calls_has_its_figures():
    docs = Path(__file__).parent.parent / "docs"
    text, results = (docs / small_calls.PAGE).read_text(encoding="utf-8"), small_calls.read(docs)
    assert small_calls.with_section(text, results) == text
    results["ratios"]["128"]["mor"] = 987.6
    other = small_calls.with_section(text, results)
    assert "| `mor` | 987.6 |" in other
    assert "Farthest from its limit is `mor`, 987.6 times" in other
    assert small_calls.with_section(other, small_calls.read(docs)) == text
    assert golden.with_section(other, golden.read(docs)) == other
