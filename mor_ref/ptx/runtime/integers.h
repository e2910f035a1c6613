// Integer and logic instructions. Registers hold unsigned words; S is the type of an instruction.
#pragma once
#include "machine.h"

namespace ptx {

template <class T> struct Kinds;
#define PTX_KINDS(U, S, WIDER, SIGNED_WIDER)                                        \
  template <> struct Kinds<U> { typedef U Word; typedef WIDER Wide; };             \
  template <> struct Kinds<S> { typedef U Word; typedef SIGNED_WIDER Wide; };
PTX_KINDS(u8, s8, u16, s16)
PTX_KINDS(u16, s16, u32, s32)
PTX_KINDS(u32, s32, u64, s64)
PTX_KINDS(u64, s64, u128, s128)
#undef PTX_KINDS
template <class T> using Word = typename Kinds<T>::Word;
template <class T> using Wide = typename Kinds<T>::Wide;
template <class T> constexpr u32 BITS = 8 * sizeof(T);
template <class T> constexpr bool IS_SIGNED = T(-1) < T(0);
template <class T> constexpr T LEAST = IS_SIGNED<T> ? T(Word<T>(1) << (BITS<T> - 1)) : T(0);
template <class T> constexpr T MOST = T(~LEAST<T>);

template <class T> inline T clamped(Wide<T> x) { return x < Wide<T>(LEAST<T>) ? LEAST<T> : x > Wide<T>(MOST<T>) ? MOST<T> : T(x); }

template <class T> inline T add(Word<T> a, Word<T> b) { return T(Word<T>(a + b)); }
template <class T> inline T sub(Word<T> a, Word<T> b) { return T(Word<T>(a - b)); }
template <class T> inline T add_sat(Word<T> a, Word<T> b) { return clamped<T>(Wide<T>(T(a)) + Wide<T>(T(b))); }
template <class T> inline T sub_sat(Word<T> a, Word<T> b) { return clamped<T>(Wide<T>(T(a)) - Wide<T>(T(b))); }
template <class T> inline T mul_lo(Word<T> a, Word<T> b) { return T(Word<T>(u64(a) * u64(b))); }
template <class T> inline T mul_hi(Word<T> a, Word<T> b) { return T(Wide<T>(T(a)) * Wide<T>(T(b)) >> BITS<T>); }
template <class T> inline Wide<T> mul_wide(Word<T> a, Word<T> b) { return Wide<T>(T(a)) * Wide<T>(T(b)); }
template <class T> inline T mad_lo(Word<T> a, Word<T> b, Word<T> c) { return T(Word<T>(Word<T>(mul_lo<T>(a, b)) + c)); }
template <class T> inline T mad_hi(Word<T> a, Word<T> b, Word<T> c) { return T(Word<T>(Word<T>(mul_hi<T>(a, b)) + c)); }
template <class T> inline Wide<T> mad_wide(Word<T> a, Word<T> b, Word<Wide<T>> c) {
  return Wide<T>(Word<Wide<T>>(Word<Wide<T>>(mul_wide<T>(a, b)) + c));
}
// PTX leaves a quotient by zero open; the nearest end has its bits on NVIDIA's GPUs.
template <class T> struct Quotient {
  Machine& m;
  u32 line;
  T by_zero(Word<T> a, T usual) const {
    note(m, line, Noted::quotient);
    const End end = end_at(m, line, a);
    return end == End::nearest ? usual : end == End::below ? LEAST<T> : MOST<T>;
  }
  T div(Word<T> a, Word<T> b) const {
    if (!b) return by_zero(a, T(-1));
    if (IS_SIGNED<T> && b == Word<T>(-1)) return T(Word<T>(0 - a));
    return T(a) / T(b);
  }
  T rem(Word<T> a, Word<T> b) const {
    if (!b) return by_zero(a, T(a));
    if (IS_SIGNED<T> && b == Word<T>(-1)) return 0;
    return T(a) % T(b);
  }
};
template <class T> inline T min(Word<T> a, Word<T> b) { return T(a) < T(b) ? T(a) : T(b); }
template <class T> inline T max(Word<T> a, Word<T> b) { return T(a) > T(b) ? T(a) : T(b); }
template <class T> inline T abs(Word<T> a) { return T(T(a) < 0 ? Word<T>(0 - a) : a); }
template <class T> inline T neg(Word<T> a) { return T(Word<T>(0 - a)); }
template <class T> inline T min_relu(Word<T> a, Word<T> b) { return max<T>(Word<T>(min<T>(a, b)), 0); }
template <class T> inline T max_relu(Word<T> a, Word<T> b) { return max<T>(Word<T>(max<T>(a, b)), 0); }
template <class T> inline T sad(Word<T> a, Word<T> b, Word<T> c) { return T(Word<T>(c + (T(a) < T(b) ? b - a : a - b))); }

// The absolute differences of two or four parts of words, side by side or added to c.
template <u32 PARTS> inline u32 difference(u32 a, u32 b, u32 k) {
  const u32 mask = ~0u >> (32 - 32 / PARTS), by = 32 / PARTS * k;
  return sad<u32>(a >> by & mask, b >> by & mask, 0);
}
template <u32 PARTS> inline u32 differences(u32 a, u32 b, u32) {
  u32 found = 0;
  for (u32 k = 0; k < PARTS; k++) found |= difference<PARTS>(a, b, k) << 32 / PARTS * k;
  return found;
}
template <u32 PARTS> inline u32 differences_sum(u32 a, u32 b, u32 c) {
  for (u32 k = 0; k < PARTS; k++) c += difference<PARTS>(a, b, k);
  return c;
}

// The carry of a thread: a sum or a difference reads it, writes it, or both. A difference is a + ~b + 1 for ptxas, and
// a + ~b + carry if it reads the carry: so the carry of a difference is 0 if it borrows. The code of nvcc relies on it.
template <class T, bool READS, bool WRITES> struct Carry {
  Machine& m;
  T add(Word<T> a, Word<T> b) {
    const u128 sum = u128(a) + b + (READS ? m.carry : 0);
    if (WRITES) m.carry = sum >> BITS<T> != 0;
    return T(Word<T>(sum));
  }
  T sub(Word<T> a, Word<T> b) {
    const u128 all = u128(b) + (READS ? !m.carry : 0);
    if (WRITES) m.carry = u128(a) >= all;
    return T(Word<T>(a - Word<T>(all)));
  }
  T mad_lo(Word<T> a, Word<T> b, Word<T> c) { return add(Word<T>(mul_lo<T>(a, b)), c); }
  T mad_hi(Word<T> a, Word<T> b, Word<T> c) { return add(Word<T>(mul_hi<T>(a, b)), c); }
};

// Products of 24 bits, and of parts of a word.
template <class T> inline s64 product24(u32 a, u32 b) { return s64(T(a << 8) >> 8) * s64(T(b << 8) >> 8); }
template <class T> inline T mul24_lo(u32 a, u32 b) { return T(u32(product24<T>(a, b))); }
template <class T> inline T mul24_hi(u32 a, u32 b) { return T(u32(product24<T>(a, b) >> 16)); }
template <class T> inline T mad24_lo(u32 a, u32 b, u32 c) { return T(u32(mul24_lo<T>(a, b)) + c); }
template <class T> inline T mad24_hi(u32 a, u32 b, u32 c) { return T(u32(mul24_hi<T>(a, b)) + c); }
inline s32 mad_hi_sat(u32 a, u32 b, u32 c) { return add_sat<s32>(u32(mul_hi<s32>(a, b)), c); }
inline s32 mad24_hi_sat(u32 a, u32 b, u32 c) { return add_sat<s32>(u32(mul24_hi<s32>(a, b)), c); }
template <class T> inline s32 part_of(u32 x, u32 k, u32 width) { return s32(T(x << (32 - width * (k + 1))) >> (32 - width)); }
template <class A, class B> inline u32 dp4a(u32 a, u32 b, u32 c) {
  for (u32 k = 0; k < 4; k++) c += u32(part_of<A>(a, k, 8) * part_of<B>(b, k, 8));
  return c;
}
template <class A, class B> inline u32 dp2a_lo(u32 a, u32 b, u32 c) {
  for (u32 k = 0; k < 2; k++) c += u32(part_of<A>(a, k, 16) * part_of<B>(b, k, 8));
  return c;
}
template <class A, class B> inline u32 dp2a_hi(u32 a, u32 b, u32 c) { return dp2a_lo<A, B>(a, b >> 16, c); }

// ---------------------------------------------------------------------- bits

template <class T> inline T and_(T a, T b) { return T(a & b); }
template <class T> inline T or_(T a, T b) { return T(a | b); }
template <class T> inline T xor_(T a, T b) { return T(a ^ b); }
template <class T> inline T not_(T a) { return T(~a); }
template <> inline bool not_<bool>(bool a) { return !a; }
template <class T> inline T cnot_(T a) { return a ? 0 : 1; }
template <class T> inline T shl(T a, u32 by) { return by < BITS<T> ? T(a << by) : T(0); }
template <class T> inline T shr(Word<T> a, u32 by) { return T(T(a) >> (by < BITS<T> ? by : BITS<T> - 1) >> (by >= BITS<T>)); }
inline u32 shf_l_clamp(u32 a, u32 b, u32 c) { return c >= 32 ? a : c ? b << c | a >> (32 - c) : b; }
inline u32 shf_l_wrap(u32 a, u32 b, u32 c) { return c & 31 ? b << (c & 31) | a >> (32 - (c & 31)) : b; }
inline u32 shf_r_clamp(u32 a, u32 b, u32 c) { return c >= 32 ? b : c ? b << (32 - c) | a >> c : a; }
inline u32 shf_r_wrap(u32 a, u32 b, u32 c) { return c & 31 ? b << (32 - (c & 31)) | a >> (c & 31) : a; }
inline u32 lop3(u32 a, u32 b, u32 c, u32 table) {
  u32 found = 0;
  for (u32 k = 0; k < 8; k++)
    if (table >> k & 1) found |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
  return found;
}
inline u32 popc(u32 a) { return u32(__builtin_popcount(a)); }
inline u32 popc(u64 a) { return u32(__builtin_popcountll(a)); }
inline u32 clz(u32 a) { return a ? u32(__builtin_clz(a)) : 32; }
inline u32 clz(u64 a) { return a ? u32(__builtin_clzll(a)) : 64; }
template <class T> inline u32 bfind(Word<T> a) {
  const Word<T> found = T(a) < 0 ? Word<T>(~a) : a;
  return found ? BITS<T> - 1 - clz(found) : ~0u;
}
template <class T> inline u32 bfind_shift(Word<T> a) {
  const u32 found = bfind<T>(a);
  return found == ~0u ? found : BITS<T> - 1 - found;
}
inline u32 bmsk_wrap(u32 a, u32 b) {
  const u32 end = (a & 31) + (b & 31), above = end < 32 ? ~0u << end : 0;
  return ~0u << (a & 31) & ~above;
}
inline u32 bmsk_clamp(u32 a, u32 b) { return a > 31 ? 0 : b > 31 ? ~0u << a : bmsk_wrap(a, b); }
template <class T> inline T szext_wrap(u32 a, u32 b) {
  const u32 length = b & 31, above = ~0u << length;
  return T(length && IS_SIGNED<T> && a >> (length - 1) & 1 ? a | above : a & ~above);
}
template <class T> inline T szext_clamp(u32 a, u32 b) { return b > 31 ? T(a) : szext_wrap<T>(a, b); }
inline u32 fns(u32 mask, u32 base, u32 offset) {
  const s32 step = s32(offset) < 0 ? -1 : 1;
  s64 left = s32(offset) < 0 ? -s64(s32(offset)) : s64(s32(offset));
  if (!left) return base < 32 && mask >> base & 1 ? base : ~0u;
  for (s64 at = base; at >= 0 && at < 32; at += step)
    if (mask >> at & 1 && !--left) return u32(at);
  return ~0u;
}
template <class T> inline T brev(T a) {
  T found = 0;
  for (u32 k = 0; k < BITS<T>; k++) found |= T(a >> k & 1) << (BITS<T> - 1 - k);
  return found;
}
// PTX restricts places and lengths to 0 to 255. GPUs take the lowest eight bits, and all of them for 64 bits.
template <class T> inline u32 in_byte(u32 n) { return BITS<T> == 64 && n > 255 ? 255 : n & 255; }
template <class T> inline T bfe(Word<T> a, u32 place, u32 length) {
  const u32 at = in_byte<T>(place), count = in_byte<T>(length);
  if (!count) return 0;
  const u32 top = at + count - 1 < BITS<T> - 1 ? at + count - 1 : BITS<T> - 1;
  const bool sign = IS_SIGNED<T> && (a >> top & 1);
  Word<T> found = 0;
  for (u32 k = 0; k < BITS<T>; k++) {
    const bool bit = k < count && at + k < BITS<T> ? (a >> (at + k) & 1) != 0 : sign;
    found |= Word<T>(bit) << k;
  }
  return T(found);
}
template <class T> inline T bfi(T a, T b, u32 place, u32 length) {
  const u32 at = in_byte<T>(place), count = in_byte<T>(length);
  if (at >= BITS<T> || !count) return b;
  const u32 fits = count < BITS<T> - at ? count : BITS<T> - at;
  const T mask = T((fits < BITS<T> ? (T(1) << fits) - 1 : ~T(0)) << at);
  return T((b & ~mask) | (T(a << at) & mask));
}

// ---------------------------------------------------------------------- bytes

inline u32 byte_of(u64 both, u32 selector) {
  const u32 found = u32(both >> 8 * (selector & 7)) & 255;
  return selector & 8 ? (found & 128 ? 255 : 0) : found;
}
inline u32 bytes_of(u64 both, u32 s0, u32 s1, u32 s2, u32 s3) {
  return byte_of(both, s0) | byte_of(both, s1) << 8 | byte_of(both, s2) << 16 | byte_of(both, s3) << 24;
}
inline u64 both_of(u32 a, u32 b) { return u64(b) << 32 | a; }
inline u32 prmt(u32 a, u32 b, u32 c) { return bytes_of(both_of(a, b), c & 15, c >> 4 & 15, c >> 8 & 15, c >> 12 & 15); }

// The table of a mode has four selectors, from the last to the first.
inline u32 prmt_by(u64 table, u32 a, u32 b, u32 c) { return prmt(a, b, u32(table >> (c & 3) * 16) & 0xFFFF); }
inline u32 prmt_f4e(u32 a, u32 b, u32 c) { return prmt_by(0x6543543243213210, a, b, c); }
inline u32 prmt_b4e(u32 a, u32 b, u32 c) { return prmt_by(0x0123701267015670, a, b, c); }
inline u32 prmt_rc8(u32 a, u32 b, u32 c) { return prmt_by(0x3333222211110000, a, b, c); }
inline u32 prmt_ecl(u32 a, u32 b, u32 c) { return prmt_by(0x3333322232113210, a, b, c); }
inline u32 prmt_ecr(u32 a, u32 b, u32 c) { return prmt_by(0x3210221011100000, a, b, c); }
inline u32 prmt_rc16(u32 a, u32 b, u32 c) { return prmt_by(0x3232101032321010, a, b, c); }

// ---------------------------------------------------------------------- comparisons

template <class T> inline bool eq(Word<T> a, Word<T> b) { return a == b; }
template <class T> inline bool ne(Word<T> a, Word<T> b) { return a != b; }
template <class T> inline bool lt(Word<T> a, Word<T> b) { return T(a) < T(b); }
template <class T> inline bool le(Word<T> a, Word<T> b) { return T(a) <= T(b); }
template <class T> inline bool gt(Word<T> a, Word<T> b) { return T(a) > T(b); }
template <class T> inline bool ge(Word<T> a, Word<T> b) { return T(a) >= T(b); }
template <class S, class T> inline T slct(T a, T b, u32 c) { return S(c) >= 0 ? a : b; }

}  // namespace ptx
