// The chapter on levels: a row has an alpha, and a weight a level.
#pragma once
#include "numbers.cuh"

enum LevelGrid { OF_INTEGERS, OF_STEPS, OF_SIGNS };

struct LevelRule {
  u32 grid, narrow, mask;
  float lowest, highest;  // of a ratio
  float below, above;     // what stands for a ratio outside
  float steps, shift, divisor, smallest;
};

// LVL-001: the result of an operation, in the arithmetic.
MOR_DEVICE float in_arithmetic(float x, const LevelRule& rule) {
  return rule.narrow ? number(as_bf16(__float_as_uint(x)) << 16) : x;
}

// LVL-003.
MOR_DEVICE float used_alpha(float alpha, const LevelRule& rule) {
  const float given = in_arithmetic(alpha, rule);
  return given > rule.smallest ? given : rule.smallest;
}

// The nearest integer of a number below 2^22, ties to even; the sign of zero and NaN stay.
MOR_DEVICE float nearest_integer(float x) {
  const u32 bits = __float_as_uint(x), sign = bits & Binary<u32>::sign;
  const float whole = __fsub_rn(__fadd_rn(number(magnitude_of(bits)), 8388608.0f), 8388608.0f);
  return number(sign | __float_as_uint(whole));
}

// LVL-004, LVL-005 and LVL-006.
MOR_DEVICE float level_of(float w, float clipped, const LevelRule& rule) {
  if (rule.grid == OF_SIGNS) return w > 0.0f ? 1.0f : w < 0.0f ? -1.0f : 0.0f;
  if (rule.grid == OF_INTEGERS) return nearest_integer(clipped);
  const float wide = in_arithmetic(__fmul_rn(clipped, rule.steps), rule);
  const float whole = nearest_integer(in_arithmetic(__fsub_rn(wide, rule.shift), rule));
  const float back = in_arithmetic(__fadd_rn(whole, rule.shift), rule);
  return in_arithmetic(__fdiv_rn(back, rule.steps), rule);
}

// LVL-007.
MOR_DEVICE float alpha_term(float ratio, float level, const LevelRule& rule) {
  if (rule.grid == OF_SIGNS) return level;
  if (!is_finite(__float_as_uint(ratio))) return number(CANONICAL_NAN);
  if (ratio < rule.lowest) return rule.below;
  if (ratio > rule.highest) return rule.above;
  return in_arithmetic(__fsub_rn(level, ratio), rule);
}

// LVL-008.
MOR_DEVICE u32 level_code(float level, const LevelRule& rule) {
  const bool is_lost = is_nan(__float_as_uint(level));
  if (rule.grid == OF_STEPS && rule.shift != 0.0f) return is_lost ? 2 : u32(i32(__fadd_rn(__fmul_rn(level, 2.0f), 1.5f)));
  const i32 away = is_lost ? 0 : level > 0.0f ? i32(__fadd_rn(level, 0.5f)) : -i32(__fsub_rn(0.5f, level));
  return rule.grid == OF_INTEGERS ? u32(away) & rule.mask : u32(away + 1);
}

// The sum of magnitudes of finite numbers, in units of 2^-149: 32 bits of it in each word.
struct ExactSum {
  static constexpr u32 count = 10;
  u32 words[count];

  MOR_MEMBER void add(u32 magnitude) {
    const u32 field = magnitude >> 23, place = field ? field - 1 : 0;
    const u64 significand = field ? (magnitude & (Binary<u32>::hidden - 1)) | Binary<u32>::hidden : magnitude;
    u64 carry = significand << place % 32;
    for (u32 k = place / 32; k < count && carry; k++) {
      const u64 total = u64(words[k]) + u32(carry);
      words[k] = u32(total);
      carry = (carry >> 32) + (total >> 32);
    }
  }

  // The bits of the mean of so many numbers, to nearest, ties to even: 2^32 of them at most.
  MOR_MEMBER u32 mean(u64 numbers) const {
    u32 quotient[count];
    u64 rest = 0;
    for (u32 k = count; k-- > 0;) {
      const u64 part = rest << 32 | words[k];
      quotient[k] = u32(part / numbers);
      rest = part % numbers;
    }
    u32 top = 0;  // one more than the place of the leading bit
    for (u32 k = 0; k < count; k++)
      if (quotient[k]) top = 32 * k + 32 - u32(__clz(i32(quotient[k])));
    const u32 cut = top > 24 ? top - 24 : 0;
    u64 significand = 0;
    for (u32 bit = 24; bit-- > 0;) significand = significand << 1 | bit_at(quotient, count, cut + bit);
    bool is_above = rest != 0, half = cut ? bit_at(quotient, count, cut - 1) : 2 * rest >= numbers;
    if (cut == 0) is_above = 2 * rest > numbers;
    for (u32 bit = 0; bit + 1 < cut; bit++) is_above |= bit_at(quotient, count, bit) != 0;
    significand += half && (is_above || (significand & 1));
    return cut ? (cut << 23) + u32(significand) : u32(significand);
  }
};
