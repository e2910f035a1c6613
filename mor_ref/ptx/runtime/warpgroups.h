// Matrix instructions of four warps (wgmma), each with sixteen rows of a. They are computed where they are begun.
#pragma once
#include "matrices.h"

namespace ptx {

// A matrix in shared memory: eight rows of `width` bytes are a tile; the others are distances of tiles.
struct Described {
  u64 start, leading, stride;
  u32 width;
};
inline Described described(Machine& m, u64 descriptor, u32 line) {
  constexpr u32 widths[] = {16, 128, 64, 32};
  if (descriptor >> 49 & 7) fail(m, line, "a descriptor with a base offset is not supported");
  return {(descriptor & 0x3FFF) << 4, (descriptor >> 16 & 0x3FFF) << 4, (descriptor >> 32 & 0x3FFF) << 4, widths[descriptor >> 62]};
}

// Pieces of 16 bytes change places in a tile, by the number of their row.
template <class T> inline T swizzled(Machine& m, const Described& of, u64 offset, u32 line) {
  const u64 at = of.start + offset;
  return *shared<T, sizeof(T)>(m, at ^ (at >> 3 & (of.width - 16)), Touch::read, line);
}

// The 32 bytes of row i of a, or of column i of b, along K. They lie `across` if neighbours in memory are of other rows.
inline void read_words(Machine& m, const Described& of, bool across, u32 i, u32 (&words)[8], u32 line) {
  const u32 w = of.width;
  for (u32 k = 0; k < 8; k++) {
    words[k] = 0;
    if (!across) words[k] = swizzled<u32>(m, of, i / 8 * of.stride + i % 8 * w + 4 * k / w * of.leading + 4 * k % w, line);
    for (u32 j = 2 * k; across && j < 2 * k + 2; j++) {
      const u64 along = w == 16 ? of.leading : of.stride, beside = w == 16 ? of.stride : of.leading;
      words[k] |= u32(swizzled<u16>(m, of, 2 * i / w * beside + 2 * i % w + j % 8 * w + j / 8 * along, line)) << j % 2 * 16;
    }
  }
}

// Where a and b are: registers of a are null if it is in shared memory.
struct GroupOperands {
  const u32* registers;
  u64 a, b;
  bool across_a, across_b;
};
template <u32 N, class Use> inline void for_each_sum_of_group(Machine& m, const GroupOperands& from, u32 line, Use use) {
  with_fragments(m, from.registers, from.registers ? 4 : 0, line, [&] {
    u32 rows[2][8], column[8];
    const Described a = described(m, from.registers ? 0 : from.a, line), b = described(m, from.b, line);
    for (u32 upper = 0; upper < 2; upper++) {
      if (from.registers) gather_words(m, m.lane / 4, upper, 2, rows[upper]);
      else read_words(m, a, from.across_a, m.warp % 4 * 16 + m.lane / 4 + 8 * upper, rows[upper], line);
    }
    for (u32 n = 0; n < N / 4; n++) {
      read_words(m, b, from.across_b, n / 2 * 8 + m.lane % 4 * 2 + n % 2, column, line);
      for (u32 upper = 0; upper < 2; upper++) use(n / 2 * 4 + upper * 2 + n % 2, rows[upper], column);
    }
  });
}

template <u32 K> inline void negate(Factor (&x)[K], bool is_negated) {
  for (u32 k = 0; is_negated && k < K; k++) x[k].negative = !x[k].negative, x[k].special = -x[k].special;
}

// `d` has the sums before and after.
template <const Layout& OF_A, const Layout& OF_B, u32 N, u32 K>
inline void multiply_group(Machine& m, const CutRule& rule, const GroupOperands& from, bool minus_a, bool minus_b, u32* d, u32 line) {
  for_each_sum_of_group<N>(m, from, line, [&](u32 n, const u32 (&row)[8], const u32 (&column)[8]) {
    Factor x[K], y[K];
    factors_of<OF_A, 256 / K>(row, x), factors_of<OF_B, 256 / K>(column, y);
    negate(x, minus_a), negate(y, minus_b);
    const u32 sum = dot_of(x, y, sum_in(d, n, rule.is_half), rule);
    if (!rule.is_half) d[n] = sum;
    else d[n / 2] = (d[n / 2] & 0xFFFFu << (n + 1) % 2 * 16) | sum << n % 2 * 16;
  });
}

template <u32 N> inline void multiply_integers_of_group(Machine& m, const IntegerRule& rule, const GroupOperands& from, u32* d, u32 line) {
  for_each_sum_of_group<N>(m, from, line, [&](u32 n, const u32 (&row)[8], const u32 (&column)[8]) {
    d[n] = integer_dot_of<8>(row, column, d[n], rule);
  });
}

}  // namespace ptx
