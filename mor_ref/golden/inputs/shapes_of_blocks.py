"""Tensors that end in their blocks, with special numbers, and random ones."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mor_ref.definitions.block_formats import BlockFormat
from mor_ref.definitions.blocks import Cut
from mor_ref.golden.inputs.edges import Bits, bell, narrowed
from mor_ref.golden.inputs.tensors import Tensor
from mor_ref.golden.model.suite import Size

Shape = tuple[int, int]
_NAMED_SIDE = 40  # numbers along a side that the tensor gives a block
_SIGN = np.uint32(0x80000000)
_LARGE = np.uint32(0x42280000)  # 42: many times the numbers next to it
_FAR = (130, 160)  # sides of a tensor whose last numbers only a whole reduction sees
_SPECIAL = {
    "nan": 0x7FC00000,
    "negative_nan": 0xFFC12345,
    "signalling_nan": 0x7F800001,
    "infinity": 0x7F800000,
    "negative_infinity": 0xFF800000,
    "largest": 0x7F7FFFFF,
}


@dataclass(frozen=True)
class Parts:
    """How tensors are cut: into blocks, below larger parts. Each has at most so many numbers."""

    block: Cut
    above: tuple[Cut, ...] = ()
    most: int = 1 << 15

    @property
    def sides(self) -> Shape:
        """The sides of a block, of a small tensor if the tensor gives them."""
        if isinstance(self.block, str):
            return {"row": (1, _NAMED_SIDE), "column": (_NAMED_SIDE, 1)}.get(self.block, (4, 16))
        return self.block


def parts_of(block_format: BlockFormat) -> Parts:
    """Return the blocks of a block format, and the parts of its scales above theirs."""
    return Parts(block_format.block, tuple(scale.over for scale in block_format.scales[:-1]))


def shapes(parts: Parts) -> list[Shape]:
    """Return shapes of one number, of whole blocks, and of blocks that the tensor cuts.

    A shape of too many numbers has another one in its place, whose other side is short.
    """
    height, width = parts.sides
    above = [over for over in parts.above if not isinstance(over, str)]
    wanted = [
        (1, 1), (height, width), (1, 2 * width + 3), (height + 1, 3), (2 * height + 1, width + 1),
        (height, max(width - 1, 1)), (max(height - 1, 1), width + max(width // 2, 1)), (5, 37),
        *((rows + 1, columns + width + 1) for rows, columns in above),
    ]  # fmt: skip
    return [*dict.fromkeys(_small(shape, parts.most) for shape in wanted)]


def _small(shape: Shape, most: int) -> Shape:
    """Return a shape of few numbers: its longer side stays if it can."""
    short, long = sorted(shape)
    while short * long > most:
        short, long = (max(short // 2, 2), long) if short > 2 else (short, long // 2)
    return (short, long) if shape[0] <= shape[1] else (long, short)


def in_each_shape(parts: Parts, size: Size) -> Iterator[Tensor]:
    """Yield tensors of each shape, and of each again for each factor above 1."""
    own = shapes(parts)
    for n in range(len(own) * size.factor):
        (rows, columns), stream = own[n % len(own)], 500 + 2 * n
        word = f"{rows}x{columns}" if n < len(own) else f"random_{n}"
        for k, source in enumerate(("f32", ("bf16", "f16")[n % 2])):
            bits = _activations(parts, (rows, columns), size, stream + k)
            yield Tensor(f"{word}.{source}", source, narrowed(bits, source))


def with_specials(parts: Parts, size: Size) -> Iterator[Tensor]:
    """Yield tensors with a special number each, of zeros, and at the ends of binary32."""
    height, width = parts.sides
    shape = _small((height + 1, 2 * width + width // 2 + 1), parts.most)
    base = _activations(parts, shape, size, 490)
    columns = shape[1]
    middle = min(width, columns - 1) + (columns - 1 - min(width, columns - 1)) // 3
    for n, (name, bits) in enumerate(_SPECIAL.items()):
        inside, at_end = base.copy(), base.copy()
        inside[0, middle], at_end[-1, -1] = bits, bits
        yield Tensor(f"{name}.f32", "f32", inside)
        if n % 3 == 0:
            yield Tensor(f"{name}_at_end.f32", "f32", at_end)
            source = ("bf16", "f16")[n // 3 % 2]
            yield Tensor(f"{name}.{source}", source, narrowed(inside, source))
    every = base.copy()
    places = np.linspace(0, base.size - 1, len(_SPECIAL)).astype(int)
    every.reshape(-1)[places] = [*_SPECIAL.values()]
    zeros = base.copy()
    zeros[:height, :width] &= _SIGN
    sparse = np.zeros_like(base)
    sparse[:: max(height, 2), ::width] = base[:: max(height, 2), ::width]
    sparse[-1, -1] = base[-1, -1]
    for name, tensor in (
        ("every_special", every),
        ("only_nan", np.full_like(base, _SPECIAL["nan"])),
        ("only_infinity", base & _SIGN | np.uint32(_SPECIAL["infinity"])),
        ("zeros", zeros),
        ("only_zeros", base & _SIGN),
        ("sparse", sparse),
        ("equal", base & _SIGN | np.uint32(0x3FC00000)),
        ("subnormal", base & np.uint32(0x807FFFFF)),
        ("tiny", base & np.uint32(0x80FFFFFF)),
        ("huge", base & np.uint32(0x80FFFFFF) | np.uint32(0x7E000000)),
    ):
        yield Tensor(f"{name}.f32", "f32", tensor)


def with_lanes(parts: Parts, size: Size) -> Iterator[Tensor]:
    """Yield tensors whose blocks have their largest number, or a NaN, in each place in turn.

    In wide blocks these are the first, the last, the middle, and powers of two. So are the places
    of the largest number of a part above, each in a tensor of its own.
    """
    height, width = parts.sides
    places = _lanes(height * width)
    small = bell(height * width, size.seed, 480) & np.uint32(0x7FFFFF) | np.uint32(0x3E000000)
    for name, bits in (("lanes", _LARGE), ("lanes_nan", _SPECIAL["nan"])):
        blocks = np.tile(small, (len(places), 1))
        blocks[np.arange(len(places)), places] = bits
        tensor = blocks.reshape(-1, height, width).reshape(-1, width)
        if tensor.size <= parts.most:
            yield Tensor(f"{name}.f32", "f32", np.ascontiguousarray(tensor))
    if parts.above:
        wide = 130 if height == 1 else 2 * width + 1
        sides = _small((3 * height, wide), parts.most)
        for place in _lanes(sides[0] * sides[1], most=0):
            yield Tensor(f"largest_at_{place}.f32", "f32", _largest_at(sides, place, size))
    if "tensor" in parts.above and _FAR[0] * _FAR[1] <= parts.most:
        last = _FAR[0] * _FAR[1] - 1
        yield Tensor("largest_far.f32", "f32", _largest_at(_FAR, last, size))


def _largest_at(sides: Shape, place: int, size: Size) -> Bits:
    """Return numbers whose largest is at a place, and some binades above the others."""
    bits = bell(sides[0] * sides[1], size.seed, 481) & np.uint32(0x7FFFFF) | np.uint32(0x3E000000)
    bits[place] = _LARGE
    return bits.reshape(sides)


def _lanes(count: int, most: int = 64) -> Bits:
    """Return places of a block: all of a narrow one, else both ends and powers of two."""
    if count <= most:
        return np.arange(count, dtype=np.uint32)
    powers = 1 << np.arange(count.bit_length())
    places = np.concatenate([powers, powers - 1, [0, count // 2, count - 2, count - 1]])
    return np.unique(places[(places >= 0) & (places < count)]).astype(np.uint32)


def _activations(parts: Parts, shape: Shape, size: Size, stream: int) -> Bits:
    """Return numbers like activations. Neighbouring blocks have other magnitudes, and ends too."""
    rows, columns = shape
    height, width = parts.sides
    bits = bell(rows * columns, size.seed, stream).reshape(shape).copy()
    down, right = np.arange(rows)[:, np.newaxis] // height, np.arange(columns) // width
    bits += ((3 * down + 5 * right) % 7).astype(np.uint32) << np.uint32(23)
    bits[::3, -1] += np.uint32(3 << 23)
    bits[-1, 1::3] += np.uint32(2 << 23)
    return bits
