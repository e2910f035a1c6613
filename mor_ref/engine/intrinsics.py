"""The few LLVM instructions that Numba's typing keeps from us.

Numba types the result of an operation on 32-bit integers as 64 bits wide. Sums, differences and
logic are narrowed again by a cast; a shift to the right by a count that is not a constant is not,
and halves the width of the vectors. These functions work in the width of their first argument.
"""

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic


@intrinsic
def shift_right(typing_context, value, count):
    """Shift right without the sign; `count` is below the width."""
    return value(value, value), lambda _, builder, __, args: builder.lshr(*args)


@intrinsic
def shift_left(typing_context, value, count):
    """Shift left; `count` is below the width."""
    return value(value, value), lambda _, builder, __, args: builder.shl(*args)


@intrinsic
def sign_mask(typing_context, value):
    """Return all ones if the top bit is set, else 0."""

    def codegen(_, builder, __, args):
        (word,) = args
        return builder.ashr(word, word.type(word.type.width - 1))

    return value(value), codegen


@intrinsic
def float_of(typing_context, bits):
    """Return the binary32 number of these bits."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(bits), codegen


@intrinsic
def bits_of(typing_context, number):
    """Return the bits of a binary32 number."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(32))

    return types.uint32(number), codegen


@intrinsic
def fused_product(typing_context, a, b, c):
    """Return a * b + c, rounded once; without an instruction for it, LLVM calls fmaf."""
    return a(a, b, c), lambda _, builder, __, args: builder.fma(*args)


@intrinsic
def double_of(typing_context, bits):
    """Return the binary64 number of these bits."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(bits), codegen


@intrinsic
def bits_of_double(typing_context, number):
    """Return the bits of a binary64 number."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(64))

    return types.uint64(number), codegen


@intrinsic
def leading_zeros(typing_context, word):
    """Return the number of zeros above the highest one; the width if there is none."""

    def codegen(_, builder, __, args):
        return builder.ctlz(args[0], ir.IntType(1)(0))

    return word(word), codegen


PREFETCHED = 64  # elements at once


@intrinsic
def prefetch_block(typing_context, array, index):
    """Ask for the memory of elements from array[index] on, which may lie beyond the end."""

    def codegen(context, builder, signature, args):
        base = context.make_array(array)(context, builder, args[0]).data
        i8, i32 = ir.IntType(8), ir.IntType(32)
        start = builder.bitcast(builder.gep(base, [args[1]]), i8.as_pointer())
        instruction_type = ir.FunctionType(ir.VoidType(), [start.type, i32, i32, i32])
        instruction = builder.module.declare_intrinsic(
            "llvm.prefetch", [start.type], instruction_type
        )
        to_read, into_second_level, data = i32(0), i32(2), i32(1)
        # As many cache lines of 64 bytes as an element has bytes.
        for line in range(array.dtype.bitwidth // 8):
            address = builder.gep(start, [ir.IntType(64)(line * 64)])
            builder.call(instruction, [address, to_read, into_second_level, data])
        return context.get_dummy_value()

    return types.void(array, index), codegen


LANES = 16  # elements of a vector: as many as a tile of NVFP4 has


def _lanes(context, builder, array, words, index):
    """Return a pointer to the vector of elements from an index on, and its type."""
    base = context.make_array(array)(context, builder, words).data
    vector = ir.VectorType(base.type.pointee, LANES)
    return builder.bitcast(builder.gep(base, [index]), vector.as_pointer()), vector


@intrinsic
def largest_of_lanes(typing_context, words, index):
    """Return the largest of the unsigned words of a vector, which lies within the array.

    LLVM unrolls a loop of sixteen steps before it would make vectors of it.
    """

    def codegen(context, builder, signature, args):
        place, vector = _lanes(context, builder, words, *args)
        element = vector.element
        name = f"llvm.vector.reduce.umax.v{LANES}i{element.width}"
        kind = ir.FunctionType(element, [vector])
        largest = cgutils.get_or_insert_function(builder.module, kind, name)
        return builder.call(largest, [builder.load(place, align=element.width // 8)])

    return words.dtype(words, index), codegen


@intrinsic
def fill_lanes(typing_context, numbers, index, number):
    """Write a number to all elements of a vector, which lies within the array."""

    def codegen(context, builder, signature, args):
        array, start, value = args
        place, vector = _lanes(context, builder, numbers, array, start)
        first = builder.insert_element(vector(ir.Undefined), value, ir.IntType(32)(0))
        zeros = ir.VectorType(ir.IntType(32), LANES)(None)
        alike = builder.shuffle_vector(first, vector(ir.Undefined), zeros)
        builder.store(alike, place, align=numbers.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(numbers, index, number), codegen


@intrinsic
def use_full_vectors(typing_context):
    """Compile the calling function for the widest vectors that the processor has.

    LLVM keeps to 256 bits on most processors with AVX-512, out of fear for their clock rate;
    loops of integers gain a quarter from 512.
    """

    def codegen(context, builder, signature, args):
        # llvmlite's list of known attributes lacks this one; its set takes it all the same.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.void(), codegen
