/* Rows of a result: each value of a tuple as the text that SQL_C_CHAR asks for. The values lie densely,
 * in the order of the columns; the types are numbered as in syscolumns.coltype. */
#include "driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PRINTED = 0, IS_NULL = 1, BAD = -1 };
typedef int (*Print)(Statement *s, const Column *c, Cursor *tuple);

static int put_printed(Statement *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int put_printed(Statement *s, const char *format, ...) {
    char text[64];
    va_list values;
    va_start(values, format);
    int count = vsnprintf(text, sizeof text, format, values);
    va_end(values);
    put_bytes(&s->text, text, (size_t)count);
    return PRINTED;
}

static int put_characters(Statement *s, const unsigned char *bytes, size_t count) {
    if (!bytes) return BAD;
    if (put_converted(&s->text, s->connection->to_client, (const char *)bytes, count)) s->is_inconvertible = 1;
    return PRINTED;
}

static int print_char(Statement *s, const Column *c, Cursor *tuple) {
    const unsigned char *bytes = next_bytes(tuple, c->encoded);
    if (bytes && c->encoded && !bytes[0]) return IS_NULL;
    return put_characters(s, bytes, c->encoded);
}

static int print_varchar(Statement *s, const Column *c, Cursor *tuple) {
    (void)c;
    uint8_t count = next_u8(tuple);
    const unsigned char *bytes = next_bytes(tuple, count);
    if (bytes && count == 1 && !bytes[0]) return IS_NULL;
    return put_characters(s, bytes, count);
}

static int print_smallint(Statement *s, const Column *c, Cursor *tuple) {
    (void)c;
    int16_t value = (int16_t)next_u16(tuple);
    return value == INT16_MIN ? IS_NULL : put_printed(s, "%d", value);
}

static int print_integer(Statement *s, const Column *c, Cursor *tuple) {
    (void)c;
    int32_t value = (int32_t)next_u32(tuple);
    return value == INT32_MIN ? IS_NULL : put_printed(s, "%d", value);
}

static int print_bigint(Statement *s, const Column *c, Cursor *tuple) {
    (void)c;
    int64_t value = (int64_t)next_u64(tuple);
    return value == INT64_MIN ? IS_NULL : put_printed(s, "%ld", (long)value);
}

static int print_int8(Statement *s, const Column *c, Cursor *tuple) {
    (void)c;
    int16_t sign = (int16_t)next_u16(tuple);
    uint64_t low = next_u32(tuple), value = (uint64_t)next_u32(tuple) << 32 | low;
    return sign ? put_printed(s, "%s%lu", sign < 0 ? "-" : "", (unsigned long)value) : IS_NULL;
}

/* As many digits as the number has: what comes back is the same number. */
static int put_float(Statement *s, double value, int digits) {
    return put_printed(s, "%.*g", digits, value);
}

static int print_float(Statement *s, const Column *c, Cursor *tuple) {
    (void)c;
    uint64_t bits = next_u64(tuple);
    double value;
    memcpy(&value, &bits, sizeof value);
    return bits == UINT64_MAX ? IS_NULL : put_float(s, value, 17);
}

static int print_smallfloat(Statement *s, const Column *c, Cursor *tuple) {
    (void)c;
    uint32_t bits = next_u32(tuple);
    float value;
    memcpy(&value, &bits, sizeof value);
    return bits == UINT32_MAX ? IS_NULL : put_float(s, (double)value, 9);
}

static int print_packed(Statement *s, const Column *c, Cursor *tuple) {
    uint32_t scale = c->encoded & 255, digits = c->encoded >> 8 & 255;
    size_t size = (digits + (scale & 1) + 3) / 2;
    const unsigned char *bytes = next_bytes(tuple, size);
    if (bytes && !bytes[0]) return IS_NULL;
    return !bytes || print_decimal(&s->text, bytes, size, scale) ? BAD : PRINTED;
}

static int put_fields(Statement *s, const Column *c, Cursor *tuple, int pads) {
    uint32_t last = c->encoded & 15, digits = c->encoded >> 8 & 255;
    size_t size = (digits + (last > 10 ? last & 1 : 0) + 3) / 2;
    const unsigned char *bytes = next_bytes(tuple, size);
    if (bytes && !bytes[0]) return IS_NULL;
    return !bytes || print_fields(&s->text, bytes, size, c->encoded, pads) ? BAD : PRINTED;
}

static int print_datetime(Statement *s, const Column *c, Cursor *tuple) {
    return put_fields(s, c, tuple, 1);
}

static int print_interval(Statement *s, const Column *c, Cursor *tuple) {
    return put_fields(s, c, tuple, 0);
}

/* Days since 31 December 1899, as ODBC prints a date. The reckoning is of March years: a leap day ends one. */
static int print_date(Statement *s, const Column *c, Cursor *tuple) {
    (void)c;
    int32_t number = (int32_t)next_u32(tuple);
    if (number == INT32_MIN) return IS_NULL;
    long day = number + 693900L; /* since 1 March of the year 0 */
    if (day < 0 || day > 3652364L) return BAD;
    long century = (4 * day + 3) / 146097, in_century = day - 146097 * century / 4;
    long year = (4 * in_century + 3) / 1461, in_year = in_century - 1461 * year / 4;
    long month = (5 * in_year + 2) / 153, in_month = in_year - (153 * month + 2) / 5;
    year += 100 * century + (month >= 10);
    return put_printed(s, "%04ld-%02ld-%02ld", year, month >= 10 ? month - 9 : month + 3, in_month + 1);
}

/* A flag for NULL, a length, and so many bytes. */
static int next_opaque(Cursor *tuple, Cursor *value) {
    uint8_t is_null = next_u8(tuple);
    uint32_t count = next_u32(tuple);
    const unsigned char *bytes = next_bytes(tuple, count);
    if (!bytes) return BAD;
    *value = (Cursor){.at = bytes, .end = bytes + count};
    return is_null ? IS_NULL : PRINTED;
}

static int print_opaque(Statement *s, const Column *c, Cursor *tuple) {
    enum { LVARCHAR = 1, BOOLEAN = 5 };
    Cursor value;
    int code = next_opaque(tuple, &value);
    if (code != PRINTED) return code;
    if (c->extended_id == LVARCHAR || c->code == 43)
        return put_characters(s, value.at, (size_t)(value.end - value.at));
    if (c->extended_id == BOOLEAN || c->code == 45) {
        uint8_t flag = next_u8(&value);
        return value.is_bad ? BAD : put_printed(s, "%d", flag != 0);
    }
    for (; value.at < value.end; value.at++) put_printed(s, "%02x", *value.at); /* a locator, say */
    return PRINTED;
}

/* A TEXT or BYTE: its descriptor for now. */
static int keep_descriptor(Statement *s, const Column *c, Cursor *tuple) {
    enum { FLAGS_AT = 38 };
    (void)c;
    const unsigned char *bytes = next_bytes(tuple, DESCRIPTOR_BYTES);
    if (!bytes) return BAD;
    if (bytes[FLAGS_AT + 1] & 1) return IS_NULL;
    put_bytes(&s->text, bytes, DESCRIPTOR_BYTES);
    return PRINTED;
}

/* How a column is printed and fetched, and what HCL's ODBC manual describes it as (infxcli.h for the last four). */
enum { REAL = 7, DECIMAL = 3, INFX_BIGINT = -114, INFX_BLOB = -102, INFX_CLOB = -103, INFX_FIXED = -100 };
static const struct { Print print; S type; uint32_t size; S sql_type; } TYPES[] = {
    [0] = {print_char, TYPE_VARCHAR, 0, TYPE_CHAR},
    [1] = {print_smallint, TYPE_LONG, 10, TYPE_SHORT},
    [2] = {print_integer, TYPE_LONG, 10, TYPE_LONG},
    [3] = {print_float, TYPE_VARCHAR, 24, TYPE_DOUBLE},
    [4] = {print_smallfloat, TYPE_VARCHAR, 24, REAL},
    [5] = {print_packed, TYPE_VARCHAR, 130, DECIMAL},
    [6] = {print_integer, TYPE_LONG, 10, TYPE_LONG},
    [7] = {print_date, TYPE_VARCHAR, 10, TYPE_DATE},
    [8] = {print_packed, TYPE_VARCHAR, 130, DECIMAL},
    [10] = {print_datetime, TYPE_VARCHAR, 25, TYPE_TIMESTAMP},
    [CODE_BYTE] = {keep_descriptor, TYPE_LONGVARBINARY, INT32_MAX, TYPE_LONGVARBINARY},
    [CODE_TEXT] = {keep_descriptor, TYPE_LONGVARCHAR, INT32_MAX, TYPE_LONGVARCHAR},
    [13] = {print_varchar, TYPE_VARCHAR, 255, TYPE_VARCHAR},
    [14] = {print_interval, TYPE_VARCHAR, 25, 0},
    [15] = {print_char, TYPE_VARCHAR, 0, TYPE_CHAR},
    [16] = {print_varchar, TYPE_VARCHAR, 255, TYPE_VARCHAR},
    [17] = {print_int8, TYPE_BIGINT, 19, TYPE_BIGINT},
    [18] = {print_int8, TYPE_BIGINT, 19, TYPE_BIGINT},
    [40] = {print_opaque, TYPE_VARCHAR, 0, TYPE_VARCHAR},
    [41] = {print_opaque, TYPE_VARCHAR, 255, 0},
    [43] = {print_opaque, TYPE_VARCHAR, 0, TYPE_VARCHAR},
    [45] = {print_opaque, TYPE_VARCHAR, 1, TYPE_BIT},
    [52] = {print_bigint, TYPE_BIGINT, 19, INFX_BIGINT},
    [53] = {print_bigint, TYPE_BIGINT, 19, INFX_BIGINT},
};

static S sql_type_of(const Column *c) {
    enum { INTERVAL = 14, FIXED = 41, YEAR_TO_MONTH = 107, DAY_TO_SECOND = 110, MONTH = 2 };
    if (c->code == INTERVAL) return (c->encoded >> 4 & 15) <= MONTH ? YEAR_TO_MONTH : DAY_TO_SECOND;
    if (c->code != FIXED) return TYPES[c->code].sql_type;
    switch (c->extended_id) {
    case 5: return TYPE_BIT;
    case 10: return INFX_BLOB;
    case 11: return INFX_CLOB;
    default: return INFX_FIXED;
    }
}

int know_type(Column *c) {
    if (c->code >= sizeof TYPES / sizeof *TYPES || !TYPES[c->code].print) return 0;
    c->type = TYPES[c->code].type;
    c->sql_type = sql_type_of(c);
    c->size = TYPES[c->code].size ? TYPES[c->code].size : c->encoded;
    return 1;
}

void add_row(Statement *s, const unsigned char *tuple, size_t size, Stream *stream) {
    Cursor cursor = {.at = tuple, .end = tuple + size};
    for (int i = 0; i < s->columns; i++) {
        Cell cell = {.at = s->text.used};
        int code = TYPES[s->column[i].code].print(s, &s->column[i], &cursor);
        cell.length = code == IS_NULL ? -1 : (int32_t)(s->text.used - cell.at);
        put_bytes(&s->cells, &cell, sizeof cell);
        if (code == BAD || cursor.is_bad) return refuse(stream, "a row whose values are none");
    }
    if (cursor.at != cursor.end) return refuse(stream, "a row that is longer than its columns");
    s->rows++;
}

const char *cell_text(const Statement *s, const Cell *c) {
    return c->length > 0 ? s->text.bytes + c->at : "";
}
