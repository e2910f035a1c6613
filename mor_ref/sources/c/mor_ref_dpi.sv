// The C99 library in SystemVerilog: a scoreboard calls these functions, and compares bits with a design.
// mor_ref_dpi.h says how to compile. A result of -1 is a refusal.
package mor_ref_dpi;
  // The numbers of mor_ref.h.
  typedef enum int {
    MOR_E4M3, MOR_E5M2, MOR_E2M1, MOR_E2M3, MOR_E3M2, MOR_E8M0, MOR_BF16, MOR_F16, MOR_F32, MOR_INT8_MX,
    MOR_E4M3FNUZ, MOR_E5M2FNUZ, MOR_E4M3B11FNUZ, MOR_E4M3_IEEE, MOR_E3M4, MOR_E2M1_IEEE,
    MOR_F64
  } format_t;
  typedef enum int {MOR_DEFAULT, MOR_RNE, MOR_RNA, MOR_RTZ, MOR_RTP, MOR_RTN, MOR_RTO} rounding_t;
  typedef enum int {MOR_SATFINITE, MOR_OVERFLOW_IEEE} overflow_t;
  typedef enum int {MOR_CANONICAL, MOR_SIGNED} nan_t;
  typedef enum int {MOR_CUDA, MOR_ML_DTYPES, MOR_TORCH} encoder_profile_t;
  typedef encoder_profile_t preset_t;  // its former name
  typedef enum int {MOR_GAM, MOR_SCALE_E8M0, MOR_SCALE_FP32} scaling_t;
  typedef enum int {MOR_MX_FLOOR, MOR_MX_CEIL, MOR_MX_EVEN, MOR_MX_RCEIL} mx_rule_t;
  typedef enum int {
    MOR_TE, MOR_TE_2_13, MOR_TE_ROW, MOR_TE_4OVER6_MAE, MOR_TE_4OVER6_MSE, MOR_TE_4OVER6_MAE_448,
    MOR_TE_4OVER6_MSE_448, MOR_TORCHAO, MOR_MODELOPT, MOR_COMPRESSED_TENSORS
  } profile_t;

  import "DPI-C" function int mor_dpi_format(input string name);
  import "DPI-C" function longint mor_dpi_encode(
    input int to, input int rounding, input int overflow, input int nan, input int from, input longint unsigned x);
  import "DPI-C" function longint mor_dpi_encode_stochastic(
    input int to, input int overflow, input int nan, input int n_random_bits, input int unsigned random_word,
    input int from, input longint unsigned x);
  import "DPI-C" function longint mor_dpi_encode_profile(
    input int profile, input int to, input int rounding, input int unsigned x);
  // Its former name.
  import "DPI-C" function longint mor_dpi_encode_preset(
    input int profile, input int to, input int rounding, input int unsigned x);
  import "DPI-C" function longint mor_dpi_decode(input int format, input int unsigned code);

  // Of one operation in binary32, rounded once.
  import "DPI-C" function int unsigned mor_f32_add(input int unsigned a, input int unsigned b);
  import "DPI-C" function int unsigned mor_f32_subtract(input int unsigned a, input int unsigned b);
  import "DPI-C" function int unsigned mor_f32_multiply(input int unsigned a, input int unsigned b);
  import "DPI-C" function int unsigned mor_f32_divide(input int unsigned a, input int unsigned b);

  // Fold over the numbers of a block, from 0 on. The scale returns the stored exponent, an element its code.
  import "DPI-C" function int unsigned mor_dpi_amax(input int unsigned amax, input int unsigned x);
  import "DPI-C" function int unsigned mor_dpi_amin(input int unsigned amin, input int unsigned x);
  import "DPI-C" function int mor_dpi_scale(
    input int format, input int scaling, input int unsigned group_amax, input int unsigned block_amax,
    output int unsigned mantissa, output int unsigned scale);
  import "DPI-C" function int mor_dpi_quantize(
    input int format, input int unsigned x, input int unsigned scale,
    output int unsigned xs, output int unsigned y);

  import "DPI-C" function void mor_dpi_error(
    input int unsigned x, input int unsigned y,
    output int unsigned d, output int unsigned r, output int unsigned u);
  import "DPI-C" function void mor_dpi_sums_add(
    inout longint unsigned sum, inout longint unsigned nonzero, inout longint unsigned nonfinite,
    input int unsigned x, input int unsigned y);
  import "DPI-C" function int unsigned mor_dpi_threshold(
    input int unsigned numerator, input int unsigned denominator);
  import "DPI-C" function int mor_dpi_mean_accepts(
    input longint unsigned sum, input longint unsigned nonzero, input longint unsigned nonfinite,
    input int unsigned threshold);
  import "DPI-C" function int mor_dpi_not_worse_accepts(
    input longint unsigned sum, input longint unsigned nonfinite, input longint unsigned yardstick_sum);
  import "DPI-C" function int mor_dpi_range_accepts(
    input int format, input longint unsigned nonzero, input longint unsigned nonfinite,
    input int unsigned amax, input int unsigned amin);

  // Blocks of at most 32 numbers, and tiles of at most 16 rows of 16, row after row. The results are
  // scales and codes.
  import "DPI-C" function int mor_dpi_mx_scale(
    input int format, input int rule, input int unsigned x[0:31], input int count);
  import "DPI-C" function int mor_dpi_mx_element(
    input int format, input int scale, input int unsigned x, output int unsigned xs, output int unsigned y);
  import "DPI-C" function int mor_dpi_nvfp4_global(
    input int profile, input int unsigned amax, output int unsigned encode, output int unsigned decode);
  import "DPI-C" function int mor_dpi_nvfp4_tile(
    input int profile, input int unsigned amax, input int unsigned x[0:255], input int rows, input int columns,
    output int unsigned encode, output int unsigned decode);
  import "DPI-C" function int mor_dpi_nvfp4_element(
    input int profile, input int unsigned encode, input int unsigned decode, input int unsigned x,
    output int unsigned xs, output int unsigned y);
endpackage
