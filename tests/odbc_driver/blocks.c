/* Many rows a fetch: columns that are bound, arrays of them, and what became of each row. Strict, where a
 * driver might be lenient: misuse is an error here, since on a live driver it is a crash. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNUSED(x) (void)(x)

enum { ROW_SUCCESS = 0, ROW_NOROW = 3, ROW_ERROR = 5, ROW_WITH_INFO = 6 };
enum { MOST_ROWS = 1 << 16 };

PUBLIC RC SQLSetStmtAttr(H h, I attribute, H value, I n) {
    enum { BIND_TYPE = 5, STATUS = 25, FETCHED = 26, ARRAY_SIZE = 27 };
    Statement *s = h;
    UL number = (UL)value;
    UNUSED(n);
    clear(s);
    if (attribute == BIND_TYPE && number) return fail(s, "HYC00", -11092, "Rows are bound by column.");
    if (attribute == ARRAY_SIZE) {
        if (!number || number > MOST_ROWS) return fail(s, "HY024", -11066, "Invalid attribute value.");
        if (s->is_described) return fail(s, "HY011", -11064, "Attribute cannot be set now.");
        s->array = number;
    }
    if (attribute == STATUS) s->status = value;
    if (attribute == FETCHED) s->fetched = value;
    return OK;
}

/* How many bytes a value of a C type takes; 0: as many as it has; -1: no such type. */
static L size_of(S c_type) {
    switch (c_type) {
    case TYPE_SBIGINT: case TYPE_UBIGINT: case TYPE_DOUBLE: return 8;
    case TYPE_LONG: case TYPE_SLONG: case TYPE_ULONG: return 4;
    case TYPE_SHORT: case TYPE_SSHORT: return 2;
    case TYPE_BIT: return 1;
    case TYPE_TIMESTAMP: return sizeof(Timestamp);
    case TYPE_CHAR: case TYPE_BINARY: return 0;
    default: return -1;
    }
}

PUBLIC RC SQLBindCol(H h, US number, S c_type, H value, L room, L *indicator) {
    Statement *s = h;
    L size = size_of(c_type);
    clear(s);
    if (number < 1 || number > MAX_PARAMETERS)
        return fail(s, "07009", -11013, "Invalid column number.");
    if (value && size < 0) return fail(s, "HY003", -11057, "Program type out of range.");
    if (value && (size ? room != size : room <= 0))
        return fail(s, "HY090", -11071, "Invalid string or buffer length.");
    if (value && !indicator) return fail(s, "HY009", -11070, "Invalid use of a null pointer.");
    s->bound[number - 1] = (Bound){c_type, value, room, indicator};
    return OK;
}

int is_bound(const Statement *s) {
    for (int i = 0; i < MAX_PARAMETERS; i++)
        if (s->bound[i].value) return 1;
    return 0;
}

/* Writes a row into its place of every array. */
static US put_row(Statement *s, UL place) {
    const Cell *cells = (const Cell *)s->cells.bytes + (size_t)s->row * s->columns;
    US status = ROW_SUCCESS;
    memset(s->given, 0, s->columns * sizeof(L));
    for (US i = 0; i < s->columns; i++) {
        const Bound *b = &s->bound[i];
        if (!b->value) continue;
        char *to = (char *)b->value + place * (UL)b->room;
        RC code = copy_cell(s, i + 1, &cells[i], b->c_type, to, b->room, &b->indicator[place]);
        if (code == ERR) return ROW_ERROR;
        if (code == INFO) status = ROW_WITH_INFO;
    }
    return status;
}

/* Takes the next answer of the server where no row is left of the last. */
static RC have_a_row(Statement *s) {
    while (s->row >= s->rows) {
        if (!s->is_open) return NODATA;
        RC code = next_answer(s);
        if (code != OK) return code;
    }
    return OK;
}

RC fetch_block(Statement *s) {
    UL count = 0;
    RC code = OK, worst = OK;
    if (s->array > 1 && (!s->fetched || !s->status))
        return fail(s, "HY010", -11067, "An array of rows needs a place for their number and states.");
    for (; count < s->array && (code = have_a_row(s)) == OK; count++, s->row++) {
        US status = put_row(s, count);
        if (s->status) s->status[count] = status;
        if (status != ROW_SUCCESS) worst = INFO;
    }
    for (UL i = count; s->status && i < s->array; i++) s->status[i] = ROW_NOROW;
    if (s->fetched) *s->fetched = count;
    if (code != OK && code != NODATA) return code;
    return count ? worst : NODATA;
}
