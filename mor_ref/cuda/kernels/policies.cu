// Policies: which representation each unit takes, and what is written for it.
#include "kernels.cuh"
#include "measuring.cuh"
#include "nvfp4.cuh"
#include "policies.cuh"

// The first rung that accepts each unit, MOR-001; `rungs` stands for none. The sums of a
// representation follow on one another, unit by unit.
MOR_KERNEL choose(const Rung* ladder, u32 rungs, const u64* sum, const u64* nonzero, const u64* nonfinite,
                  const u32* amax, const u32* amin, u64 units, u8* choice) {
  for (u64 unit = first_of_thread(); unit < units; unit += threads_of_grid()) {
    u32 found = 0;
    for (; found < rungs; found++) {
      const Rung rung = ladder[found];
      const u64 at = rung.own * units + unit;
      const ErrorSum own = {sum[at], nonzero[at], nonfinite[at]};
      const Extremes extremes = {amax[unit], amin[unit]};
      if (own.nonfinite == 0 && accepts(rung, own, sum[rung.yardstick * units + unit], extremes)) break;
    }
    choice[unit] = u8(found);
  }
}
MOR_EXPORT(choose)

// Whether a metric accepts a unit of these sums, without a ladder.
MOR_KERNEL decision_steps(const u64* sum, const u64* nonzero, const u64* nonfinite, const u32* limit,
                          const u64* yardstick_sum, const u32* amax, const u32* amin, u64 count, Rung rung,
                          u8* accepted) {
  for (u64 i = first_of_thread(); i < count; i += threads_of_grid()) {
    rung.limit = limit[i];
    const ErrorSum own = {sum[i], nonzero[i], nonfinite[i]};
    accepted[i] = own.nonfinite == 0 && accepts(rung, own, yardstick_sum[i], Extremes{amax[i], amin[i]});
  }
}
MOR_EXPORT(decision_steps)

// The bfloat16 codes of the elements of the units that have taken a rung (MOR-006).
template <u32 TEAM, class Source, class Code>
MOR_DEVICE void write_units(const typename Source::Stored* x, const Cut& cut, const u8* choice, u64 units_per_block,
                            u32 rung, u16* output, Code code) {
  for (u64 n = Team<TEAM>::number(); n < pieces_of(cut); n += Team<TEAM>::count()) {
    const Piece piece = piece_of(cut, n);
    if (choice[piece.block * units_per_block] != rung) continue;
    visit_piece<TEAM>(x, cut, piece, [&](const auto& run) {
      auto codes = beside<u16>(run);
      for (u32 k = 0; k < run.count; k++) codes.numbers[k] = u16(code(piece.block, run.at + k, run.numbers[k]));
      store(codes, output);
    });
  }
}

// A unit that has taken none keeps the codes of a bfloat16 input; other numbers are encoded.
template <class Source> MOR_DEVICE u32 kept(Source, typename Source::Stored stored, const Encoding& bf16) {
  return encoded(Source::binary32(stored), bf16);
}
MOR_DEVICE u32 kept(Bf16, u16 stored, const Encoding&) { return stored; }

#define POLICIES(name, Source, TEAM)                                                                               \
  MOR_KERNEL measure_##name##_##TEAM(const Source::Stored* x, Cut cut, ByScale quantized, u64 units_per_block,     \
                                     ErrorSums units) {                                                            \
    measure<TEAM, Source>(x, cut, quantized, units_per_block, units, [](const auto&) {});                  \
  }                                                                                                                \
  MOR_KERNEL measure_tiles_##name##_##TEAM(const Source::Stored* x, Cut cut, ByTile quantized, u64 units_per_block, \
                                           ErrorSums units) {                                                      \
    measure<TEAM, Source>(x, cut, quantized, units_per_block, units, [](const auto&) {});                  \
  }                                                                                                                \
  MOR_KERNEL write_##name##_##TEAM(const Source::Stored* x, Cut cut, const u8* choice, u64 units_per_block,        \
                                   u32 rung, ByScale quantized, Encoding bf16, u16* output) {                      \
    write_units<TEAM, Source>(x, cut, choice, units_per_block, rung, output,                                       \
                              [&](u64 block, u64 at, Source::Stored stored) {                                      \
                                return encoded(quantized(block, at, Source::binary32(stored)).y, bf16);            \
                              });                                                                                  \
  }                                                                                                                \
  MOR_KERNEL write_tiles_##name##_##TEAM(const Source::Stored* x, Cut cut, const u8* choice, u64 units_per_block,  \
                                         u32 rung, ByTile quantized, Encoding bf16, u16* output) {                 \
    write_units<TEAM, Source>(x, cut, choice, units_per_block, rung, output,                                       \
                              [&](u64 block, u64 at, Source::Stored stored) {                                      \
                                return encoded(quantized(block, at, Source::binary32(stored)).y, bf16);            \
                              });                                                                                  \
  }                                                                                                                \
  MOR_KERNEL write_kept_##name##_##TEAM(const Source::Stored* x, Cut cut, const u8* choice, u64 units_per_block,   \
                                        u32 rung, Encoding bf16, u16* output) {                                    \
    write_units<TEAM, Source>(x, cut, choice, units_per_block, rung, output,                                       \
                              [&](u64, u64, Source::Stored stored) { return kept(Source(), stored, bf16); });        \
  }                                                                                                                \
  MOR_EXPORT(measure_##name##_##TEAM)                                                                              \
  MOR_EXPORT(measure_tiles_##name##_##TEAM)                                                                        \
  MOR_EXPORT(write_##name##_##TEAM)                                                                                \
  MOR_EXPORT(write_tiles_##name##_##TEAM)                                                                          \
  MOR_EXPORT(write_kept_##name##_##TEAM)
MOR_FOR_SOURCES_AND_TEAMS(POLICIES)
