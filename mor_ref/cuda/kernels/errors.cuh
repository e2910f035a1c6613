// The chapter on error sums.
#pragma once
#include "numbers.cuh"

struct ErrorSum {
  u64 sum, nonzero, nonfinite;
};

constexpr u32 LOST = 0x7F7F8000u;  // bfloat16 rounds it and every larger magnitude to infinity

struct ErrorTerm {
  u32 d, r, u;  // d and r as bits
};

// ERR-001, of a finite x that is not zero.
MOR_DEVICE ErrorTerm error_term(u32 x, u32 y) {
  const float one = 1.0f;
  const u32 d = magnitude_of(bits_of(__fsub_rn(number(x), number(y))));
  float r = one;
  if (is_finite(y)) {
    r = __fdiv_rn(number(d), number(magnitude_of(x)));
    r = r < one ? r : one;
  }
  return {d, __float_as_uint(r), __float_as_uint(__fadd_rn(one, r)) - __float_as_uint(one)};
}

// ERR-002 and ERR-003: what an element adds.
MOR_DEVICE void add_error(ErrorSum& unit, u32 x, u32 y) {
  if (is_finite(x) && magnitude_of(x)) {
    unit.sum += error_term(x, y).u;
    unit.nonzero++;
  }
  unit.nonfinite += !is_finite(x) || magnitude_of(y) >= LOST;
}
