/* Small number formats, MX, NVFP4 and MoR in C99, bit for bit as the specification of mor_ref.
 *
 * Numbers go in and come out as bit patterns. No function computes in floating point, so no mode of the
 * processor and no option of the compiler changes a bit. Nothing is allocated, and nothing is global but
 * constant tables. The rules in the comments are those of the specification.
 *
 * x is always the bit pattern of a binary32 number; mor_decode widens bf16 and f16. A rectangle is part of a
 * tensor: `columns` numbers in each of `rows` rows, and `stride` numbers from one row to the next. Outputs of a
 * rectangle have the same stride, and may be NULL.
 */
#ifndef MOR_REF_H
#define MOR_REF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Formats: chapter formats ---- */

typedef enum { MOR_SIGN_MAGNITUDE, MOR_UNSIGNED, MOR_TWOS_COMPLEMENT } mor_sign;
typedef enum { MOR_IEEE, MOR_FN, MOR_FNUZ, MOR_NONE } mor_specials;

typedef struct {
    const char *name;
    int exponent_bits, mantissa_bits, bias;
    mor_specials specials;
    mor_sign sign;
} mor_format;

typedef enum {
    MOR_E4M3, MOR_E5M2, MOR_E2M1, MOR_E2M3, MOR_E3M2, MOR_E8M0, MOR_BF16, MOR_F16, MOR_F32, MOR_INT8_MX,
    MOR_E4M3FNUZ, MOR_E5M2FNUZ, MOR_E4M3B11FNUZ, MOR_E4M3_IEEE, MOR_E3M4, MOR_E2M1_IEEE,
    MOR_FORMATS
} mor_format_index;

extern const mor_format mor_formats[MOR_FORMATS]; /* FMT-009 */
extern const mor_format mor_f64;                  /* binary64, which only mor_encode reads */

const mor_format *mor_format_named(const char *name); /* NULL if there is none; also of f64 */
bool mor_is_format(const mor_format *format);         /* whether such a format can exist: FMT-003 to FMT-010 */
uint32_t mor_largest_code(const mor_format *format);  /* of the largest finite number */

/* ---- Encoding and decoding: chapters encoding and decoding ---- */

/* MOR_DEFAULT is rne; it is rtp for powers of two, and rna in profiles of e8m0 that have it. */
typedef enum { MOR_DEFAULT, MOR_RNE, MOR_RNA, MOR_RTZ, MOR_RTP, MOR_RTN, MOR_RTO } mor_rounding;
typedef enum { MOR_SATFINITE, MOR_OVERFLOW_IEEE } mor_overflow;
typedef enum { MOR_CANONICAL, MOR_SIGNED } mor_nan;
typedef enum { MOR_CUDA, MOR_ML_DTYPES, MOR_TORCH } mor_encoder_profile;
typedef mor_encoder_profile mor_preset; /* its former name */

/* These return -1 if the specification refuses the arguments: a rounding that powers of two do not have,
 * a format that a profile does not have, a random word of more than n bits, a number that is not a code.
 * `from` is the format of x: any of the table, or mor_f64. */
int64_t mor_encode(const mor_format *to, mor_rounding rounding, mor_overflow overflow, mor_nan nan,
                   const mor_format *from, uint64_t x);
int64_t mor_encode_stochastic(const mor_format *to, mor_overflow overflow, mor_nan nan, int n_random_bits,
                              uint32_t random_word, const mor_format *from, uint64_t x);
int64_t mor_encode_profile(mor_encoder_profile profile, const mor_format *to, mor_rounding rounding, uint32_t x);
/* Its former name. */
int64_t mor_encode_preset(mor_preset profile, const mor_format *to, mor_rounding rounding, uint32_t x);
int64_t mor_decode(const mor_format *format, uint32_t code);

/* RN32 of one operation: ART-001 to ART-003. */
uint32_t mor_f32_add(uint32_t a, uint32_t b);
uint32_t mor_f32_subtract(uint32_t a, uint32_t b);
uint32_t mor_f32_multiply(uint32_t a, uint32_t b);
uint32_t mor_f32_divide(uint32_t a, uint32_t b);

/* ---- Scales: chapter scales ---- */

typedef enum { MOR_GAM, MOR_SCALE_E8M0, MOR_SCALE_FP32 } mor_scaling;
typedef struct {
    uint32_t mantissa; /* of the group; 0 without gam scaling */
    uint8_t exponent;  /* the stored code of e8m0; 0 under fp32 */
    uint32_t scale;    /* the number that x is multiplied by */
} mor_scale;

uint32_t mor_amax(const uint32_t *x, size_t rows, size_t columns, size_t stride); /* SCL-001 */
uint32_t mor_amin(const uint32_t *x, size_t rows, size_t columns, size_t stride); /* MOR-004 */
bool mor_can_be_scaled(const mor_format *format);                                 /* SCL-003 */
mor_scale mor_scale_of(const mor_format *format, mor_scaling scaling, uint32_t group_amax, uint32_t block_amax);

/* ---- Quantization and error sums: chapters quantization and errors ---- */

typedef struct {
    uint32_t xs;
    uint8_t code;
    uint32_t y;
} mor_element;

typedef struct {
    uint32_t d, r, u;
} mor_error;

typedef struct {
    uint64_t sum, nonzero, nonfinite;
} mor_sums;

mor_element mor_quantize(const mor_format *format, uint32_t x, uint32_t scale); /* QNT-001, QNT-002 */
mor_error mor_error_of(uint32_t x, uint32_t y);                                /* ERR-001 */
void mor_sums_add(mor_sums *sums, uint32_t x, uint32_t y);                     /* ERR-002 to ERR-004 */
mor_sums mor_quantize_block(const mor_format *format, uint32_t scale, const uint32_t *x, size_t rows,
                            size_t columns, size_t stride, uint8_t *code, uint32_t *y);

/* ---- Decisions: chapter policies ---- */

typedef enum { MOR_TENSOR, MOR_TWO_WAY, MOR_THREE_WAY, MOR_NVFP4, MOR_POLICIES } mor_policy;

/* The sums of one unit under the representations that the policy has; the others are not read. */
typedef struct {
    mor_sums e4m3, e5m2, nvfp4;
    uint32_t amax, amin;
} mor_unit;

/* T of MOR-002: 45, 1000 for 0.045. It is 0, which accepts no error, if the fraction is not above 0 and at most 1. */
uint32_t mor_threshold(uint32_t numerator, uint32_t denominator);
bool mor_mean_accepts(const mor_sums *sums, uint32_t threshold);                                 /* MOR-001 and MOR-002 */
bool mor_not_worse_accepts(const mor_sums *sums, uint64_t yardstick_sum);                        /* MOR-003 */
bool mor_range_accepts(const mor_format *format, const mor_sums *sums, uint32_t amax, uint32_t amin);
unsigned mor_choice(mor_policy policy, const mor_unit *unit); /* MOR-001, MOR-005: the index of a rung */

/* ---- MX: chapter mx ---- */

typedef enum { MOR_MX_FLOOR, MOR_MX_CEIL, MOR_MX_EVEN, MOR_MX_RCEIL } mor_mx_rule;

bool mor_can_be_mx(const mor_format *format); /* MXS-001 */
uint8_t mor_mx_scale(const mor_format *format, mor_mx_rule rule, const uint32_t *x, size_t count);
mor_element mor_mx_element(const mor_format *format, uint8_t scale, uint32_t x); /* MXS-007, MXS-008 */
uint32_t mor_mx_value(const mor_format *format, uint8_t scale, uint32_t code); /* MXS-009: y of any code */
/* A block of a row; returns its scale. */
uint8_t mor_mx_block(const mor_format *format, mor_mx_rule rule, const uint32_t *x, size_t count,
                     uint8_t *code, uint32_t *y);

/* ---- NVFP4: chapter nvfp4 ---- */

typedef enum {
    MOR_TE, MOR_TE_2_13, MOR_TE_ROW, MOR_TE_4OVER6_MAE, MOR_TE_4OVER6_MSE, MOR_TE_4OVER6_MAE_448,
    MOR_TE_4OVER6_MSE_448, MOR_TORCHAO, MOR_MODELOPT, MOR_COMPRESSED_TENSORS, MOR_PROFILES
} mor_profile;

typedef struct {
    uint32_t amax, encode, decode; /* encode is global_encode_scale, decode is global_decode_scale */
} mor_nvfp4_global;

typedef struct {
    uint8_t scale;           /* the code of e4m3 */
    uint32_t encode, decode; /* encode is 0 in profiles that divide elements by decode */
    uint32_t error;          /* NVF-006; 0 in other profiles */
} mor_nvfp4_candidate;

typedef struct {
    uint32_t block_amax;
    mor_nvfp4_candidate taken, six, four; /* six and four only in profiles of NVF-006 */
} mor_nvfp4_tile;

extern const char *const mor_profiles[MOR_PROFILES]; /* their names */

/* The largest |x|, infinities included, NaN left out: NVF-002. */
uint32_t mor_nvfp4_amax(const uint32_t *x, size_t rows, size_t columns, size_t stride);
mor_nvfp4_global mor_nvfp4_global_of(mor_profile profile, uint32_t amax); /* NVF-003, NVF-007 to NVF-009 */
mor_nvfp4_tile mor_nvfp4_tile_of(mor_profile profile, const mor_nvfp4_global *global, const uint32_t *x,
                                 size_t rows, size_t columns, size_t stride);
mor_element mor_nvfp4_element(mor_profile profile, const mor_nvfp4_candidate *tile, uint32_t x); /* NVF-010 */
/* NVF-011: count codes of a row to (count + 1) / 2 bytes. */
void mor_pack(const uint8_t *code, size_t count, uint8_t *packed);

#ifdef __cplusplus
}
#endif

#endif
