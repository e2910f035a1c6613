// Rounding to the nearest code, ties to even, as all that quantizes has it: by one addition.
//
// In a sum with a power of two that is 2^(23 - M) times that of a number, binary32 has as many bits
// for the number as a format of M mantissa bits: the sum of both is rounded to them (ENC-003). The
// bits of the sum less those of the power are the significand.
#pragma once
#include "conversions.cuh"

// A format of at most 8 bits. Its numbers are taken down by a power of two if binary32 has no such
// power for the largest; a sum that is not exact then is far below the smallest.
struct Nearest {
  float down, up;         // that power, and its inverse; mostly 1
  u32 largest, smallest;  // the largest number and 2^(smallest exponent), taken down; bits
  u32 raise, drop;        // (23 - M) in the exponent field, and 23 - M
  i32 slope;              // the code of -k is `negative` + `slope` * k,
  u32 negative;
  i32 first_negative;  // from this k on
  u32 nan;
  float nan_value;  // what that code stands for
  u32 conversion;   // the instruction that does the same
};

struct Rounded {
  u32 code;
  float value;  // what it stands for
};

// ENC-002 to ENC-012 under rne, satfinite and canonical.
MOR_DEVICE Rounded nearest_written_out(float x, const Nearest& to) {
  const u32 bits = __float_as_uint(x);
  const u32 taken_down = magnitude_of(__float_as_uint(__fmul_rn(x, to.down)));
  const u32 magnitude = least(taken_down, to.largest);
  const u32 place = most(magnitude & Binary<u32>::infinity, to.smallest);
  const float power = number(place + to.raise);
  const float sum = __fadd_rn(power, number(magnitude));
  const u32 significand = __float_as_uint(sum) - __float_as_uint(power);
  const u32 k = ((place - to.smallest) >> to.drop) + significand;
  const float value = __fmul_rn(__fsub_rn(sum, power), to.up);
  const bool is_negative = i32(bits) < 0 && i32(k) >= to.first_negative;
  const u32 code = is_negative ? to.negative + u32(to.slope) * k : k;
  return {is_nan(bits) ? to.nan : code, is_nan(bits) ? to.nan_value : is_negative ? -value : value};
}

// The same of numbers side by side, in one instruction for two of them if there is one.
template <u32 COUNT>
MOR_DEVICE void nearest(const float (&x)[COUNT], const Nearest& to, Words<u8, COUNT>& codes, float (&values)[COUNT]) {
  const auto use = [&](auto instruction) {
    convert_to(instruction, x, codes);
    convert_from(instruction, codes, values);
  };
  convert_by(to.conversion, use, [&] {
    MOR_UNROLL
    for (u32 k = 0; k < COUNT; k++) {
      const Rounded rounded = nearest_written_out(x[k], to);
      codes.put(k, u8(rounded.code));
      values[k] = rounded.value;
    }
  });
}
MOR_DEVICE u32 nearest_code(float x, const Nearest& to) {
  Words<u8, 1> code;
  float value[1];
  nearest({x}, to, code, value);
  return code.number(0);
}
