"""Shared exponents, levels and MoFQ next to eager torch."""

import mor_ref
from benchmarks import eager_schemes, inputs, peers
from benchmarks.rows import OURS, Contender, Ratio, Row

USUAL = 24
LIMITS = (Ratio(("eager torch",), at_least=5),)
OF_BF16 = (
    Ratio(
        ("eager torch",),
        at_least=5,
        bound="its fields are binary32, so it writes 22 bytes for a number, and torch writes 12: "
        "writing 22 bytes to pages that the system clears first takes 2.2 ns alone",
    ),
)
BLOCK = 32


def in_torch(call, which):
    """Return a contender whose codes are the result of that number."""

    def prepare(x):
        peers.torch()
        tensor = peers.as_tensor(x)
        return lambda: call(tensor)

    def bits(found):
        codes = found[which]
        width = 1 << USUAL // 2
        return (codes.view(peers.torch().uint8).numpy().reshape(width, -1),)

    return Contender(prepare, bits, needs="torch")


def rows():
    """Yield rows of tensors of binary32."""
    x = inputs.normal(USUAL)
    for kind, bits, shifts in (("mx9", 7, True), ("mx4", 2, True), ("bfp16", 7, False)):
        contenders = {
            OURS: Contender(
                lambda x, k=kind: lambda: mor_ref.quantize_shared(x, k, threads=1),
                lambda found: (found.codes,),
            ),
            "eager torch": in_torch(
                lambda x, b=bits, s=shifts: eager_schemes.torch_shared(x, b, shifts=s), 4
            ),
        }
        yield Row(f"{kind} of f32", x, contenders, LIMITS, compared="codes")
    for kind in ("lsq4", "seq2"):
        contenders = {
            OURS: Contender(
                lambda x, k=kind: lambda: mor_ref.quantize_levels(x, k, threads=1),
                lambda found: (found.codes,),
            ),
            "eager torch": in_torch(lambda x, k=kind: eager_schemes.torch_levels(x, k), 4),
        }
        yield Row(f"{kind} of f32, rows", x, contenders, LIMITS, compared="codes")
    contenders = {
        OURS: Contender(
            lambda x: lambda: mor_ref.quantize_levels(x, "lsq4", arithmetic="bf16", threads=1),
            lambda found: (found.codes,),
        ),
        "eager torch": in_torch(lambda x: eager_schemes.torch_levels(x, "lsq4"), 4),
    }
    narrow = inputs.normal(USUAL, inputs.BF16)
    yield Row("lsq4 of bf16, rows, in bf16", narrow, contenders, OF_BF16, compared="codes")
    contenders = {
        OURS: Contender(
            lambda x: lambda: mor_ref.mix_formats(x, threads=1), lambda found: (found.codes,)
        ),
        "eager torch": in_torch(eager_schemes.torch_mixture, 0),
    }
    yield Row("int8 or e4m3 of f32", x, contenders, LIMITS, compared="codes")
    contenders = {
        OURS: Contender(
            lambda x: lambda: mor_ref.mix_formats(x, block=(1, BLOCK), threads=1),
            lambda found: (found.codes,),
        ),
        "eager torch": in_torch(lambda x: eager_schemes.torch_block_mixture(x, BLOCK), 0),
    }
    yield Row("int8 or e4m3 of f32, blocks of 32", x, contenders, LIMITS, compared="codes")


ROWS = [*rows()]
