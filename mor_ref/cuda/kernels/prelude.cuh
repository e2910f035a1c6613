// Included first by all: what differs between NVRTC and a compiler of CPUs, and the names of integers.
#pragma once
#if defined(__CUDACC__)
#define MOR_SHARED(type, name, count) __shared__ type name[count]
#define MOR_EXPORT(kernel)
#define MOR_UNROLL _Pragma("unroll")
#else
#include "language.h"
#define MOR_UNROLL
#define MOR_SHARED(type, name, count)                                                              \
  struct name##_declared {};                                                                       \
  type* const name = mor_host::Shared<type, count, name##_declared>::of(                           \
      mor_host::current->block->memory.shared)
#define MOR_EXPORT(kernel)                                                                         \
  extern "C" __attribute__((visibility("default"))) int mor_launch_##kernel(                       \
      mor_host::Launch* launch, void** arguments) {                                                \
    return mor_host::launch_kernel(&kernel, launch, arguments);                                    \
  }
#endif
#define MOR_DEVICE static __device__ __forceinline__
#define MOR_MEMBER __device__ __forceinline__

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;
static_assert(sizeof(u32) == 4 && sizeof(u64) == 8, "the widths of integers are relied on");

#define MOR_ALL_LANES 0xFFFFFFFFu

template <class Type> MOR_DEVICE Type least(Type a, Type b) { return a < b ? a : b; }
template <class Type> MOR_DEVICE Type most(Type a, Type b) { return a > b ? a : b; }
