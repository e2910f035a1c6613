"""Public functions where torch compiles or traces: the same bits, or a refusal that says why."""

import ml_dtypes
import numpy as np
import pytest
from extras import imported

import mor_ref

torch = imported("torch")

X = torch.linspace(-3, 3, 64).reshape(4, 16)
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


@pytest.fixture
def forgetful():
    """Nothing is compiled before or stays so."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


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
    with pytest.raises(TypeError, match="without numbers, .*; call mor_ref outside of what is tra"):
        run()
