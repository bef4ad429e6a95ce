/* TEXT and BYTE: a row has a descriptor of 56 bytes, by which the value is asked for (gbase8sdb 1.1.1; sent
 * as IBM's JDBC driver 4.50.11 sends it). All values of an answer are asked for at once. */
#include "driver.h"

#include <string.h>

enum { SQ_ID = 4, SQ_FETCHBLOB = 38 };

static RC fetch_one(Statement *s, Cell *cell) {
    Bytes request = {0}, value = {0};
    Reply r = {.connection = s->connection, .handle = s, .statement = s, .simple = &value};
    put_u16(&request, SQ_ID);
    put_u16(&request, s->id);
    put_u16(&request, SQ_FETCHBLOB);
    put_bytes(&request, s->text.bytes + cell->at, DESCRIPTOR_BYTES);
    RC code = ask(&r, &request);
    if (code == OK) {
        cell->at = s->text.used;
        cell->length = (int32_t)value.used;
        if (value.used) put_bytes(&s->text, value.bytes, value.used);
    }
    forget(&value);
    return code;
}

RC fetch_simple_objects(Statement *s) {
    RC code = OK;
    for (uint32_t i = s->with_values * s->columns; i < s->rows * s->columns && code == OK; i++) {
        uint8_t kind = s->column[i % s->columns].code;
        Cell *cell = (Cell *)s->cells.bytes + i;
        if ((kind == CODE_BYTE || kind == CODE_TEXT) && cell->length >= 0) code = fetch_one(s, cell);
    }
    s->with_values = s->rows;
    return code;
}
