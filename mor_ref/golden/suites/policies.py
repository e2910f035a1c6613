"""Whole tensors under the policies."""

from collections.abc import Iterator

from mor_ref.golden.suite import Case, Size, Suite, expected, given
from mor_ref.golden.suites.tensors import Tensor, joined, listed, sum_fields, tensors
from mor_ref.golden.suites.turning_points import turning_points
from mor_ref.partition import Cut
from mor_ref.recipes import POLICIES, SCALINGS, Scaling


def _policy_cases(size: Size) -> Iterator[Case]:
    blocks: list[Cut] = [(128, 128), (8, 16), "row"]
    for tensor in tensors(size):
        for k, policy in enumerate(POLICIES):
            for block in blocks:
                yield _mixed(tensor, policy, block, SCALINGS[k % 3] if block == "row" else "gam")
    for tensor in turning_points():
        for policy in POLICIES:
            yield _mixed(tensor, policy, (128, 128), "gam")


def _mixed(tensor: Tensor, policy: str, block: Cut, scaling: Scaling) -> Case:
    parameters = {
        "policy": policy, "scaling": scaling, "block": listed(block), "source": tensor.source,
    }  # fmt: skip
    name = f"{tensor.name}.{policy}.{scaling}.{joined(block)}"
    return Case(name, parameters, {"x": tensor.x})


SUITES = (
    Suite(
        "policies",
        "Tensors under the four policies",
        "mor",
        ("MOR-005",),
        (
            given("x", "source", "the tensor"),
            expected("amax", "f32", "for each unit", "SCL-001"),
            expected("amin", "f32", "for each unit", "MOR-004"),
            *(
                field
                for name in ("e4m3", "e5m2", "nvfp4")
                for field in sum_fields(f"{name}.", f", under {name}")
            ),
            expected("choice", "u8", "for each unit, the rung that it takes", "MOR-001"),
            expected("output", "bf16", "the tensor that comes out", "MOR-006", "QNT-003"),
        ),
        _policy_cases,
    ),
)
