/* Binary32 numbers to e4m3 (rne, satfinite), for: mor-ref verify exec:./e4m3
   It speaks the protocol of spec/protocol.md, and skips what it does not have. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t encode(uint32_t x) {
    uint32_t magnitude = x & 0x7FFFFFFF, field = magnitude >> 23;
    if (magnitude > 0x7F800000) return 0x7F; /* NaN */
    uint32_t significand = (magnitude & 0x7FFFFF) | (field ? 0x800000u : 0);
    if (field < 1) field = 1;
    uint32_t base = field > 121 ? field : 121; /* 2^-6 is the smallest normal number */
    uint32_t shift = base - field < 5 ? 20 + base - field : 25, half = 1u << (shift - 1);
    uint32_t k = significand >> shift, rest = significand & (2 * half - 1);
    k += rest > half || (rest == half && (k & 1));
    uint32_t code = ((base - 121) << 3) + k;
    return (x >> 24 & 0x80) | (code < 0x7E ? code : 0x7E);
}

int main(void) {
    static const char *const names[] = {"format", "source", "rounding", "overflow", "nan"};
    static const char *const values[] = {"e4m3", "f32", "rne", "satfinite", "canonical"};
    char word[256], name[256], value[256];
    int known = 0;
    while (scanf("%255s", word) == 1) {
        if (!strcmp(word, "case") && scanf("%*s %255s %*s", value) == 1) {
            known = !strcmp(value, "encode");
        } else if (!strcmp(word, "param") && scanf("%255s %255s", name, value) == 2) {
            for (int i = 0; i < 5; i++) known += !strcmp(name, names[i]) && !strcmp(value, values[i]);
        } else if (!strcmp(word, "in") && known == 6 && scanf("%*s %255s", value) == 1) {
            uint32_t x;
            printf("out code %s\n", value);
            for (unsigned long count = strtoul(value, NULL, 10); count > 0; count--)
                if (scanf("%8" SCNx32, &x) == 1) printf("%" PRIx32 "\n", encode(x));
        } else if (!strcmp(word, "run")) { /* numbers that are not read come and go as words */
            puts(known == 6 ? "done" : "skip");
            fflush(stdout);
        }
    }
    return 0;
}
