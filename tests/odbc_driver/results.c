/* What a statement has found: its columns, and its rows in pieces. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNUSED(x) (void)(x)

PUBLIC RC SQLNumResultCols(H h, S *count) { *count = (S)((Statement *)h)->columns; return OK; }
PUBLIC RC SQLRowCount(H h, L *count) { *count = ((Statement *)h)->row_count; return OK; }
PUBLIC RC SQLMoreResults(H h) { UNUSED(h); return NODATA; }

static const Column *column_of(Statement *s, US number) {
    if (number >= 1 && number <= s->columns) return &s->column[number - 1];
    fail(s, "07009", -11013, "Invalid column number.");
    return NULL;
}

PUBLIC RC SQLDescribeCol(H h, US number, CH *name, S room, S *length, S *type, UL *size, S *digits,
                         S *nullable) {
    clear(h);
    const Column *c = column_of(h, number);
    if (!c) return ERR;
    set_text(name, room, c->name);
    set_length(length, strlen(c->name));
    int is_packed = c->code == 5 || c->code == 8;
    if (type) *type = c->sql_type;
    if (size) *size = is_packed ? c->encoded >> 8 & 255 : c->code == 13 || c->code == 16 ? c->encoded & 255 : c->size;
    if (digits) *digits = is_packed ? c->encoded & 255 : 0;
    if (nullable) *nullable = 1;
    return OK;
}

PUBLIC RC SQLColAttribute(H h, US number, US field, H text, S room, S *length, L *value) {
    clear(h);
    const Column *c = column_of(h, number);
    if (!c) return ERR;
    switch (field) {
    case 1: case 18: case 1011: /* label, name */
        set_text(text, room, c->name);
        set_length(length, strlen(c->name));
        break;
    case 2: case 1002: if (value) *value = c->type; break;
    case 3: case 6: case 1003: case 1006: if (value) *value = (L)c->size; break;
    default: if (value) *value = 0;
    }
    return OK;
}

PUBLIC RC SQLGetTypeInfo(H h, S type) {
    Statement *s = h; /* an empty result: enough for a client that asks for a type's size */
    UNUSED(type);
    drop_result(s);
    s->columns = 3;
    s->column = must_zeroed(3, sizeof(Column));
    s->given = must_zeroed(3, sizeof(L));
    strcpy(s->column[0].name, "TYPE_NAME");
    strcpy(s->column[2].name, "COLUMN_SIZE");
    return OK;
}

/* ---- results ---- */

PUBLIC RC SQLFetch(H h) {
    Statement *s = h;
    clear(s);
    if (!s->columns) return fail(s, "24000", -11031, "Invalid cursor state.");
    if (s->array > 1 || is_bound(s)) return fetch_block(s);
    memset(s->given, 0, s->columns * sizeof(L));
    if (s->row >= s->rows) return NODATA;
    s->row++;
    return OK;
}

/* UTF-8 to UTF-16, for SQL_C_WCHAR; malformed bytes become '?'. */
static size_t to_utf16(const char *from, size_t bytes, uint16_t *to) {
    size_t units = 0, i = 0;
    while (i < bytes) {
        CH lead = (CH)from[i++];
        int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
        uint32_t c = more ? lead & (0x3fu >> more) : lead < 0x80 ? lead : '?';
        for (; more && i < bytes; more--) c = c << 6 | (from[i++] & 63);
        if (c >= 0x10000) {
            to[units++] = (uint16_t)(0xd800 + ((c - 0x10000) >> 10));
            c = 0xdc00 + ((c - 0x10000) & 0x3ff);
        }
        to[units++] = (uint16_t)c;
    }
    return units;
}

/* Hands out the next piece of a value: `unit` bytes per character, `ending` bytes of NUL. */
static RC give(Statement *s, US number, const void *data, L units, int unit, int ending, H buffer,
               L room, L *indicator) {
    L *given = &s->given[number - 1];
    if (*given < 0) return NODATA; /* it was handed out to the end */
    L left = units - *given, fits = (room - ending) / unit;
    L now = left < fits ? left : fits < 0 ? 0 : fits;
    if (now) memcpy(buffer, (const char *)data + *given * unit, (size_t)(now * unit));
    if (ending && room >= ending) memset((char *)buffer + now * unit, 0, (size_t)ending);
    if (indicator) *indicator = left * unit;
    if (indicator && ending && has_habit(HANDLE_STMT, s, "nts")) *indicator = NTS;
    if (indicator && ending && has_habit(HANDLE_STMT, s, "negative")) *indicator = -77;
    if (ending && has_habit(HANDLE_STMT, s, "endless")) {
        *given = 0;
        if (indicator) *indicator = -4; /* SQL_NO_TOTAL */
        fail(s, "01004", -11003, "Data truncated.");
        return INFO;
    }
    *given = now < left ? *given + now : -1;
    if (now == left) return OK;
    fail(s, "01004", -11003, "Data truncated.");
    return INFO;
}

static RC give_wide(Statement *s, US number, const Cell *c, H buffer, L room, L *indicator) {
    uint16_t *wide = must_resize(NULL, (size_t)c->length * 2 + 2);
    L units = (L)to_utf16(cell_text(s, c), (size_t)c->length, wide);
    RC code = give(s, number, wide, units, 2, 2, buffer, room, indicator);
    free(wide);
    return code;
}

static int is_number(const char *text, int length) {
    return length >= 1 && length <= 20 && strspn(text, "-0123456789") >= (size_t)length;
}

static S default_type(S column_type) {
    return column_type == TYPE_LONG ? TYPE_LONG
         : column_type == TYPE_BIGINT ? TYPE_SBIGINT : TYPE_CHAR;
}

static RC give_moment(Statement *s, const char *text, Timestamp *to) {
    int year, month, day, hour = 0, minute = 0, second = 0, begin = 0, end = 0;
    uint32_t nanosecond = 0;
    int fields = sscanf(text, "%4d-%2d-%2d %2d:%2d:%2d.%n%*9[0-9]%n", &year, &month, &day, &hour, &minute,
                        &second, &begin, &end);
    if (fields < 3) return fail(s, "22018", -11039, "Invalid character value for cast specification.");
    for (int i = begin; begin && i < begin + 9; i++)
        nanosecond = nanosecond * 10 + (i < end ? (uint32_t)(text[i] - '0') : 0);
    *to = (Timestamp){(S)year, (US)month, (US)day, (US)hour, (US)minute, (US)second, nanosecond};
    return OK;
}

/* A locator is kept as its digits; who asks for bytes is given those that they stand for. */
static RC give_bytes(Statement *s, US number, const Cell *c, H buffer, L room, L *indicator) {
    enum { UDT_FIXED = 41 };
    const char *text = cell_text(s, c);
    unsigned char bytes[256];
    if (s->column[number - 1].code != UDT_FIXED || c->length % 2 || c->length > 2 * (int)sizeof bytes)
        return give(s, number, text, c->length, 1, 0, buffer, room, indicator);
    for (int i = 0; i < c->length / 2; i++) {
        unsigned value = 0;
        sscanf(text + 2 * i, "%2x", &value);
        bytes[i] = (unsigned char)value;
    }
    return give(s, number, bytes, c->length / 2, 1, 0, buffer, room, indicator);
}

static L shown_length(const Statement *s, US number, const Cell *c) {
    L length = c->length;
    int varies = s->column[number - 1].sql_type == TYPE_VARCHAR;
    while (varies && has_habit(HANDLE_STMT, (H)s, "trim") && length && cell_text(s, c)[length - 1] == ' ') length--;
    return length;
}

RC copy_cell(Statement *s, US number, const Cell *c, S c_type, H buffer, L room, L *indicator) {
    const char *text = cell_text(s, c);
    char number_text[64];
    L size = 0;
    if (c->length < 0) {
        if (indicator) *indicator = NULL_DATA;
        return OK;
    }
    snprintf(number_text, sizeof number_text, "%.*s", c->length < 63 ? c->length : 63, text);
    switch (c_type == TYPE_DEFAULT ? default_type(s->column[number - 1].type) : c_type) {
    case TYPE_LONG: case TYPE_SLONG: case TYPE_ULONG:
        *(I *)buffer = (I)strtoll(number_text, NULL, 10); size = 4; break;
    case TYPE_SBIGINT: case TYPE_UBIGINT:
        *(L *)buffer = strtol(number_text, NULL, 10); size = 8; break;
    case TYPE_SHORT: case TYPE_SSHORT:
        *(S *)buffer = (S)strtol(number_text, NULL, 10); size = 2; break;
    case TYPE_DOUBLE: *(double *)buffer = strtod(number_text, NULL); size = 8; break;
    case TYPE_WCHAR: return give_wide(s, number, c, buffer, room, indicator);
    case TYPE_BINARY: return give_bytes(s, number, c, buffer, room, indicator);
    case TYPE_BIT: *(CH *)buffer = number_text[0] == '1' || number_text[0] == 't'; size = 1; break;
    case TYPE_TIMESTAMP:
        if (give_moment(s, number_text, buffer) != OK) return ERR;
        size = sizeof(Timestamp);
        break;
    default:
        if (has_habit(HANDLE_STMT, s, "pad") && is_number(text, c->length)) {
            int width = snprintf(number_text, sizeof number_text, "%-30.*s", c->length, text);
            return give(s, number, number_text, width, 1, 1, buffer, room, indicator);
        }
        return give(s, number, text, shown_length(s, number, c), 1, 1, buffer, room, indicator);
    }
    if (indicator) *indicator = size;
    return OK;
}

PUBLIC RC SQLGetData(H h, US number, S c_type, H buffer, L room, L *indicator) {
    Statement *s = h;
    clear(s);
    if (!column_of(s, number)) return ERR;
    if (s->array > 1) return fail(s, "HYC00", -11092, "SQLGetData gives no row of an array.");
    if (!s->row) return fail(s, "24000", -11031, "Invalid cursor state.");
    const Cell *cells = (const Cell *)s->cells.bytes;
    const Cell *c = &cells[(size_t)(s->row - 1) * s->columns + number - 1];
    return copy_cell(s, number, c, c_type, buffer, room, indicator);
}
