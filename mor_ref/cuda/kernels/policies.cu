// Policies: which representation each unit takes, and its output (QNT-003, MOR-006).
#include "kernels.cuh"
#include "measuring.cuh"
#include "nvfp4.cuh"
#include "policies.cuh"

// The units that a metric accepts, whatever they lose.
MOR_KERNEL accepted(Rung rung, const u64* sum, const u64* nonzero, const u64* yardstick_sum, const u32* amax,
                    const u32* amin, u64 units, u8* is_accepted) {
  for (u64 unit = first_of_thread(); unit < units; unit += threads_of_grid()) {
    const ErrorSum own = {sum[unit], nonzero[unit], 0};
    is_accepted[unit] = accepts(rung, own, yardstick_sum[unit], Extremes{amax[unit], amin[unit]});
  }
}
MOR_EXPORT(accepted)

// The units that lose nothing under a rung, and that its metric accepts, take it: MOR-001, from the last rung
// to the first.
MOR_KERNEL take(u32 rung, const u8* is_accepted, const u64* nonfinite, u64 units, u8* choice) {
  for (u64 unit = first_of_thread(); unit < units; unit += threads_of_grid())
    if (is_accepted[unit] && nonfinite[unit] == 0) choice[unit] = u8(rung);
}
MOR_EXPORT(take)

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
template <u32 TEAM, class Source, class Rule, class Code>
MOR_DEVICE void write_units(const typename Source::Stored* x, const Cut& cut, const u8* choice, u64 units_per_block,
                            u32 rung, const Rule& rule, u16* output, Code code) {
  for (u64 n = Team<TEAM>::number(); n < pieces_of(cut); n += Team<TEAM>::count()) {
    const Piece piece = piece_of(cut, n);
    if (choice[piece.block * units_per_block] != rung) continue;
    const auto& in_block = rule.template in_block<TEAM>(piece.block);
    visit_piece<TEAM>(x, cut, piece, [&](const auto& run, u64 row, u64 column) {
      const auto& quantized = in_block.in_run(row, column);
      auto codes = beside<u16>(run);
      code(quantized, run.numbers, codes.numbers);
      store(codes, output);
    });
  }
}

// What a rung makes of numbers, in bfloat16.
template <class Source> struct ByRule {
  template <class Rule, u32 COUNT>
  MOR_MEMBER void operator()(const Rule& rule, const typename Source::Stored (&numbers)[COUNT], u16 (&codes)[COUNT]) const {
    const auto elements = quantized_by<Source>(rule, numbers);
    for (u32 k = 0; k < COUNT; k++) codes[k] = u16(as_bf16(elements.y[k]));
  }
};

// A unit that has taken none keeps the codes of a bfloat16 input; other numbers are encoded.
template <class Source> MOR_DEVICE u32 kept(Source, typename Source::Stored stored) {
  return as_bf16(Source::binary32(stored));
}
MOR_DEVICE u32 kept(Bf16, u16 stored) { return stored; }
template <class Source> struct Kept {
  template <class Rule, u32 COUNT>
  MOR_MEMBER void operator()(const Rule&, const typename Source::Stored (&numbers)[COUNT], u16 (&codes)[COUNT]) const {
    for (u32 k = 0; k < COUNT; k++) codes[k] = u16(kept(Source(), numbers[k]));
  }
};

// The rule of units that nothing is made of.
struct NoScale {
  template <u32 TEAM> MOR_MEMBER const NoScale& in_block(u64) const { return *this; }
  MOR_MEMBER const NoScale& in_run(u64, u64) const { return *this; }
};

#define UNDER_RULE(name, Source, TEAM, suffix, Rule)                                                              \
  MOR_KERNEL measure##suffix##_##name##_##TEAM(const Source::Stored* x, Cut cut, Rule rule, u64 units_per_block,  \
                                               ErrorSums units) {                                                 \
    measure<TEAM, Source>(x, cut, rule, units_per_block, units, [](const auto&) {});                              \
  }                                                                                                               \
  MOR_KERNEL write##suffix##_##name##_##TEAM(const Source::Stored* x, Cut cut, const u8* choice,                  \
                                             u64 units_per_block, u32 rung, Rule rule, u16* output) {             \
    write_units<TEAM, Source>(x, cut, choice, units_per_block, rung, rule, output, ByRule<Source>());             \
  }                                                                                                               \
  MOR_EXPORT(measure##suffix##_##name##_##TEAM)                                                                   \
  MOR_EXPORT(write##suffix##_##name##_##TEAM)
#define POLICIES(name, Source, TEAM)                                                                              \
  UNDER_RULE(name, Source, TEAM, , ByScale)                                                                       \
  UNDER_RULE(name, Source, TEAM, _tiles, ByTile)                                                                  \
  UNDER_RULE(name, Source, TEAM, _values, ByValue)                                                                \
  MOR_KERNEL write_kept_##name##_##TEAM(const Source::Stored* x, Cut cut, const u8* choice, u64 units_per_block,  \
                                        u32 rung, u16* output) {                                                  \
    write_units<TEAM, Source>(x, cut, choice, units_per_block, rung, NoScale(), output, Kept<Source>());          \
  }                                                                                                               \
  MOR_EXPORT(write_kept_##name##_##TEAM)
MOR_FOR_SOURCES_AND_TEAMS(POLICIES)
