// The chapter on error sums, in 64 bits and in any order (ERR-004, ERR-005).
#pragma once
#include "numbers.cuh"

// Of a unit in 64 bits, and in 32 of the elements of a piece that a thread has, 256 at most.
template <class Word> struct Sums {
  Word sum, nonzero, nonfinite;
};
typedef Sums<u64> ErrorSum;
typedef Sums<u32> PartialSum;

constexpr u32 LOST = 0x7F7F8000u;  // bfloat16 rounds it and every larger magnitude to infinity

struct ErrorTerm {
  u32 d, r, u;  // d and r as bits
};

// ERR-001, of a finite x that is not zero.
MOR_DEVICE ErrorTerm error_term(u32 x, u32 y) {
  const float one = 1.0f, next_to_nothing = 1.0f / (1 << 30);
  const u32 difference = __float_as_uint(__fsub_rn(number(x), number(y)));
  const float d = magnitude_of(number(difference));
  // GPUs divide zero slowly. The number in its place is lost in a sum with one.
  const bool is_exact = d == 0.0f;
  const float quotient = __fdiv_rn(is_exact ? next_to_nothing : d, is_exact ? one : magnitude_of(number(x)));
  const float r = quotient < one ? quotient : one;  // also where y is not finite
  const u32 u = __float_as_uint(__fadd_rn(one, r)) - __float_as_uint(one);
  return {magnitude_of(bits_of(number(difference))), is_exact ? 0 : __float_as_uint(r), u};
}

// The u of a finite x that is not zero and a finite y. Errors that are lost in the sum with one may be any such error: GPUs
// divide zero slowly.
MOR_DEVICE u32 common_error_term(u32 x, u32 y) {
  const float one = 1.0f, next_to_nothing = 1.0f / (1 << 30), size = magnitude_of(number(x));
  const float d = magnitude_of(__fsub_rn(number(x), number(y))), lost = __fmul_rn(size, next_to_nothing);
  const float quotient = __fdiv_rn(fmaxf(d, lost), size), r = quotient < one ? quotient : one;
  return __float_as_uint(__fadd_rn(one, r)) - __float_as_uint(one);
}

// ERR-002 and ERR-003: what an element adds.
MOR_DEVICE void add_error(PartialSum& own, u32 x, u32 y) {
  const bool counts = is_finite(x) && magnitude_of(x);
  const u32 u = error_term(x, y).u;
  own.sum += counts ? u : 0;
  own.nonzero += counts;
  own.nonfinite += !is_finite(x) || magnitude_of(y) >= LOST;
}
