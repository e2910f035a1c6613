// The chapter on shared exponents: blocks of 16 numbers, pairs of two.
#pragma once
#include "numbers.cuh"

constexpr u32 SHARED_BLOCK = 16, SHARED_PAIR = 2, SPECIAL_FIELD = 255, LAST_FIELD = 254;

struct SharedRule {
  u32 magnitude_bits, shifts, carries, nan_blocks, keeps_signs;
};

// The results of a number.
struct SharedNumber {
  u32 sign, magnitude, code, y;
};

MOR_DEVICE u32 exponent_field(u32 bits) { return magnitude_of(bits) >> 23; }

// SHX-002 and SHX-003: that of a finite number, and 0 of others.
MOR_DEVICE u32 finite_exponent_field(u32 bits) { return is_finite(bits) ? exponent_field(bits) : 0; }

// SHX-005: the units in a finite number, ties to even. `above` is how far its field is below that of its pair.
MOR_DEVICE u32 units_in(u32 bits, u32 above, const SharedRule& rule) {
  if (exponent_field(bits) == 0) return 0;
  const u32 drop = 24 - rule.magnitude_bits + above;
  if (drop > 25) return 0;
  const u32 significand = (bits & (Binary<u32>::hidden - 1)) | Binary<u32>::hidden;
  const u32 whole = significand >> drop, rest = significand - (whole << drop), half = 1u << (drop - 1);
  return whole + (rest > half || (rest == half && (whole & 1)));
}

// SHX-002 and SHX-004: the exponent of a block.
MOR_DEVICE u32 shared_exponent(const u32* x, u32 count, const SharedRule& rule) {
  u32 exponent = 0, lost = 0;
  for (u32 k = 0; k < count; k++) {
    exponent = most(exponent, finite_exponent_field(x[k]));
    lost |= !is_finite(x[k]);
  }
  if (lost && rule.nan_blocks) return SPECIAL_FIELD;
  if (!rule.carries || exponent >= LAST_FIELD) return exponent;
  u32 goes_up = 0;
  for (u32 k = 0; k < count; k++)
    if (x[k] < Binary<u32>::infinity)  // a positive finite number
      goes_up |= units_in(x[k], exponent - exponent_field(x[k]), rule) >> rule.magnitude_bits;
  return exponent + goes_up;
}

// SHX-003: the shift of a pair whose second number may be missing.
MOR_DEVICE u32 shift_of_pair(u32 exponent, u32 first, u32 second, const SharedRule& rule) {
  const u32 field = most(finite_exponent_field(first), finite_exponent_field(second));
  return rule.shifts && exponent != SPECIAL_FIELD && field < exponent;
}

// SHX-005.
MOR_DEVICE u32 shared_magnitude(u32 bits, u32 exponent, u32 tau, const SharedRule& rule) {
  const u32 largest = (1u << rule.magnitude_bits) - 1;
  if (!is_finite(bits)) return is_nan(bits) ? 0 : largest;
  const u32 has_more = rule.carries && (bits & Binary<u32>::sign) && exponent < LAST_FIELD;
  return least(units_in(bits, exponent - tau - exponent_field(bits), rule), largest + has_more);
}

// SHX-005, SHX-006 and SHX-007.
MOR_DEVICE SharedNumber shared_number(u32 bits, u32 exponent, u32 tau, const SharedRule& rule) {
  if (exponent == SPECIAL_FIELD) return {0, 0, 0, CANONICAL_NAN};
  const bool has_sign = !is_nan(bits) && (rule.keeps_signs || exponent_field(bits) != 0);
  const u32 sign = has_sign ? bits >> 31 : 0, magnitude = shared_magnitude(bits, exponent, tau, rule);
  const u32 all = (2u << rule.magnitude_bits) - 1;
  const u32 code = rule.carries ? (sign ? 0u - magnitude : magnitude) & all : sign << rule.magnitude_bits | magnitude;
  const i32 unit = i32(exponent) - 127 - i32(tau) + 1 - i32(rule.magnitude_bits);
  const u32 y = is_nan(bits) ? CANONICAL_NAN : is_finite(bits) ? sign << 31 | binary32_of(magnitude, unit) : bits;
  return {sign, magnitude, code, y};
}
