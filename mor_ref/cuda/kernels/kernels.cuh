// How kernels are declared: one for each source of numbers and size of teams.
#pragma once
#include "prelude.cuh"

#define MOR_KERNEL extern "C" __global__ void __launch_bounds__(256)
#define MOR_FOR_TEAMS(DEFINE, name, Source) \
  DEFINE(name, Source, 1)                   \
  DEFINE(name, Source, 32)                  \
  DEFINE(name, Source, 256)
#define MOR_FOR_SOURCES_AND_TEAMS(DEFINE) \
  MOR_FOR_TEAMS(DEFINE, f32, F32)         \
  MOR_FOR_TEAMS(DEFINE, bf16, Bf16)       \
  MOR_FOR_TEAMS(DEFINE, f16, F16)         \
  MOR_FOR_TEAMS(DEFINE, f64, F64)
#define MOR_FOR_SOURCES(DEFINE) \
  DEFINE(f32, F32)              \
  DEFINE(bf16, Bf16)            \
  DEFINE(f16, F16)              \
  DEFINE(f64, F64)
