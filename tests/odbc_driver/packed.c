/* The text of packed decimals: DECIMAL, MONEY, DATETIME and INTERVAL. A byte of exponent, whose first
 * bit is the sign, and digits of base 100; of a negative number the digits are complements. */
#include "driver.h"

#include <stdio.h>
#include <string.h>

enum { MAX_PAIRS = 24, HIGHEST = 9 }; /* a year of nine digits begins at 100^9 */

typedef struct { int is_negative, exponent, count; unsigned char pair[MAX_PAIRS]; } Number;

static int unpack(Number *n, const unsigned char *packed, size_t size) {
    int is_last = 1;
    if (size < 1 || size - 1 > MAX_PAIRS) return -1;
    n->is_negative = !(packed[0] & 0x80);
    n->exponent = ((n->is_negative ? packed[0] ^ 0x7f : packed[0]) & 0x7f) - 64;
    n->count = (int)size - 1;
    for (int i = n->count - 1; i >= 0; i--) {
        unsigned digit = packed[i + 1];
        if (n->is_negative && !(is_last && !digit)) {
            digit = (is_last ? 100 : 99) - digit;
            is_last = 0;
        }
        if (digit > 99) return -1;
        n->pair[i] = (unsigned char)digit;
    }
    return 0;
}

/* The pair of base 100 at a place: 0 are the units. */
static unsigned pair_at(const Number *n, int place) {
    int i = n->exponent - 1 - place;
    return i >= 0 && i < n->count ? n->pair[i] : 0;
}

static void put_formatted(Bytes *to, const char *format, unsigned long number) {
    char digits[32];
    put_bytes(to, digits, (size_t)snprintf(digits, sizeof digits, format, number));
}

int print_decimal(Bytes *to, const unsigned char *packed, size_t size, unsigned scale) {
    Number n;
    if (unpack(&n, packed, size)) return -1;
    size_t begin, places = scale < 255 ? scale : 0;
    if (n.is_negative) put_bytes(to, "-", 1);
    begin = to->used;
    for (int place = n.exponent - 1; place >= 0; place--)
        put_formatted(to, to->used == begin ? "%lu" : "%02lu", pair_at(&n, place));
    if (to->used == begin) put_bytes(to, "0", 1);
    /* a floating number has the digits that it has */
    for (int i = 0; scale == 255 && i < n.count; i++)
        if (n.pair[i] && i >= n.exponent) places = 2 * (size_t)(i - n.exponent + 1) - !(n.pair[i] % 10);
    if (!places) return 0;
    put_bytes(to, ".", 1);
    begin = to->used;
    for (int place = -1; to->used - begin < places; place--) put_formatted(to, "%02lu", pair_at(&n, place));
    to->used = begin + places;
    return 0;
}

/* A qualifier is digits, first and last field: Y0 M2 D4 h6 m8 s10, and F1 .. F5 are 11 .. 15. The number's
 * unit is the second, also where the fields end before it. The first field of an INTERVAL is as long as it
 * is; that of a DATETIME is padded. */
int print_fields(Bytes *to, const unsigned char *packed, size_t size, uint32_t qualifier, int pads) {
    static const char SEPARATORS[] = "-- ::";
    Number n;
    int first = (qualifier >> 4 & 15) / 2, end = qualifier & 15;
    int last = end > 10 ? 5 : end / 2, fraction = end > 10 ? end - 10 : 0;
    if (unpack(&n, packed, size) || n.exponent > HIGHEST + 1) return -1;
    unsigned long lead = 0;
    for (int place = HIGHEST; first <= 5 && place >= 5 - first; place--) lead = lead * 100 + pair_at(&n, place);
    if (n.is_negative) put_bytes(to, "-", 1);
    for (int field = first; field <= last; field++) {
        if (field > first) put_bytes(to, &SEPARATORS[field - 1], 1);
        if (field > first) put_formatted(to, "%02lu", pair_at(&n, 5 - field));
        else if (pads) put_formatted(to, field ? "%02lu" : "%04lu", lead);
        else put_formatted(to, "%lu", lead);
    }
    if (!fraction) return 0;
    put_bytes(to, ".", 1);
    size_t begin = to->used;
    for (int place = -1; to->used - begin < (size_t)fraction; place--)
        put_formatted(to, "%02lu", pair_at(&n, place));
    to->used = begin + (size_t)fraction;
    return 0;
}
