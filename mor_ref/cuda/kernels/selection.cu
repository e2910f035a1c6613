// Numbers of a tensor that are selected, by rank (SEL-001) and by column (SEL-002).
#include "blocks.cuh"
#include "kernels.cuh"

// A threshold is found digit by digit, the highest first: `place` is that among the numbers that begin with `digits`.
struct RankState {
  u64 place, digits;
};
constexpr u32 RANK_BITS = 8, RANK_DIGITS = 1u << RANK_BITS;

// How many magnitudes that begin with the known digits have each next one. Begin with 0.
#define RANK_COUNTS(name, Source)                                                                              \
  MOR_KERNEL rank_counts_##name(const Source::Stored* x, u64 count, const RankState* state, u32 shift, u64* counts) { \
    const u64 digits = state->digits;                                                                          \
    for (u64 i = first_of_thread(); i < count; i += threads_of_grid()) {                                       \
      const u64 magnitude = magnitude_of(Source::binary32(x[i]));                                              \
      if (magnitude >> (shift + RANK_BITS) == digits)                                                          \
        atomicAdd(counts + (magnitude >> shift & (RANK_DIGITS - 1)), u64(1));                                  \
    }                                                                                                          \
  }                                                                                                            \
  MOR_EXPORT(rank_counts_##name)
MOR_FOR_SOURCES(RANK_COUNTS)

// One more digit of the threshold; the counts are 0 again.
MOR_KERNEL rank_digit(RankState* state, u64* counts) {
  if (first_of_thread() != 0) return;
  u32 digit = 0;
  u64 place = state->place;
  while (place >= counts[digit] && digit < RANK_DIGITS - 1) place -= counts[digit++];
  state->place = place;
  state->digits = state->digits << RANK_BITS | digit;
  for (u32 k = 0; k < RANK_DIGITS; k++) counts[k] = 0;
}
MOR_EXPORT(rank_digit)

// SEL-001: bits of magnitudes are in their order, and NaN is above all.
#define SELECTED_BY_RANK(name, Source)                                                                             \
  MOR_KERNEL selected_by_rank_##name(const Source::Stored* x, u64 count, const RankState* state, u8* selected) {   \
    const u32 threshold = u32(state->digits);                                                                      \
    for (u64 i = first_of_thread(); i < count; i += threads_of_grid())                                             \
      selected[i] = threshold > Binary<u32>::infinity || magnitude_of(Source::binary32(x[i])) > threshold;         \
  }                                                                                                                \
  MOR_EXPORT(selected_by_rank_##name)
MOR_FOR_SOURCES(SELECTED_BY_RANK)

// SEL-002: whether a column has an outlier. Begin with 0.
#define OUTLIER_COLUMNS(name, Source)                                                                             \
  MOR_KERNEL outlier_columns_##name(const Source::Stored* x, u64 count, u64 columns, u32 limit, u32* has_outlier) { \
    for (u64 i = first_of_thread(); i < count; i += threads_of_grid()) {                                          \
      const u32 magnitude = magnitude_of(Source::binary32(x[i]));                                                 \
      if (magnitude >= limit && magnitude <= Binary<u32>::infinity) atomicOr(has_outlier + i % columns, 1u);      \
    }                                                                                                             \
  }                                                                                                               \
  MOR_EXPORT(outlier_columns_##name)
MOR_FOR_SOURCES(OUTLIER_COLUMNS)

// SEL-002: all numbers of those columns.
MOR_KERNEL selected_by_column(const u32* has_outlier, u64 count, u64 columns, u8* selected) {
  for (u64 i = first_of_thread(); i < count; i += threads_of_grid()) selected[i] = u8(has_outlier[i % columns]);
}
MOR_EXPORT(selected_by_column)
