// Tensors as integers with a scale and a zero point for each block (AFF-001), or each group of columns.
#include "affine.cuh"
#include "blocks.cuh"
#include "kernels.cuh"

// AFF-003: the keys of the extremes of blocks. Begin with all ones and with 0.
template <u32 TEAM, class Source>
MOR_DEVICE void affine_extremes(const typename Source::Stored* x, const Cut& cut, u32* least_key, u32* most_key) {
  for (u64 n = Team<TEAM>::number(); n < pieces_of(cut); n += Team<TEAM>::count()) {
    const Piece piece = piece_of(cut, n);
    u32 low = ~0u, high = 0;
    visit_piece<TEAM, 4>(x, cut, piece, [&](const auto& run, u64, u64) {
      for (u32 k = 0; k < run.count; k++) {
        const u32 key = key_of(Source::binary32(run.numbers[k]));
        low = least(low, key);
        high = most(high, key);
      }
    });
    low = reduced<TEAM, Smaller>(low);
    high = reduced<TEAM, Larger>(high);
    if (Team<TEAM>::rank() == 0) {
      atomicMin(least_key + piece.block, low);
      atomicMax(most_key + piece.block, high);
    }
  }
}

#define AFFINE_EXTREMES(name, Source, TEAM)                                                                 \
  MOR_KERNEL affine_extremes_##name##_##TEAM(const Source::Stored* x, Cut cut, u32* least_key, u32* most_key) { \
    affine_extremes<TEAM, Source>(x, cut, least_key, most_key);                                             \
  }                                                                                                         \
  MOR_EXPORT(affine_extremes_##name##_##TEAM)
MOR_FOR_SOURCES_AND_TEAMS(AFFINE_EXTREMES)

// AFF-005: whether a block has a negative number. Begin with 0.
MOR_KERNEL affine_sign(const u32* least_key, const u32* most_key, u64 count, u32* is_signed) {
  for (u64 n = first_of_thread(); n < count; n += threads_of_grid())
    if (number(ends_of(least_key[n], most_key[n]).minimum) < 0.0f) atomicOr(is_signed, 1u);
}
MOR_EXPORT(affine_sign)

// AFF-003 to AFF-007: the fields of blocks.
MOR_KERNEL affine_blocks(const u32* least_key, const u32* most_key, u64 count, AffineRule rule, const u32* is_signed,
                         AffineBlockFields fields) {
  const AffineRule used = with_sign(rule, *is_signed);
  for (u64 n = first_of_thread(); n < count; n += threads_of_grid())
    fill_block(n, ends_of(least_key[n], most_key[n]), used, fields);
}
MOR_EXPORT(affine_blocks)

// ---------------------------------------------------------------------- groups of columns

// AFF-010: the range of each column.
MOR_KERNEL affine_ranges(const u32* least_key, const u32* most_key, u64 columns, u32* ranges) {
  for (u64 j = first_of_thread(); j < columns; j += threads_of_grid()) {
    const AffineEnds ends = ends_of(least_key[j], most_key[j]);
    ranges[j] = bits_of(__fsub_rn(number(ends.maximum), number(ends.minimum)));
  }
}
MOR_EXPORT(affine_ranges)

// AFF-010: the place of each column, and the column of each place. Ranges are at least 0, and NaN is the largest word.
MOR_KERNEL affine_order(const u32* ranges, u64 columns, u32* place, u32* order) {
  for (u64 j = first_of_thread(); j < columns; j += threads_of_grid()) {
    u64 before = 0;
    for (u64 k = 0; k < columns; k++) before += ranges[k] < ranges[j] || (ranges[k] == ranges[j] && k < j);
    place[j] = u32(before);
    order[before] = u32(j);
  }
}
MOR_EXPORT(affine_order)

// The keys of the extremes of groups, from those of columns.
MOR_KERNEL affine_group_ends(const u32* least_key, const u32* most_key, const u32* order, u64 groups, u64 each,
                             u32* least_of_group, u32* most_of_group) {
  for (u64 n = first_of_thread(); n < groups; n += threads_of_grid()) {
    u32 low = ~0u, high = 0;
    for (u64 k = n * each; k < (n + 1) * each; k++) {
      low = least(low, least_key[order[k]]);
      high = most(high, most_key[order[k]]);
    }
    least_of_group[n] = low;
    most_of_group[n] = high;
  }
}
MOR_EXPORT(affine_group_ends)

// The sums of groups, from those of columns.
MOR_KERNEL affine_group_sums(const u64* column_sums, const u32* order, u64 groups, u64 each, u64* group_sums) {
  for (u64 n = first_of_thread(); n < groups; n += threads_of_grid()) {
    u64 sum = 0;
    for (u64 k = n * each; k < (n + 1) * each; k++) sum += column_sums[order[k]];
    group_sums[n] = sum;
  }
}
MOR_EXPORT(affine_group_sums)

// ---------------------------------------------------------------------- numbers

// Where the block of a number is. `place` is null, or has the place of each column in the order of groups.
struct AffinePlaces {
  u64 rows, columns, block_rows, block_columns, across;
  const u32* place;
};

// The fields of numbers, each in its own array.
struct AffineFields {
  u32* xs;
  i32* code;
  u32* y;
};

template <class Source, bool FUSED, bool FLOAT_ZEROS>
MOR_DEVICE void affine_numbers(const typename Source::Stored* x, const AffinePlaces& in, const AffineRule& rule,
                               const AffineBlockFields& blocks, const AffineFields& fields) {
  for (u64 i = first_of_thread(); i < in.rows * in.columns; i += threads_of_grid()) {
    const Division at = divided(i, in.columns);
    const u64 column = in.place ? in.place[at.rest] : at.rest;
    const u64 n = at.quotient / in.block_rows * in.across + column / in.block_columns;
    const float number_of_x = number(Source::binary32(x[i])), zero = number(blocks.zero[n]);
    const float scale = number(blocks.scale[n]), inverse = number(blocks.inverse_scale[n]);
    const float xs = FUSED ? __fmaf_rn(number_of_x, inverse, zero) : scaled_of(number_of_x, scale, inverse, zero, rule);
    const i32 code = code_of(xs, zero, rule);
    fields.xs[i] = bits_of(xs);
    fields.code[i] = code;
    fields.y[i] = bits_of(FLOAT_ZEROS ? y_of_float_zero(code, scale, zero, rule) : y_of(code, scale, zero, rule));
  }
}

// Only kernels of a profile that fuses have a fused multiply-add (AFF-007), and those of float zero points binary64 (AFF-012).
#define AFFINE_NUMBERS_OF(kernel, Source, FUSED, FLOAT_ZEROS)                                                          \
  MOR_KERNEL kernel(const Source::Stored* x, AffinePlaces in, AffineRule rule, const u32* is_signed,                   \
                    AffineBlockFields blocks, AffineFields fields) {                                                   \
    affine_numbers<Source, FUSED, FLOAT_ZEROS>(x, in, with_sign(rule, *is_signed), blocks, fields);                    \
  }                                                                                                                    \
  MOR_EXPORT(kernel)
#define AFFINE_NUMBERS(name, Source)                            \
  AFFINE_NUMBERS_OF(affine_numbers_##name, Source, false, false) \
  AFFINE_NUMBERS_OF(affine_fused_##name, Source, true, false)    \
  AFFINE_NUMBERS_OF(affine_fused_zeros_##name, Source, true, true)
MOR_FOR_SOURCES(AFFINE_NUMBERS)
