/* The C99 library for simulators: the functions that the SystemVerilog package mor_ref_dpi imports.
 *
 * Arguments are numbers, so svdpi.h is not needed. A format, a rounding and the like is the number that it has
 * in mor_ref.h. A result of -1 is a refusal. Compile mor_ref.c and mor_ref_dpi.c with the simulation:
 *
 *     verilator --binary mor_ref_dpi.sv bench.sv mor_ref.c mor_ref_dpi.c
 */
#ifndef MOR_REF_DPI_H
#define MOR_REF_DPI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int mor_dpi_format(const char *name); /* the number of a format; -1 if there is none */
int64_t mor_dpi_encode(int to, int rounding, int overflow, int nan, int from, uint64_t x);
int64_t mor_dpi_encode_stochastic(int to, int overflow, int nan, int n_random_bits, uint32_t random_word, int from,
                                  uint64_t x);
int64_t mor_dpi_encode_profile(int profile, int to, int rounding, uint32_t x);
int64_t mor_dpi_encode_preset(int profile, int to, int rounding, uint32_t x); /* its former name */
int64_t mor_dpi_decode(int format, uint32_t code);

/* Fold over the numbers of a block, from 0 on. */
uint32_t mor_dpi_amax(uint32_t amax, uint32_t x);
uint32_t mor_dpi_amin(uint32_t amin, uint32_t x);
/* These two return the stored exponent, and the code. */
int mor_dpi_scale(int format, int scaling, uint32_t group_amax, uint32_t block_amax, uint32_t *mantissa,
                  uint32_t *scale);
int mor_dpi_quantize(int format, uint32_t x, uint32_t scale, uint32_t *xs, uint32_t *y);

void mor_dpi_error(uint32_t x, uint32_t y, uint32_t *d, uint32_t *r, uint32_t *u);
void mor_dpi_sums_add(uint64_t *sum, uint64_t *nonzero, uint64_t *nonfinite, uint32_t x, uint32_t y);
uint32_t mor_dpi_threshold(uint32_t numerator, uint32_t denominator);
int mor_dpi_mean_accepts(uint64_t sum, uint64_t nonzero, uint64_t nonfinite, uint32_t threshold);
int mor_dpi_not_worse_accepts(uint64_t sum, uint64_t nonfinite, uint64_t yardstick_sum);
int mor_dpi_range_accepts(int format, uint64_t nonzero, uint64_t nonfinite, uint32_t amax, uint32_t amin);

/* Blocks of at most 32 numbers, and tiles of at most 16 rows of 16. The results are scales and codes. */
int mor_dpi_mx_scale(int format, int rule, const uint32_t *x, int count);
int mor_dpi_mx_element(int format, int scale, uint32_t x, uint32_t *xs, uint32_t *y);
int mor_dpi_nvfp4_global(int profile, uint32_t amax, uint32_t *encode, uint32_t *decode); /* 0 */
int mor_dpi_nvfp4_tile(int profile, uint32_t amax, const uint32_t *x, int rows, int columns, uint32_t *encode,
                       uint32_t *decode);
int mor_dpi_nvfp4_element(int profile, uint32_t encode, uint32_t decode, uint32_t x, uint32_t *xs, uint32_t *y);

#ifdef __cplusplus
}
#endif

#endif
