// The chapter on FP8-LM: scales, casts, sums of ranks, and the steps of Adam.
#pragma once
#include "decoding.cuh"
#include "encoding.cuh"

struct Fp8lmScaling {
  float largest;
  i32 margin;
  u32 is_exact;
};

struct Fp8lmScale {
  float ratio, exponent, scale;
};

// FLM-002: floor(RN32(log2(ratio))) of a positive finite number. Below 2^E a logarithm is E if its distance,
// which is some 2^-24 / ln 2 for each step of the significand, is less than half a step of numbers there.
MOR_DEVICE i32 floor_of_log2(u32 bits) {
  const i32 shift = most(__clz(i32(bits)) - 8, 0), field = most(i32(bits >> 23), 1);
  const i32 next = field - shift - 127 + 1;  // E
  const u32 significand = bits >> 23 ? (bits & (Binary<u32>::hidden - 1)) | Binary<u32>::hidden : bits << shift;
  const u64 missing = 2 * Binary<u32>::hidden - significand;
  const u32 size = u32(next < 0 ? -next : next);
  if (size == 0) return next - 1;
  i32 last = 31 - __clz(i32(size));  // of the steps below E
  if (next > 0 && size == 1u << last) last--;
  const bool rounds_up = last >= 0 && missing < 64 && missing * 6196328019ull < 1ull << (32 + last);
  return next - 1 + rounds_up;
}

// 2^exponent, -126 to 127.
MOR_DEVICE float power(i32 exponent) { return number(u32(exponent + 127) << 23); }

// FLM-002 and FLM-003.
MOR_DEVICE Fp8lmScale scale_of_msamp(float amax, float previous, const Fp8lmScaling& how) {
  const float ratio = __fmul_rn(how.largest, __fdiv_rn(1.0f, amax)), infinite = number(Binary<u32>::infinity);
  const u32 bits = __float_as_uint(ratio);
  float exponent = ratio, scale = previous;
  if (ratio == 0.0f) exponent = -infinite;
  else if (is_finite(bits)) exponent = float(floor_of_log2(bits) - how.margin);
  if (amax > 0.0f && is_finite(__float_as_uint(amax))) {
    const float size = exponent < 0.0f ? -exponent : exponent;
    scale = size <= 127.0f ? power(i32(size)) : infinite;
  }
  return {ratio, exponent, exponent < 0.0f ? __fdiv_rn(1.0f, scale) : scale};
}

// FLM-004.
MOR_DEVICE Fp8lmScale scale_exactly(float amax, float previous, const Fp8lmScaling& how) {
  const float ratio = __fdiv_rn(how.largest, amax);
  if (amax == 0.0f || !is_finite(__float_as_uint(amax))) return {ratio, number(CANONICAL_NAN), previous};
  const u32 bits = least(__float_as_uint(ratio), LARGEST_BINARY32);
  const i32 exponent = least(most(i32(bits >> 23) - 127 - how.margin, -126), 127);
  return {ratio, float(exponent), power(exponent)};
}

// What a sum of ranks is of: integers in units of 2^unit.
struct Fp8lmSums {
  Decoding from;
  Encoding to;
  i32 unit;
  u32 by_rank;
};

// The units in the finite number of these bits.
MOR_DEVICE i64 units_of(u32 bits, i32 unit) {
  const u32 field = bits >> 23 & 255;
  if (field == 0) return 0;
  const i32 place = i32(field) - 127 - 23 - unit;
  const u64 significand = (bits & (Binary<u32>::hidden - 1)) | Binary<u32>::hidden;
  const i64 size = i64(place < 0 ? significand >> -place : significand << place);
  return bits & Binary<u32>::sign ? -size : size;
}

// The bits of binary64 of an integer below 2^53 times 2^unit.
MOR_DEVICE u64 binary64_of(i64 units, i32 unit) {
  if (units == 0) return 0;
  u64 size = u64(units < 0 ? -units : units);
  i32 field = 1023 + 52 + unit;
  for (; !(size & Binary<u64>::hidden); field--) size <<= 1;
  return (units < 0 ? Binary<u64>::sign : 0) | (u64(field) << 52) | (size & (Binary<u64>::hidden - 1));
}

// FLM-009.
template <class Code> MOR_DEVICE u32 sum_of_ranks(const Code* codes, u64 ranks, const Fp8lmSums& how) {
  i64 sum = 0;
  u32 code = 0;
  bool is_lost = false;
  for (u64 k = 0; k < ranks; k++) {
    const u32 value = decoded(codes[k], how.from);
    is_lost |= !is_finite(value);
    if (is_lost) continue;
    sum += units_of(value, how.unit);
    if (how.by_rank) {
      code = encoded(binary64_of(sum, how.unit), how.to);
      sum = units_of(decoded(code, how.from), how.unit);
    }
  }
  if (is_lost) return how.to.nan[0];
  return how.by_rank ? code : encoded(binary64_of(sum, how.unit), how.to);
}

// FLM-012.
MOR_DEVICE float moment(float stored, float inverse, float beta, float term) {
  const float old = __fmul_rn(__fmul_rn(beta, stored), inverse);
  return __fadd_rn(old, __fmul_rn(__fsub_rn(1.0f, beta), term));
}
