// NVIDIA's own host conversions, as functions of arrays.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

#include <cstdint>

namespace {

template <class From, class Convert>
void each(const From* x, std::uint16_t* codes, long n, Convert convert) {
  for (long i = 0; i < n; ++i) codes[i] = static_cast<std::uint16_t>(convert(x[i]));
}

std::uint16_t bits(__nv_bfloat16 x) { return __nv_bfloat16_raw(x).x; }
std::uint16_t bits(__half x) { return __half_raw(x).x; }

}  // namespace

#define FOR_BOTH_SOURCES(name, from_float, from_double)                                   \
  extern "C" void name##_f32(const float* x, std::uint16_t* codes, long n) {              \
    each(x, codes, n, [](float v) { return from_float; });                                \
  }                                                                                       \
  extern "C" void name##_f64(const double* x, std::uint16_t* codes, long n) {             \
    each(x, codes, n, [](double v) { return from_double; });                              \
  }

#define FP8(name, saturation, kind)                                                       \
  FOR_BOTH_SOURCES(name, __nv_cvt_float_to_fp8(v, saturation, kind),                      \
                   __nv_cvt_double_to_fp8(v, saturation, kind))
#define FP6(name, kind)                                                                   \
  FOR_BOTH_SOURCES(name, __nv_cvt_float_to_fp6(v, kind, cudaRoundNearest),                \
                   __nv_cvt_double_to_fp6(v, kind, cudaRoundNearest))
#define E8M0(name, saturation, rounding)                                                  \
  FOR_BOTH_SOURCES(name, __nv_cvt_float_to_e8m0(v, saturation, rounding),                 \
                   __nv_cvt_double_to_e8m0(v, saturation, rounding))

FP8(e4m3_satfinite_rne, __NV_SATFINITE, __NV_E4M3)
FP8(e4m3_ieee_rne, __NV_NOSAT, __NV_E4M3)
FP8(e5m2_satfinite_rne, __NV_SATFINITE, __NV_E5M2)
FP8(e5m2_ieee_rne, __NV_NOSAT, __NV_E5M2)
FP6(e2m3_satfinite_rne, __NV_E2M3)
FP6(e3m2_satfinite_rne, __NV_E3M2)
FOR_BOTH_SOURCES(e2m1_satfinite_rne, __nv_cvt_float_to_fp4(v, __NV_E2M1, cudaRoundNearest),
                 __nv_cvt_double_to_fp4(v, __NV_E2M1, cudaRoundNearest))
E8M0(e8m0_satfinite_rtp, __NV_SATFINITE, cudaRoundPosInf)
E8M0(e8m0_satfinite_rtz, __NV_SATFINITE, cudaRoundZero)
E8M0(e8m0_ieee_rtp, __NV_NOSAT, cudaRoundPosInf)
E8M0(e8m0_ieee_rtz, __NV_NOSAT, cudaRoundZero)
FOR_BOTH_SOURCES(bf16_ieee_rne, bits(__float2bfloat16_rn(v)), bits(__double2bfloat16(v)))
FOR_BOTH_SOURCES(f16_ieee_rne, bits(__float2half_rn(v)), bits(__double2half(v)))
