/* An "Informix" ODBC driver for tests, which speaks SQLI, the subset that it needs: handles, attributes,
 * connections, and statements up to where they run (`exchange.c`).
 */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
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

const Record *record_of(H handle, S number) {
    const Diagnosis *d = &((Any *)handle)->diagnosis;
    return number >= 1 && number <= d->count ? &d->record[number - 1] : NULL;
}

/* Bad habits, each reported of some driver; asked for by HABIT=... in the connection string:
 *   nts        the length of a text is SQL_NTS     negative   the length of a text is -77
 *   pad        numbers are padded with blanks      verbose    diagnostics fill their room, without NUL
 *   nofinish   SQLDisconnect does not return       endless    behind each piece of a text comes another
 *   trim       blanks at the end of a VARCHAR, NVARCHAR or LVARCHAR are cut
 */
int has_habit(S kind, H h, const char *habit) {
    const Connection *c = kind == HANDLE_DBC ? h : kind == HANDLE_STMT ? ((Statement *)h)->connection : NULL;
    return c && !strcmp(c->habit, habit);
}

void set_length(S *target, size_t length) { if (target) *target = (S)length; }
void set_text(void *target, S room, const char *text) {
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
    c->stream.fd = -1;
    c->autocommit = 1;
    c->login_seconds = 8;
    pthread_mutex_init(&c->closing, NULL);
    return c;
}

static H new_statement(Connection *c) {
    Statement *s = must_zeroed(1, sizeof *s);
    s->connection = c;
    s->array = 1;
    return s;
}

PUBLIC RC SQLAllocHandle(S kind, H parent, H *out) {
    if (kind == HANDLE_DBC) *out = new_connection();
    else if (kind == HANDLE_STMT) *out = new_statement(parent);
    else *out = must_zeroed(1, sizeof(Any));
    return OK;
}

void drop_result(Statement *s) {
    end_cursor(s);
    forget(&s->text);
    forget(&s->cells);
    free(s->column);
    free(s->given);
    s->column = NULL;
    s->given = NULL;
    s->columns = 0;
    s->rows = s->row = s->with_values = 0;
    s->is_described = s->is_inconvertible = 0;
    s->row_count = -1;
}

void hang_up(Connection *c) {
    pthread_mutex_lock(&c->closing);
    wire_close(&c->stream);
    pthread_mutex_unlock(&c->closing);
    c->is_in_transaction = 0;
}

PUBLIC RC SQLFreeHandle(S kind, H h) {
    if (!h) return INVALID;
    if (kind == HANDLE_STMT) {
        drop_result(h);
        free(((Statement *)h)->sql);
    }
    if (kind == HANDLE_DBC) {
        hang_up(h);
        close_code_sets(h);
        pthread_mutex_destroy(&((Connection *)h)->closing);
    }
    free(h);
    return OK;
}

PUBLIC RC SQLFreeStmt(H h, US option) {
    enum { CLOSE = 0, DROP = 1, UNBIND = 2, RESET_PARAMETERS = 3 };
    Statement *s = h;
    if (option == DROP) return SQLFreeHandle(HANDLE_STMT, h);
    if (option == CLOSE) drop_result(s);
    if (option == UNBIND) memset(s->bound, 0, sizeof s->bound);
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
    case ATTR_AUTOCOMMIT:
        c->autocommit = value;
        if (value) return end_transaction(c, 1);
        break;
    case ATTR_LOGIN_TIMEOUT: c->login_seconds = value; break;
    case ATTR_LO_AUTOMATIC: c->lo_automatic = value; break;
    case ATTR_RECEIVE_TIMEOUT:
        c->receive_seconds = value;
        if (c->stream.fd >= 0) wire_receive_timeout(&c->stream, value);
        break;
    default: break;
    }
    return OK;
}

PUBLIC RC SQLGetConnectAttr(H h, I attribute, H v, I n, I *l) {
    const Connection *c = h;
    UNUSED(n); UNUSED(l);
    *(I *)v = attribute == ATTR_AUTOCOMMIT ? c->autocommit
            : attribute == ATTR_CONNECTION_DEAD ? c->stream.fd < 0 : 0;
    return OK;
}

PUBLIC RC SQLGetStmtAttr(H h, I attribute, H v, I n, I *l) {
    static Any descriptor[4]; /* a driver manager asks for the four implicit descriptors */
    UNUSED(h); UNUSED(n); UNUSED(l);
    if (attribute >= 10010 && attribute <= 10013) *(H *)v = &descriptor[attribute - 10010];
    else *(UL *)v = 0;
    return OK;
}

/* ---- connection ---- */

PUBLIC RC SQLDriverConnect(H h, H window, CH *in, S in_length, CH *out, S room, S *length, US way) {
    Connection *c = h;
    char text[4096], standard_types[8];
    UNUSED(window); UNUSED(way);
    clear(c);
    snprintf(text, sizeof text, "%.*s", in_length == NTS ? (int)strlen((char *)in) : in_length, in);
    connection_value(text, "HABIT", c->habit, sizeof c->habit);
    /* "Report Standard ODBC Types" turns LO_AUTOMATIC on, as the manual says */
    c->lo_automatic = connection_value(text, "ODTYP", standard_types, 8)[0] == '1';
    RC code = log_in(c, text);
    set_text(out, room, text);
    set_length(length, strlen(text));
    return code;
}

PUBLIC RC SQLDisconnect(H h) {
    while (has_habit(HANDLE_DBC, h, "nofinish")) sleep(3600);
    log_out(h);
    return OK;
}
PUBLIC RC SQLEndTran(S kind, H h, S what) {
    enum { COMMIT = 0 };
    clear(h);
    return kind == HANDLE_DBC ? end_transaction(h, what == COMMIT) : OK;
}

/* "...Version 14.10.FC10" as ODBC writes it. */
static const char *dbms_version(const Connection *c) {
    static char text[16];
    const char *found = strstr(c->server_version, "Version ");
    int digits = 0;
    if (found && sscanf(found, "Version %*d.%*d%n", &digits) == 0 && digits > 8)
        snprintf(text, sizeof text, "%.*s.0000", digits - 8, found + 8);
    else snprintf(text, sizeof text, "14.10.0000");
    return text;
}

const char *info_text(const Connection *c, US what) {
    switch (what) {
    case 6: return "libthcli.so";        /* SQL_DRIVER_NAME */
    case 7: return "04.50.0000";         /* SQL_DRIVER_VER */
    case 13: return "emulated";          /* SQL_SERVER_NAME */
    case 14: return "\\";                /* SQL_SEARCH_PATTERN_ESCAPE */
    case 16: return "syscdcv1";          /* SQL_DATABASE_NAME */
    case 17: return "Informix";          /* SQL_DBMS_NAME */
    case 18: return dbms_version(c);     /* SQL_DBMS_VER */
    case 77: return "03.52";             /* SQL_DRIVER_ODBC_VER */
    case 111: return "Y";                /* SQL_NEED_LONG_DATA_LEN */
    case 10002: return "N";              /* SQL_DESCRIBE_PARAMETER */
    default: return NULL;
    }
}

PUBLIC RC SQLGetInfo(H h, US what, H value, S room, S *length) {
    enum { CURSOR_COMMIT = 23, CURSOR_ROLLBACK = 24, LO_STAT_LENGTH = 2252 };
    const char *text = info_text(h, what);
    if (text) {
        set_text(value, room, text);
        set_length(length, strlen(text));
    } else if (what == CURSOR_COMMIT || what == CURSOR_ROLLBACK) {
        if (value) *(US *)value = 1; /* cursors are closed */
        set_length(length, sizeof(US));
    } else if (what == LO_STAT_LENGTH) {
        if (value) *(US *)value = 644;
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

/* One urgent byte, as IBM's JDBC driver sends it: the statement that runs then ends with -213. */
PUBLIC RC SQLCancel(H h) {
    Connection *c = ((Statement *)h)->connection;
    RC code = OK;
    pthread_mutex_lock(&c->closing);
    if (c->stream.fd >= 0 && send(c->stream.fd, "B", 1, MSG_OOB | MSG_NOSIGNAL) != 1) code = ERR;
    pthread_mutex_unlock(&c->closing);
    return code;
}
