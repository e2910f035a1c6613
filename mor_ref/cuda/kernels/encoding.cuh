// The chapter on encoding; NaN in all formats is as FMT-011 has it.
#pragma once
#include "conversions.cuh"

enum Rounding : u32 { NEAREST_EVEN, NEAREST_AWAY, TOWARD_ZERO, UPWARD, DOWNWARD, TO_ODD, AT_RANDOM };

// A format, a rounding and the special cases. Pairs are for numbers without and with a sign bit; a
// computed index of them would put the whole structure into the local memory of a thread.
struct Encoding {
  i32 mantissa_bits, smallest_exponent;
  u32 rounding;
  u32 largest;      // the code of the largest finite number
  u32 overflow[2];  // the codes of magnitudes that overflow
  u32 infinity;     // what an infinite magnitude becomes
  u32 negative;     // the sign bit; 0 if codes have none
  u32 negative_zero;
  u32 nan[2];
  u32 complement;  // how many codes two's complement has; 0 for another sign
  u32 conversion;  // the instruction that does the same
};

// Of powers of two.
struct PowerEncoding {
  i32 bias;
  u32 rounding, rounding_above_smallest;
  u32 largest, overflow, infinity, zero, nan;
  u32 has_negative, negative;  // whether negative numbers have a code of their own
  u32 conversion;              // the instruction that does the same
};

// ENC-003: whether k becomes k + 1, of f = rest / whole > 0.
template <class Word>
MOR_DEVICE bool goes_up(u32 rounding, Word rest, Word whole, bool odd, bool negative) {
  switch (rounding) {
    case NEAREST_EVEN: return rest > whole - rest || (rest == whole - rest && odd);
    case NEAREST_AWAY: return rest >= whole - rest;
    case UPWARD: return rest != 0 && !negative;
    case DOWNWARD: return rest != 0 && negative;
    case TO_ODD: return rest != 0 && !odd;
    default: return false;
  }
}

// ENC-005: F + r >= 2^n, where F is the first n of the `shift` bits of the rest.
template <class Word>
MOR_DEVICE bool goes_up_at_random(Word rest, i32 shift, u32 random_word, i32 random_bits) {
  const i32 width = 8 * sizeof(Word);
  u64 first;
  if (shift <= random_bits) first = u64(rest) << (random_bits - shift);
  else first = shift - random_bits < width ? u64(rest >> (shift - random_bits)) : 0;
  return first + random_word >= 1ull << random_bits;
}

// ENC-002, ENC-003, ENC-004, ENC-005, ENC-006, ENC-007, ENC-008, ENC-009, ENC-010, ENC-011, ENC-012 and ENC-015. The random word matters under AT_RANDOM alone.
template <class Word>
MOR_DEVICE u32 encoded(Word bits, const Encoding& to, u32 random_word = 0, i32 random_bits = 1) {
  typedef Binary<Word> From;
  const bool has_sign = (bits & From::sign) != 0, negative = has_sign && to.negative != 0;
  const Word magnitude = bits & ~From::sign;
  if (magnitude > From::infinity) return negative ? to.nan[1] : to.nan[0];
  u32 code = to.infinity;
  if (magnitude < From::infinity) {
    const i32 field = i32(magnitude >> From::fraction_bits);
    const i32 exponent = most(field, 1) - From::bias;
    const Word fraction = magnitude & (From::hidden - 1);
    const Word significand = field ? fraction | From::hidden : fraction;
    const i32 place = most(exponent, to.smallest_exponent);
    const i32 shift = From::fraction_bits - to.mantissa_bits + place - exponent;
    const i32 cut = least(shift, From::fraction_bits + 2);  // beyond it, k is 0 and f below 1/2
    const Word k = significand >> cut, whole = Word(1) << cut, rest = significand & (whole - 1);
    const bool odd = (k & 1) != 0;
    const bool up = to.rounding == AT_RANDOM
                        ? goes_up_at_random(rest, shift, random_word, random_bits)
                        : goes_up(to.rounding, rest, whole, odd, negative);
    const Word wide = (Word(place - to.smallest_exponent) << to.mantissa_bits) + k + up;  // ENC-004
    code = wide > to.largest ? (negative ? to.overflow[1] : to.overflow[0]) : u32(wide);
  }
  if (!negative) return code;
  if (to.complement) return code ? to.complement - code : 0;
  return code | (code ? to.negative : to.negative_zero);
}

// ENC-013 and ENC-014, after the exceptions of profiles (ENC-016).
template <class Word>
MOR_DEVICE u32 encoded_as_power_of_two(Word bits, const PowerEncoding& to) {
  typedef Binary<Word> From;
  const Word magnitude = bits & ~From::sign;
  if (magnitude > From::infinity) return to.nan;
  if (magnitude == 0) return to.zero;
  if (to.has_negative && (bits & From::sign)) return to.negative;
  if (magnitude == From::infinity) return to.infinity;
  const i32 up = i32(8 * sizeof(Word)) - 1 - From::fraction_bits;  // bits above the hidden one
  const i32 leading = (sizeof(Word) == 8 ? __clzll(i64(magnitude)) : __clz(i32(u32(magnitude)))) - up;
  const bool is_subnormal = magnitude < From::hidden;
  const i32 exponent = is_subnormal ? 1 - From::bias - leading
                                    : i32(magnitude >> From::fraction_bits) - From::bias;
  const Word fraction = (is_subnormal ? magnitude << leading : magnitude) & (From::hidden - 1);
  const i32 below = exponent + to.bias;
  if (below < 0) return 0;
  const u32 rounding = below == 0 ? to.rounding_above_smallest : to.rounding;
  const u32 code = u32(below) + (fraction != 0 && goes_up<Word>(rounding, fraction, From::hidden, false, false));
  return code > to.largest ? to.overflow : code;
}

// Numbers side by side, by an instruction. It takes binary32: binary64 would be rounded twice.
template <class Source, class Of, class Code, u32 COUNT>
MOR_DEVICE void encode_by(Of instruction, const typename Source::Stored (&numbers)[COUNT], Code (&codes)[COUNT]) {
  float x[COUNT];
  Words<u8, COUNT> words;
  for (u32 k = 0; k < COUNT; k++) x[k] = number(Source::binary32(numbers[k]));
  convert_to(instruction, x, words);
  for (u32 k = 0; k < COUNT; k++) codes[k] = Code(words.number(k));
}
template <class Source> constexpr bool IS_BINARY32 = sizeof(typename Source::Word) == 4;

template <class Source, class Code, u32 COUNT>
MOR_DEVICE void encode_run(const typename Source::Stored (&numbers)[COUNT], const Encoding& to, Code (&codes)[COUNT]) {
  const auto use = [&](auto instruction) { encode_by<Source>(instruction, numbers, codes); };
  convert_by(IS_BINARY32<Source> ? to.conversion : WRITTEN_OUT, use, [&] {
    for (u32 k = 0; k < COUNT; k++) codes[k] = Code(encoded(Source::word(numbers[k]), to));
  });
}
template <class Source, u32 COUNT>
MOR_DEVICE void encode_run(const typename Source::Stored (&numbers)[COUNT], const PowerEncoding& to, u8 (&codes)[COUNT]) {
  const auto use = [&](auto instruction) { encode_by<Source>(instruction, numbers, codes); };
  convert_powers_by(IS_BINARY32<Source> ? to.conversion : WRITTEN_OUT, use, [&] {
    for (u32 k = 0; k < COUNT; k++) codes[k] = u8(encoded_as_power_of_two(Source::word(numbers[k]), to));
  });
}
