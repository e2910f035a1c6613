// Entries of products of matrices (GEM-001): a thread has a row of A and a column of B, in blocks.
#include "blocks.cuh"
#include "dot_amd.cuh"
#include "dot_binary32.cuh"
#include "dot_nvidia.cuh"
#include "kernels.cuh"

// Rows of codes, y as bfloat16, the choice and the scale of each block, and the scale of each row.
struct MatmulSide {
  const u32* codes;
  const u16* upcast;
  const u8* choice;
  const u32* scale;
  const u32* overall;
};

// `of` reads the codes of each choice; the last one is bfloat16. `scales` reads those of instructions. `taken` has a bit for each choice that is
// multiplied as it is. Chunks of the profile and of the one for bfloat16 have these lengths.
struct MatmulRule {
  DotCodes of[4], scales;
  u64 columns, block, blocks, length, wide_length;
  u32 taken, inverts, has_overall;
  DotRule own, wide;
};

static constexpr u32 MATMUL_WIDEST = 3;

// GEM-003: d of a block; one in bfloat16 has none.
MOR_DEVICE u32 matmul_factor(const MatmulSide& side, u64 row, u64 k, const MatmulRule& rule) {
  const u64 at = row * rule.blocks + k;
  if (side.choice[at] == MATMUL_WIDEST) return ONE_AS_BITS;
  const float scale = number(side.scale[at]);
  return bits_of(__fmul_rn(rule.inverts ? __fdiv_rn(1.0f, scale) : scale, number(side.overall[row])));
}

// GEM-004: the codes of a piece, or y.
MOR_DEVICE DotCodes matmul_codes(const MatmulSide& side, u64 row, u64 k, bool is_upcast, const MatmulRule& rule) {
  const u64 at = row * rule.columns + k * rule.block;
  DotCodes piece = rule.of[is_upcast ? MATMUL_WIDEST : side.choice[row * rule.blocks + k]];
  piece.codes = is_upcast ? u64(side.upcast + at) : u64(side.codes + at);
  piece.bytes = is_upcast ? 2 : 4;
  return piece;
}

// GEM-003 and GEM-004: pieces of K from +0 on, each times its factors.
#define PRODUCT_IN_PIECES(family, wide_family)                                                                 \
  MOR_KERNEL matmul_##family(u64 rows, MatmulSide a, MatmulSide b, MatmulRule rule, u32* result) {             \
    for (u64 row = first_of_thread(); row < rows; row += threads_of_grid()) {                                  \
      u32 c = 0;                                                                                               \
      for (u64 k = 0; k < rule.blocks; k++) {                                                                  \
        const u32 both = 1u << a.choice[row * rule.blocks + k] | 1u << b.choice[row * rule.blocks + k];        \
        const bool is_upcast = (both & ~rule.taken) != 0;                                                      \
        DotOperands of = {};                                                                                   \
        of.a = matmul_codes(a, row, k, is_upcast, rule), of.b = matmul_codes(b, row, k, is_upcast, rule);      \
        of.columns = least(rule.block, rule.columns - k * rule.block);                                         \
        const u64 length = is_upcast ? rule.wide_length : rule.length;                                         \
        u32 part = 0;                                                                                          \
        for (u64 start = 0; start < of.columns; start += length)                                               \
          part = is_upcast ? next_##wide_family(of, 0, start, part, rule.wide).c                               \
                           : next_##family(of, 0, start, part, rule.own).c;                                    \
        u32 factor = ONE_AS_BITS;                                                                              \
        if (!is_upcast)                                                                                        \
          factor = bits_of(__fmul_rn(number(matmul_factor(a, row, k, rule)), number(matmul_factor(b, row, k, rule)))); \
        c = fused(factor, part, c);                                                                            \
      }                                                                                                        \
      result[row] = bits_of(number(c));                                                                        \
    }                                                                                                          \
  }                                                                                                            \
  MOR_EXPORT(matmul_##family)
PRODUCT_IN_PIECES(t_fdpa, t_fdpa)
PRODUCT_IN_PIECES(promoted, t_fdpa)
PRODUCT_IN_PIECES(e_fdpa, e_fdpa)
PRODUCT_IN_PIECES(ftz_mul_add, ftz_mul_add)
PRODUCT_IN_PIECES(tr_fdpa, tr_fdpa)
PRODUCT_IN_PIECES(gtr_fdpa, tr_fdpa)

// GEM-003: two factors of an exact sum. In NVFP4 the number takes w, exactly, and g is the scale.
MOR_DEVICE void set_exact(const MatmulSide& side, u64 row, u64 k, const MatmulRule& rule, u32& value, u32& scale) {
  const u64 block = k / rule.block, at = row * rule.blocks + block;
  const DotCodes of = matmul_codes(side, row, block, false, rule);
  value = dot_number(of, k - block * rule.block);
  scale = rule.has_overall ? side.overall[row] : matmul_factor(side, row, block, rule);
  if (rule.has_overall) value = bits_of(__fmul_rn(number(value), number(side.scale[at])));
}

MOR_KERNEL matmul_exact(u64 rows, MatmulSide a, MatmulSide b, MatmulRule rule, u32* result) {
  for (u64 row = first_of_thread(); row < rows; row += threads_of_grid()) {
    auto product = [&](u64 k) {
      DotProduct factors = {};
      set_exact(a, row, k, rule, factors.a, factors.scale_a);
      set_exact(b, row, k, rule, factors.b, factors.scale_b);
      return factors;
    };
    result[row] = bits_of(number(exact_sum(product, rule.columns, 0).c));
  }
}
MOR_EXPORT(matmul_exact)

// GEM-003: an instruction that takes the scales, which are numbers here; its result times those of both rows.
#define PRODUCT_WITH_SCALES(family)                                                                            \
  MOR_KERNEL matmul_with_##family(u64 rows, MatmulSide a, MatmulSide b, MatmulRule rule, u32* result) {        \
    for (u64 row = first_of_thread(); row < rows; row += threads_of_grid()) {                                  \
      DotOperands of = {};                                                                                     \
      of.a = matmul_codes(a, row, 0, false, rule), of.b = matmul_codes(b, row, 0, false, rule);                \
      of.scale_a = of.scale_b = rule.scales;                                                                   \
      of.scale_a.codes = u64(a.scale + row * rule.blocks), of.scale_b.codes = u64(b.scale + row * rule.blocks); \
      of.columns = rule.columns, of.block = rule.block;                                                        \
      u32 c = 0;                                                                                               \
      for (u64 start = 0; start < of.columns; start += rule.length)                                            \
        c = next_##family(of, 0, start, c, rule.own).c;                                                        \
      const float overall = __fmul_rn(number(a.overall[row]), number(b.overall[row]));                         \
      result[row] = bits_of(__fmul_rn(number(c), overall));                                                    \
    }                                                                                                          \
  }                                                                                                            \
  MOR_EXPORT(matmul_with_##family)
PRODUCT_WITH_SCALES(t_fdpa)
PRODUCT_WITH_SCALES(gst_fdpa)
