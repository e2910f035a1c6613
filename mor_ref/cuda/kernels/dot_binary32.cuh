// The chapter on dot products: sums with one rounding, with the operations of binary32, and of integers.
#pragma once
#include "dot_terms.cuh"

// The sum of numbers: 32 bits of it in each word, from 2^lowest on. Positive and negative ones are apart.
struct DotSum {
  static constexpr u32 count = 40;
  static constexpr i32 lowest = -640;  // below 2^-596, the unit of four binary32 factors
  u32 words[2][count];

  MOR_MEMBER void clear() {
    for (u32 k = 0; k < count; k++) words[0][k] = words[1][k] = 0;
  }

  // part * 2^unit
  MOR_MEMBER void add(u64 part, i32 unit, bool negative) {
    const u32 place = u32(unit - lowest), shift = place % 32;
    u64 low = part << shift, high = shift ? part >> (64 - shift) : 0, carry = 0;
    for (u32 k = place / 32; k < count && (low | high | carry); k++) {
      const u64 total = words[negative][k] + (low & 0xFFFFFFFFull) + carry;
      words[negative][k] = u32(total);
      carry = total >> 32;
      low = low >> 32 | high << 32;
      high >>= 32;
    }
  }

  // DOT-012: a product of four finite factors, of 96 bits at most.
  MOR_MEMBER void add(const DotProduct& product) {
    const DotFactor elements = times(factor_of(product.a), factor_of(product.b));
    const DotFactor scales = times(factor_of(product.scale_a), factor_of(product.scale_b));
    const bool negative = (elements.whole < 0) != (scales.whole < 0);
    const u64 a = u64(elements.whole < 0 ? -elements.whole : elements.whole);
    const u64 b = u64(scales.whole < 0 ? -scales.whole : scales.whole), half = (1ull << 24) - 1;
    const i32 unit = elements.unit + scales.unit;
    add((a & half) * (b & half), unit, negative);
    add((a >> 24) * (b & half), unit + 24, negative);
    add((a & half) * (b >> 24), unit + 24, negative);
    add((a >> 24) * (b >> 24), unit + 48, negative);
  }

  MOR_MEMBER void add(u32 bits) { add(significand_of(bits), unit_of(bits), (bits & Binary<u32>::sign) != 0); }

  // Subtract the smaller sum from the larger one; return whether the negative one is larger.
  MOR_MEMBER bool settle() {
    u32 k = count - 1;
    while (k > 0 && words[0][k] == words[1][k]) k--;
    const bool negative = words[1][k] > words[0][k];
    u64 borrow = 0;
    for (k = 0; k < count; k++) {
      const u64 difference = u64(words[negative][k]) - words[!negative][k] - borrow;
      words[0][k] = u32(difference);
      borrow = difference >> 63;
    }
    return negative;
  }

  // DOT-012: the bits of the sum, to nearest, ties to even.
  MOR_MEMBER u32 rounded() {
    const u32 sign = settle() ? Binary<u32>::sign : 0;
    u32 top = 0;  // one more than the place of the leading bit
    for (u32 k = 0; k < count; k++)
      if (words[0][k]) top = 32 * k + u32(highest_bit(words[0][k])) + 1;
    if (top == 0) return 0;
    const i32 exponent = i32(top) - 1 + lowest, unit = most(exponent, -126) - 23;
    if (exponent > 127) return sign | Binary<u32>::infinity;
    const u32 drop = u32(unit - lowest);
    u32 significand = 0;
    for (u32 bit = 24; bit-- > 0;) significand = significand << 1 | bit_at(words[0], count, drop + bit);
    bool is_above = false;
    for (u32 bit = 0; bit + 1 < drop; bit++) is_above |= bit_at(words[0], count, bit) != 0;
    significand += bit_at(words[0], count, drop - 1) && (is_above || (significand & 1));
    return sign | ((u32(unit + 149) << 23) + significand);
  }
};

// DOT-012 and DOT-015: so many products and c, rounded once. `product` makes each of them.
template <class Products> MOR_DEVICE DotChunk exact_sum(Products product, u64 count, u32 c) {
  DotSum sum;
  sum.clear();
  bool has_special = !is_finite(c);
  float special = number(c);
  for (u64 k = 0; k < count; k++) {
    const DotProduct factors = product(k);
    if (is_special(factors)) {
      special = has_special ? __fadd_rn(special, special_product(factors)) : special_product(factors);
      has_special = true;
    } else if (!has_special) {
      sum.add(factors);
    }
  }
  if (has_special) return {0, 0, bits_of(special)};
  sum.add(c);
  return {0, 0, sum.rounded()};
}

MOR_DEVICE DotChunk exact_chunk(const DotOperands& of, u64 row, u64 start, u64 count, u32 c) {
  return exact_sum([&](u64 k) { return product_at(of, row, start + k); }, count, c);
}

MOR_DEVICE DotChunk next_exact(const DotOperands& of, u64 row, u64 start, u32 c, const DotRule& rule) {
  (void)rule;
  return exact_chunk(of, row, start, of.columns, c);
}

MOR_DEVICE DotChunk next_e_fdpa(const DotOperands& of, u64 row, u64 start, u32 c, const DotRule& rule) {
  return exact_chunk(of, row, start, rule.chunk, c);
}

// DOT-013.
MOR_DEVICE DotChunk next_f32_fma(const DotOperands& of, u64 row, u64 start, u32 c, const DotRule& rule) {
  (void)rule;
  const DotProduct product = product_at(of, row, start);
  return {0, 0, fused(product.a, product.b, c)};
}

// DOT-014: a stack has the sums of whole subtrees, 1, 2, 4 and so on of products.
MOR_DEVICE DotChunk next_f32_pairwise(const DotOperands& of, u64 row, u64 start, u32 c, const DotRule& rule) {
  (void)rule;
  float stack[64] = {};
  for (u64 k = 0; k < of.columns; k++) {
    const DotProduct product = product_at(of, row, start + k);
    float sum = __fmul_rn(number(product.a), number(product.b));
    u32 level = 0;
    for (; k >> level & 1; level++) sum = __fadd_rn(stack[level], sum);
    stack[level] = sum;
  }
  bool has_sum = false;
  float rest = 0.0f;
  for (u32 level = 0; level < 64; level++) {
    if (!(of.columns >> level & 1)) continue;
    rest = has_sum ? __fadd_rn(stack[level], rest) : stack[level];
    has_sum = true;
  }
  return {0, 0, bits_of(has_sum ? __fadd_rn(rest, number(c)) : number(c))};
}

// DOT-019 and DOT-020.
MOR_DEVICE DotChunk next_integers(const DotOperands& of, u64 row, u64 start, u32 c, const DotRule& rule) {
  (void)c;
  u32 sum = 0;
  for (u64 k = 0; k < of.columns; k++) {
    const DotProduct product = product_at(of, row, start + k);
    sum += u32(i32(number(product.a))) * u32(i32(number(product.b)));
  }
  float scaled_sum = float(i32(sum));
  if (of.scale_a.codes != 0 && of.columns != 0) {
    const DotProduct first = product_at(of, row, start);
    scaled_sum = __fmul_rn(number(first.scale_a), __fmul_rn(scaled_sum, rule.unscale));
    scaled_sum = __fmul_rn(number(first.scale_b), scaled_sum);
  }
  return {0, i64(i32(sum)), bits_of(scaled_sum)};
}
