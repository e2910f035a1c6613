// Matrices of weights with an alpha for each row (LVL-001).
#include "blocks.cuh"
#include "kernels.cuh"
#include "levels.cuh"

// The fields of weights, each in its own array.
struct LevelFields {
  u32 *ratio, *clipped, *level, *y, *alpha_term;
  u8 *inside, *code;
};

// LVL-002, of the largest magnitude of each row, NaN included.
MOR_KERNEL alphas_of_amaxes(const u32* amax, u64 rows, LevelRule rule, u32* alpha) {
  for (u64 i = first_of_thread(); i < rows; i += threads_of_grid())
    alpha[i] = bits_of(in_arithmetic(__fdiv_rn(in_arithmetic(number(amax[i]), rule), rule.divisor), rule));
}
MOR_EXPORT(alphas_of_amaxes)

// LVL-002, of the exact mean of magnitudes; a thread has a row.
#define MEANS(name, Source)                                                                                   \
  MOR_KERNEL alphas_of_means_##name(const Source::Stored* x, u64 rows, u64 columns, LevelRule rule, u32* alpha) { \
    for (u64 i = first_of_thread(); i < rows; i += threads_of_grid()) {                                       \
      ExactSum sum = {};                                                                                      \
      u32 lost = columns ? 0 : CANONICAL_NAN;                                                                 \
      for (u64 j = 0; j < columns; j++) {                                                                     \
        const float w = in_arithmetic(number(Source::binary32(x[i * columns + j])), rule);                    \
        const u32 magnitude = magnitude_of(__float_as_uint(w));                                               \
        if (is_finite(magnitude)) sum.add(magnitude);                                                         \
        else lost = most(lost, magnitude);                                                                    \
      }                                                                                                       \
      alpha[i] = lost ? lost : __float_as_uint(in_arithmetic(number(sum.mean(columns)), rule));               \
    }                                                                                                         \
  }                                                                                                           \
  MOR_EXPORT(alphas_of_means_##name)
MOR_FOR_SOURCES(MEANS)

// LVL-003: the alphas that are used.
MOR_KERNEL alphas_used(const u32* given, u64 rows, LevelRule rule, u32* alpha) {
  for (u64 i = first_of_thread(); i < rows; i += threads_of_grid())
    alpha[i] = __float_as_uint(used_alpha(number(given[i]), rule));
}
MOR_EXPORT(alphas_used)

#define LEVELS(name, Source)                                                                                        \
  MOR_KERNEL levels_##name(const Source::Stored* x, u64 rows, u64 columns, const u32* alphas, LevelRule rule,       \
                           LevelFields fields) {                                                                    \
    for (u64 i = first_of_thread(); i < rows * columns; i += threads_of_grid()) {                                   \
      const float alpha = number(alphas[i / columns]), w = in_arithmetic(number(Source::binary32(x[i])), rule);     \
      const float ratio = in_arithmetic(__fdiv_rn(w, alpha), rule);                                                 \
      const float clipped = ratio < rule.lowest ? rule.lowest : ratio > rule.highest ? rule.highest : ratio;        \
      const float level = level_of(w, clipped, rule);                                                               \
      fields.ratio[i] = bits_of(ratio);                                                                             \
      fields.clipped[i] = bits_of(clipped);                                                                         \
      fields.level[i] = bits_of(level);                                                                             \
      fields.y[i] = bits_of(in_arithmetic(__fmul_rn(level, alpha), rule));                                          \
      fields.alpha_term[i] = bits_of(alpha_term(ratio, level, rule));                                               \
      fields.inside[i] = !(ratio < rule.lowest || ratio > rule.highest);                                            \
      fields.code[i] = u8(level_code(level, rule));                                                                 \
    }                                                                                                               \
  }                                                                                                                 \
  MOR_EXPORT(levels_##name)
MOR_FOR_SOURCES(LEVELS)
