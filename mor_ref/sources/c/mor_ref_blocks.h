/* The steps of block formats in C99, C++17 and CUDA: chapter block_formats.
 *
 * `mor-ref sources --recipe` writes a header for a block format, whose formulas call these steps. Numbers are floats,
 * and each operation is one rounding to binary32 (BLF-002). Nothing is allocated, and mor_ref.c is not needed.
 *
 * In CUDA, the functions are for the host and for kernels. The processor must not flush subnormal numbers to zero:
 * leave out -ffast-math, and -use_fast_math and -ftz=true of nvcc.
 */
#ifndef MOR_REF_BLOCKS_H
#define MOR_REF_BLOCKS_H

#include "mor_ref.h"

#ifdef __CUDA_ARCH__
#ifndef MOR_ADD
#define MOR_ADD(a, b) __fadd_rn(a, b)
#define MOR_SUBTRACT(a, b) __fsub_rn(a, b)
#define MOR_MULTIPLY(a, b) __fmul_rn(a, b)
#define MOR_DIVIDE(a, b) __fdiv_rn(a, b)
#endif
#else
#include <float.h>
#include <string.h>
#if defined(__FAST_MATH__) || defined(__RECIPROCAL_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(_M_FP_FAST)
#error "block formats need each operation as it is written; leave out -ffast-math and its parts"
#endif
#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "block formats need NaN and infinity; leave out -ffinite-math-only"
#endif
#if FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16
#error "block formats need operations of float that are rounded to float; give -msse2 -mfpmath=sse"
#endif
#ifndef MOR_ADD
#define MOR_ADD(a, b) ((a) + (b))
#define MOR_SUBTRACT(a, b) ((a) - (b))
#define MOR_MULTIPLY(a, b) mor_product(a, b)
#define MOR_DIVIDE(a, b) ((a) / (b))
#endif
#endif

#ifndef MOR_FUNCTION
#ifdef __CUDACC__
#define MOR_FUNCTION static inline __host__ __device__
#else
#define MOR_FUNCTION static inline
#endif
#endif

/* ---- Operations ---- */

#ifndef __CUDA_ARCH__
#if defined(_MSC_VER) && !defined(__clang__)
#pragma fp_contract(off)
#elif !defined(__GNUC__)
#pragma STDC FP_CONTRACT OFF
#endif
/* A compiler that fuses a product with a sum leaves out a rounding. gcc and clang do so under some options, and
 * without a pragma that stops both; they cannot look through an empty assembly. */
MOR_FUNCTION float mor_product(float a, float b) {
    float product = a * b;
#if defined(__GNUC__) && defined(__x86_64__)
    __asm__("" : "+x"(product));
#elif defined(__GNUC__) && defined(__aarch64__)
    __asm__("" : "+w"(product));
#elif defined(__GNUC__)
    __asm__("" : "+m"(product));
#endif
    return product;
}
#endif

MOR_FUNCTION uint32_t mor_bits_of_float(float x) {
#ifdef __CUDA_ARCH__
    return __float_as_uint(x);
#else
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
#endif
}

MOR_FUNCTION float mor_float_of_bits(uint32_t bits) {
#ifdef __CUDA_ARCH__
    return __uint_as_float(bits);
#else
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
#endif
}

#define MOR_INFINITE_BITS UINT32_C(0x7F800000)
#define MOR_NAN_BITS UINT32_C(0x7FFFFFFF)

MOR_FUNCTION float mor_abs(float a) { return mor_float_of_bits(mor_bits_of_float(a) & UINT32_C(0x7FFFFFFF)); }
MOR_FUNCTION bool mor_is_nan(float a) { return mor_bits_of_float(mor_abs(a)) > MOR_INFINITE_BITS; }
MOR_FUNCTION float mor_one_nan(float a) { return mor_is_nan(a) ? mor_float_of_bits(MOR_NAN_BITS) : a; }
MOR_FUNCTION bool mor_is_negative(float a) { return !mor_is_nan(a) && mor_bits_of_float(a) >> 31; }

MOR_FUNCTION float mor_less(float a, float b) { return a < b ? 1.0f : 0.0f; }
MOR_FUNCTION float mor_greater(float a, float b) { return a > b ? 1.0f : 0.0f; }
MOR_FUNCTION float mor_or(float a, float b) { return a != 0.0f ? a : b; }
MOR_FUNCTION float mor_if(float test, float a, float b) { return test != 0.0f ? a : b; }
MOR_FUNCTION float mor_min(float a, float b) { return a > b ? b : a; }
MOR_FUNCTION float mor_max(float a, float b) { return a < b ? b : a; }
MOR_FUNCTION float mor_square(float a) { return MOR_MULTIPLY(a, a); }

/* A magnitude that is not zero: significand * 2^(exponent - 23), with 2^23 <= significand < 2^24. */
typedef struct {
    uint32_t significand;
    int exponent;
} mor_binary;

MOR_FUNCTION mor_binary mor_binary_of(uint32_t magnitude) {
    mor_binary found;
    found.significand = magnitude & UINT32_C(0x7FFFFF);
    found.exponent = (int)(magnitude >> 23) - 127;
    if (magnitude >> 23) {
        found.significand |= UINT32_C(0x800000);
        return found;
    }
    for (found.exponent = -126; found.significand >> 23 == 0; found.exponent--) found.significand <<= 1;
    return found;
}

MOR_FUNCTION float mor_pow2(float a, float turn) {
    const uint32_t magnitude = mor_bits_of_float(mor_abs(a));
    if (magnitude == 0 || magnitude >= MOR_INFINITE_BITS) return a;
    const mor_binary own = mor_binary_of(magnitude);
    const float significand = mor_float_of_bits(UINT32_C(0x3F800000) | (own.significand & UINT32_C(0x7FFFFF)));
    const int exponent = own.exponent + (significand >= turn);
    const uint32_t bits = exponent < -126 ? UINT32_C(1) << (exponent + 149) : (uint32_t)(exponent + 127) << 23;
    return mor_float_of_bits(bits | (mor_bits_of_float(a) & UINT32_C(0x80000000)));
}

/* ---- Formats: chapters formats, encoding and decoding ---- */

MOR_FUNCTION mor_format mor_format_of(int exponent_bits, int mantissa_bits, int bias, mor_specials specials,
                                      mor_sign sign) {
    mor_format made;
    made.name = "";
    made.exponent_bits = exponent_bits;
    made.mantissa_bits = mantissa_bits;
    made.bias = bias;
    made.specials = specials;
    made.sign = sign;
    return made;
}

MOR_FUNCTION uint32_t mor_magnitude_bits(mor_format f) {
    return (UINT32_C(1) << (f.exponent_bits + f.mantissa_bits)) - 1;
}
MOR_FUNCTION uint32_t mor_sign_bit(mor_format f) {
    return f.sign == MOR_UNSIGNED ? 0 : UINT32_C(1) << (f.exponent_bits + f.mantissa_bits);
}
MOR_FUNCTION uint32_t mor_largest_of(mor_format f) {
    if (f.specials == MOR_IEEE) return (mor_magnitude_bits(f) >> f.mantissa_bits << f.mantissa_bits) - 1;
    return mor_magnitude_bits(f) - (f.specials == MOR_FN);
}

/* BLF-014: to nearest, ties toward zero, which elements alone have. */
#define MOR_RNZ ((mor_rounding)7)

/* ENC-003, ENC-005, BLF-014: whether a magnitude k + rest / 2^shift becomes k + 1. */
MOR_FUNCTION bool mor_goes_up(uint32_t k, uint32_t rest, int shift, bool is_negative, mor_rounding rounding) {
    const uint32_t half = shift ? UINT32_C(1) << (shift - 1) : 0;
    if (rest == 0) return false;
    if (rounding == MOR_RNZ) return rest > half;
    switch (rounding) {
    case MOR_RNA: return rest >= half;
    case MOR_RTZ: return false;
    case MOR_RTP: return !is_negative;
    case MOR_RTN: return is_negative;
    case MOR_RTO: return k % 2 == 0;
    case MOR_DEFAULT:
    case MOR_RNE: break;
    }
    return rest > half || (rest == half && k % 2 == 1);
}

/* ENC-001 to ENC-014: the code of x, satfinite and canonical. */
MOR_FUNCTION uint32_t mor_code_of(float x, mor_format f, mor_rounding rounding) {
    const uint32_t magnitude = mor_bits_of_float(mor_abs(x));
    const bool is_negative = mor_bits_of_float(x) >> 31 && f.sign != MOR_UNSIGNED;
    uint32_t code = 0;
    if (magnitude > MOR_INFINITE_BITS) {
        if (f.specials == MOR_NONE) return f.sign == MOR_TWOS_COMPLEMENT ? 0 : mor_largest_of(f);
        return f.specials == MOR_FNUZ ? mor_sign_bit(f) : mor_magnitude_bits(f);
    }
    if (magnitude == MOR_INFINITE_BITS) {
        code = mor_largest_of(f);
    } else if (magnitude != 0) {
        const mor_binary own = mor_binary_of(magnitude);
        const bool is_power_of_two = f.mantissa_bits == 0;
        const int smallest = is_power_of_two ? -f.bias : 1 - f.bias;
        const int p = own.exponent > smallest ? own.exponent : smallest;
        int shift = p - own.exponent + 23 - f.mantissa_bits;
        if (shift > 31) shift = 31; /* all of it is below a half */
        const uint32_t k = own.significand >> shift, rest = own.significand & ((UINT32_C(1) << shift) - 1);
        const bool up = mor_goes_up(k, rest, shift, is_negative, rounding);
        if (!is_power_of_two) code = ((uint32_t)(p - smallest) << f.mantissa_bits) + k + up;
        else if (own.exponent >= smallest) code = (uint32_t)(p - smallest) + up;
        if (code > mor_largest_of(f)) code = mor_largest_of(f);
    }
    if (!is_negative || (code == 0 && f.specials == MOR_FNUZ)) return code;
    if (f.sign == MOR_TWOS_COMPLEMENT) return code ? 2 * mor_sign_bit(f) - code : 0;
    return code | mor_sign_bit(f);
}

/* FMT-001 to FMT-008: the number of a code. */
MOR_FUNCTION float mor_number_of(uint32_t code, mor_format f) {
    const uint32_t magnitude = code & mor_magnitude_bits(f), infinity = mor_largest_of(f) + 1;
    const uint32_t sign = code & mor_sign_bit(f) ? UINT32_C(0x80000000) : 0, one = UINT32_C(1) << f.mantissa_bits;
    if (f.specials == MOR_IEEE && magnitude >= infinity)
        return mor_float_of_bits(magnitude == infinity ? sign | MOR_INFINITE_BITS : MOR_NAN_BITS);
    if ((f.specials == MOR_FN && magnitude == mor_magnitude_bits(f))
        || (f.specials == MOR_FNUZ && code == mor_sign_bit(f)))
        return mor_float_of_bits(MOR_NAN_BITS);
    int field = (int)(magnitude >> f.mantissa_bits);
    uint32_t significand = magnitude & (one - 1);
    if (f.sign == MOR_TWOS_COMPLEMENT) significand = sign ? one - magnitude : magnitude;
    else if (field || f.mantissa_bits == 0) significand |= one;
    if (field == 0 && f.mantissa_bits != 0) field = 1;
    if (significand == 0) return mor_float_of_bits(sign);
    int exponent = field - f.bias - f.mantissa_bits + 150; /* of 2^23, in binary32 */
    for (; significand >> 23 == 0; exponent--) significand <<= 1;
    if (exponent < 1) return mor_float_of_bits(sign | significand >> (1 - exponent));
    return mor_float_of_bits(sign | (uint32_t)exponent << 23 | (significand & UINT32_C(0x7FFFFF)));
}

MOR_FUNCTION float mor_rounded(float x, mor_format f, mor_rounding rounding) {
    return mor_number_of(mor_code_of(x, f, rounding), f);
}

/* ---- Parts of a tensor: chapter blocks ---- */

/* A part, as mor_ref.h has rectangles. */
typedef struct {
    const float *x;
    size_t rows, columns, stride;
} mor_part;

/* A tensor in parts: `height` and `width` are the sides of one, and there are `down` times `across`. */
typedef struct {
    size_t rows, columns, height, width, down, across;
} mor_parts;

MOR_FUNCTION size_t mor_side(uint64_t side, size_t whole) {
    if (whole == 0) return 1;
    return side == 0 || side > whole ? whole : (size_t)side;
}

/* BLK-001, BLK-002: a side of 0 is that of the tensor. */
MOR_FUNCTION mor_parts mor_parts_of(size_t rows, size_t columns, uint64_t height, uint64_t width) {
    mor_parts cut;
    cut.rows = rows;
    cut.columns = columns;
    cut.height = mor_side(height, rows);
    cut.width = mor_side(width, columns);
    cut.down = rows / cut.height + (rows % cut.height != 0);
    cut.across = columns / cut.width + (columns % cut.width != 0);
    return cut;
}

MOR_FUNCTION mor_part mor_part_at(const float *x, const mor_parts *cut, size_t i, size_t j) {
    const size_t top = i * cut->height, left = j * cut->width;
    mor_part part;
    part.x = x + top * cut->columns + left;
    part.rows = cut->rows - top < cut->height ? cut->rows - top : cut->height;
    part.columns = cut->columns - left < cut->width ? cut->columns - left : cut->width;
    part.stride = cut->columns;
    return part;
}

/* The number of the part of another cut that has the part (i, j). */
MOR_FUNCTION size_t mor_part_above(const mor_parts *cut, size_t i, size_t j, const mor_parts *above) {
    return i * cut->height / above->height * above->across + j * cut->width / above->width;
}

/* ---- Amaxes and percentiles: BLF-003, BLF-007 ---- */

typedef enum { MOR_COUNT_FINITE, MOR_COUNT_NOT_NAN, MOR_COUNT_ALL } mor_counted;

/* How many numbers count and are at most a magnitude, and the largest of them; -1 with a NaN if all count. */
MOR_FUNCTION int64_t mor_count(const mor_part *part, mor_counted counted, uint32_t most, uint32_t *largest) {
    int64_t count = 0;
    *largest = 0;
    for (size_t i = 0; i < part->rows; i++)
        for (size_t j = 0; j < part->columns; j++) {
            const uint32_t magnitude = mor_bits_of_float(mor_abs(part->x[i * part->stride + j]));
            if (magnitude > MOR_INFINITE_BITS && counted == MOR_COUNT_ALL) return -1;
            if (magnitude > most || (magnitude == MOR_INFINITE_BITS && counted == MOR_COUNT_FINITE)) continue;
            if (magnitude > *largest) *largest = magnitude;
            count++;
        }
    return count;
}

MOR_FUNCTION float mor_amax_of(const mor_part *part, mor_counted counted) {
    uint32_t largest;
    if (mor_count(part, counted, MOR_INFINITE_BITS, &largest) < 0) largest = MOR_NAN_BITS;
    return mor_float_of_bits(largest);
}

/* The percentile of p / 10^4: the smallest magnitude that enough numbers are at most, searched in halves. */
MOR_FUNCTION float mor_percentile_of(const mor_part *part, mor_counted counted, uint32_t p) {
    uint32_t low = 0, high = MOR_INFINITE_BITS, largest;
    const int64_t count = mor_count(part, counted, high, &largest);
    const int64_t rank = (count * p + 999999) / 1000000;
    if (count < 0) return mor_float_of_bits(MOR_NAN_BITS);
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (mor_count(part, counted, middle, &largest) >= rank) high = middle;
        else low = middle + 1;
    }
    return mor_float_of_bits(low);
}

/* ---- Sums of errors: BLF-005 ---- */

#define MOR_MOST_ROWS ((size_t)1 << 24)

/* Sums of rows that are added in halves: row k comes in the order of its reversed bits, and so each sum meets its
 * partner at the top. */
typedef struct {
    float sums[25];
    uint32_t rows;
    int top;
} mor_row_sums;

MOR_FUNCTION uint32_t mor_padded_rows(size_t rows) {
    uint32_t whole = 1;
    while (whole < rows) whole *= 2;
    return whole;
}

MOR_FUNCTION size_t mor_row_in_halves(uint32_t k, uint32_t whole) {
    uint32_t row = 0;
    for (; whole > 1; whole /= 2, k /= 2) row = 2 * row + k % 2;
    return row;
}

MOR_FUNCTION void mor_add_row(mor_row_sums *to, float sum) {
    for (uint32_t k = to->rows; k % 2 == 1; k /= 2) sum = MOR_ADD(to->sums[--to->top], sum);
    to->sums[to->top++] = sum;
    to->rows++;
}

/* ---- Elements ---- */

typedef struct {
    uint32_t code;
    float v, y; /* the number of the code, and that of x */
} mor_block_element;

/* BLF-014: the code of a format that has a negative zero, which becomes the positive one. */
MOR_FUNCTION uint32_t mor_without_negative_zero(uint32_t code, mor_format f) {
    return code == mor_sign_bit(f) ? 0 : code;
}

#endif
