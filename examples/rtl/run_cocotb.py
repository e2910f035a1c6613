"""Runs e4m3_cocotb.py under Icarus; with a name such as PLANTED_BUG, defines it."""

import sys
from pathlib import Path

from cocotb_tools.runner import get_results, get_runner

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
runner = get_runner("icarus")
runner.build(
    sources=[HERE / "e4m3_encode.sv"],
    hdl_toplevel="e4m3_encode",
    build_dir="build/cocotb",
    build_args=["-g2012"],
    defines=dict.fromkeys(sys.argv[1:], 1),
    always=True,
    timescale=("1ns", "1ns"),
)
results = runner.test(
    hdl_toplevel="e4m3_encode", test_module="e4m3_cocotb", build_dir="build/cocotb"
)
tests, failed = get_results(results)
sys.stdout.write(f"{'FAIL' if failed else 'PASS'}: {failed} of {tests} tests failed\n")
sys.exit(failed > 0)
