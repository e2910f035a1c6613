// Matrix instructions of a warp: fragments of rows of a, of columns of b, and of sums.
#pragma once
#include "dots.h"

namespace ptx {

// The words of a row of a, or of a column of b: a quad of lanes has four that follow on one another, then the next four.
template <u32 WORDS> inline void gather_words(const Machine& m, u32 line, u32 first, u32 step, u32 (&words)[WORDS]) {
  for (u32 k = 0; k < WORDS; k++) words[k] = m.fragments[line * 4 + k % 4][first + k / 4 * step];
}

template <const Layout& OF, u32 WIDTH, u32 K> inline void factors_of(const u32 (&words)[K * WIDTH / 32], Factor (&found)[K]) {
  for (u32 k = 0; k < K; k++) found[k] = element_of<OF, WIDTH>(words[k * WIDTH / 32], k % (32 / WIDTH));
}

// The product of ROWS x K by K x 8. Register r of a is of row lane / 4 or, if there are 16, in turns of the row eight below it;
// b is of column lane / 4. `use(n, x, y)` returns sum n of a lane. The registers of a, b and scales are shown in this order.
template <u32 ROWS, u32 WORDS, class Use>
inline void for_each_sum(Machine& m, const u32* a, const u32* b, const u32* scales, u32 scale_count, u32 line, Use use) {
  constexpr u32 halves = ROWS / 8, of_a = WORDS / 4 * halves, of_b = WORDS / 4;
  u32 words[of_a + of_b + 2];
  for (u32 k = 0; k < of_a; k++) words[k] = a[k];
  for (u32 k = 0; k < of_b; k++) words[of_a + k] = b[k];
  for (u32 k = 0; k < scale_count; k++) words[of_a + of_b + k] = scales[k];
  with_fragments(m, words, of_a + of_b + scale_count, line, [&] {
    for (u32 n = 0; n < 2 * halves; n++) {
      u32 x[WORDS], y[WORDS];
      gather_words(m, m.lane / 4, n / 2, halves, x);
      gather_words(m, m.lane % 4 * 2 + n % 2, of_a, 1, y);
      use(n, x, y);
    }
  });
}

// Sum n of a lane: a word, or half of one.
inline u32 sum_in(const u32* c, u32 n, bool is_half) { return is_half ? c[n / 2] >> n % 2 * 16 & 0xFFFF : c[n]; }
inline void put_sum(u32* d, u32 n, bool is_half, u32 sum) {
  if (!is_half) d[n] = sum;
  else d[n / 2] = n % 2 ? d[n / 2] | sum << 16 : sum;
}

template <const Layout& OF_A, const Layout& OF_B, u32 K, u32 WIDTH>
inline void multiply(Machine& m, const CutRule& rule, const u32* a, const u32* b, const u32* c, u32* d, u32 line) {
  for_each_sum<16, K * WIDTH / 32>(m, a, b, nullptr, 0, line, [&](u32 n, const auto& row, const auto& column) {
    Factor x[K], y[K];
    factors_of<OF_A, WIDTH>(row, x), factors_of<OF_B, WIDTH>(column, y);
    put_sum(d, n, rule.is_half, dot_of(x, y, sum_in(c, n, rule.is_half), rule));
  });
}

// Which lanes of a quad have scales, and from which byte on: a pair has those of the rows of a, one those of the column of b.
struct Selected {
  u32 byte, lane;
};
template <const Layout& OF_A, const Layout& OF_B, u32 K, u32 WIDTH, u32 COUNT>
inline void multiply_scaled(Machine& m, const CutRule& rule, const u32* a, const u32* b, const u32* c, u32* d, Scale kind,
                            const u32 (&scales)[2], Selected of_a, Selected of_b, u32 line) {
  constexpr u32 at = K * WIDTH / 32 / 4 * 3;
  for_each_sum<16, K * WIDTH / 32>(m, a, b, scales, 2, line, [&](u32 n, const auto& row, const auto& column) {
    Factor x[K], y[K];
    factors_of<OF_A, WIDTH>(row, x), factors_of<OF_B, WIDTH>(column, y);
    const u32 s = m.fragments[m.lane / 4 * 4 + of_a.lane * 2 + n / 2][at] >> of_a.byte * 8;
    const u32 t = m.fragments[(m.lane % 4 * 2 + n % 2) * 4 + of_b.lane][at + 1] >> of_b.byte * 8;
    d[n] = scaled_dot_of<K, COUNT>(x, y, c[n], rule, s, t, kind);
  });
}

template <u32 ROWS, u32 K, u32 WIDTH>
inline void multiply_integers(Machine& m, const IntegerRule& rule, const u32* a, const u32* b, const u32* c, u32* d, u32 line) {
  for_each_sum<ROWS, K * WIDTH / 32>(m, a, b, nullptr, 0, line, [&](u32 n, const auto& row, const auto& column) {
    d[n] = integer_dot_of<WIDTH>(row, column, c[n], rule);
  });
}

// Of single bits: how many ones are in the words of a row and of a column, joined.
template <u32 ROWS, u32 K, auto JOINED> inline void multiply_bits(Machine& m, const u32* a, const u32* b, const u32* c, u32* d, u32 line) {
  for_each_sum<ROWS, K / 32>(m, a, b, nullptr, 0, line, [&](u32 n, const auto& row, const auto& column) {
    d[n] = c[n];
    for (u32 k = 0; k < K / 32; k++) d[n] += popc(JOINED(row[k], column[k]));
  });
}

// Of binary64: one sum after the other, from that of c on, each rounded with its product.
template <u32 ROWS, u32 K, auto FUSED> inline void multiply_doubles(Machine& m, const u64* a, const u64* b, const u64* c, u64* d, u32 line) {
  constexpr u32 halves = ROWS / 8, of_a = K / 4 * halves, of_b = K / 4;
  u32 words[2 * (of_a + of_b)];
  for (u32 k = 0; k < of_a + of_b; k++) {
    const u64 number = k < of_a ? a[k] : b[k - of_a];
    words[2 * k] = u32(number), words[2 * k + 1] = u32(number >> 32);
  }
  const auto number_of = [&](u32 lane, u32 place) { return m.fragments[lane][2 * place] | u64(m.fragments[lane][2 * place + 1]) << 32; };
  with_fragments(m, words, 2 * (of_a + of_b), line, [&] {
    for (u32 n = 0; n < 2 * halves; n++) {
      u64 sum = c[n];
      for (u32 k = 0; k < K; k++) {
        const u64 x = number_of(m.lane / 4 * 4 + k % 4, k / 4 * halves + n / 2);
        const u64 y = number_of((m.lane % 4 * 2 + n % 2) * 4 + k % 4, of_a + k / 4);
        sum = ToNan<FUSED, true>{m, line}(x, y, sum);
      }
      d[n] = sum;
    }
  });
}

// Eight rows of eight numbers of 16 bits for each matrix, whose addresses eight lanes have: number n of the two of a lane.
inline u64 row_at(Machine& m, u32 lane, u32 line) {
  const u64 begin = m.fragments[lane][0] | u64(m.fragments[lane][1]) << 32;
  if (begin % 16) fail(m, line, "the address of a row is misaligned");
  return begin;
}
template <bool TRANSPOSED> inline u64 place_of(Machine& m, u32 matrix, u32 n, u32 line) {
  const u32 near = m.lane / 4, far = m.lane % 4 * 2 + n;
  return row_at(m, 8 * matrix + (TRANSPOSED ? far : near), line) + 2 * (TRANSPOSED ? near : far);
}
template <u32 COUNT, bool TRANSPOSED> inline void load_matrices(Machine& m, u64 address, u32* d, u32 line) {
  const u32 words[2] = {u32(address), u32(address >> 32)};
  with_fragments(m, words, 2, line, [&] {
    for (u32 k = 0; k < COUNT; k++) {
      u32 pair = 0;
      for (u32 n = 0; n < 2; n++) pair |= u32(*shared<u16, 2>(m, place_of<TRANSPOSED>(m, k, n, line), Touch::read, line)) << 16 * n;
      d[k] = pair;
    }
  });
}
template <u32 COUNT, bool TRANSPOSED> inline void store_matrices(Machine& m, u64 address, const u32* d, u32 line) {
  const u32 words[2] = {u32(address), u32(address >> 32)};
  with_fragments(m, words, 2, line, [&] {
    for (u32 k = 0; k < 2 * COUNT; k++) {
      const u16 number = u16(d[k / 2] >> k % 2 * 16);
      *shared<u16, 2>(m, place_of<TRANSPOSED>(m, k / 2, k % 2, line), Touch::write, line, &number) = number;
    }
  });
}

// Number `column` of the row whose address a lane has; a row begins with its numbers, and the rest of its 16 bytes is not read.
template <u32 BITS> inline u32 number_in_row(Machine& m, u32 lane, u32 column, u32 line) {
  const u32 first = column * BITS;
  const u64 begin = row_at(m, lane, line);
  u32 found = 0;
  for (u32 byte = first / 8; byte <= (first + BITS - 1) / 8; byte++)
    found |= u32(*shared<u8, 1>(m, begin + byte, Touch::read, line)) << (byte - first / 8) * 8;
  return found >> first % 8 & ((1u << BITS) - 1);
}
// Four numbers of a row; or, transposed, of a column and of the column eight further, in turns.
template <u32 COUNT, u32 BITS, bool TRANSPOSED> inline void load_bytes(Machine& m, u64 address, u32* d, u32 line) {
  const u32 words[2] = {u32(address), u32(address >> 32)};
  with_fragments(m, words, 2, line, [&] {
    const u32 near = m.lane / 4, far = m.lane % 4 * 4;
    for (u32 k = 0; k < COUNT; k++) {
      d[k] = 0;
      for (u32 n = 0; n < 4; n++) {
        const u32 row = TRANSPOSED ? 16 * (k / 2) + far + n : 8 * k + near, column = TRANSPOSED ? near + 8 * (k % 2) : far + n;
        d[k] |= number_in_row<BITS>(m, row, column, line) << 8 * n;
      }
    }
  });
}
// Transposed: two numbers of a row, and two of the row eight below.
template <u32 COUNT> inline void store_bytes(Machine& m, u64 address, const u32* d, u32 line) {
  const u32 words[2] = {u32(address), u32(address >> 32)};
  with_fragments(m, words, 2, line, [&] {
    for (u32 k = 0; k < 4 * COUNT; k++) {
      const u8 number = u8(d[k / 4] >> k % 4 * 8);
      const u64 place = row_at(m, 8 * (k / 4) + m.lane % 4 * 2 + k % 2, line) + m.lane / 4 + 8 * (k % 4 / 2);
      *shared<u8, 1>(m, place, Touch::write, line, &number) = number;
    }
  });
}
inline u32 transposed(Machine& m, u32 pair, u32 line) {
  u32 found = 0;
  with_fragments(m, &pair, 1, line, [&] {
    const u32 column = m.lane / 4;
    for (u32 n = 0; n < 2; n++) {
      const u32 row = m.lane % 4 * 2 + n;
      found |= (m.fragments[row * 4 + column / 2][0] >> column % 2 * 16 & 0xFFFF) << 16 * n;
    }
  });
  return found;
}

}  // namespace ptx
