// The sums of units (MOR-009), and which units the metrics that compare them accept.
#include "kernels.cuh"
#include "measuring.cuh"
#include "nvfp4.cuh"
#include "unit_sums.cuh"

MOR_DEVICE u32* sums_of(const UnitSums& units, u64 unit) { return units.words + unit * (SUMS_OF_UNIT * SUM_WORDS); }

MOR_DEVICE void add_element(u32* sums, u32 x, u32 y, u32 d) {
  add_product(sums + SIGNAL * SUM_WORDS, x, x, false);
  if (is_finite(d)) add_product(sums + NOISE * SUM_WORDS, d, d, false);
  add_product(sums + ENERGY * SUM_WORDS, y, y, false);
  add_product(sums + PRODUCT * SUM_WORDS, x, y, (x ^ y) >> 31);
}

template <u32 TEAM> MOR_DEVICE void wait_for_team() {
  if (TEAM == THREADS) __syncthreads();
  else __syncwarp();
}

// Calls `add` with sums that are the team's alone, and adds these to the sums of a unit.
template <u32 TEAM> struct TeamSums {
  template <class Add> static MOR_MEMBER void add_to(u32* unit_sums, Add add) {
    constexpr u32 count = SUMS_OF_UNIT * SUM_WORDS;
    MOR_SHARED(u32, of_teams, THREADS / TEAM * count);
    u32* const own = of_teams + threadIdx.x / TEAM * count;
    for (u32 k = Team<TEAM>::rank(); k < count; k += TEAM) own[k] = 0;
    wait_for_team<TEAM>();
    add(own);
    wait_for_team<TEAM>();
    for (u32 k = Team<TEAM>::rank(); k < count; k += TEAM)
      add_word(unit_sums + k / SUM_WORDS * SUM_WORDS, k % SUM_WORDS, own[k]);
    wait_for_team<TEAM>();  // the next piece begins with zeros
  }
};
// A single thread has few numbers, which it adds to the sums of the unit.
template <> struct TeamSums<1> {
  template <class Add> static MOR_MEMBER void add_to(u32* unit_sums, Add add) { add(unit_sums); }
};

// A unit that loses an element is not asked about: what is not finite is left out.
template <u32 TEAM, class Source, class Rule>
MOR_DEVICE void sum_units(const typename Source::Stored* x, const Cut& cut, const Rule& rule, u64 units_per_block,
                          const UnitSums& units) {
  for (u64 n = Team<TEAM>::number(); n < pieces_of(cut); n += Team<TEAM>::count()) {
    const Piece piece = piece_of(cut, n);
    const u64 unit = piece.block * units_per_block;
    const auto& in_block = rule.template in_block<TEAM>(piece.block);
    TeamSums<TEAM>::add_to(sums_of(units, unit), [&](u32* sums) {
      visit_piece<TEAM>(x, cut, piece, [&](const auto& run, u64 row, u64 column) {
        const auto& quantized = in_block.in_run(row, column);
        const auto elements = quantized_by<Source>(quantized, run.numbers);
        u32 largest = 0, amax = 0, unmeasured = 0;
        for (u32 k = 0; k < run.count; k++) {
          const u32 of_x = elements.x[k], of_y = elements.y[k];
          if (!is_finite(of_x) || !is_finite(of_y)) continue;
          const u32 d = magnitude_of(__float_as_uint(__fsub_rn(number(of_x), number(of_y))));
          add_element(sums, of_x, of_y, d);
          amax = most(amax, magnitude_of(of_x));
          if (is_finite(d)) largest = most(largest, d);
          else unmeasured++;
        }
        const u64 of_row = row * units.across + unit % units.across;
        if (largest) atomicMax(units.largest + of_row, largest);
        if (amax) atomicMax(units.amax + of_row, amax);
        if (unmeasured) atomicAdd(units.unmeasured + unit, u64(unmeasured));
      });
    });
  }
}

#define UNDER_RULE(name, Source, TEAM, suffix, Rule)                                                                \
  MOR_KERNEL sum_units##suffix##_##name##_##TEAM(const Source::Stored* x, Cut cut, Rule rule, u64 units_per_block,  \
                                                 UnitSums units) {                                                  \
    sum_units<TEAM, Source>(x, cut, rule, units_per_block, units);                                                  \
  }                                                                                                                 \
  MOR_EXPORT(sum_units##suffix##_##name##_##TEAM)
#define SUMS(name, Source, TEAM)                 \
  UNDER_RULE(name, Source, TEAM, , ByScale)      \
  UNDER_RULE(name, Source, TEAM, _tiles, ByTile) \
  UNDER_RULE(name, Source, TEAM, _values, ByValue)
MOR_FOR_SOURCES_AND_TEAMS(SUMS)

// ---------------------------------------------------------------------- decisions

MOR_DEVICE Natural sum_of(const UnitSums& units, u64 unit, SumOf kind) {
  return {sums_of(units, unit) + kind * SUM_WORDS, SUM_WORDS};
}

// MOR-010: noise / signal is below the square of the threshold.
MOR_KERNEL accepted_by_relative_frobenius(Factors factors, UnitSums units, u64 count, u8* is_accepted) {
  for (u64 unit = first_of_thread(); unit < count; unit += threads_of_grid()) {
    const Natural noise = sum_of(units, unit, NOISE), signal = sum_of(units, unit, SIGNAL);
    const bool is_near = is_zero(noise) || compared(noise, factors.errors, signal, factors.numbers) < 0;
    is_accepted[unit] = units.unmeasured[unit] == 0 && is_near;
  }
}
MOR_EXPORT(accepted_by_relative_frobenius)

// MOR-011: R times the noise is at most the signal times 2^23.
MOR_KERNEL accepted_by_sqnr(Factors factors, UnitSums units, u64 count, u8* is_accepted) {
  for (u64 unit = first_of_thread(); unit < count; unit += threads_of_grid()) {
    const Natural noise = sum_of(units, unit, NOISE), signal = sum_of(units, unit, SIGNAL);
    const bool is_loud = compared(noise, factors.errors, signal, factors.numbers) <= 0;
    is_accepted[unit] = units.unmeasured[unit] == 0 && is_loud;
  }
}
MOR_EXPORT(accepted_by_sqnr)

// MOR-012: the product is positive, and its square at least that of the threshold times signal and energy.
MOR_KERNEL accepted_by_cosine(Factors factors, UnitSums units, u64 count, u8* is_accepted) {
  for (u64 unit = first_of_thread(); unit < count; unit += threads_of_grid()) {
    const Natural signal = sum_of(units, unit, SIGNAL), energy = sum_of(units, unit, ENERGY);
    const Natural product = sum_of(units, unit, PRODUCT);
    if (is_zero(signal) || is_zero(product) || product.words[SUM_WORDS - 1] >> 31) {
      is_accepted[unit] = is_zero(signal) && is_zero(energy);
      continue;
    }
    constexpr u32 length = 2 * SUM_WORDS;
    u32 square[length], lengths[length];
    Product of_products = {product, product, 0, 0}, of_lengths = {signal, energy, 0, 0};
    for (u32 column = 0; column < length; column++) {
      square[column] = of_products.word(column);
      lengths[column] = of_lengths.word(column);
    }
    is_accepted[unit] = compared({square, length}, factors.errors, {lengths, length}, factors.numbers) >= 0;
  }
}
MOR_EXPORT(accepted_by_cosine)

// MOR-013: in each row, the largest d is below a part of amax. A unit has `unit_rows` rows, or fewer at the end of the tensor.
MOR_KERNEL accepted_by_largest_by_row(Factors factors, UnitSums units, u64 count, u8* is_accepted, u64 rows,
                                      u64 unit_rows) {
  for (u64 unit = first_of_thread(); unit < count; unit += threads_of_grid()) {
    const u64 top = unit / units.across * unit_rows, bottom = least(top + unit_rows, rows);
    bool is_small = units.unmeasured[unit] == 0;
    for (u64 row = top; row < bottom && is_small; row++) {
      const u64 of_row = row * units.across + unit % units.across;
      if (units.largest[of_row] == 0) continue;
      const WholeMagnitude largest(units.largest[of_row]), amax(units.amax[of_row]);
      is_small = compared(largest.natural(), factors.errors, amax.natural(), factors.numbers) < 0;
    }
    is_accepted[unit] = is_small;
  }
}
MOR_EXPORT(accepted_by_largest_by_row)
