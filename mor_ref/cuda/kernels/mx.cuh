// The chapter on MX.
#pragma once
#include "quantization.cuh"
#include "scales.cuh"

enum ScaleRule : u32 { FLOOR, CEIL, EVEN, RCEIL };

constexpr u32 NAN_SCALE = 0xFF;

struct MxFormat {
  u32 rule;
  Scaled element;
  i32 largest_exponent;  // P
  u32 even_bits;         // to how many bits after the leading one `even` rounds
  PowerEncoding scale_codes;
};

// The exponent that an amax above zero counts as, MXS-003 to MXS-005.
MOR_DEVICE i32 counted_exponent(u32 amax, const MxFormat& format) {
  if (!is_finite(amax)) return 128;
  const Ideal parts = normalised(amax);
  if (format.rule == CEIL) return parts.exponent + (parts.mantissa != 0);
  if (format.rule == EVEN) return parts.exponent + ((parts.mantissa + (1u << (22 - format.even_bits))) >> 23);
  return parts.exponent;
}

// MXS-002 and MXS-006, of the largest magnitude; that of a NaN is above infinity.
MOR_DEVICE u32 mx_scale(u32 amax, const MxFormat& format) {
  if (is_nan(amax)) return NAN_SCALE;
  if (amax == 0) return 0;
  if (format.rule == RCEIL) {
    const float quotient = __fdiv_rn(number(amax), number(format.element.largest));
    return encoded_as_power_of_two(bits_of(quotient), format.scale_codes);
  }
  const i32 code = counted_exponent(amax, format) - format.largest_exponent + 127;
  return u32(least(most(code, 0), 254));
}

// 2^exponent, -127 to 127.
MOR_DEVICE float power_of_two(i32 exponent) {
  return number(exponent == -127 ? Binary<u32>::hidden / 2 : u32(exponent + 127) << 23);
}

// MXS-008.
MOR_DEVICE u32 mx_value(u32 code, u32 scale, const MxFormat& format) {
  if (scale == NAN_SCALE) return CANONICAL_NAN;
  return bits_of(__fmul_rn(number(decoded(code, format.element.decoding)), power_of_two(i32(scale) - 127)));
}

// MXS-007.
MOR_DEVICE Element mx_quantized(u32 x, u32 scale, const MxFormat& format) {
  if (scale == NAN_SCALE) return {CANONICAL_NAN, encoded(CANONICAL_NAN, format.element.encoding), CANONICAL_NAN};
  const u32 xs = bits_of(__fmul_rn(number(x), power_of_two(127 - i32(scale))));
  const u32 code = encoded(xs, format.element.encoding);
  return {xs, code, mx_value(code, scale, format)};
}

// What the scale of its block makes of an element.
struct ByBlockScale {
  const u8* scales;
  MxFormat format;
  MOR_MEMBER Element operator()(u64 block, u64, u32 x) const { return mx_quantized(x, scales[block], format); }
};
