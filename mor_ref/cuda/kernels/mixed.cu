// Mixtures of formats: squared errors of units, and the candidate that has the least.
#include "kernels.cuh"
#include "measuring.cuh"
#include "mixed.cuh"
#include "nvfp4.cuh"

// MFQ-003: sums of lower halves and of upper halves, which carry nothing to each other.
template <u32 TEAM, class Source, class Rule>
MOR_DEVICE void add_squares(const typename Source::Stored* x, const Cut& cut, const Rule& rule, const u32* amax,
                            u64* low, u64* high) {
  for (u64 n = Team<TEAM>::number(); n < pieces_of(cut); n += Team<TEAM>::count()) {
    const Piece piece = piece_of(cut, n);
    const u32 largest = amax[piece.block];
    const i32 exponent = largest ? normalised(largest).exponent : 0;
    const auto& in_block = rule.template in_block<TEAM>(piece.block);
    u64 own = 0;
    visit_piece<TEAM>(x, cut, piece, [&](const auto& run, u64 row, u64 column) {
      const auto& quantized = in_block.in_run(row, column);
      const auto elements = quantized_by<Source>(quantized, run.numbers);
      MOR_UNROLL
      for (u32 k = 0; k < run.count; k++) {
        const u64 u = largest ? error_in_units(elements.x[k], elements.y[k], exponent) : 0;
        own += u * u;
      }
    });
    const u64 sum = reduced<TEAM, Sum>(own);
    if (Team<TEAM>::rank() == 0) {
      atomicAdd(low + piece.block, sum & 0xFFFFFFFFu);
      atomicAdd(high + piece.block, sum >> 32);
    }
  }
}

// MFQ-003: the lowest 64 bits of each sum.
MOR_KERNEL join_squares(u64 units, const u64* low, const u64* high, u64* joined) {
  for (u64 unit = first_of_thread(); unit < units; unit += threads_of_grid())
    joined[unit] = low[unit] + (high[unit] << 32);
}
MOR_EXPORT(join_squares)

// MFQ-004: from the first candidate to the last, which are numbered from 0.
MOR_KERNEL take_least(u32 candidate, u64 units, const u64* low, const u64* high, u64* least_low, u64* least_high,
                      u8* choice) {
  for (u64 unit = first_of_thread(); unit < units; unit += threads_of_grid()) {
    const u64 upper = high[unit] + (low[unit] >> 32), lower = low[unit] & 0xFFFFFFFFu;
    const bool is_less = upper < least_high[unit] || (upper == least_high[unit] && lower < least_low[unit]);
    if (candidate != 0 && !is_less) continue;
    least_high[unit] = upper;
    least_low[unit] = lower;
    choice[unit] = u8(candidate);
  }
}
MOR_EXPORT(take_least)

// MFQ-006.
template <u32 TEAM, class Source, class Rule>
MOR_DEVICE void write_taken(const typename Source::Stored* x, const Cut& cut, const Rule& rule, const u8* choice,
                            u32 candidate, u8* codes, u32* y) {
  for (u64 n = Team<TEAM>::number(); n < pieces_of(cut); n += Team<TEAM>::count()) {
    const Piece piece = piece_of(cut, n);
    if (choice[piece.block] != candidate) continue;
    const auto& in_block = rule.template in_block<TEAM>(piece.block);
    visit_piece<TEAM>(x, cut, piece, [&](const auto& run, u64 row, u64 column) {
      const auto& quantized = in_block.in_run(row, column);
      auto run_codes = beside<u8>(run);
      auto values = beside<u32>(run);
      const auto elements = quantized_by<Source>(quantized, run.numbers);
      for (u32 k = 0; k < run.count; k++) run_codes.numbers[k] = elements.codes.number(k);
      for (u32 k = 0; k < run.count; k++) values.numbers[k] = elements.y[k];
      store(run_codes, codes);
      store(values, y);
    });
  }
}

#define MIXED_RULE(name, Source, TEAM, suffix, Rule)                                                               \
  MOR_KERNEL squares##suffix##_##name##_##TEAM(const Source::Stored* x, Cut cut, Rule rule, const u32* amax,       \
                                               u64* low, u64* high) {                                              \
    add_squares<TEAM, Source>(x, cut, rule, amax, low, high);                                                      \
  }                                                                                                                \
  MOR_KERNEL write_mixed##suffix##_##name##_##TEAM(const Source::Stored* x, Cut cut, Rule rule, const u8* choice,  \
                                                   u32 candidate, u8* codes, u32* y) {                             \
    write_taken<TEAM, Source>(x, cut, rule, choice, candidate, codes, y);                                          \
  }                                                                                                                \
  MOR_EXPORT(squares##suffix##_##name##_##TEAM)                                                                    \
  MOR_EXPORT(write_mixed##suffix##_##name##_##TEAM)
#define MIXED(name, Source, TEAM)                \
  MIXED_RULE(name, Source, TEAM, , ByScale)      \
  MIXED_RULE(name, Source, TEAM, _tiles, ByTile) \
  MIXED_RULE(name, Source, TEAM, _values, ByValue)
MOR_FOR_SOURCES_AND_TEAMS(MIXED)
