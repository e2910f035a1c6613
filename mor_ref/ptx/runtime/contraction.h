// Products that ptxas may round together with a sum. A sum finds its product by its result, however that came to it.
#pragma once
#include <initializer_list>

#include "conversions.h"

namespace ptx {

// The last results of a product, and their operands; a register may have a result of an earlier round of a loop.
struct Held {
  u64 a, b, result;
  bool is_there;
};
constexpr u32 ROUNDS = 4;
struct Products {
  Held held[ROUNDS];
  u32 next;
};

template <u32 WIDTH> constexpr u64 LANE = WIDTH == 64 ? ~u64(0) : (u64(1) << (WIDTH % 64)) - 1;

template <u32 WIDTH, u32 LANES> inline void hold(Machine& m, u32 number, u64 a, u64 b, u64 result) {
  for (u32 k = 0; k < LANES; k++) {
    Products& own = m.products[number + k];
    const u32 by = k * (WIDTH % 64);
    own.held[own.next++ % ROUNDS] = {a >> by & LANE<WIDTH>, b >> by & LANE<WIDTH>, result >> by & LANE<WIDTH>, true};
  }
}

// x + y as one with a product that is x or -x; `apart` if there is none, or if it changes nothing.
template <auto FUSED, u32 WIDTH> inline u64 together(const Machine& m, std::initializer_list<u32> numbers, u64 x, u64 y, u64 apart) {
  constexpr u64 sign = u64(1) << (WIDTH - 1);
  for (const u32 number : numbers)
    for (const Held& one : m.products[number].held) {
      if (!one.is_there || (one.result ^ x) & ~sign) continue;
      const u64 found = FUSED(one.a ^ ((one.result ^ x) & sign), one.b, y);
      if (found != apart) return found;
    }
  return apart;
}

// Of two products, the second one is in the sum at one end, and the first one at the other.
template <auto FUSED, u32 WIDTH, u32 LANES, bool SUBTRACTS>
inline u64 contracted(Machine& m, u32 line, std::initializer_list<u32> of_x, std::initializer_list<u32> of_y, u64 x, u64 y, u64 apart) {
  const End end = end_at(m, line, x, y);
  if (end == End::nearest) return apart;
  u64 all = 0;
  for (u32 k = 0; k < LANES; k++) {
    const u32 by = k * (WIDTH % 64);
    const u64 a = x >> by & LANE<WIDTH>, b = (y >> by & LANE<WIDTH>) ^ (SUBTRACTS ? u64(1) << (WIDTH - 1) : 0);
    const u64 own = apart >> by & LANE<WIDTH>;
    const u64 first = together<FUSED, WIDTH>(m, of_x, a, b, own);
    const u64 second = together<FUSED, WIDTH>(m, of_y, b, a, own);
    const bool takes_first = end == End::below ? first != own : second == own;
    all |= (takes_first ? first : second) << by;
  }
  return all;
}

// A product times a power of two, which one instruction rounds once: from 1/8 to 8.
template <u32 FLAGS> inline u32 scaled_f32(u32 a, u32 b, u32 scale) {
  const u32 exponent = scale >> 23;
  if (scale << 9 || exponent < 124 || exponent > 130) return mul_f32<Mode::even, FLAGS>(mul_f32<Mode::even, FLAGS & FTZ>(a, b), scale);
  const double found = double(in32<FLAGS>(a)) * double(in32<FLAGS>(b)) * double(float_of(scale));
  return out32_of<Mode::even, FLAGS>(float(found), found);
}

template <auto FUSED> inline u32 scaled(Machine& m, u32 line, std::initializer_list<u32> of_x, std::initializer_list<u32> of_y, u32 x, u32 y, u32 apart) {
  const u64 first = together<FUSED, 32>(m, of_x, x, y, apart);
  const u64 found = first != apart ? first : together<FUSED, 32>(m, of_y, y, x, apart);
  if (found == apart) return apart;
  note(m, line, Noted::scaled);
  return end_at(m, line, x, y) == End::nearest ? apart : u32(found);
}

}  // namespace ptx
