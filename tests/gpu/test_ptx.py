"""PTX on a CPU against the GPU: the launches of the tests of `mor_ref.ptx`, bit for bit."""

import os

import pytest
from gpu import ptx_launches, ptx_repeats

pytestmark = pytest.mark.tier("gpu")
WORKERS = min(16, os.cpu_count() or 1)


def test_ptx_on_a_cpu_has_the_bits_of_the_gpu(gpu):
    """And results whose error PTX bounds are within the bound."""
    folder = ptx_launches.recorded()
    report = ptx_repeats.report(folder, gpu.capability, WORKERS)
    (folder / "report.txt").write_text(str(report), "utf-8")
    assert report.wrong == [], str(report)
    assert report.compared > report.refused.total()
