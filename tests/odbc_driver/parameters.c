/* Parameters of a statement, as SQ_BIND has them: a type, an indicator, a precision, the value. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

enum { SQ_INTEGER = 2, SQ_FLOAT = 3, SQ_DATE = 7, SQ_VARCHAR = 13, SQ_LVARCHAR = 43, SQ_BIGINT = 52 };
enum { OF_INTEGER = 0x0a00, OF_BIGINT = 0x1300, LONGEST_VARCHAR = 255 };

/* UTF-16 to UTF-8: what SQL_C_WCHAR holds when a driver manager is in between. */
static char *from_utf16(const uint16_t *from, size_t units, size_t *length) {
    char *to = must_resize(NULL, units * 3 + 1), *at = to;
    for (size_t i = 0; i < units; i++) {
        uint32_t c = from[i];
        if (c >= 0xd800 && c < 0xdc00 && i + 1 < units)
            c = 0x10000 + ((c - 0xd800) << 10) + (from[++i] - 0xdc00u);
        if (c < 0x80) *at++ = (char)c;
        else if (c < 0x800) *at++ = (char)(0xc0 | c >> 6);
        else if (c < 0x10000) *at++ = (char)(0xe0 | c >> 12);
        else *at++ = (char)(0xf0 | c >> 18);
        if (c >= 0x10000) *at++ = (char)(0x80 | (c >> 12 & 63));
        if (c >= 0x800) *at++ = (char)(0x80 | (c >> 6 & 63));
        if (c >= 0x80) *at++ = (char)(0x80 | (c & 63));
    }
    *length = (size_t)(at - to);
    return to;
}

static size_t utf16_units(const uint16_t *text, L length) {
    size_t units = 0;
    if (length != NTS) return (size_t)length / 2;
    while (text[units]) units++;
    return units;
}

static void put_head(Bytes *to, uint16_t type, uint16_t indicator, uint16_t precision) {
    put_u16(to, type);
    if (type == SQ_LVARCHAR) put_u32(to, 0); /* owner and name of the type: empty, as JDBC sends them */
    put_u16(to, indicator);
    put_u16(to, precision);
}

static int put_text(Bytes *to, iconv_t way, const char *text, size_t length) {
    Bytes there = {0};
    int code = put_converted(&there, way, text, length);
    if (there.used <= LONGEST_VARCHAR) {
        put_head(to, SQ_VARCHAR, 0, 0);
        put_char(to, there.bytes, there.used);
    } else {
        put_head(to, SQ_LVARCHAR, 0, 0);
        put_u32(to, (uint32_t)there.used);
        put_bytes(to, there.bytes, there.used);
        if (there.used & 1) put_bytes(to, "", 1);
    }
    forget(&there);
    return code;
}

static int put_wide(Bytes *to, iconv_t way, const Parameter *p, L length) {
    size_t bytes;
    char *text = from_utf16(p->value, utf16_units(p->value, length), &bytes);
    int code = put_text(to, way, text, bytes);
    free(text);
    return code;
}

long integer_of(const Parameter *p) {
    switch (p->c_type) {
    case TYPE_LONG: case TYPE_SLONG: return *(int32_t *)p->value;
    case TYPE_ULONG: return *(uint32_t *)p->value;
    case TYPE_SBIGINT: case TYPE_UBIGINT: return *(long *)p->value;
    case TYPE_SHORT: case TYPE_SSHORT: return *(int16_t *)p->value;
    case TYPE_TINY: case TYPE_BIT: return *(int8_t *)p->value;
    case TYPE_CHAR: return strtol(p->value, NULL, 10);
    default: return -1;
    }
}

static uint16_t type_of(const Parameter *p) {
    switch (p->c_type) {
    case TYPE_LONG: case TYPE_SLONG: case TYPE_SHORT: case TYPE_SSHORT: case TYPE_TINY: case TYPE_BIT:
        return SQ_INTEGER;
    case TYPE_SBIGINT: case TYPE_UBIGINT: case TYPE_ULONG: return SQ_BIGINT;
    case TYPE_DOUBLE: return SQ_FLOAT;
    case TYPE_DATE: return SQ_DATE;
    default: return SQ_VARCHAR;
    }
}

/* Days since 31 December 1899; the reckoning is of March years: a leap day ends one. */
static uint32_t days_of(const Timestamp *d) {
    long year = d->month > 2 ? d->year : d->year - 1, month = d->month > 2 ? d->month - 3 : d->month + 9;
    return (uint32_t)(365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + d->day - 1
                      - 693900L);
}

static void put_number(Bytes *to, uint16_t type, const Parameter *p) {
    uint64_t bits;
    if (type == SQ_FLOAT) {
        memcpy(&bits, p->value, sizeof bits);
        put_head(to, type, 0, 0);
        put_u64(to, bits);
    } else if (type == SQ_DATE) {
        Timestamp day = {0};
        memcpy(&day, p->value, sizeof(S) + 2 * sizeof(US));
        put_head(to, type, 0, 0);
        put_u32(to, days_of(&day));
    } else if (type == SQ_BIGINT) {
        put_head(to, type, 0, OF_BIGINT);
        put_u64(to, (uint64_t)integer_of(p));
    } else {
        put_head(to, type, 0, OF_INTEGER);
        put_u32(to, (uint32_t)integer_of(p));
    }
}

int put_parameter(Bytes *to, const Connection *c, const Parameter *p) {
    L length = p->indicator ? *p->indicator : NTS;
    uint16_t type = type_of(p);
    if (length == NULL_DATA) put_head(to, type, UINT16_MAX, 0);
    else if (p->c_type == TYPE_WCHAR) return put_wide(to, c->to_server, p, length);
    else if (type != SQ_VARCHAR) put_number(to, type, p);
    else return put_text(to, c->to_server, p->value, length == NTS ? strlen(p->value) : (size_t)length);
    return 0;
}
