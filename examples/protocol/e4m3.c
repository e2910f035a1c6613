/* Binary32 numbers to e4m3 (rne, satfinite), for mor-ref verify exec:./e4m3; it skips all else. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static uint32_t encode(uint32_t x) {
    uint32_t field = x >> 23 & 0xFF, significand = (x & 0x7FFFFF) | (field ? 0x800000u : 0);
    if (field == 255 && x << 9) return 0x7F; /* NaN */
    uint32_t base = field > 121 ? field : 121; /* 2^-6 is the smallest normal number */
    uint32_t below = base - (field ? field : 1), shift = below < 5 ? 20 + below : 25;
    uint32_t k = significand >> shift, half = 1u << (shift - 1), rest = significand & (2 * half - 1);
    uint32_t code = ((base - 121) << 3) + k + (rest > half || (rest == half && (k & 1)));
    return (x >> 24 & 0x80) | (code < 0x7E ? code : 0x7E);
}
int main(void) { /* word by word, as spec/protocol.md has it */
    const char *mine = " format=e4m3 source=f32 rounding=rne overflow=satfinite nan=canonical ";
    char word[256], name[256], value[256], both[520];
    for (int known = 0; scanf("%255s", word) == 1;) {
        if (!strcmp(word, "case") && scanf("%*s %255s %*s", value) == 1) known = !strcmp(value, "encode");
        if (!strcmp(word, "param") && scanf("%255s %255s", name, value) == 2)
            known += snprintf(both, sizeof both, " %s=%s ", name, value) > 0 && strstr(mine, both);
        if (!strcmp(word, "in") && known == 6 && scanf("%*s %255s", value) == 1) {
            printf("out code %s\n", value);
            uint32_t count = (uint32_t)strtoul(value, NULL, 10);
            for (uint32_t x; count > 0 && scanf("%8" SCNx32, &x) == 1; count--)
                printf("%" PRIx32 "\n", encode(x));
        }
        if (!strcmp(word, "run") && puts(known == 6 ? "done" : "skip") >= 0) fflush(stdout);
    }
}
