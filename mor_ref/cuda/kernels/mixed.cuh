// The chapter on mixtures of formats: errors as integers.
#pragma once
#include "errors.cuh"
#include "scales.cuh"

constexpr u32 LARGEST_ERROR = 1u << 22;

// MFQ-002: |x - y| in units of 2^(exponent - 20), to nearest, ties to even.
MOR_DEVICE u32 error_in_units(u32 x, u32 y, i32 exponent) {
  if (!is_finite(x)) return 0;
  const u32 d = magnitude_of(__float_as_uint(__fsub_rn(number(x), number(y))));
  if (!is_finite(d)) return LARGEST_ERROR;
  const u32 field = d >> 23, significand = field ? (d & FRACTION) | Binary<u32>::hidden : d;
  const i32 up = i32(field ? field : 1) - 130 - exponent;
  if (significand == 0 || up < -25) return 0;
  if (up > 22) return LARGEST_ERROR;
  if (up >= 0) return u32(least<u64>(u64(significand) << up, LARGEST_ERROR));
  const u32 drop = u32(-up), whole = significand >> drop, rest = significand - (whole << drop), half = 1u << (drop - 1);
  return least(whole + (rest > half || (rest == half && (whole & 1))), LARGEST_ERROR);
}
