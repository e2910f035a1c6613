"""The cost of the largest sweeps on a GPU: by the stored rates, or at least so much."""

import pytest
from extras import of_benchmarks

scale = of_benchmarks("scale")
gpu_rates = of_benchmarks("gpu_rates")
gpu_page = of_benchmarks("gpu_page")
rows = of_benchmarks("rows")
table = of_benchmarks("table")

KEPT = """{"gpu": "a GPU", "side": 4096, "nanoseconds": {
 "quantize with error sums, bf16": 0.5, "encode to e4m3 with random bits, f32": 0.25,
 "mor, tensor": %s}}"""


@pytest.fixture
def results():
    """Return a run in which every number takes a nanosecond."""
    from benchmarks.all_rows import ROWS

    machine = {"cores": 2}
    found = {
        row.operation: {name: rows.Measured(name, 1e-9, 1) for name in row.contenders}
        for row in ROWS
    }
    return table.Results(machine, [table.Line(row, found[row.operation]) for row in ROWS])


@pytest.fixture
def page_of(results, monkeypatch):
    monkeypatch.setattr(scale, "nanoseconds_of_a_digest", lambda: 0.5)
    monkeypatch.setattr(scale, "seconds_of_handing_out", lambda: 1e-4)
    return lambda rates: scale.as_page(results, "a machine", rates)


def test_without_rates_the_page_says_so(page_of, tmp_path):
    said = page_of(gpu_rates.read(tmp_path / "absent.json"))
    assert "For the GPU there is no rate yet" in said
    assert "one GPU (H200: not yet measured)" in said
    assert "| at least 58.6 s |" in said


@pytest.mark.parametrize(("deciding", "checkpoint"), [(1e-6, "31.2 s"), (1.0, "16.7 min")])
def test_with_rates_the_page_reckons_with_them(page_of, tmp_path, deciding, checkpoint):
    """The link is a bound still, where numbers have to come over it."""
    (tmp_path / "kept.json").write_text(KEPT % deciding)
    said = page_of(gpu_rates.read(tmp_path / "kept.json"))
    assert "no rate yet" not in said
    assert "one GPU (a GPU) |" in said
    assert "4,096 x 4,096" in said
    lasts = [line.split(" | ")[-1] for line in said.splitlines() if line.startswith("| e")]
    assert lasts == ["2.15 s |", "19.5 h |"]
    assert f"| {checkpoint} |" in said
    assert "at least" not in said


def test_what_is_written_can_be_read(tmp_path):
    speed = gpu_page.Speed("mor, tensor", 0.5, 10**9, 1e12, 0.5, None, None)
    gpu_rates.write(tmp_path / "kept.json", "a GPU", 64, [speed])
    assert gpu_rates.read(tmp_path / "kept.json") == ("a GPU", 64, {"mor, tensor": 0.5})
