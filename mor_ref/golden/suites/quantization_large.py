"""Large tensors quantized under every format and scaling, and tensors of few numbers."""

import itertools
from collections.abc import Iterator

from mor_ref.definitions.scales import SCALINGS
from mor_ref.golden.inputs.found_few import found_few
from mor_ref.golden.inputs.placed import End
from mor_ref.golden.suites.large import (
    TALLER,
    WIDER,
    LargeCase,
    digested,
    large_beyond_tiles,
    large_suite,
    largest_last,
    of_each_cut,
    of_few,
    of_groups,
)
from mor_ref.golden.suites.scales import SCALED

_GAM = {"scaling": "gam"}
_CUT = {"block": [4, 16], "group": "tensor"}
_LARGE = (
    LargeCase("e4m3.128x128", "bf16", (260, 330), 4481,
              {"format": "e4m3", **_GAM, "block": [128, 128], "group": "tensor"}),
    LargeCase("e5m2.row", "f32", (130, 140), 323,
              {"format": "e5m2", **_GAM, "block": "row", "group": "tensor"}),
    LargeCase("e4m3.tensor", "bf16", (150, 170), 1002,
              {"format": "e4m3", **_GAM, "block": "tensor", "group": "tensor"}),
    LargeCase("e4m3.32x32", "bf16", (150, 170), 1302,
              {"format": "e4m3", **_GAM, "block": [32, 32], "group": "tensor"}),
    LargeCase("wider.groups", "bf16", WIDER, 4,
              {"format": "e5m2", **_GAM, "block": [1, 1025], "group": [2, 16400]}),
    LargeCase("taller.row", "bf16", TALLER, 6,
              {"format": "e4m3", **_GAM, "block": "row", "group": "tensor"}),
    *largest_last(format="e4m3", **_GAM, block="tensor", group="tensor"),
)  # fmt: skip


def _every_format_and_scaling() -> Iterator[LargeCase]:
    for fmt, scaling in itertools.product(SCALED, SCALINGS):
        ends, pair = (End.LARGEST, End.INFINITY, End.NAN), {"format": fmt, "scaling": scaling}
        yield from of_each_cut(f"{fmt}.{scaling}", ends, **pair, group="tensor")
        if scaling == "gam":
            yield of_groups(f"{fmt}.gam", format=fmt, **_GAM)


LARGE = large_suite(
    "quantize_large",
    "Larger tensors quantized, and tensors of few numbers",
    "quantize",
    (
        *_LARGE,
        *_every_format_and_scaling(),
        *(of_few(*few) for few in found_few("quantize")),
        *large_beyond_tiles("e4m3.gam", {"format": "e4m3", **_GAM, **_CUT}),
    ),
    digested("amax", "mantissa", "exponent", "scale", "code", "y", "sum", "nonzero", "nonfinite"),
)
