// Loops that turn each number of an array into one other.
#pragma once
#include "blocks.cuh"

// Stores the codes that `make` writes for numbers side by side, from a place on.
template <class Code, class Stored, u32 COUNT, class Make>
MOR_DEVICE void convert(const Stored* x, u64 at, Code* codes, Make make) {
  Run<Stored, COUNT> run;
  run.at = at;
  load(run, x);
  auto run_codes = beside<Code>(run);
  make(at, run.numbers, run_codes.numbers);
  store(run_codes, codes);
}

// All numbers: vectors where the arrays are aligned, and the rest one by one.
template <class Stored, class Code, class Make>
MOR_DEVICE void convert_all(const Stored* x, u64 count, Code* codes, Make make) {
  constexpr u32 each = BOTH_WAYS<Stored, Code>;
  const u64 vectors = is_aligned(x) && is_aligned(codes) ? count / each : 0;
  for (u64 i = first_of_thread(); i < vectors; i += threads_of_grid())
    convert<Code, Stored, each>(x, i * each, codes, make);
  for (u64 i = vectors * each + first_of_thread(); i < count; i += threads_of_grid())
    convert<Code, Stored, 1>(x, i, codes, make);
}
