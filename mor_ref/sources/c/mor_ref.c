/* The functions of mor_ref.h, written from the specification. They are also valid C++. */
#include "mor_ref.h"

#include <string.h>

/* ---- Formats ---- */

const mor_format mor_formats[MOR_FORMATS] = {
    {"e4m3", 4, 3, 7, MOR_FN, MOR_SIGN_MAGNITUDE},
    {"e5m2", 5, 2, 15, MOR_IEEE, MOR_SIGN_MAGNITUDE},
    {"e2m1", 2, 1, 1, MOR_NONE, MOR_SIGN_MAGNITUDE},
    {"e2m3", 2, 3, 1, MOR_NONE, MOR_SIGN_MAGNITUDE},
    {"e3m2", 3, 2, 3, MOR_NONE, MOR_SIGN_MAGNITUDE},
    {"e8m0", 8, 0, 127, MOR_FN, MOR_UNSIGNED},
    {"bf16", 8, 7, 127, MOR_IEEE, MOR_SIGN_MAGNITUDE},
    {"f16", 5, 10, 15, MOR_IEEE, MOR_SIGN_MAGNITUDE},
    {"f32", 8, 23, 127, MOR_IEEE, MOR_SIGN_MAGNITUDE},
    {"int8_mx", 0, 7, 0, MOR_NONE, MOR_TWOS_COMPLEMENT},
    {"e4m3fnuz", 4, 3, 8, MOR_FNUZ, MOR_SIGN_MAGNITUDE},
    {"e5m2fnuz", 5, 2, 16, MOR_FNUZ, MOR_SIGN_MAGNITUDE},
    {"e4m3b11fnuz", 4, 3, 11, MOR_FNUZ, MOR_SIGN_MAGNITUDE},
    {"e4m3_ieee", 4, 3, 7, MOR_IEEE, MOR_SIGN_MAGNITUDE},
    {"e3m4", 3, 4, 3, MOR_IEEE, MOR_SIGN_MAGNITUDE},
    {"e2m1_ieee", 2, 1, 1, MOR_IEEE, MOR_SIGN_MAGNITUDE},
};
const mor_format mor_f64 = {"f64", 11, 52, 1023, MOR_IEEE, MOR_SIGN_MAGNITUDE};

/* SCL-002: the 24 significant bits of binary32, with an exponent that no quotient leaves. */
static const mor_format WIDE = {"wide", 11, 23, 1023, MOR_IEEE, MOR_SIGN_MAGNITUDE};

static const mor_format *const F32 = &mor_formats[MOR_F32];
static const mor_format *const E4M3 = &mor_formats[MOR_E4M3];
static const mor_format *const E2M1 = &mor_formats[MOR_E2M1];

#define ONE UINT32_C(0x3F800000)
#define INFINITE UINT32_C(0x7F800000)
#define FLT_LARGEST UINT32_C(0x7F7FFFFF)
#define NAN32 UINT32_C(0x7FFFFFFF)

static uint32_t magnitude_of(uint32_t x) { return x & UINT32_C(0x7FFFFFFF); }
static bool is_nan(uint32_t x) { return magnitude_of(x) > INFINITE; }
static bool is_finite(uint32_t x) { return magnitude_of(x) < INFINITE; }
static uint64_t ones(int bits) { return (UINT64_C(1) << bits) - 1; }

const mor_format *mor_format_named(const char *name) {
    for (int i = 0; i < MOR_FORMATS; i++)
        if (strcmp(mor_formats[i].name, name) == 0) return &mor_formats[i];
    return strcmp(mor_f64.name, name) == 0 ? &mor_f64 : NULL;
}

static int bits_of(const mor_format *f) {
    return f->exponent_bits + f->mantissa_bits + (f->sign != MOR_UNSIGNED);
}

static bool is_power_of_two(const mor_format *f) { return f->mantissa_bits == 0; }

static uint64_t sign_bit(const mor_format *f) {
    return f->sign == MOR_UNSIGNED ? 0 : UINT64_C(1) << (f->exponent_bits + f->mantissa_bits);
}

static uint64_t infinity_code(const mor_format *f) { return ones(f->exponent_bits) << f->mantissa_bits; }

static uint64_t largest_code(const mor_format *f) {
    if (f->specials == MOR_IEEE) return infinity_code(f) - 1;
    return ones(f->exponent_bits + f->mantissa_bits) - (f->specials == MOR_FN);
}

uint32_t mor_largest_code(const mor_format *format) { return (uint32_t)largest_code(format); }

static bool has_nan(const mor_format *f) { return f->specials != MOR_NONE; }

/* FMT-011 */
static uint64_t canonical_nan(const mor_format *f) {
    return f->specials == MOR_FNUZ ? sign_bit(f) : ones(f->exponent_bits + f->mantissa_bits);
}

/* ---- Numbers: significand * 2^exponent, exactly ---- */

typedef enum { ZERO, FINITE, INFINITY_, NOT_A_NUMBER } kind;

typedef struct {
    kind is;
    bool negative;
    uint64_t significand; /* not 0 if it is finite */
    int exponent;
} number;

static number make(kind is, bool negative, uint64_t significand, int exponent) {
    number made;
    made.is = is == FINITE && significand == 0 ? ZERO : is;
    made.negative = negative;
    made.significand = significand;
    made.exponent = exponent;
    return made;
}

static number power_of_two(int exponent) { return make(FINITE, false, 1, exponent); }

/* Return n with its leading one in bit 63. */
static number normalised(number n) {
    for (int step = 32; step > 0; step /= 2)
        if (n.significand >> (64 - step) == 0) {
            n.significand <<= step;
            n.exponent -= step;
        }
    return n;
}

/* The exponent e with 2^e <= |n| < 2^(e + 1). */
static int exponent_of(number n) { return normalised(n).exponent + 63; }

/* FMT-001 to FMT-008 */
static number value_of(const mor_format *f, uint64_t code) {
    int m_bits = f->mantissa_bits, unit = 1 - f->bias - m_bits;
    bool negative = (code & sign_bit(f)) != 0;
    uint64_t c = code & ones(f->exponent_bits + m_bits);
    if (f->sign == MOR_TWOS_COMPLEMENT) {
        uint64_t count = negative ? (UINT64_C(1) << m_bits) - c : c;
        return make(FINITE, negative, count, unit);
    }
    if (f->specials == MOR_IEEE && c >= infinity_code(f))
        return make(c == infinity_code(f) ? INFINITY_ : NOT_A_NUMBER, negative, 0, 0);
    if (f->specials == MOR_FN && c == canonical_nan(f)) return make(NOT_A_NUMBER, negative, 0, 0);
    if (f->specials == MOR_FNUZ && code == canonical_nan(f)) return make(NOT_A_NUMBER, negative, 0, 0);
    if (is_power_of_two(f)) return power_of_two((int)c - f->bias);
    int e = (int)(c >> m_bits);
    uint64_t m = c & ones(m_bits);
    if (e == 0) return make(FINITE, negative, m, unit);
    return make(FINITE, negative, m | UINT64_C(1) << m_bits, unit + e - 1);
}

static number f32(uint32_t x) { return value_of(F32, x); }

static number largest_of(const mor_format *f) { return value_of(f, largest_code(f)); }

bool mor_is_format(const mor_format *f) {
    int e = f->exponent_bits, m = f->mantissa_bits;
    if (e < 0 || e > 8 || m < 0 || m > 23) return false;        /* FMT-010 */
    if (f->specials == MOR_IEEE && e < 2) return false;         /* FMT-003 */
    if (f->sign == MOR_UNSIGNED && f->specials == MOR_FNUZ) return false;
    if (f->sign == MOR_TWOS_COMPLEMENT) {                       /* FMT-008 */
        if (e != 0 || m < 1 || f->specials != MOR_NONE) return false;
    } else if (e < 1) {
        return false;
    }
    if (is_power_of_two(f)) {                                   /* FMT-007 */
        if (f->sign != MOR_UNSIGNED || f->specials == MOR_IEEE) return false;
        if (-f->bias < -127) return false;
    } else if (1 - f->bias < -126) {
        return false;
    }
    return f->bias >= -1000 && exponent_of(largest_of(f)) < 128;
}

/* ---- Encoding ---- */

typedef struct {
    mor_rounding rounding;
    mor_overflow overflow;
    mor_nan nan;
    int n_random_bits; /* 0 if the rounding is not stochastic */
    uint32_t random_word;
    bool first_step_goes_up; /* ENC-016, note (1) */
} rules;

static rules plain(mor_rounding rounding, mor_overflow overflow, mor_nan nan) {
    rules made = {MOR_DEFAULT, MOR_SATFINITE, MOR_CANONICAL, 0, 0, false};
    made.rounding = rounding;
    made.overflow = overflow;
    made.nan = nan;
    return made;
}

/* ENC-011 */
static uint64_t with_sign(const mor_format *f, uint64_t code, bool negative) {
    if (!negative || f->sign == MOR_UNSIGNED) return code;
    if (f->sign == MOR_TWOS_COMPLEMENT) return code ? 2 * sign_bit(f) - code : 0;
    return code == 0 && f->specials == MOR_FNUZ ? 0 : code | sign_bit(f);
}

/* ENC-009, ENC-010 */
static uint64_t nan_code(const mor_format *f, bool negative, mor_nan rule) {
    uint64_t code = has_nan(f) ? canonical_nan(f) : f->sign == MOR_TWOS_COMPLEMENT ? 0 : largest_code(f);
    return with_sign(f, code, negative && rule == MOR_SIGNED);
}

/* ENC-008 */
static uint64_t infinite_magnitude(const mor_format *f, mor_overflow rule) {
    if (rule == MOR_SATFINITE || !has_nan(f)) return largest_code(f);
    return f->specials == MOR_IEEE ? infinity_code(f) : canonical_nan(f);
}

/* ENC-006, ENC-007 */
static uint64_t overflowed_magnitude(const mor_format *f, bool negative, const rules *by) {
    bool toward_zero = by->rounding == MOR_RTZ || by->rounding == MOR_RTO
                       || (by->rounding == MOR_RTP && negative) || (by->rounding == MOR_RTN && !negative);
    return toward_zero ? largest_code(f) : infinite_magnitude(f, by->overflow);
}

/* k + f with f = fraction / 2^64, and a little more if `more` is set. */
typedef struct {
    uint64_t k, fraction;
    bool more;
} split;

static split split_at(uint64_t significand, int shift) {
    split s = {0, 0, false};
    if (shift <= 0) {
        s.k = significand << -shift;
    } else if (shift < 64) {
        s.k = significand >> shift;
        s.fraction = significand << (64 - shift);
    } else if (shift < 128) {
        s.fraction = significand >> (shift - 64);
        s.more = (significand & ones(shift - 64)) != 0;
    } else {
        s.more = true;
    }
    return s;
}

/* ENC-003, ENC-005 */
static bool goes_up(split s, bool negative, const rules *by) {
    const uint64_t half = UINT64_C(1) << 63;
    bool is_exact = s.fraction == 0 && !s.more;
    if (by->n_random_bits)
        return (s.fraction >> (64 - by->n_random_bits)) + by->random_word >= UINT64_C(1) << by->n_random_bits;
    switch (by->rounding) {
    case MOR_RNA: return s.fraction >= half;
    case MOR_RTZ: return false;
    case MOR_RTP: return !is_exact && !negative;
    case MOR_RTN: return !is_exact && negative;
    case MOR_RTO: return !is_exact && s.k % 2 == 0;
    case MOR_DEFAULT:
    case MOR_RNE: break;
    }
    return s.fraction > half || (s.fraction == half && s.k % 2 == 1); /* then there is no more */
}

/* ENC-002 to ENC-005, ENC-013, ENC-014: the code of a rounded magnitude, maybe beyond the format. */
static uint64_t rounded_magnitude(const mor_format *f, number n, const rules *by) {
    number x = normalised(n);
    int e = x.exponent + 63;
    if (is_power_of_two(f)) {
        split s = split_at(x.significand, 63);
        if (e < -f->bias) return 0;
        bool up = e == -f->bias && by->first_step_goes_up && by->rounding == MOR_RNA ? s.fraction != 0
                                                                                    : goes_up(s, false, by);
        return (uint64_t)(e + f->bias + up);
    }
    int smallest = 1 - f->bias, p = e > smallest ? e : smallest;
    split s = split_at(x.significand, p - f->mantissa_bits - x.exponent);
    return ((uint64_t)(p - smallest) << f->mantissa_bits) + s.k + goes_up(s, n.negative, by);
}

static uint64_t encoded(const mor_format *f, number n, const rules *by) {
    uint64_t c = 0;
    bool negative = n.negative;
    if (n.is == NOT_A_NUMBER) return nan_code(f, negative, by->nan);
    if (f->sign == MOR_UNSIGNED) n.negative = false; /* ENC-012 */
    if (n.is == INFINITY_) c = infinite_magnitude(f, by->overflow);
    if (n.is == FINITE) {
        c = rounded_magnitude(f, n, by);
        if (c > largest_code(f)) c = overflowed_magnitude(f, n.negative, by);
    }
    return with_sign(f, c, negative);
}

/* Resolve the default, and rne of powers of two, which is rna; refuse what ENC-013 refuses. */
static bool resolve(const mor_format *to, mor_rounding *rounding) {
    if (is_power_of_two(to) && *rounding == MOR_RNE) *rounding = MOR_RNA;
    if (*rounding == MOR_DEFAULT) *rounding = is_power_of_two(to) ? MOR_RTP : MOR_RNE;
    return !is_power_of_two(to) || *rounding == MOR_RTP || *rounding == MOR_RNA || *rounding == MOR_RTZ;
}

static bool is_code(const mor_format *f, uint64_t x) { return bits_of(f) == 64 || x >> bits_of(f) == 0; }

int64_t mor_encode(const mor_format *to, mor_rounding rounding, mor_overflow overflow, mor_nan nan,
                   const mor_format *from, uint64_t x) {
    if (!resolve(to, &rounding) || !is_code(from, x)) return -1;
    rules by = plain(rounding, overflow, nan);
    return (int64_t)encoded(to, value_of(from, x), &by);
}

int64_t mor_encode_stochastic(const mor_format *to, mor_overflow overflow, mor_nan nan, int n_random_bits,
                              uint32_t random_word, const mor_format *from, uint64_t x) {
    if (is_power_of_two(to) || n_random_bits < 1 || n_random_bits > 32) return -1;
    if ((uint64_t)random_word > ones(n_random_bits) || !is_code(from, x)) return -1;
    rules by = plain(MOR_RNE, overflow, nan);
    by.n_random_bits = n_random_bits;
    by.random_word = random_word;
    return (int64_t)encoded(to, value_of(from, x), &by);
}

typedef struct {
    mor_encoder_profile profile;
    mor_format_index format;
    mor_overflow overflow;
    mor_nan nan;
    int32_t nan_codes[2]; /* without and with sign bit; -1: by the rule */
    bool rna, zero_and_negative_are_nan;
} profile_row;

/* ENC-016 */
static const profile_row PROFILES_OF_ENCODERS[] = {
    {MOR_CUDA, MOR_E4M3, MOR_SATFINITE, MOR_CANONICAL, {-1, -1}, false, false},
    {MOR_CUDA, MOR_E5M2, MOR_SATFINITE, MOR_CANONICAL, {-1, -1}, false, false},
    {MOR_CUDA, MOR_E2M1, MOR_SATFINITE, MOR_CANONICAL, {-1, -1}, false, false},
    {MOR_CUDA, MOR_E2M3, MOR_SATFINITE, MOR_CANONICAL, {-1, -1}, false, false},
    {MOR_CUDA, MOR_E3M2, MOR_SATFINITE, MOR_CANONICAL, {-1, -1}, false, false},
    {MOR_CUDA, MOR_E8M0, MOR_SATFINITE, MOR_CANONICAL, {-1, -1}, false, false},
    {MOR_CUDA, MOR_BF16, MOR_OVERFLOW_IEEE, MOR_CANONICAL, {-1, -1}, false, false},
    {MOR_CUDA, MOR_F16, MOR_OVERFLOW_IEEE, MOR_CANONICAL, {-1, -1}, false, false},
    {MOR_CUDA, MOR_F32, MOR_OVERFLOW_IEEE, MOR_CANONICAL, {-1, -1}, false, false},
    {MOR_ML_DTYPES, MOR_E4M3, MOR_OVERFLOW_IEEE, MOR_SIGNED, {-1, -1}, false, false},
    {MOR_ML_DTYPES, MOR_E5M2, MOR_OVERFLOW_IEEE, MOR_CANONICAL, {0x7E, 0xFE}, false, false},
    {MOR_ML_DTYPES, MOR_E2M1, MOR_SATFINITE, MOR_CANONICAL, {0x8, 0x0}, false, false},
    {MOR_ML_DTYPES, MOR_E2M3, MOR_SATFINITE, MOR_CANONICAL, {0x20, 0x00}, false, false},
    {MOR_ML_DTYPES, MOR_E3M2, MOR_SATFINITE, MOR_CANONICAL, {0x20, 0x00}, false, false},
    {MOR_ML_DTYPES, MOR_E8M0, MOR_OVERFLOW_IEEE, MOR_CANONICAL, {-1, -1}, true, true},
    {MOR_ML_DTYPES, MOR_BF16, MOR_OVERFLOW_IEEE, MOR_CANONICAL, {0x7FC0, 0xFFC0}, false, false},
    {MOR_ML_DTYPES, MOR_E4M3FNUZ, MOR_OVERFLOW_IEEE, MOR_CANONICAL, {-1, -1}, false, false},
    {MOR_ML_DTYPES, MOR_E5M2FNUZ, MOR_OVERFLOW_IEEE, MOR_CANONICAL, {-1, -1}, false, false},
    {MOR_ML_DTYPES, MOR_E4M3B11FNUZ, MOR_OVERFLOW_IEEE, MOR_CANONICAL, {-1, -1}, false, false},
    {MOR_ML_DTYPES, MOR_E4M3_IEEE, MOR_OVERFLOW_IEEE, MOR_CANONICAL, {0x7C, 0xFC}, false, false},
    {MOR_ML_DTYPES, MOR_E3M4, MOR_OVERFLOW_IEEE, MOR_CANONICAL, {0x78, 0xF8}, false, false},
    {MOR_TORCH, MOR_E4M3, MOR_SATFINITE, MOR_SIGNED, {-1, -1}, false, false},
    {MOR_TORCH, MOR_E5M2, MOR_OVERFLOW_IEEE, MOR_SIGNED, {-1, -1}, false, false},
    {MOR_TORCH, MOR_E8M0, MOR_OVERFLOW_IEEE, MOR_CANONICAL, {-1, -1}, true, false},
    {MOR_TORCH, MOR_E4M3FNUZ, MOR_OVERFLOW_IEEE, MOR_CANONICAL, {-1, -1}, false, false},
    {MOR_TORCH, MOR_E5M2FNUZ, MOR_OVERFLOW_IEEE, MOR_CANONICAL, {-1, -1}, false, false},
};

static const profile_row *profile_for(mor_encoder_profile profile, const mor_format *to) {
    for (size_t i = 0; i < sizeof PROFILES_OF_ENCODERS / sizeof PROFILES_OF_ENCODERS[0]; i++) {
        const profile_row *row = &PROFILES_OF_ENCODERS[i];
        if (row->profile == profile && &mor_formats[row->format] == to) return row;
    }
    return NULL;
}

int64_t mor_encode_preset(mor_preset profile, const mor_format *to, mor_rounding rounding, uint32_t x) {
    return mor_encode_profile(profile, to, rounding, x);
}

int64_t mor_encode_profile(mor_encoder_profile profile, const mor_format *to, mor_rounding rounding, uint32_t x) {
    const profile_row *row = profile_for(profile, to);
    if (row == NULL) return -1;
    if (rounding == MOR_DEFAULT && row->rna) rounding = MOR_RNA;
    if (!resolve(to, &rounding)) return -1;
    number n = f32(x);
    if (n.is == NOT_A_NUMBER && row->nan_codes[n.negative] >= 0) return row->nan_codes[n.negative];
    if (n.is != NOT_A_NUMBER && row->zero_and_negative_are_nan && (n.is == ZERO || n.negative))
        return (int64_t)canonical_nan(to);
    rules by = plain(rounding, row->overflow, row->nan);
    by.first_step_goes_up = row->rna;
    return (int64_t)encoded(to, n, &by);
}

/* ---- RN32: to the format f32 under rne, ieee and canonical ---- */

static uint32_t rn32(number n) {
    rules by = plain(MOR_RNE, MOR_OVERFLOW_IEEE, MOR_CANONICAL);
    return (uint32_t)encoded(F32, n, &by);
}

/* DEC-001 to DEC-004 */
int64_t mor_decode(const mor_format *format, uint32_t code) {
    if (!is_code(format, code)) return -1;
    return rn32(value_of(format, code));
}

static number product(number a, number b) {
    bool negative = a.negative != b.negative;
    if (a.is == NOT_A_NUMBER || b.is == NOT_A_NUMBER) return make(NOT_A_NUMBER, false, 0, 0);
    if (a.is == INFINITY_ || b.is == INFINITY_)
        return make(a.is == ZERO || b.is == ZERO ? NOT_A_NUMBER : INFINITY_, negative, 0, 0);
    return make(FINITE, negative, a.significand * b.significand, a.exponent + b.exponent);
}

/* If a quotient or a sum is not exact, its last bit is set: no rounding of at most 53 bits sees more. */
static number quotient(number a, number b) {
    bool negative = a.negative != b.negative;
    if (a.is == NOT_A_NUMBER || b.is == NOT_A_NUMBER || (a.is == INFINITY_ && b.is == INFINITY_)
        || (a.is == ZERO && b.is == ZERO))
        return make(NOT_A_NUMBER, false, 0, 0);
    if (a.is == INFINITY_ || b.is == ZERO) return make(INFINITY_, negative, 0, 0);
    if (a.is == ZERO || b.is == INFINITY_) return make(ZERO, negative, 0, 0);
    a = normalised(a);
    uint64_t whole = a.significand / b.significand;
    return make(FINITE, negative, whole | (whole * b.significand != a.significand), a.exponent - b.exponent);
}

static number sum(number a, number b) {
    if (a.is == NOT_A_NUMBER || b.is == NOT_A_NUMBER
        || (a.is == INFINITY_ && b.is == INFINITY_ && a.negative != b.negative))
        return make(NOT_A_NUMBER, false, 0, 0);
    if (a.is == INFINITY_ || b.is == INFINITY_) return a.is == INFINITY_ ? a : b;
    if (a.is == ZERO && b.is == ZERO) return make(ZERO, a.negative && b.negative, 0, 0);
    if (a.is == ZERO || b.is == ZERO) return a.is == ZERO ? b : a;
    a = normalised(a);
    b = normalised(b);
    if (a.exponent < b.exponent) {
        number other = a;
        a = b;
        b = other;
    }
    /* Two bits of room: one for the carry, and one for the last bit of a number that is cut. */
    uint64_t first = a.significand >> 2;
    split second = split_at(b.significand >> 2, a.exponent - b.exponent);
    uint64_t cut = second.k | (second.fraction != 0 || second.more);
    if (a.negative == b.negative) return make(FINITE, a.negative, first + cut, a.exponent + 2);
    if (first == cut) return make(ZERO, false, 0, 0);
    bool is_less = first < cut; /* only if the exponents are equal */
    return make(FINITE, a.negative != is_less, is_less ? cut - first : first - cut, a.exponent + 2);
}

static number negated(number n) {
    n.negative = !n.negative;
    return n;
}

uint32_t mor_f32_add(uint32_t a, uint32_t b) { return rn32(sum(f32(a), f32(b))); }
uint32_t mor_f32_subtract(uint32_t a, uint32_t b) { return rn32(sum(f32(a), negated(f32(b)))); }
uint32_t mor_f32_multiply(uint32_t a, uint32_t b) { return rn32(product(f32(a), f32(b))); }
uint32_t mor_f32_divide(uint32_t a, uint32_t b) { return rn32(quotient(f32(a), f32(b))); }

/* Whether a < b, of numbers without sign bit; false with NaN. */
static bool is_less(uint32_t a, uint32_t b) { return !is_nan(a) && !is_nan(b) && a < b; }

static uint32_t at_most(uint32_t a, uint32_t limit) { return is_less(limit, a) ? limit : a; }
static uint32_t at_least(uint32_t a, uint32_t limit) { return is_less(a, limit) ? limit : a; }

/* Under rne, satfinite and canonical: QNT-001. */
static uint8_t element_code(const mor_format *f, uint32_t x) {
    rules by = plain(MOR_RNE, MOR_SATFINITE, MOR_CANONICAL);
    return (uint8_t)encoded(f, f32(x), &by);
}

/* ---- Scales ---- */

uint32_t mor_amax(const uint32_t *x, size_t rows, size_t columns, size_t stride) {
    uint32_t largest = 0;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++) {
            uint32_t a = magnitude_of(x[r * stride + c]);
            if (a < INFINITE && a > largest) largest = a;
        }
    return largest;
}

uint32_t mor_amin(const uint32_t *x, size_t rows, size_t columns, size_t stride) {
    uint32_t smallest = INFINITE;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++) {
            uint32_t a = magnitude_of(x[r * stride + c]);
            if (a != 0 && a < smallest) smallest = a;
        }
    return smallest == INFINITE ? 0 : smallest;
}

bool mor_can_be_scaled(const mor_format *format) {
    return mor_is_format(format) && format->sign != MOR_UNSIGNED && bits_of(format) <= 8
           && exponent_of(largest_of(format)) >= 2;
}

/* SCL-002: (1 + mantissa / 2^23) * 2^exponent */
typedef struct {
    uint32_t mantissa;
    int exponent;
} ideal_scale;

static ideal_scale ideal(const mor_format *format, uint32_t amax) {
    rules by = plain(MOR_RNE, MOR_SATFINITE, MOR_CANONICAL);
    uint64_t code = encoded(&WIDE, quotient(largest_of(format), f32(amax)), &by);
    ideal_scale made = {(uint32_t)(code & ones(23)), (int)(code >> 23) - WIDE.bias};
    return made;
}

static uint32_t rebuilt(uint32_t mantissa, int exponent) {
    return rn32(make(FINITE, false, UINT64_C(1) << 23 | mantissa, exponent - 23));
}

mor_scale mor_scale_of(const mor_format *format, mor_scaling scaling, uint32_t group_amax, uint32_t block_amax) {
    mor_scale made = {0, 0, ONE};
    ideal_scale block = {0, 0};
    if (block_amax != 0) block = ideal(format, block_amax);
    if (scaling == MOR_SCALE_FP32) { /* SCL-004 */
        made.scale = at_most(rebuilt(block.mantissa, block.exponent), FLT_LARGEST);
        return made;
    }
    int e = block.exponent;
    if (scaling == MOR_GAM) {
        if (group_amax != 0) made.mantissa = ideal(format, group_amax).mantissa;         /* GAM-001 */
        if (block_amax != 0 && made.mantissa > block.mantissa) e -= 1; /* GAM-002, GAM-003 */
    }
    if (e > 127) e = 127; /* SCL-005, GAM-004 */
    made.exponent = (uint8_t)(e + 127);
    made.scale = rebuilt(made.mantissa, e); /* GAM-005 */
    return made;
}

/* ---- Quantization and error sums ---- */

mor_element mor_quantize(const mor_format *format, uint32_t x, uint32_t scale) {
    mor_element made;
    made.xs = mor_f32_multiply(x, scale);
    made.code = element_code(format, made.xs);
    made.y = rn32(quotient(value_of(format, made.code), f32(scale)));
    return made;
}

mor_error mor_error_of(uint32_t x, uint32_t y) {
    mor_error made = {0, 0, 0};
    if (magnitude_of(x) == 0 || !is_finite(x)) return made;
    made.d = magnitude_of(mor_f32_subtract(x, y));
    made.r = is_finite(y) ? at_most(mor_f32_divide(made.d, magnitude_of(x)), ONE) : ONE;
    made.u = mor_f32_add(ONE, made.r) - ONE;
    return made;
}

void mor_sums_add(mor_sums *sums, uint32_t x, uint32_t y) {
    if (!is_finite(x) || is_nan(y) || magnitude_of(y) >= UINT32_C(0x7F7F8000)) sums->nonfinite++;
    if (!is_finite(x) || magnitude_of(x) == 0) return;
    sums->sum += mor_error_of(x, y).u;
    sums->nonzero++;
}

mor_sums mor_quantize_block(const mor_format *format, uint32_t scale, const uint32_t *x, size_t rows,
                            size_t columns, size_t stride, uint8_t *code, uint32_t *y) {
    mor_sums sums = {0, 0, 0};
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++) {
            size_t at = r * stride + c;
            mor_element element = mor_quantize(format, x[at], scale);
            mor_sums_add(&sums, x[at], element.y);
            if (code) code[at] = element.code;
            if (y) y[at] = element.y;
        }
    return sums;
}

/* ---- Decisions ---- */

uint32_t mor_threshold(uint32_t numerator, uint32_t denominator) {
    if (numerator > denominator || denominator == 0) return 0;
    uint64_t scaled = (uint64_t)numerator << 23, whole = scaled / denominator;
    uint64_t twice = 2 * (scaled % denominator);
    return (uint32_t)(whole + (twice > denominator || (twice == denominator && whole % 2 == 1)));
}

bool mor_mean_accepts(const mor_sums *sums, uint32_t threshold) {
    return sums->nonfinite == 0 && (sums->nonzero == 0 || sums->sum < threshold * sums->nonzero);
}

bool mor_not_worse_accepts(const mor_sums *sums, uint64_t yardstick_sum) {
    return sums->nonfinite == 0 && sums->sum <= yardstick_sum;
}

/* MOR-004, as amax * smallest <= amin * largest, exactly. A format without normal numbers accepts nothing. */
bool mor_range_accepts(const mor_format *format, const mor_sums *sums, uint32_t amax, uint32_t amin) {
    if (format->exponent_bits == 0 || sums->nonfinite != 0) return false;
    if (sums->nonzero == 0) return true;
    int smallest = is_power_of_two(format) ? -format->bias : 1 - format->bias;
    number left = product(f32(amax), power_of_two(smallest)), right = product(f32(amin), largest_of(format));
    if (left.is == ZERO || right.is == ZERO) return left.is == ZERO;
    left = normalised(left);
    right = normalised(right);
    if (left.exponent != right.exponent) return left.exponent < right.exponent;
    return left.significand <= right.significand;
}

unsigned mor_choice(mor_policy policy, const mor_unit *unit) {
    const mor_format *e5m2 = &mor_formats[MOR_E5M2];
    uint32_t of_e4m3 = mor_threshold(45, 1000), of_nvfp4 = mor_threshold(20, 100);
    switch (policy) {
    case MOR_TENSOR: return mor_mean_accepts(&unit->e4m3, of_e4m3) ? 0 : 1;
    case MOR_TWO_WAY: return mor_not_worse_accepts(&unit->e4m3, unit->e5m2.sum) ? 0 : 1;
    case MOR_THREE_WAY:
        if (mor_not_worse_accepts(&unit->e4m3, unit->e5m2.sum)) return 0;
        return mor_range_accepts(e5m2, &unit->e5m2, unit->amax, unit->amin) ? 1 : 2;
    case MOR_NVFP4:
        if (mor_mean_accepts(&unit->nvfp4, of_nvfp4)) return 0;
        return mor_mean_accepts(&unit->e4m3, of_e4m3) ? 1 : 2;
    case MOR_POLICIES: break;
    }
    return 0;
}

/* ---- MX ---- */

bool mor_can_be_mx(const mor_format *format) {
    return mor_is_format(format) && format->sign != MOR_UNSIGNED && bits_of(format) <= 8;
}

static int even_exponent(const mor_format *format, uint32_t amax) { /* MXS-005 */
    int n = format->mantissa_bits - (format->sign == MOR_TWOS_COMPLEMENT);
    number a = normalised(f32(amax));
    uint64_t r = a.significand + (UINT64_C(1) << (62 - n));
    return a.exponent + 63 + (r < a.significand); /* the sum has wrapped at the next power of two */
}

static int mx_exponent(const mor_format *format, mor_mx_rule rule, uint32_t amax) {
    if (amax == INFINITE) return 128; /* MXS-002 */
    int e = exponent_of(f32(amax));
    if (rule == MOR_MX_EVEN) return even_exponent(format, amax);
    if (rule == MOR_MX_CEIL) return e + (normalised(f32(amax)).significand != UINT64_C(1) << 63);
    return e;
}

uint8_t mor_mx_scale(const mor_format *format, mor_mx_rule rule, const uint32_t *x, size_t count) {
    uint32_t amax = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_nan(x[i])) return 0xFF;
        if (magnitude_of(x[i]) > amax) amax = magnitude_of(x[i]);
    }
    if (amax == 0) return 0;
    if (rule == MOR_MX_RCEIL) { /* MXS-006 */
        rules by = plain(MOR_RTP, MOR_SATFINITE, MOR_CANONICAL);
        uint32_t ratio = rn32(quotient(f32(amax), largest_of(format)));
        return (uint8_t)encoded(&mor_formats[MOR_E8M0], f32(ratio), &by);
    }
    int c = mx_exponent(format, rule, amax) - exponent_of(largest_of(format)) + 127;
    return (uint8_t)(c < 0 ? 0 : c > 254 ? 254 : c);
}

uint32_t mor_mx_value(const mor_format *format, uint8_t scale, uint32_t code) {
    return scale == 0xFF ? NAN32 : rn32(product(value_of(format, code), power_of_two(scale - 127)));
}

mor_element mor_mx_element(const mor_format *format, uint8_t scale, uint32_t x) {
    mor_element made;
    made.xs = scale == 0xFF ? NAN32 : rn32(product(f32(x), power_of_two(127 - scale)));
    made.code = element_code(format, made.xs);
    made.y = mor_mx_value(format, scale, made.code);
    return made;
}

uint8_t mor_mx_block(const mor_format *format, mor_mx_rule rule, const uint32_t *x, size_t count,
                     uint8_t *code, uint32_t *y) {
    uint8_t scale = mor_mx_scale(format, rule, x, count);
    for (size_t i = 0; i < count; i++) {
        mor_element element = mor_mx_element(format, scale, x[i]);
        if (code) code[i] = element.code;
        if (y) y[i] = element.y;
    }
    return scale;
}

/* ---- NVFP4 ---- */

const char *const mor_profiles[MOR_PROFILES] = {
    "te", "te_2_13", "te_row", "te_4over6_mae", "te_4over6_mse", "te_4over6_mae_448",
    "te_4over6_mse_448", "torchao", "modelopt", "compressed_tensors",
};

#define SIX UINT32_C(0x40C00000)
#define ONE_AND_A_HALF UINT32_C(0x3FC00000)
#define AN_EIGHTH UINT32_C(0x3E000000)
#define OF_448 UINT32_C(0x43E00000)
#define OF_1536 UINT32_C(0x44C00000)
#define OF_2688 UINT32_C(0x45280000)
#define TWO_TO_MINUS_6 UINT32_C(0x3C800000)
#define TWO_TO_MINUS_9 UINT32_C(0x3B000000)
#define TWO_TO_MINUS_126 UINT32_C(0x00800000)

static bool has_4over6(mor_profile p) { return p >= MOR_TE_4OVER6_MAE && p <= MOR_TE_4OVER6_MSE_448; }
static bool squares(mor_profile p) { return p == MOR_TE_4OVER6_MSE || p == MOR_TE_4OVER6_MSE_448; }
static bool divides(mor_profile p) { return p == MOR_MODELOPT || p == MOR_COMPRESSED_TENSORS; }
static uint32_t q_of(mor_profile p) {
    return p == MOR_TE_4OVER6_MAE || p == MOR_TE_4OVER6_MSE ? OF_1536 : OF_2688;
}

uint32_t mor_nvfp4_amax(const uint32_t *x, size_t rows, size_t columns, size_t stride) {
    uint32_t largest = 0;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++) {
            uint32_t a = magnitude_of(x[r * stride + c]);
            if (a <= INFINITE && a > largest) largest = a;
        }
    return largest;
}

mor_nvfp4_global mor_nvfp4_global_of(mor_profile profile, uint32_t amax) {
    mor_nvfp4_global made = {amax, 0, 0};
    uint32_t q = q_of(profile);
    if (profile == MOR_TORCHAO || profile == MOR_MODELOPT) { /* NVF-007, NVF-008 */
        made.decode = mor_f32_divide(amax, q);
        made.encode = mor_f32_divide(ONE, made.decode);
        return made;
    }
    if (profile == MOR_COMPRESSED_TENSORS) { /* NVF-009 */
        made.encode = mor_f32_multiply(mor_f32_divide(ONE, at_least(amax, TWO_TO_MINUS_126)), q);
        if (!is_finite(made.encode)) made.encode = ONE;
    } else { /* NVF-003 */
        made.encode = at_most(mor_f32_divide(q, amax), FLT_LARGEST);
        if (amax == 0 || made.encode == 0) made.encode = ONE;
    }
    made.decode = mor_f32_divide(ONE, made.encode);
    return made;
}

static uint32_t e4m3_number(uint8_t code) { return rn32(value_of(E4M3, code)); }

/* NVF-004 */
static mor_nvfp4_candidate te_candidate(const mor_nvfp4_global *global, uint32_t ideal) {
    mor_nvfp4_candidate made;
    made.scale = element_code(E4M3, ideal);
    made.decode = mor_f32_multiply(e4m3_number(made.scale), global->decode);
    made.encode = at_most(mor_f32_divide(ONE, made.decode), FLT_LARGEST);
    made.error = 0;
    return made;
}

static mor_nvfp4_candidate torchao_candidate(const mor_nvfp4_global *global, uint32_t block_amax) { /* NVF-007 */
    mor_nvfp4_candidate made;
    uint32_t ratio = mor_f32_divide(mor_f32_divide(block_amax, SIX), global->decode);
    made.scale = element_code(E4M3, at_most(at_least(ratio, TWO_TO_MINUS_6), OF_448));
    made.encode = mor_f32_divide(global->encode, e4m3_number(made.scale));
    made.decode = mor_f32_multiply(global->decode, e4m3_number(made.scale));
    made.error = 0;
    return made;
}

static mor_nvfp4_candidate modelopt_candidate(const mor_nvfp4_global *global, uint32_t block_amax) { /* NVF-008 */
    mor_nvfp4_candidate made;
    uint32_t t = mor_f32_divide(block_amax, mor_f32_multiply(SIX, global->decode));
    if (t == 0) t = ONE;
    made.scale = element_code(E4M3, at_most(at_least(t, TWO_TO_MINUS_9), OF_448));
    made.decode = mor_f32_multiply(e4m3_number(made.scale), global->decode);
    made.encode = 0;
    made.error = 0;
    return made;
}

static mor_nvfp4_candidate compressed_candidate(const mor_nvfp4_global *global, uint32_t block_amax) { /* NVF-009 */
    mor_nvfp4_candidate made;
    made.scale = element_code(E4M3, mor_f32_multiply(global->encode, mor_f32_divide(block_amax, SIX)));
    if (made.scale == 0) made.scale = element_code(E4M3, AN_EIGHTH);
    made.decode = mor_f32_divide(e4m3_number(made.scale), global->encode);
    made.encode = 0;
    made.error = 0;
    return made;
}

mor_element mor_nvfp4_element(mor_profile profile, const mor_nvfp4_candidate *tile, uint32_t x) {
    mor_element made;
    made.xs = divides(profile) ? mor_f32_divide(x, tile->decode) : mor_f32_multiply(x, tile->encode);
    made.code = element_code(E2M1, made.xs);
    if (divides(profile) && magnitude_of(made.xs) == 0) made.code = 0;
    made.y = rn32(product(value_of(E2M1, made.code), f32(tile->decode)));
    return made;
}

/* NVF-006: what an element adds to the error of its row. */
static uint32_t error_of_4over6(mor_profile profile, const mor_nvfp4_global *global,
                                const mor_nvfp4_candidate *tile, uint32_t x) {
    uint8_t code = mor_nvfp4_element(profile, tile, x).code;
    uint32_t vw = rn32(product(value_of(E2M1, code), value_of(E4M3, tile->scale)));
    uint32_t scaled = mor_f32_divide(mor_f32_multiply(vw, global->amax), q_of(profile));
    uint32_t e = mor_f32_subtract(scaled, x);
    if (squares(profile)) return mor_f32_multiply(e, e);
    return magnitude_of(e);
}

static uint32_t tile_error(mor_profile profile, const mor_nvfp4_global *global, const mor_nvfp4_candidate *tile,
                           const uint32_t *x, size_t rows, size_t columns, size_t stride) {
    uint32_t sums[16] = {0};
    for (size_t r = 0; r < rows && r < 16; r++)
        for (size_t c = 0; c < columns; c++)
            sums[r] = mor_f32_add(sums[r], error_of_4over6(profile, global, tile, x[r * stride + c]));
    for (int half = 8; half > 0; half /= 2)
        for (int i = 0; i < half; i++) sums[i] = mor_f32_add(sums[i], sums[i + half]);
    return sums[0];
}

mor_nvfp4_tile mor_nvfp4_tile_of(mor_profile profile, const mor_nvfp4_global *global, const uint32_t *x,
                                 size_t rows, size_t columns, size_t stride) {
    mor_nvfp4_tile made;
    memset(&made, 0, sizeof made);
    uint32_t block_amax = made.block_amax = mor_nvfp4_amax(x, rows, columns, stride);
    if (has_4over6(profile)) {
        uint32_t base = mor_f32_multiply(mor_f32_divide(block_amax, SIX), global->encode);
        made.six = te_candidate(global, base);
        made.four = te_candidate(global, mor_f32_multiply(ONE_AND_A_HALF, base));
        made.six.error = tile_error(profile, global, &made.six, x, rows, columns, stride);
        made.four.error = tile_error(profile, global, &made.four, x, rows, columns, stride);
        made.taken = is_less(made.four.error, made.six.error) ? made.four : made.six;
    } else if (profile == MOR_TORCHAO) {
        made.taken = torchao_candidate(global, block_amax);
    } else if (profile == MOR_MODELOPT) {
        made.taken = modelopt_candidate(global, block_amax);
    } else if (profile == MOR_COMPRESSED_TENSORS) {
        made.taken = compressed_candidate(global, block_amax);
    } else if (profile == MOR_TE_2_13) { /* NVF-005 */
        made.taken = te_candidate(global, mor_f32_multiply(mor_f32_divide(block_amax, SIX), global->encode));
    } else { /* NVF-004 */
        uint32_t sixth = mor_f32_multiply(global->encode, mor_f32_divide(ONE, SIX));
        made.taken = te_candidate(global, mor_f32_multiply(block_amax, sixth));
    }
    return made;
}

void mor_pack(const uint8_t *code, size_t count, uint8_t *packed) {
    for (size_t i = 0; i < count; i += 2) {
        unsigned high = i + 1 < count ? code[i + 1] : 0;
        packed[i / 2] = (uint8_t)(code[i] | high << 4);
    }
}
