/* The wide functions, with the 4-byte characters that Informix's own driver has on Linux (-DWIDE4): with
 * the narrow functions alone, code that cannot work with the real driver would pass. */
#ifdef WIDE4
#include "driver.h"

#include <stdlib.h>
#include <string.h>

#define UNUSED(x) (void)(x)

typedef uint32_t W;

static char *narrowed(const W *text, I length) {
    size_t count = 0;
    if (length == NTS) while (text[count]) count++;
    else count = (size_t)length;
    char *out = must_resize(NULL, count + 1);
    for (size_t i = 0; i < count; i++) out[i] = text[i] < 128 ? (char)text[i] : '?';
    out[count] = 0;
    return out;
}

/* Writes 4 bytes per character into room that a 2-byte caller made half as large: that is the
 * fault of the real driver that this build reproduces. */
static void widened(W *out, const char *text, size_t room) {
    size_t i = 0;
    for (; text[i] && i + 1 < room; i++) out[i] = (CH)text[i];
    out[i] = 0;
}

PUBLIC RC SQLDriverConnectW(H h, H window, W *in, S in_length, W *out, S room, S *length, US way) {
    char *text = narrowed(in, in_length);
    RC code = SQLDriverConnect(h, window, (CH *)text, NTS, NULL, 0, NULL, way);
    UNUSED(out); UNUSED(room); UNUSED(length);
    free(text);
    return code;
}
PUBLIC RC SQLPrepareW(H h, W *sql, I length) {
    char *text = narrowed(sql, length);
    RC code = SQLPrepare(h, (CH *)text, NTS);
    free(text);
    return code;
}
PUBLIC RC SQLExecDirectW(H h, W *sql, I length) { SQLPrepareW(h, sql, length); return run(h); }
PUBLIC RC SQLGetDiagRecW(S kind, H h, S number, W *state, I *native, W *text, S room, S *length) {
    const Record *r = h ? record_of(h, number) : NULL;
    UNUSED(kind);
    if (!r) return NODATA;
    if (state) widened(state, r->state, 6);
    if (native) *native = r->native;
    if (text && room > 0) widened(text, r->text, (size_t)room);
    set_length(length, strlen(r->text));
    return OK;
}
PUBLIC RC SQLGetDiagFieldW(S kind, H h, S number, S field, H value, S room, S *length) {
    return SQLGetDiagField(kind, h, number, field, value, room, length);
}
PUBLIC RC SQLDescribeColW(H h, US number, W *name, S room, S *length, S *type, UL *size, S *digits,
                          S *nullable) {
    char text[129];
    RC code = SQLDescribeCol(h, number, (CH *)text, sizeof text, length, type, size, digits, nullable);
    if (code != OK) return code;
    if (name && room > 0) widened(name, text, (size_t)room);
    const Column *c = &((Statement *)h)->column[number - 1];
    if (type) *type = c->type;
    if (size) *size = c->size;
    if (digits) *digits = 0;
    return code;
}
PUBLIC RC SQLGetInfoW(H h, US what, H value, S room, S *length) {
    const char *text = info_text(h, what);
    if (!text) return SQLGetInfo(h, what, value, room, length);
    if (value && room >= 4) widened(value, text, (size_t)room / 4);
    set_length(length, strlen(text) * 4);
    return OK;
}
PUBLIC RC SQLSetConnectAttrW(H h, I attribute, H value, I length) {
    return SQLSetConnectAttr(h, attribute, value, length);
}
#endif
