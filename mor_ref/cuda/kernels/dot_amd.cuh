// The chapter on dot products: chunks as matrix cores of AMD add them up.
#pragma once
#include "dot_terms.cuh"

static constexpr i32 DOT_RIGHT_BITS = 32, NO_EXPONENT = -(1 << 20);

// DOT-016: a binary32 number, or a zero of its sign if it is subnormal.
MOR_DEVICE float flushed(float x) {
  const u32 bits = __float_as_uint(x);
  return bits & Binary<u32>::infinity ? x : number(bits & Binary<u32>::sign);
}

// DOT-016: an operand or the c of an instruction, which becomes +0 if it is subnormal in its format.
MOR_DEVICE u32 flushed_input(u32 bits, i32 smallest) {
  if (!is_finite(bits)) return bits;
  return magnitude_of(bits) == 0 || exponent_of(bits, NO_EXPONENT) < smallest ? 0 : bits;
}

MOR_DEVICE float flushed_product(const DotOperands& of, u64 row, u64 k) {
  const DotProduct product = product_at(of, row, k);
  const u32 a = flushed_input(product.a, of.a.smallest_exponent), b = flushed_input(product.b, of.b.smallest_exponent);
  return flushed(__fmul_rn(number(a), number(b)));
}

MOR_DEVICE float flushed_pair(const DotOperands& of, u64 row, u64 k) {
  return flushed(__fadd_rn(flushed_product(of, row, k), flushed_product(of, row, k + 1)));
}

// DOT-016: two products or four; an instruction flushes the c that it takes.
MOR_DEVICE DotChunk next_ftz_mul_add(const DotOperands& of, u64 row, u64 start, u32 c, const DotRule& rule) {
  if (rule.flushed_every != 0 && start % rule.flushed_every == 0)
    c = flushed_input(c, BINARY32_RESULT.smallest_exponent);
  float sum = flushed_pair(of, row, start);
  if (rule.chunk == 4) sum = flushed(__fadd_rn(sum, flushed_pair(of, row, start + 2)));
  return {0, 0, bits_of(flushed(__fadd_rn(number(c), sum)))};
}

// A sum of cut products in units of 2^(exponent - F).
struct DotPart {
  i64 whole;
  i32 exponent;
};

// DOT-017: the products from `start` to `end`, each step-th.
MOR_DEVICE DotPart cut_products(const DotOperands& of, u64 row, u64 start, u64 end, u32 step, i32 fraction_bits) {
  DotPart sum = {0, NO_EXPONENT};
  for (u64 k = start; k < end; k += step) {
    const DotProduct product = product_at(of, row, k);
    if (magnitude_of(product.a) == 0 || magnitude_of(product.b) == 0) continue;
    const i32 exponent = exponent_of(product.a, of.a.smallest_exponent) + exponent_of(product.b, of.b.smallest_exponent);
    sum.exponent = most(sum.exponent, exponent);
  }
  for (u64 k = start; k < end; k += step) {
    const DotProduct product = product_at(of, row, k);
    const DotFactor term = times(factor_of(product.a), factor_of(product.b));
    sum.whole += cut(term.whole, term.unit, sum.exponent - fraction_bits);
  }
  return sum;
}

// DOT-017: rounded down to 32 bits, and then to binary32.
MOR_DEVICE u32 rounded_twice(i64 whole, i32 unit, const DotResult& to) {
  if (whole == 0) return 0;
  const i32 exponent = most(highest_bit(u64(whole < 0 ? -whole : whole)) + unit, to.smallest_exponent);
  const i32 drop = exponent - (DOT_RIGHT_BITS - 1) - unit;
  if (drop <= 0) return rounded_sum(whole, unit, to);
  return rounded_sum(floored(whole, -drop), unit + drop, to);
}

// DOT-017 and DOT-018: the sum of products and c, both rounded down.
MOR_DEVICE DotChunk joined(const DotPart& sum, u32 c, const DotRule& rule, bool is_grouped) {
  const i32 exponent_of_c = exponent_of(c, rule.result.smallest_exponent), bits = rule.fraction_bits;
  const i32 largest = most(sum.exponent, exponent_of_c);
  i64 whole = 0;
  if (sum.exponent != NO_EXPONENT) whole = floored(sum.whole, sum.exponent - largest + DOT_RIGHT_BITS - bits);
  if (!is_grouped || exponent_of_c >= largest - bits - 1) {
    const DotFactor factor = factor_of(c);
    if (factor.whole != 0) whole += floored(floored(factor.whole, factor.unit - largest + bits), DOT_RIGHT_BITS - bits);
  }
  return {largest, whole, rounded_twice(whole, largest - DOT_RIGHT_BITS, rule.result)};
}

// DOT-008 and DOT-017: the sum of the terms that are infinite or NaN; 2^128 or more is infinite if it `overflows`.
MOR_DEVICE bool has_special_sum(const DotOperands& of, u64 row, u64 start, u32 count, bool overflows, u32* c) {
  bool has_special = !is_finite(*c);
  float special = number(*c);
  for (u64 k = start; k < start + count; k++) {
    const DotProduct product = product_at(of, row, k);
    float term = special_product(product);
    if (!is_special(product)) {
      const u64 size = u64(significand_of(product.a)) * significand_of(product.b);
      if (!overflows || size == 0 || highest_bit(size) + unit_of(product.a) + unit_of(product.b) <= 127) continue;
      term = __fmul_rn(term, number(Binary<u32>::infinity));
    }
    special = has_special ? __fadd_rn(special, term) : term;
    has_special = true;
  }
  *c = bits_of(special);
  return has_special;
}

// DOT-017.
MOR_DEVICE DotChunk next_tr_fdpa(const DotOperands& of, u64 row, u64 start, u32 c, const DotRule& rule) {
  u32 special = c;
  if (has_special_sum(of, row, start, rule.chunk, true, &special)) return {0, 0, special};
  return joined(cut_products(of, row, start, start + rule.chunk, 1, rule.fraction_bits), c, rule, false);
}

// DOT-018: even products and odd ones.
MOR_DEVICE DotChunk next_gtr_fdpa(const DotOperands& of, u64 row, u64 start, u32 c, const DotRule& rule) {
  u32 special = c;
  if (has_special_sum(of, row, start, rule.chunk, false, &special)) return {0, 0, special};
  const DotPart even = cut_products(of, row, start, start + rule.chunk, 2, rule.fraction_bits);
  const DotPart odd = cut_products(of, row, start + 1, start + rule.chunk, 2, rule.fraction_bits);
  DotPart both = {0, most(even.exponent, odd.exponent)};
  if (even.exponent != NO_EXPONENT) both.whole += floored(even.whole, even.exponent - both.exponent);
  if (odd.exponent != NO_EXPONENT) both.whole += floored(odd.whole, odd.exponent - both.exponent);
  return joined(both, c, rule, true);
}
