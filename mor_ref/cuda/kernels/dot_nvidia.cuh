// The chapter on dot products: chunks as tensor cores of NVIDIA add them up.
#pragma once
#include "dot_terms.cuh"

static constexpr u32 DOT_GROUP = 16, DOT_PERIOD = 128;

// DOT-007: a product with its scales.
MOR_DEVICE DotTerm term_of_product(const DotOperands& of, const DotProduct& product, i32 zero_exponent) {
  if (is_special(product)) return {0, 0, zero_exponent, special_product(product), true};
  const DotFactor elements = times(factor_of(product.a), factor_of(product.b));
  const DotFactor all = times(elements, times(factor_of(product.scale_a), factor_of(product.scale_b)));
  if (all.whole == 0) return {0, 0, zero_exponent, 0.0f, false};
  i32 exponent = exponent_of(product.a, of.a.smallest_exponent) + exponent_of(product.b, of.b.smallest_exponent);
  if (of.scale_a.codes != 0) {
    exponent += exponent_of(product.scale_a, of.scale_a.smallest_exponent);
    exponent += exponent_of(product.scale_b, of.scale_b.smallest_exponent);
  }
  return {all.whole, all.unit, exponent, 0.0f, false};
}

// DOT-007: c as a term.
MOR_DEVICE DotTerm term_of_c(u32 c, bool is_first, const DotRule& rule) {
  const i32 smallest = is_first ? rule.first_exponent : rule.result.smallest_exponent;
  const i32 exponent = magnitude_of(c) ? exponent_of(c, smallest) : rule.zero_exponent;
  if (!is_finite(c)) return {0, 0, exponent, number(c), true};
  const DotFactor factor = factor_of(c);
  return {factor.whole, factor.unit, exponent, 0.0f, false};
}

// DOT-007, DOT-008 and DOT-010: the sum of so many terms and c. `term_at` makes them twice.
template <class Terms>
MOR_DEVICE DotChunk cut_chunk(Terms term_at, u32 count, u32 c, bool is_first, const DotRule& rule) {
  const DotTerm term_c = term_of_c(c, is_first, rule);
  i32 exponent = term_c.exponent;
  bool has_special = term_c.is_special;
  float special = term_c.special;
  for (u32 k = 0; k < count; k++) {
    const DotTerm term = term_at(k);
    exponent = most(exponent, term.exponent);
    if (!term.is_special) continue;
    special = has_special ? __fadd_rn(special, term.special) : term.special;
    has_special = true;
  }
  if (has_special) return {0, 0, bits_of(special)};
  const i32 unit = exponent - rule.fraction_bits;
  i64 sum = cut(term_c.whole, term_c.unit, unit);
  for (u32 k = 0; k < count; k++) {
    const DotTerm term = term_at(k);
    sum += cut(term.whole, term.unit, unit);
  }
  const u32 rounded = rounded_sum(sum, unit, rule.result);
  return {exponent, sum, magnitude_of(rounded) ? rounded : 0};
}

// DOT-007: t_fdpa, and with scales st_fdpa.
MOR_DEVICE DotChunk next_t_fdpa(const DotOperands& of, u64 row, u64 start, u32 c, const DotRule& rule) {
  auto term_at = [&](u32 k) { return term_of_product(of, product_at(of, row, start + k), rule.zero_exponent); };
  return cut_chunk(term_at, rule.chunk, c, start == 0, rule);
}

// DOT-009: sixteen products, summed exactly in units of the smallest ones, then times both scales.
MOR_DEVICE DotTerm term_of_group(const DotOperands& of, u64 row, u64 start, i32 zero_exponent) {
  const i32 unit_a = of.a.smallest_exponent - of.a.from.mantissa_bits;
  const i32 unit_b = of.b.smallest_exponent - of.b.from.mantissa_bits;
  i64 sum = 0;
  bool has_special = false, is_zero = true;
  float special = 0.0f;
  for (u32 k = 0; k < DOT_GROUP; k++) {
    DotProduct product = product_at(of, row, start + k);
    product.scale_a = product.scale_b = ONE_AS_BITS;
    if (is_special(product)) {
      special = has_special ? __fadd_rn(special, special_product(product)) : special_product(product);
      has_special = true;
      continue;
    }
    const DotFactor a = factor_of(product.a), b = factor_of(product.b);
    if (a.whole == 0 || b.whole == 0) continue;
    is_zero = false;
    sum += cut(a.whole, a.unit, unit_a) * cut(b.whole, b.unit, unit_b);
  }
  const DotProduct first = product_at(of, row, start);
  if (has_special || !(is_finite(first.scale_a) && is_finite(first.scale_b))) {
    const float inner = has_special ? special : sum > 0 ? 1.0f : sum < 0 ? -1.0f : 0.0f;
    const float scales = __fmul_rn(sign_of_factor(first.scale_a), sign_of_factor(first.scale_b));
    return {0, 0, zero_exponent, __fmul_rn(inner, scales), true};
  }
  const DotFactor scales = times(factor_of(first.scale_a), factor_of(first.scale_b));
  if (is_zero || scales.whole == 0) return {0, 0, zero_exponent, 0.0f, false};
  const i32 exponent = exponent_of(first.scale_a, of.scale_a.smallest_exponent) +
                       exponent_of(first.scale_b, of.scale_b.smallest_exponent);
  return {sum * scales.whole, unit_a + unit_b + scales.unit, exponent, 0.0f, false};
}

MOR_DEVICE DotChunk next_gst_fdpa(const DotOperands& of, u64 row, u64 start, u32 c, const DotRule& rule) {
  auto term_at = [&](u32 g) { return term_of_group(of, row, start + g * DOT_GROUP, rule.zero_exponent); };
  return cut_chunk(term_at, rule.chunk / DOT_GROUP, c, start == 0, rule);
}

// DOT-011: 128 products from 0 on, and then a fused operation.
MOR_DEVICE DotChunk next_promoted(const DotOperands& of, u64 row, u64 start, u32 c, const DotRule& rule) {
  DotOperands unscaled = of;
  unscaled.scale_a.codes = 0;
  u32 partial = 0;
  for (u32 k = 0; k < DOT_PERIOD; k += rule.chunk) partial = next_t_fdpa(unscaled, row, start + k, partial, rule).c;
  const DotProduct first = product_at(of, row, start);
  const u32 scale = bits_of(__fmul_rn(number(first.scale_a), number(first.scale_b)));
  return {0, 0, fused(scale, partial, c)};
}
