/* An "Informix" ODBC driver for tests: it forwards statements to the emulator.
 *
 * -DWIDE4 adds W functions with 4-byte characters, which Informix's own driver has on Linux: with
 * the narrow functions alone, code that cannot work with the real driver would pass.
 */
#include "driver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define UNUSED(x) (void)(x)

/* ---- diagnosis ---- */

RC fail(H handle, const char *state, I native, const char *text) {
    Diagnosis *d = &((Any *)handle)->diagnosis;
    if (d->count == MAX_RECORDS) return ERR;
    Record *r = &d->record[d->count++];
    r->native = native;
    snprintf(r->state, sizeof r->state, "%s", state);
    snprintf(r->text, sizeof r->text, "[Informix][Informix ODBC Driver]%.2000s", text);
    return ERR;
}

void clear(H handle) { ((Any *)handle)->diagnosis.count = 0; }

static const Record *record_of(H handle, S number) {
    const Diagnosis *d = &((Any *)handle)->diagnosis;
    return number >= 1 && number <= d->count ? &d->record[number - 1] : NULL;
}

/* Bad habits, each reported of some driver; asked for by HABIT=... in the connection string:
 *   nts        the length of a text is SQL_NTS     negative   the length of a text is -77
 *   pad        numbers are padded with blanks      verbose    diagnostics fill their room, without NUL
 */
static int has_habit(S kind, H h, const char *habit) {
    const Connection *c = kind == HANDLE_DBC ? h : kind == HANDLE_STMT ? ((Statement *)h)->connection : NULL;
    return c && !strcmp(c->habit, habit);
}

static void set_length(S *target, size_t length) { if (target) *target = (S)length; }
static void set_text(void *target, S room, const char *text) {
    if (target && room > 0) snprintf(target, (size_t)room, "%s", text);
}

PUBLIC RC SQLGetDiagRec(S kind, H h, S number, CH *state, I *native, CH *text, S room, S *length) {
    if (!h) return INVALID;
    const Record *r = record_of(h, number);
    if (!r) return NODATA;
    if (state) memcpy(state, r->state, sizeof r->state);
    if (native) *native = r->native;
    if (text && room > 0 && has_habit(kind, h, "verbose")) {
        size_t known = strlen(r->text);
        memcpy(text, r->text, known < (size_t)room ? known : (size_t)room);
        if (known < (size_t)room) memset(text + known, 'x', (size_t)room - known);
        set_length(length, (size_t)room);
        return INFO;
    }
    set_text(text, room, r->text);
    set_length(length, strlen(r->text));
    return text && strlen(r->text) >= (size_t)(room > 0 ? room : 0) ? INFO : OK;
}

PUBLIC RC SQLGetDiagField(S kind, H h, S number, S field, H value, S room, S *length) {
    enum { DIAG_NUMBER = 2, DIAG_ROW_COUNT = 3 };
    UNUSED(kind);
    if (!h) return INVALID;
    if (field == DIAG_NUMBER || field == DIAG_ROW_COUNT) {
        if (value) *(I *)value = ((Any *)h)->diagnosis.count;
        return OK;
    }
    if (!record_of(h, number)) return NODATA;
    set_text(value, room, "");
    set_length(length, 0);
    return OK;
}

/* ---- handles ---- */

static H new_connection(void) {
    Connection *c = must_zeroed(1, sizeof *c);
    c->fd = -1;
    c->autocommit = 1;
    c->login_seconds = 8;
    pthread_mutex_init(&c->sending, NULL);
    return c;
}

static H new_statement(Connection *c) {
    Statement *s = must_zeroed(1, sizeof *s);
    s->connection = c;
    return s;
}

PUBLIC RC SQLAllocHandle(S kind, H parent, H *out) {
    if (kind == HANDLE_DBC) *out = new_connection();
    else if (kind == HANDLE_STMT) *out = new_statement(parent);
    else *out = must_zeroed(1, sizeof(Any));
    return OK;
}

void drop_result(Statement *s) {
    free(s->header);
    free(s->column);
    free(s->cell);
    free(s->given);
    s->header = NULL;
    s->column = NULL;
    s->cell = NULL;
    s->given = NULL;
    s->columns = 0;
    s->rows = s->row = 0;
    s->row_count = -1;
}

static void hang_up(Connection *c) {
    if (c->fd >= 0) close(c->fd);
    c->fd = -1;
}

PUBLIC RC SQLFreeHandle(S kind, H h) {
    if (!h) return INVALID;
    if (kind == HANDLE_STMT) {
        drop_result(h);
        free(((Statement *)h)->sql);
    }
    if (kind == HANDLE_DBC) {
        hang_up(h);
        pthread_mutex_destroy(&((Connection *)h)->sending);
    }
    free(h);
    return OK;
}

PUBLIC RC SQLFreeStmt(H h, US option) {
    enum { CLOSE = 0, DROP = 1, RESET_PARAMETERS = 3 };
    Statement *s = h;
    if (option == DROP) return SQLFreeHandle(HANDLE_STMT, h);
    if (option == CLOSE) drop_result(s);
    if (option == RESET_PARAMETERS) s->parameters = 0;
    return OK;
}

PUBLIC RC SQLCloseCursor(H h) { drop_result(h); return OK; }

/* ---- attributes ---- */

enum {
    ATTR_AUTOCOMMIT = 102, ATTR_LOGIN_TIMEOUT = 103, ATTR_CONNECTION_DEAD = 1209,
    ATTR_LO_AUTOMATIC = 2262, ATTR_RECEIVE_TIMEOUT = 2282
};

PUBLIC RC SQLSetEnvAttr(H h, I a, H v, I n) { UNUSED(h); UNUSED(a); UNUSED(v); UNUSED(n); return OK; }
PUBLIC RC SQLGetEnvAttr(H h, I a, H v, I n, I *l) {
    UNUSED(h); UNUSED(a); UNUSED(n); UNUSED(l);
    *(I *)v = 3; /* SQL_OV_ODBC3 */
    return OK;
}

PUBLIC RC SQLSetConnectAttr(H h, I attribute, H v, I n) {
    Connection *c = h;
    I value = (I)(L)v;
    UNUSED(n);
    switch (attribute) {
    case ATTR_AUTOCOMMIT: c->autocommit = value; break;
    case ATTR_LOGIN_TIMEOUT: c->login_seconds = value; break;
    case ATTR_LO_AUTOMATIC: c->lo_automatic = value; break;
    case ATTR_RECEIVE_TIMEOUT:
        c->receive_seconds = value;
        if (c->fd >= 0) wire_receive_timeout(c->fd, value);
        break;
    default: break;
    }
    return OK;
}

PUBLIC RC SQLGetConnectAttr(H h, I attribute, H v, I n, I *l) {
    const Connection *c = h;
    UNUSED(n); UNUSED(l);
    *(I *)v = attribute == ATTR_AUTOCOMMIT ? c->autocommit
            : attribute == ATTR_CONNECTION_DEAD ? c->fd < 0 : 0;
    return OK;
}

PUBLIC RC SQLSetStmtAttr(H h, I a, H v, I n) { UNUSED(h); UNUSED(a); UNUSED(v); UNUSED(n); return OK; }
PUBLIC RC SQLGetStmtAttr(H h, I attribute, H v, I n, I *l) {
    static Any descriptor[4]; /* a driver manager asks for the four implicit descriptors */
    UNUSED(h); UNUSED(n); UNUSED(l);
    if (attribute >= 10010 && attribute <= 10013) *(H *)v = &descriptor[attribute - 10010];
    else *(UL *)v = 0;
    return OK;
}

/* ---- connection ---- */

const char *connection_value(const char *text, const char *key, char *out, size_t room) {
    size_t length = strlen(key);
    out[0] = 0;
    while (text && *text) {
        if (!strncasecmp(text, key, length) && text[length] == '=') {
            const char *value = text + length + 1;
            snprintf(out, room, "%.*s", (int)strcspn(value, ";"), value);
            break;
        }
        text = strchr(text, ';');
        if (text) text++;
    }
    return out;
}

static RC introduce(Connection *c, const char *text) {
    Request r = request_begin('C');
    request_bytes(&r, text, strlen(text));
    wire_receive_timeout(c->fd, c->login_seconds);
    errno = 0;
    if (request_send(&r, c->fd)) return fail(c, "08S01", -25582, "Network connection is broken.");
    RC code = answer(c, c, NULL);
    if (code == ERR) hang_up(c);
    else wire_receive_timeout(c->fd, c->receive_seconds);
    return code;
}

PUBLIC RC SQLDriverConnect(H h, H window, CH *in, S in_length, CH *out, S room, S *length, US way) {
    Connection *c = h;
    char text[4096], host[256], service[64], server[129], standard_types[8];
    UNUSED(window); UNUSED(way);
    clear(c);
    snprintf(text, sizeof text, "%.*s", in_length == NTS ? (int)strlen((char *)in) : in_length, in);
    connection_value(text, "HOST", host, sizeof host);
    connection_value(text, "SERVICE", service, sizeof service);
    if (!*connection_value(text, "SERVER", server, sizeof server))
        return fail(c, "HY000", -11060, "General error.");
    /* "Report Standard ODBC Types" turns LO_AUTOMATIC on, as the manual says */
    connection_value(text, "HABIT", c->habit, sizeof c->habit);
    c->lo_automatic = connection_value(text, "ODTYP", standard_types, 8)[0] == '1';
    c->fd = wire_connect(host, service, c->login_seconds);
    if (c->fd < 0)
        return fail(c, "08001", -908, "[Informix]Attempt to connect to database server failed.");
    RC code = introduce(c, text);
    set_text(out, room, text);
    set_length(length, strlen(text));
    return code;
}

PUBLIC RC SQLDisconnect(H h) { hang_up(h); return OK; }
PUBLIC RC SQLEndTran(S kind, H h, S what) { UNUSED(kind); UNUSED(h); UNUSED(what); return OK; }

static const char *info_text(US what) {
    switch (what) {
    case 6: return "libthcli.so";        /* SQL_DRIVER_NAME */
    case 7: return "04.50.0000";         /* SQL_DRIVER_VER */
    case 13: return "emulated";          /* SQL_SERVER_NAME */
    case 14: return "\\";                /* SQL_SEARCH_PATTERN_ESCAPE */
    case 16: return "syscdcv1";          /* SQL_DATABASE_NAME */
    case 17: return "Informix";          /* SQL_DBMS_NAME */
    case 18: return "14.10.0000";        /* SQL_DBMS_VER */
    case 77: return "03.52";             /* SQL_DRIVER_ODBC_VER */
    case 111: return "Y";                /* SQL_NEED_LONG_DATA_LEN */
    case 10002: return "N";              /* SQL_DESCRIBE_PARAMETER */
    default: return NULL;
    }
}

PUBLIC RC SQLGetInfo(H h, US what, H value, S room, S *length) {
    enum { CURSOR_COMMIT = 23, CURSOR_ROLLBACK = 24 };
    const char *text = info_text(what);
    UNUSED(h);
    if (text) {
        set_text(value, room, text);
        set_length(length, strlen(text));
    } else if (what == CURSOR_COMMIT || what == CURSOR_ROLLBACK) {
        if (value) *(US *)value = 1; /* cursors are closed */
        set_length(length, sizeof(US));
    } else {
        if (value) memset(value, 0, room >= 4 || room == 0 ? 4 : (size_t)room);
        set_length(length, 4);
    }
    return OK;
}

/* ---- statements ---- */

PUBLIC RC SQLPrepare(H h, CH *sql, I length) {
    Statement *s = h;
    clear(s);
    free(s->sql);
    s->sql = length == NTS ? strdup((char *)sql) : strndup((char *)sql, (size_t)length);
    if (!s->sql) abort();
    return OK;
}
PUBLIC RC SQLExecute(H h) { return run(h); }
PUBLIC RC SQLExecDirect(H h, CH *sql, I length) { SQLPrepare(h, sql, length); return run(h); }

PUBLIC RC SQLNumParams(H h, S *count) {
    int marks = 0, quoted = 0;
    for (const char *at = ((Statement *)h)->sql; at && *at; at++) {
        if (*at == '\'') quoted = !quoted;
        marks += *at == '?' && !quoted;
    }
    *count = (S)marks;
    return OK;
}

PUBLIC RC SQLBindParameter(H h, US number, S way, S c_type, S type, UL size, S digits, H value,
                           L room, L *indicator) {
    Statement *s = h;
    UNUSED(type); UNUSED(size); UNUSED(digits);
    clear(s);
    if (number < 1 || number > MAX_PARAMETERS)
        return fail(s, "07009", -11013, "Invalid parameter number.");
    s->parameter[number - 1] = (Parameter){way, c_type, value, room, indicator};
    if (number > s->parameters) s->parameters = number;
    return OK;
}

PUBLIC RC SQLCancel(H h) {
    Connection *c = ((Statement *)h)->connection;
    if (c->fd < 0) return OK;
    Request r = request_begin('K');
    pthread_mutex_lock(&c->sending);
    int sent = request_send(&r, c->fd);
    pthread_mutex_unlock(&c->sending);
    return sent ? ERR : OK;
}

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
    if (type) *type = c->type;
    if (size) *size = c->size;
    if (digits) *digits = 0;
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
    *given = now < left ? *given + now : -1;
    if (now == left) return OK;
    fail(s, "01004", -11003, "Data truncated.");
    return INFO;
}

static RC give_wide(Statement *s, US number, const Cell *c, H buffer, L room, L *indicator) {
    uint16_t *wide = must_resize(NULL, (size_t)c->length * 2 + 2);
    L units = (L)to_utf16(c->text, (size_t)c->length, wide);
    RC code = give(s, number, wide, units, 2, 2, buffer, room, indicator);
    free(wide);
    return code;
}

static int is_number(const Cell *c) {
    if (c->length < 1 || c->length > 20) return 0;
    return strspn(c->text, "-0123456789") >= (size_t)c->length;
}

static S default_type(S column_type) {
    return column_type == TYPE_LONG ? TYPE_LONG
         : column_type == TYPE_BIGINT ? TYPE_SBIGINT : TYPE_CHAR;
}

PUBLIC RC SQLGetData(H h, US number, S c_type, H buffer, L room, L *indicator) {
    Statement *s = h;
    clear(s);
    const Column *column = column_of(s, number);
    if (!column) return ERR;
    if (!s->row) return fail(s, "24000", -11031, "Invalid cursor state.");
    const Cell *c = &s->cell[(size_t)(s->row - 1) * s->columns + number - 1];
    if (c->length < 0) {
        if (indicator) *indicator = NULL_DATA;
        return OK;
    }
    char number_text[64];
    L size = 0;
    snprintf(number_text, sizeof number_text, "%.*s", c->length < 63 ? c->length : 63, c->text);
    switch (c_type == TYPE_DEFAULT ? default_type(column->type) : c_type) {
    case TYPE_LONG: case TYPE_SLONG: case TYPE_ULONG:
        *(I *)buffer = (I)strtoll(number_text, NULL, 10); size = 4; break;
    case TYPE_SBIGINT: case TYPE_UBIGINT:
        *(L *)buffer = strtol(number_text, NULL, 10); size = 8; break;
    case TYPE_SHORT: case TYPE_SSHORT:
        *(S *)buffer = (S)strtol(number_text, NULL, 10); size = 2; break;
    case TYPE_DOUBLE: *(double *)buffer = strtod(number_text, NULL); size = 8; break;
    case TYPE_WCHAR: return give_wide(s, number, c, buffer, room, indicator);
    case TYPE_BINARY: return give(s, number, c->text, c->length, 1, 0, buffer, room, indicator);
    default:
        if (has_habit(HANDLE_STMT, s, "pad") && is_number(c)) {
            int width = snprintf(number_text, sizeof number_text, "%-30.*s", c->length, c->text);
            return give(s, number, number_text, width, 1, 1, buffer, room, indicator);
        }
        return give(s, number, c->text, c->length, 1, 1, buffer, room, indicator);
    }
    if (indicator) *indicator = size;
    return OK;
}

/* ---- the wide functions, with 4-byte characters ---- */

#ifdef WIDE4
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
    if (code == OK && name && room > 0) widened(name, text, (size_t)room);
    return code;
}
PUBLIC RC SQLGetInfoW(H h, US what, H value, S room, S *length) {
    const char *text = info_text(what);
    if (!text) return SQLGetInfo(h, what, value, room, length);
    if (value && room >= 4) widened(value, text, (size_t)room / 4);
    set_length(length, strlen(text) * 4);
    return OK;
}
PUBLIC RC SQLSetConnectAttrW(H h, I attribute, H value, I length) {
    return SQLSetConnectAttr(h, attribute, value, length);
}
#endif
