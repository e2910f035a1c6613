// The chapter on integers with zero points: from extremes to scales, and from numbers to integers and back.
#pragma once
#include "numbers.cuh"

enum AffineApplication { MULTIPLIES, DIVIDES, FUSES, ADDS };
enum AffineConversion { SATURATES, TO_INT64, TO_INT32, CASTS };
enum AffineZeroScale { OF_LIMIT, OF_ONE, OF_RANGE };
enum AffineDtype { AS_BINARY32, AS_BFLOAT16, AS_BINARY16 };

// The choices of a profile and a grid. A grid that picks its sign is given as the signed one.
struct AffineRule {
  u32 application, conversion, operations, stored;  // the last two are dtypes: of operations, and of y
  u32 symmetric, stores_amax, early_zero, zero_scale, picks_sign;
  i32 lowest, highest, nan_code, middle;
  float steps, smallest, smallest_high, inverse_factor, factor;
};

// The fields of blocks; `zero` is the zero point as operations have it. AFF-006, AFF-012: scales, and zero points that are
// integers or numbers of binary32, are given, or null.
struct AffineBlockFields {
  u32 *minimum, *maximum, *scale, *inverse_scale, *zero_float, *zero;
  i32* zero_point;
  const u32* given_scale;
  const i32* given_zero;
  const u32* given_float_zero;
};

// ---------------------------------------------------------------------- extremes

constexpr u32 KEY_OF_INFINITY = 0xFF800000u, KEY_BELOW_ALL = 0x007FFFFFu;

// AFF-003: a word in the order of numbers; NaNs lie beyond the infinities.
MOR_DEVICE u32 key_of(u32 bits) { return bits & Binary<u32>::sign ? ~bits : bits | Binary<u32>::sign; }

// The number with that key; a zero has no sign, and NaN is canonical.
MOR_DEVICE u32 number_of(u32 key) {
  if (key > KEY_OF_INFINITY || key < KEY_BELOW_ALL) return CANONICAL_NAN;
  const u32 bits = key & Binary<u32>::sign ? key ^ Binary<u32>::sign : ~key;
  return magnitude_of(bits) ? bits : 0;
}

// AFF-003: both ends, NaN if one is.
struct AffineEnds {
  u32 minimum, maximum;
};
MOR_DEVICE AffineEnds ends_of(u32 least_key, u32 most_key) {
  const u32 low = number_of(least_key), high = number_of(most_key);
  if (low == CANONICAL_NAN || high == CANONICAL_NAN) return {CANONICAL_NAN, CANONICAL_NAN};
  return {low, high};
}

// ---------------------------------------------------------------------- arithmetic

// AFF-002: a number as binary16 has it, ties to even.
MOR_DEVICE float as_binary16(float x) {
  const u32 bits = __float_as_uint(x), sign = bits & Binary<u32>::sign, size = magnitude_of(bits);
  if (size >= Binary<u32>::infinity) return x;
  if (size < 0x38800000u)  // below 2^-14, where 0.5 has the unit of subnormal numbers
    return number(sign | __float_as_uint(__fsub_rn(__fadd_rn(number(size), 0.5f), 0.5f)));
  if (size >= 0x477FF000u) return number(sign | Binary<u32>::infinity);
  return number(sign | ((size + 0xFFFu + (size >> 13 & 1)) & 0xFFFFE000u));
}

MOR_DEVICE float in_dtype(float x, u32 dtype) {
  if (dtype == AS_BFLOAT16) return number(as_bf16(__float_as_uint(x)) << 16);
  return dtype == AS_BINARY16 ? as_binary16(x) : x;
}

// AFF-005 and AFF-008: ties to even; infinities and NaN stay.
MOR_DEVICE float rint_of(float x) {
  const u32 bits = __float_as_uint(x), sign = bits & Binary<u32>::sign;
  const float size = number(magnitude_of(bits));
  if (!(size < 8388608.0f)) return x;
  return number(sign | __float_as_uint(__fsub_rn(__fadd_rn(size, 8388608.0f), 8388608.0f)));
}

MOR_DEVICE float larger(float a, float b) { return a > b ? a : b; }

// ---------------------------------------------------------------------- blocks

// AFF-005: the grid that is used.
MOR_DEVICE AffineRule with_sign(AffineRule rule, u32 is_signed) {
  if (rule.picks_sign && !is_signed) {
    rule.highest -= rule.lowest;
    rule.lowest = 0;
    rule.steps = float(rule.highest);
  }
  return rule;
}

// AFF-004: the scale of a block before its limit.
MOR_DEVICE float scale_before_limit(float low, float high, const AffineRule& rule) {
  float width = rule.symmetric ? larger(low, high) : in_dtype(__fadd_rn(high, low), rule.operations);
  if (low != low) width = low;
  if (width == 0.0f && rule.zero_scale == OF_ONE) return 1.0f;
  if (width == 0.0f && rule.zero_scale == OF_RANGE) width = 1.0f;
  return rule.stores_amax ? width : in_dtype(__fdiv_rn(width, rule.steps), rule.operations);
}

// AFF-005: the code of zero.
MOR_DEVICE i32 zero_point_of(float zero_float, const AffineRule& rule) {
  if (rule.symmetric) return rule.middle;
  if (zero_float != zero_float) return rule.highest;
  const float zero_point = in_dtype(__fadd_rn(float(rule.lowest), rint_of(zero_float)), rule.operations);
  if (zero_point > float(rule.highest)) return rule.highest;
  return zero_point < float(rule.lowest) ? rule.lowest : i32(zero_point);
}

// AFF-003 to AFF-007: the fields of block n.
MOR_DEVICE void fill_block(u64 n, AffineEnds ends, const AffineRule& rule, const AffineBlockFields& fields) {
  const float minimum = number(ends.minimum), maximum = number(ends.maximum);
  float low = larger(-minimum, 0.0f), high = larger(maximum, rule.smallest_high);
  if (minimum != minimum) low = high = minimum;
  float delta = scale_before_limit(low, high, rule);
  float scale = delta < rule.smallest ? rule.smallest : delta;
  if (fields.given_scale) delta = scale = in_dtype(number(fields.given_scale[n]), rule.operations);
  const float zero_float =
      rule.symmetric ? 0.0f : in_dtype(__fdiv_rn(low, rule.early_zero ? delta : scale), rule.operations);
  const i32 zero = fields.given_zero ? fields.given_zero[n] : zero_point_of(zero_float, rule);
  const float inverse = in_dtype(__fdiv_rn(1.0f, scale), rule.operations);
  fields.minimum[n] = ends.minimum;
  fields.maximum[n] = ends.maximum;
  fields.scale[n] = bits_of(scale);
  fields.inverse_scale[n] = bits_of(__fmul_rn(rule.inverse_factor, inverse));
  fields.zero_float[n] = bits_of(zero_float);
  fields.zero_point[n] = zero;
  fields.zero[n] = fields.given_float_zero ? fields.given_float_zero[n] : bits_of(in_dtype(float(zero), rule.operations));
}

// ---------------------------------------------------------------------- numbers

// AFF-007 but for a profile that fuses.
MOR_DEVICE float scaled_of(float x, float scale, float inverse, float zero, const AffineRule& rule) {
  const float scaled = rule.application == DIVIDES ? __fdiv_rn(x, scale) : __fmul_rn(x, inverse);
  if (rule.application == ADDS) return __fadd_rn(scaled, zero);
  return __fmul_rn(rule.factor, in_dtype(scaled, rule.operations));
}

// AFF-008: an integer within the grid; w is not NaN.
MOR_DEVICE i32 within(float w, const AffineRule& rule) {
  if (w > float(rule.highest)) return rule.highest;
  return w < float(rule.lowest) ? rule.lowest : i32(w);
}

// AFF-008: an integer of 32 bits, and another one if there is none.
MOR_DEVICE i32 in_32_bits(float whole, i32 other) {
  return number(magnitude_of(__float_as_uint(whole))) < 2147483648.0f ? i32(whole) : other;
}

// AFF-008: the code of xs.
MOR_DEVICE i32 code_of(float xs, float zero, const AffineRule& rule) {
  const float whole = rint_of(xs);
  if (rule.conversion == CASTS) return i32((u32(in_32_bits(whole, 0)) + 128u) & 255u) - 128;
  if (rule.conversion == TO_INT32) {
    const i32 sum = i32(u32(in_32_bits(whole, i32(0x80000000u))) + u32(i32(zero)));
    return least(most(sum, rule.lowest), rule.highest);
  }
  const bool has_zero = rule.application == FUSES || rule.application == ADDS;
  const float w = has_zero ? whole : in_dtype(__fadd_rn(whole, zero), rule.operations);
  if (w != w) return rule.nan_code;
  if (rule.conversion == TO_INT64 && w >= 9223372036854775808.0f) return rule.lowest;
  return within(w, rule);
}

// AFF-009.
MOR_DEVICE float y_of(i32 code, float scale, float zero, const AffineRule& rule) {
  const float q = in_dtype(float(code), rule.operations);
  if (rule.stores_amax) return in_dtype(__fmul_rn(__fmul_rn(scale, q), __fdiv_rn(1.0f, 127.0f)), rule.stored);
  const float steps = in_dtype(__fsub_rn(q, zero), rule.operations);
  return in_dtype(in_dtype(__fmul_rn(steps, scale), rule.operations), rule.stored);
}

// AFF-012: zero points that are not integers.
MOR_DEVICE float y_of_float_zero(i32 code, float scale, float zero, const AffineRule& rule) {
  const double steps = __dsub_rn(double(code), double(zero));
  return in_dtype(__double2float_rn(__dmul_rn(steps, double(scale))), rule.stored);
}
