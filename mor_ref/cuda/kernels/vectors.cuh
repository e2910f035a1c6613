// Numbers that lie side by side: one load brings them, and one store takes what they have become.
#pragma once
#include "prelude.cuh"

// How many numbers 16 bytes hold.
template <class Stored> constexpr u32 VECTOR = 16 / sizeof(Stored);

template <u32 BYTES> struct Bytes;
template <> struct Bytes<1> { typedef u8 Type; };
template <> struct Bytes<2> { typedef u16 Type; };
template <> struct Bytes<4> { typedef u32 Type; };
template <> struct Bytes<8> { typedef u64 Type; };
template <> struct Bytes<16> { typedef uint4 Type; };

// COUNT numbers, from `at` on; their address is a multiple of their size, up to 16 bytes.
template <class Stored, u32 COUNT> struct Run {
  static constexpr u32 count = COUNT;
  u64 at;
  Stored numbers[COUNT];
};

// Room for the results of the numbers of a run.
template <class Other, class Stored, u32 COUNT> MOR_DEVICE Run<Other, COUNT> beside(const Run<Stored, COUNT>& run) {
  Run<Other, COUNT> found = {};
  found.at = run.at;
  return found;
}

template <class Stored, u32 COUNT> MOR_DEVICE void load(Run<Stored, COUNT>& run, const Stored* from) {
  typedef typename Bytes<COUNT * sizeof(Stored)>::Type Whole;
  union { Whole whole; Stored numbers[COUNT]; } loaded;
  loaded.whole = *reinterpret_cast<const Whole*>(from + run.at);
  for (u32 k = 0; k < COUNT; k++) run.numbers[k] = loaded.numbers[k];
}

template <class Stored, u32 COUNT> MOR_DEVICE void store(const Run<Stored, COUNT>& run, Stored* to) {
  constexpr u32 each = COUNT * sizeof(Stored) > 16 ? VECTOR<Stored> : COUNT;
  typedef typename Bytes<each * sizeof(Stored)>::Type Whole;
  for (u32 first = 0; first < COUNT; first += each) {
    union { Whole whole; Stored numbers[each]; } stored;
    for (u32 k = 0; k < each; k++) stored.numbers[k] = run.numbers[first + k];
    *reinterpret_cast<Whole*>(to + run.at + first) = stored.whole;
  }
}

// Whether arrays of these addresses can be loaded and stored so, as far as they themselves go.
MOR_DEVICE bool is_aligned(const void* address) { return reinterpret_cast<u64>(address) % 16 == 0; }
