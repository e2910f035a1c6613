/* The functions of mor_ref_dpi.h. They are also valid C++. */
#include "mor_ref_dpi.h"

#include "mor_ref.h"

#define BLOCK 32
#define TILE 16

/* The number MOR_FORMATS, one past the table, is that of binary64. */
static const mor_format *format_at(int index) {
    if (index == MOR_FORMATS) return &mor_f64;
    return index >= 0 && index < MOR_FORMATS ? &mor_formats[index] : NULL;
}

int mor_dpi_format(const char *name) {
    const mor_format *found = mor_format_named(name);
    if (found == NULL) return -1;
    return found == &mor_f64 ? (int)MOR_FORMATS : (int)(found - mor_formats);
}

int64_t mor_dpi_encode(int to, int rounding, int overflow, int nan, int from, uint64_t x) {
    const mor_format *target = format_at(to), *source = format_at(from);
    if (target == NULL || target == &mor_f64 || source == NULL) return -1;
    return mor_encode(target, (mor_rounding)rounding, (mor_overflow)overflow, (mor_nan)nan, source, x);
}

int64_t mor_dpi_encode_stochastic(int to, int overflow, int nan, int n_random_bits, uint32_t random_word, int from,
                                  uint64_t x) {
    const mor_format *target = format_at(to), *source = format_at(from);
    if (target == NULL || target == &mor_f64 || source == NULL) return -1;
    return mor_encode_stochastic(target, (mor_overflow)overflow, (mor_nan)nan, n_random_bits, random_word, source,
                                 x);
}

int64_t mor_dpi_encode_profile(int profile, int to, int rounding, uint32_t x) {
    const mor_format *target = format_at(to);
    if (target == NULL || target == &mor_f64) return -1;
    return mor_encode_profile((mor_encoder_profile)profile, target, (mor_rounding)rounding, x);
}

int64_t mor_dpi_encode_preset(int profile, int to, int rounding, uint32_t x) {
    return mor_dpi_encode_profile(profile, to, rounding, x);
}

int64_t mor_dpi_decode(int format, uint32_t code) {
    const mor_format *source = format_at(format);
    return source == NULL || source == &mor_f64 ? -1 : mor_decode(source, code);
}

uint32_t mor_dpi_amax(uint32_t amax, uint32_t x) {
    uint32_t a = mor_amax(&x, 1, 1, 1);
    return a > amax ? a : amax;
}

uint32_t mor_dpi_amin(uint32_t amin, uint32_t x) {
    uint32_t a = mor_amin(&x, 1, 1, 1);
    return a != 0 && (amin == 0 || a < amin) ? a : amin;
}

int mor_dpi_scale(int format, int scaling, uint32_t group_amax, uint32_t block_amax, uint32_t *mantissa,
                  uint32_t *scale) {
    const mor_format *elements = format_at(format);
    if (elements == NULL || !mor_can_be_scaled(elements)) return -1;
    mor_scale made = mor_scale_of(elements, (mor_scaling)scaling, group_amax, block_amax);
    *mantissa = made.mantissa;
    *scale = made.scale;
    return made.exponent;
}

static int give(mor_element made, uint32_t *xs, uint32_t *y) {
    *xs = made.xs;
    *y = made.y;
    return made.code;
}

int mor_dpi_quantize(int format, uint32_t x, uint32_t scale, uint32_t *xs, uint32_t *y) {
    const mor_format *elements = format_at(format);
    if (elements == NULL || !mor_can_be_scaled(elements)) return -1;
    return give(mor_quantize(elements, x, scale), xs, y);
}

void mor_dpi_error(uint32_t x, uint32_t y, uint32_t *d, uint32_t *r, uint32_t *u) {
    mor_error made = mor_error_of(x, y);
    *d = made.d;
    *r = made.r;
    *u = made.u;
}

void mor_dpi_sums_add(uint64_t *sum, uint64_t *nonzero, uint64_t *nonfinite, uint32_t x, uint32_t y) {
    mor_sums sums = {*sum, *nonzero, *nonfinite};
    mor_sums_add(&sums, x, y);
    *sum = sums.sum;
    *nonzero = sums.nonzero;
    *nonfinite = sums.nonfinite;
}

uint32_t mor_dpi_threshold(uint32_t numerator, uint32_t denominator) {
    return mor_threshold(numerator, denominator);
}

int mor_dpi_mean_accepts(uint64_t sum, uint64_t nonzero, uint64_t nonfinite, uint32_t threshold) {
    mor_sums sums = {sum, nonzero, nonfinite};
    return mor_mean_accepts(&sums, threshold);
}

int mor_dpi_not_worse_accepts(uint64_t sum, uint64_t nonfinite, uint64_t yardstick_sum) {
    mor_sums sums = {sum, 0, nonfinite};
    return mor_not_worse_accepts(&sums, yardstick_sum);
}

int mor_dpi_range_accepts(int format, uint64_t nonzero, uint64_t nonfinite, uint32_t amax, uint32_t amin) {
    const mor_format *range = format_at(format);
    if (range == NULL || range == &mor_f64) return -1;
    mor_sums sums = {0, nonzero, nonfinite};
    return mor_range_accepts(range, &sums, amax, amin);
}

int mor_dpi_mx_scale(int format, int rule, const uint32_t *x, int count) {
    const mor_format *elements = format_at(format);
    if (elements == NULL || !mor_can_be_mx(elements) || count < 0 || count > BLOCK) return -1;
    return mor_mx_scale(elements, (mor_mx_rule)rule, x, (size_t)count);
}

int mor_dpi_mx_element(int format, int scale, uint32_t x, uint32_t *xs, uint32_t *y) {
    const mor_format *elements = format_at(format);
    if (elements == NULL || !mor_can_be_mx(elements) || scale < 0 || scale > 255) return -1;
    return give(mor_mx_element(elements, (uint8_t)scale, x), xs, y);
}

static int is_profile(int profile) { return profile >= 0 && profile < MOR_PROFILES; }

int mor_dpi_nvfp4_global(int profile, uint32_t amax, uint32_t *encode, uint32_t *decode) {
    if (!is_profile(profile)) return -1;
    mor_nvfp4_global made = mor_nvfp4_global_of((mor_profile)profile, amax);
    *encode = made.encode;
    *decode = made.decode;
    return 0;
}

int mor_dpi_nvfp4_tile(int profile, uint32_t amax, const uint32_t *x, int rows, int columns, uint32_t *encode,
                       uint32_t *decode) {
    if (!is_profile(profile) || rows < 0 || rows > TILE || columns < 0 || columns > TILE) return -1;
    mor_nvfp4_global global = mor_nvfp4_global_of((mor_profile)profile, amax);
    mor_nvfp4_tile made = mor_nvfp4_tile_of((mor_profile)profile, &global, x, (size_t)rows, (size_t)columns, TILE);
    *encode = made.taken.encode;
    *decode = made.taken.decode;
    return made.taken.scale;
}

int mor_dpi_nvfp4_element(int profile, uint32_t encode, uint32_t decode, uint32_t x, uint32_t *xs, uint32_t *y) {
    if (!is_profile(profile)) return -1;
    mor_nvfp4_candidate tile = {0, encode, decode, 0};
    return give(mor_nvfp4_element((mor_profile)profile, &tile, x), xs, y);
}
