/* One request and its answer: the bound parameters out, the result set and the buffer back. */
#include "driver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { ANSWER_ERROR = 2, MAX_HEADER = 256 << 20, MAX_CELLS = 1 << 26 };

static RC lost(Connection *c, H handle) {
    int late = errno == EAGAIN || errno == EWOULDBLOCK;
    if (c->fd >= 0) close(c->fd);
    c->fd = -1;
    return late ? fail(handle, "HYT00", -11094, "Time-out expired.")
                : fail(handle, "08S01", -25582, "[Informix]Network connection is broken.");
}

/* A line of the message is a record of its own. */
static RC server_error(H handle, Header *h) {
    char state[6] = {0}, text[2048];
    const char *bytes = header_bytes(h, 5);
    if (bytes) memcpy(state, bytes, 5);
    I native = (I)header_u32(h);
    uint16_t length = header_u16(h);
    bytes = header_bytes(h, length);
    snprintf(text, sizeof text, "%.*s", bytes ? length : 0, bytes ? bytes : "");
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        fail(handle, state, native, line);
    return ERR;
}

static Parameter *output_of(Statement *s) {
    for (int i = 0; s && i < s->parameters; i++)
        if (s->parameter[i].way & (PARAM_OUTPUT | PARAM_INPUT_OUTPUT)) return &s->parameter[i];
    return NULL;
}

/* Lets the out-parameter's bytes go straight from the socket into the bound buffer. */
static int receive_output(Connection *c, Statement *s, uint32_t count) {
    Parameter *out = output_of(s);
    size_t room = out && out->room > 0 ? (size_t)out->room : 0;
    size_t kept = count < room ? count : room;
    if (kept && wire_receive(c->fd, out->value, kept)) return -1;
    if (out && out->indicator) *out->indicator = (L)count;
    return wire_skip(c->fd, count - kept);
}

static void read_columns(Statement *s, Header *h) {
    s->row_count = header_i64(h);
    s->columns = header_u16(h);
    s->column = must_zeroed(s->columns, sizeof(Column));
    s->given = must_zeroed(s->columns, sizeof(L));
    for (int i = 0; i < s->columns && !h->bad; i++) {
        uint8_t length = header_u8(h);
        const char *name = header_bytes(h, length);
        snprintf(s->column[i].name, sizeof s->column[i].name, "%.*s", name ? length : 0,
                 name ? name : "");
        s->column[i].type = (S)header_u16(h);
        s->column[i].size = header_u32(h);
    }
}

static void read_cells(Statement *s, Header *h) {
    uint32_t rows = header_u32(h);
    size_t count = (size_t)rows * s->columns;
    if (h->bad || (rows && !s->columns) || count > MAX_CELLS) {
        h->bad = 1;
        return;
    }
    s->cell = must_zeroed(count, sizeof(Cell));
    for (size_t i = 0; i < count && !h->bad; i++) {
        s->cell[i].length = (int32_t)header_u32(h);
        s->cell[i].text = s->cell[i].length > 0 ? header_bytes(h, (size_t)s->cell[i].length) : "";
    }
    s->rows = rows;
}

RC answer(Connection *c, H handle, Statement *s) {
    uint32_t lengths[2];
    if (wire_receive(c->fd, lengths, sizeof lengths)) return lost(c, handle);
    if (lengths[0] < 1 || lengths[0] > MAX_HEADER)
        return fail(handle, "HY000", -11060, "The emulator's answer is malformed.");
    char *bytes = must_resize(NULL, lengths[0]);
    if (wire_receive(c->fd, bytes, lengths[0]) || receive_output(c, s, lengths[1])) {
        free(bytes);
        return lost(c, handle);
    }
    Header h = {.at = bytes, .end = bytes + lengths[0]};
    if (header_u8(&h) == ANSWER_ERROR || !s) {
        RC code = bytes[0] == ANSWER_ERROR ? server_error(handle, &h) : OK;
        free(bytes);
        return code;
    }
    s->header = bytes;
    read_columns(s, &h);
    read_cells(s, &h);
    if (!h.bad) return OK;
    drop_result(s);
    return fail(handle, "HY000", -11060, "The emulator's answer is malformed.");
}

/* ---- parameters as text ---- */

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

static void put_text(Request *r, const char *text, size_t length) {
    request_u32(r, (uint32_t)length);
    request_bytes(r, text, length);
}

static void put_wide(Request *r, const Parameter *p, L length) {
    size_t bytes;
    char *text = from_utf16(p->value, utf16_units(p->value, length), &bytes);
    put_text(r, text, bytes);
    free(text);
}

static void put_input(Request *r, const Parameter *p) {
    char number[32];
    L length = p->indicator ? *p->indicator : NTS;
    if (length == NULL_DATA) {
        request_u32(r, UINT32_MAX);
        return;
    }
    int digits = -1;
    switch (p->c_type) {
    case TYPE_LONG: case TYPE_SLONG:
        digits = snprintf(number, sizeof number, "%d", *(int32_t *)p->value); break;
    case TYPE_ULONG: digits = snprintf(number, sizeof number, "%u", *(uint32_t *)p->value); break;
    case TYPE_SBIGINT: digits = snprintf(number, sizeof number, "%ld", *(long *)p->value); break;
    case TYPE_UBIGINT: digits = snprintf(number, sizeof number, "%lu", *(UL *)p->value); break;
    case TYPE_SHORT: case TYPE_SSHORT:
        digits = snprintf(number, sizeof number, "%d", *(int16_t *)p->value); break;
    case TYPE_TINY: case TYPE_BIT:
        digits = snprintf(number, sizeof number, "%d", *(int8_t *)p->value); break;
    case TYPE_DOUBLE:
        digits = snprintf(number, sizeof number, "%.17g", *(double *)p->value); break;
    case TYPE_WCHAR: put_wide(r, p, length); return;
    default: break;
    }
    if (digits >= 0) put_text(r, number, (size_t)digits);
    else put_text(r, p->value, length == NTS ? strlen(p->value) : (size_t)length);
}

static int is_lo_call(const char *sql) { return strncasecmp(sql, "{call ifx_lo_", 13) == 0; }

RC run(Statement *s) {
    Connection *c = s->connection;
    clear(s);
    drop_result(s);
    if (!s->sql) return fail(s, "HY010", -11067, "Function sequence error.");
    if (c->fd < 0) return fail(s, "08S01", -25582, "[Informix]Network connection is broken.");
    if (c->lo_automatic && is_lo_call(s->sql))
        return fail(s, "HY000", -11060, "ifx_lo functions need SQL_INFX_ATTR_LO_AUTOMATIC off.");
    Request r = request_begin('X');
    put_text(&r, s->sql, strlen(s->sql));
    request_u8(&r, (uint8_t)s->parameters);
    for (int i = 0; i < s->parameters; i++) {
        Parameter *p = &s->parameter[i];
        request_u8(&r, (uint8_t)p->way);
        if (p->way == PARAM_OUTPUT) request_u32(&r, (uint32_t)p->room);
        else put_input(&r, p);
    }
    errno = 0;
    pthread_mutex_lock(&c->sending);
    int sent = request_send(&r, c->fd);
    pthread_mutex_unlock(&c->sending);
    return sent ? lost(c, s) : answer(c, s, s);
}
