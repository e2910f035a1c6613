"""Public functions where torch compiles or traces: the same bits, or a refusal that says why."""

import ml_dtypes
import numpy as np
import pytest
from extras import imported, is_there, needs

import mor_ref
from mor_ref.analysis.analyze_tensor import analyze, settings_for

pytestmark = needs("torch")
torch = imported("torch") if is_there("torch") else None

X = torch and torch.linspace(-3, 3, 64).reshape(4, 16)
SETTINGS = settings_for("two_way", block="2x8")
CALLS = {
    "encode": lambda x: mor_ref.encode(x, "e4m3"),
    "decode": lambda x: mor_ref.decode(x.to(torch.uint8), "e4m3"),
    "quantize": lambda x: mor_ref.quantize(x, "e5m2", block=(2, 8)).codes,
    "dequantize": lambda x: mor_ref.quantize(x, "e4m3").dequantize(),
    "to bfloat16": lambda x: mor_ref.quantize(x, "e4m3").dequantize(ml_dtypes.bfloat16),
    "nvfp4": lambda x: mor_ref.quantize_nvfp4(x).dequantize(),
    "mx": lambda x: mor_ref.quantize_mx(x, "e2m1").dequantize(),
    "mor": lambda x: mor_ref.mor(x, "three_way", block=(2, 8)).output,
    "mor of bfloat16": lambda x: mor_ref.mor(x.to(torch.bfloat16), "nvfp4").output,
    "what mor tried": lambda x: mor_ref.mor(x).quantized["e4m3"].dequantize(),
}


READ = {
    "mean of each unit": lambda x: mor_ref.mor(x).error["e4m3"].mean_relative_error,
    "overall": lambda x: mor_ref.mor(x).error["e4m3"].overall,
    "shares": lambda x: mor_ref.mor(x, "three_way", block=(2, 8)).shares,
    "packed": lambda x: mor_ref.quantize_nvfp4(x).packed,
    "mor in words": lambda x: repr(mor_ref.mor(x)),
    "error sums in words": lambda x: repr(mor_ref.mor(x).error["e4m3"]),
    "quantize in words": lambda x: repr(mor_ref.quantize(x, "e4m3")),
    "nvfp4 in words": lambda x: repr(mor_ref.quantize_nvfp4(x)),
    "mx in words": lambda x: repr(mor_ref.quantize_mx(x, "e2m1")),
    "analysis": lambda x: repr(analyze(x, SETTINGS).report),
    "map": lambda x: analyze(x, SETTINGS).blocks.error,
}


@pytest.fixture
def forgetful():
    """Forget all compiled code, before the test and after it."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.tier("full")
@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("name", CALLS)
def test_torch_compile_calls_it_as_it_is(name):
    call, graphs = CALLS[name], []

    def backend(graph, _):
        graphs.append(graph)
        return graph.forward

    def program(x):
        y = x.abs() * 2
        return call(y), y + 1

    found, after = torch.compile(program, backend=backend)(X)
    expected = call(X.abs() * 2)
    assert isinstance(found, np.ndarray)
    assert found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes()
    assert torch.equal(after, X.abs() * 2 + 1)
    assert graphs, "torch compiled nothing"


@pytest.mark.tier("full")
@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("name", READ)
def test_torch_compile_reads_records_as_they_are(name):
    """And traces nothing of them: the graphs have the operations of the program alone."""
    read, operations = READ[name], []

    def backend(graph, _):
        nodes = (node for node in graph.graph.nodes if node.op.startswith("call"))
        operations.extend(node.name for node in nodes)
        return graph.forward

    def program(x):
        y = x.abs()
        return read(y), y + 1

    found, _ = torch.compile(program, backend=backend)(X)
    expected = read(X.abs())
    assert type(found) is type(expected)
    assert np.array_equal(found, expected)
    assert len(operations) == 2, operations


@pytest.mark.tier("full")
@pytest.mark.usefixtures("forgetful")
def test_a_call_before_torch_compile_changes_nothing():
    mor_ref.mor(X)
    compiled = torch.compile(lambda x: mor_ref.mor(x).output, backend="eager")
    assert np.array_equal(compiled(X), mor_ref.mor(X).output)


def fake():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode:
        return mode.from_tensor(X)


@pytest.mark.parametrize(
    "run",
    [
        lambda: mor_ref.mor(fake()),
        lambda: mor_ref.decode(fake().to(torch.uint8), "e4m3"),
        lambda: torch.vmap(lambda row: torch.from_numpy(mor_ref.quantize(row, "e4m3").codes))(X),
    ],
    ids=["fake", "fake codes", "vmap"],
)
def test_a_tensor_without_numbers_is_refused(run):
    with pytest.raises(TypeError, match="without numbers, .*; call mor_ref outside of traced"):
        run()
