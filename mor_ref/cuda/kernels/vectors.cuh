// Numbers that lie side by side: one load brings them, and one store takes what they have become.
#pragma once
#include "prelude.cuh"

template <class Type, u32 COUNT> MOR_DEVICE constexpr u32 length(const Type (&)[COUNT]) { return COUNT; }

// How many numbers 16 bytes hold.
template <class Stored> constexpr u32 VECTOR = 16 / sizeof(Stored);
// How many numbers a thread turns into others at once: then all threads of a warp load and store bytes side by side.
template <class From, class To> constexpr u32 BOTH_WAYS = VECTOR<From> < VECTOR<To> ? VECTOR<From> : VECTOR<To>;

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
  Run<Other, COUNT> results = {};
  results.at = run.at;
  return results;
}

// The words of small numbers. A shift takes a number out of its word for less than a GPU takes a register apart.
template <class Stored, u32 COUNT> struct Words {
  static constexpr u32 bits = 8 * sizeof(Stored), each = sizeof(Stored) < 4 && COUNT * sizeof(Stored) >= 4 ? 32 / bits : 1;
  typedef typename Bytes<each * sizeof(Stored)>::Type Word;
  typedef typename Bytes<COUNT * sizeof(Stored)>::Type Whole;
  union { Whole whole; Word words[COUNT / each]; };
  MOR_MEMBER Stored number(u32 k) const { return Stored(words[k / each] >> k % each * bits); }
  MOR_MEMBER void put(u32 k, Stored number) { place(k, Word(number)); }
  // Two neighbours, the first in the lower bits; only the first, if it is the last number.
  MOR_MEMBER void put_two(u32 k, u32 both) {
    if (each > 1) return place(k, Word(both));
    place(k, Stored(both));
    if (k + 1 < COUNT) place(k + 1 < COUNT ? k + 1 : k, Stored(both >> bits));
  }
  MOR_MEMBER void place(u32 k, Word word) {
    word <<= k % each * bits;
    words[k / each] = k % each ? words[k / each] | word : word;
  }
};

template <class Stored, u32 COUNT> MOR_DEVICE void load(Run<Stored, COUNT>& run, const Stored* from) {
  Words<Stored, COUNT> loaded;
  loaded.whole = *reinterpret_cast<const decltype(loaded.whole)*>(from + run.at);
  MOR_UNROLL
  for (u32 k = 0; k < COUNT; k++) run.numbers[k] = loaded.number(k);
}

template <class Stored, u32 COUNT> MOR_DEVICE void store(const Run<Stored, COUNT>& run, Stored* to) {
  constexpr u32 each = COUNT * sizeof(Stored) > 16 ? VECTOR<Stored> : COUNT;
  MOR_UNROLL
  for (u32 first = 0; first < COUNT; first += each) {
    Words<Stored, each> stored;
    for (u32 k = 0; k < each; k++) stored.put(k, run.numbers[first + k]);
    *reinterpret_cast<decltype(stored.whole)*>(to + run.at + first) = stored.whole;
  }
}

// Whether arrays of these addresses can be loaded and stored so, as far as they themselves go.
MOR_DEVICE bool is_aligned(const void* address) { return reinterpret_cast<u64>(address) % 16 == 0; }
