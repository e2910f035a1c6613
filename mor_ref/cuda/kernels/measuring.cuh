// Quantizing the elements of a tensor, block by block, and summing up their errors.
#pragma once
#include "blocks.cuh"
#include "errors.cuh"
#include "quantization.cuh"

// The sums of units, each in an array of its own.
struct ErrorSums {
  u64 *sum, *nonzero, *nonfinite;
};

// The y of the elements of a run, which may be any numbers.
struct GivenRun {
  const u32* y;
  MOR_MEMBER u32 largest() const { return CANONICAL_NAN; }
  template <u32 COUNT> MOR_MEMBER void operator()(const u32 (&)[COUNT], Elements<COUNT>& run_elements) const {
    for (u32 k = 0; k < COUNT; k++) run_elements.codes.put(k, 0);
    for (u32 k = 0; k < COUNT; k++) run_elements.y[k] = y[k];
  }
};

// The rule of a representation whose y is given, for the whole tensor.
struct ByValue {
  const u32* y;
  u64 columns;
  template <u32 TEAM> MOR_MEMBER const ByValue& in_block(u64) const { return *this; }
  MOR_MEMBER GivenRun in_run(u64 row, u64 column) const { return {y + row * columns + column}; }
};

// What a rule makes of numbers of a source.
template <class Source, u32 COUNT> struct Quantized : Elements<COUNT> {
  u32 x[COUNT];
  template <class Rule> MOR_MEMBER Quantized(const Rule& rule, const typename Source::Stored (&numbers)[COUNT]) {
    MOR_UNROLL
    for (u32 k = 0; k < COUNT; k++) x[k] = Source::binary32(numbers[k]);
    rule(x, *this);
  }
};
template <class Source, class Rule, u32 COUNT>
MOR_DEVICE Quantized<Source, COUNT> quantized_by(const Rule& rule, const typename Source::Stored (&numbers)[COUNT]) {
  return {rule, numbers};
}

// ERR-002 and ERR-003; `largest` is the largest y. Mostly no number is 0 or not finite: then all count alike.
template <class Source, u32 COUNT>
MOR_DEVICE void add_errors(PartialSum& own, const Quantized<Source, COUNT>& elements, u32 largest) {
  u32 low = Binary<u32>::infinity, high = magnitude_of(largest) < LOST ? 0 : Binary<u32>::infinity;
  MOR_UNROLL
  for (u32 k = 0; k < COUNT; k++) {
    const u32 magnitude = __float_as_uint(magnitude_of(number(elements.x[k])));
    low = least(low, magnitude);
    high = most(high, magnitude);
  }
  if (low > 0 && high < Binary<u32>::infinity) {
    MOR_UNROLL
    for (u32 k = 0; k < COUNT; k++) own.sum += common_error_term(elements.x[k], elements.y[k]);
    own.nonzero += COUNT;
  } else {
    MOR_UNROLL
    for (u32 k = 0; k < COUNT; k++) add_error(own, elements.x[k], elements.y[k]);
  }
}

MOR_DEVICE void add(ErrorSum& to, const PartialSum& more) {
  to.sum += more.sum;
  to.nonzero += more.nonzero;
  to.nonfinite += more.nonfinite;
}

// The count of elements that are not finite is mostly zero, and not worth a reduction.
template <u32 TEAM, class Word> MOR_DEVICE void add_unit(const ErrorSums& units, u64 unit, const Sums<Word>& own) {
  const u64 sum = reduced<TEAM, Sum>(own.sum), nonzero = reduced<TEAM, Sum>(own.nonzero);
  if (Team<TEAM>::rank() == 0) {
    atomicAdd(units.sum + unit, sum);
    atomicAdd(units.nonzero + unit, nonzero);
  }
  if (own.nonfinite) atomicAdd(units.nonfinite + unit, u64(own.nonfinite));
}

// `units_per_block` is 1 where each block is a unit, and 0 where the tensor is the only one: then small
// teams do not add to its sums one by one, but all threads together. `visit` is given the codes of each
// run.
template <u32 TEAM, class Source, class Rule, class Visit>
MOR_DEVICE void measure(const typename Source::Stored* x, const Cut& cut, const Rule& rule, u64 units_per_block,
                        const ErrorSums& units, Visit visit) {
  ErrorSum whole = {0, 0, 0};
  for (u64 n = Team<TEAM>::number(); n < pieces_of(cut); n += Team<TEAM>::count()) {
    const Piece piece = piece_of(cut, n);
    const auto& in_block = rule.template in_block<TEAM>(piece.block);
    PartialSum own = {0, 0, 0};
    visit_piece<TEAM>(x, cut, piece, [&](const auto& run, u64 row, u64 column) {
      const auto& quantized = in_block.in_run(row, column);
      const auto elements = quantized_by<Source>(quantized, run.numbers);
      auto codes = beside<u8>(run);
      add_errors(own, elements, quantized.largest());
      for (u32 k = 0; k < run.count; k++) codes.numbers[k] = elements.codes.number(k);
      visit(codes);
    });
    if (units_per_block) add_unit<TEAM>(units, piece.block, own);
    else add(whole, own);
  }
  if (!units_per_block && pieces_of(cut)) add_unit<THREADS>(units, 0, whole);
}
