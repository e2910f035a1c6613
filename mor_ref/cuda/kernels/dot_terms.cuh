// The chapter on dot products: numbers with exponents, terms of sums, and how a sum is rounded.
#pragma once
#include "dot_operands.cuh"
#include "significands.cuh"

// The places of the highest and of the lowest bit of an integer other than 0.
MOR_DEVICE i32 highest_bit(u64 whole) { return 63 - __clzll(i64(whole)); }
MOR_DEVICE i32 lowest_bit(u32 whole) { return 31 - __clz(i32(whole & (0u - whole))); }

// DOT-004: of a finite number other than zero, and of all others the smallest.
MOR_DEVICE i32 exponent_of(u32 bits, i32 smallest) {
  const u32 significand = significand_of(bits);
  if (significand == 0 || !is_finite(bits)) return smallest;
  return most(unit_of(bits) + highest_bit(significand), smallest);
}

// A factor of an infinite or NaN product: its size does not matter.
MOR_DEVICE float sign_of_factor(u32 bits) {
  if (!is_finite(bits) || magnitude_of(bits) == 0) return number(bits);
  return number((bits & Binary<u32>::sign) | ONE_AS_BITS);
}

// An odd integer and its unit, of a finite number.
struct DotFactor {
  i64 whole;
  i32 unit;
};

MOR_DEVICE DotFactor factor_of(u32 bits) {
  const u32 significand = significand_of(bits);
  if (significand == 0) return {0, 0};
  const i32 drop = lowest_bit(significand);
  const i64 whole = i64(significand >> drop);
  return {bits & Binary<u32>::sign ? -whole : whole, unit_of(bits) + drop};
}

MOR_DEVICE DotFactor times(const DotFactor& a, const DotFactor& b) { return {a.whole * b.whole, a.unit + b.unit}; }

// DOT-008: whether a factor is infinite or NaN.
MOR_DEVICE bool is_special(const DotProduct& of) {
  return !(is_finite(of.a) && is_finite(of.b) && is_finite(of.scale_a) && is_finite(of.scale_b));
}

MOR_DEVICE float special_product(const DotProduct& of) {
  const float elements = __fmul_rn(sign_of_factor(of.a), sign_of_factor(of.b));
  return __fmul_rn(elements, __fmul_rn(sign_of_factor(of.scale_a), sign_of_factor(of.scale_b)));
}

// |whole| * 2^shift, cut to an integer.
MOR_DEVICE u64 shifted(u64 whole, i32 shift) {
  if (shift >= 0) return shift < 64 ? whole << shift : 0;
  return shift > -64 ? whole >> -shift : 0;
}

// DOT-007: a number in units of 2^unit, cut toward zero.
MOR_DEVICE i64 cut(i64 whole, i32 of, i32 unit) {
  const i64 size = i64(shifted(u64(whole < 0 ? -whole : whole), of - unit));
  return whole < 0 ? -size : size;
}

// DOT-017: whole * 2^shift, rounded down.
MOR_DEVICE i64 floored(i64 whole, i32 shift) {
  if (shift >= 0) return i64(u64(whole) << shift);
  return whole >> least(-shift, 63);
}

// The bits of whole * 2^unit in the format of the result; a number that becomes 0 keeps its sign.
MOR_DEVICE u32 rounded_sum(i64 whole, i32 unit, const DotResult& to) {
  if (whole == 0) return 0;
  const u32 sign = whole < 0 ? Binary<u32>::sign : 0;
  u64 size = u64(whole < 0 ? -whole : whole);
  const i32 last = most(highest_bit(size) + unit, to.smallest_exponent) - to.kept_bits;
  const i32 drop = last - unit;
  if (drop > 0) {
    const u64 below = shifted(size, -drop), rest = size - shifted(below, drop);
    const u64 half = drop <= 64 ? 1ull << (drop - 1) : ~0ull;
    const bool goes_up = to.is_nearest && (rest > half || (rest == half && (below & 1)));
    size = below + goes_up;
    unit = last;
  }
  if (size == 0) return sign;
  if (highest_bit(size) + unit > to.largest_exponent) return sign | Binary<u32>::infinity;
  if (size == 2 * Binary<u32>::hidden) return sign | binary32_of(Binary<u32>::hidden, unit + 1);
  return sign | binary32_of(u32(size), unit);
}

// The integer of size * 2^unit at another unit; if bits are lost, its last bit is 1.
MOR_DEVICE i64 jammed(u64 size, i32 shift, u32 sign) {
  u64 whole = shifted(size, shift);
  if (shift < 0 && shifted(whole, -shift) != size) whole |= 1;
  return sign ? -i64(whole) : i64(whole);
}

// DOT-013: RN32(a * b + c).
MOR_DEVICE u32 fused(u32 a, u32 b, u32 c) {
  if (!(is_finite(a) && is_finite(b) && is_finite(c)))
    return bits_of(__fadd_rn(__fmul_rn(sign_of_factor(a), sign_of_factor(b)), number(c)));
  const u64 product = u64(significand_of(a)) * significand_of(b), other = significand_of(c);
  const u32 sign = (a ^ b) & Binary<u32>::sign, sign_of_c = c & Binary<u32>::sign;
  if (product == 0) return other == 0 ? sign & sign_of_c : c;
  const i32 unit_of_product = unit_of(a) + unit_of(b), unit_of_c = unit_of(c);
  i32 top = highest_bit(product) + unit_of_product;
  if (other != 0) top = most(top, highest_bit(other) + unit_of_c);
  const i32 unit = top - 61;
  const i64 sum = jammed(product, unit_of_product - unit, sign) + jammed(other, unit_of_c - unit, sign_of_c);
  return rounded_sum(sum, unit, BINARY32_RESULT);
}
