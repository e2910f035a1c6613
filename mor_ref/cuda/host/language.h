// CUDA C++ for a compiler of CPUs: the words of the language, and the functions that kernels here use.
// For g++ and clang++ with -std=c++17 -ffp-contract=off.
#pragma once
#if defined(__FAST_MATH__)
#error "kernels have to be compiled without -ffast-math"
#endif
#include <cfloat>
#include <cmath>

#include "launch.h"

static_assert(FLT_EVAL_METHOD == 0, "every operation has to be rounded to its own type");

#define __global__
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)

struct alignas(16) uint4 { unsigned x, y, z, w; };

#define threadIdx (::mor_host::current->place)
#define blockIdx (::mor_host::current->block->place)
#define blockDim (::mor_host::current->block->size)
#define gridDim (::mor_host::current->block->grid)
#define MOR_WHERE ::mor_host::Where where = ::mor_host::Where::here()

// ---------------------------------------------------------------------- barriers and warps

inline void __syncthreads(MOR_WHERE) { mor_host::barrier(false, where); }
inline int __syncthreads_or(int vote, MOR_WHERE) {
  mor_host::barrier(vote != 0, where);
  return mor_host::current->block->result != 0;
}
inline void __syncwarp(unsigned mask = ~0u, MOR_WHERE) {
  mor_host::meet(mor_host::Meeting::sync, mask, 0, 0, where);
}
inline unsigned __ballot_sync(unsigned mask, int vote, MOR_WHERE) {
  return unsigned(mor_host::meet(mor_host::Meeting::ballot, mask, vote != 0, 0, where));
}
inline int __any_sync(unsigned mask, int vote, MOR_WHERE) {
  return __ballot_sync(mask, vote, where) != 0;
}
template <class Value>
inline Value __shfl_xor_sync(unsigned mask, Value value, int distance, int width = 32, MOR_WHERE) {
  static_assert(sizeof(Value) <= 8, "a shuffle is of at most 8 bytes");
  const unsigned lane = mor_host::current->lane, other = lane ^ unsigned(distance);
  unsigned long long bits = 0;
  memcpy(&bits, &value, sizeof value);
  const unsigned from = other > (lane | unsigned(width - 1)) ? lane : other;
  bits = mor_host::meet(mor_host::Meeting::shuffle, mask, bits, from, where);
  memcpy(&value, &bits, sizeof value);
  return value;
}

// ---------------------------------------------------------------------- atomics, of integers alone

template <class Integer> inline Integer atomicAdd(Integer* at, Integer value) {
  static_assert(Integer(1) / 2 == 0, "floating-point sums depend on their order");
  return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}
template <class Integer> inline Integer atomicOr(Integer* at, Integer value) {
  return __atomic_fetch_or(at, value, __ATOMIC_RELAXED);
}
template <class Integer> inline Integer atomicMax(Integer* at, Integer value) {
  Integer old = __atomic_load_n(at, __ATOMIC_RELAXED);
  while (old < value && !__atomic_compare_exchange_n(at, &old, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
  return old;
}
template <class Integer> inline Integer atomicMin(Integer* at, Integer value) {
  Integer old = __atomic_load_n(at, __ATOMIC_RELAXED);
  while (old > value && !__atomic_compare_exchange_n(at, &old, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
  return old;
}

// ---------------------------------------------------------------------- numbers

inline unsigned __float_as_uint(float number) {
  unsigned bits;
  memcpy(&bits, &number, sizeof bits);
  return bits;
}
inline float __uint_as_float(unsigned bits) {
  float number;
  memcpy(&number, &bits, sizeof number);
  return number;
}
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline float __fsqrt_rn(float a) { return __builtin_sqrtf(a); }
inline int __clz(int bits) { return bits ? __builtin_clz(unsigned(bits)) : 32; }
inline int __clzll(long long bits) { return bits ? __builtin_clzll((unsigned long long)bits) : 64; }
inline double __longlong_as_double(long long bits) {
  double number;
  memcpy(&number, &bits, sizeof number);
  return number;
}
inline float __double2float_rn(double number) { return float(number); }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __dsub_rn(double a, double b) { return a - b; }
