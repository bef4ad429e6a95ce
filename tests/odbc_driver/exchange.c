/* A statement: prepared, its parameters bound, run, its rows fetched to the end, released.
 * Requests come in the order and shape in which IBM's JDBC driver sends them. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    SQ_PREPARE = 2, SQ_CURSOR_NAME = 3, SQ_ID = 4, SQ_BIND = 5, SQ_OPEN = 6, SQ_EXECUTE = 7,
    SQ_FETCH = 9, SQ_CLOSE = 10, SQ_RELEASE = 11, SQ_COMMIT = 19, SQ_ROLLBACK = 20, SQ_DESCRIBE_ALSO = 22,
    SQ_BEGIN = 35, SQ_COST_ALSO = 49, SQ_RESULT_TYPES = 100
};
enum { KIND_SELECT = 2, KIND_EXECUTE_FUNCTION = 56 };
enum { FETCH_BYTES = 1 << 16 };

static Reply reply_to(Statement *s) {
    return (Reply){.connection = s->connection, .handle = s, .statement = s};
}

static RC say(Statement *s, uint16_t message) {
    Reply r = reply_to(s);
    Bytes request = {0};
    put_u16(&request, SQ_ID);
    put_u16(&request, s->id);
    put_u16(&request, message);
    return ask(&r, &request);
}

/* ---- transactions ---- */

RC end_transaction(Connection *c, int is_commit) {
    Reply r = {.connection = c, .handle = c};
    Bytes request = {0};
    if (!c->is_in_transaction) return OK;
    put_u16(&request, is_commit ? SQ_COMMIT : SQ_ROLLBACK);
    if (!is_commit) put_u16(&request, 0); /* to no savepoint */
    c->is_in_transaction = 0;
    return ask(&r, &request);
}

/* Without autocommit a transaction begins with the first statement. */
static RC begin_if_due(Statement *s) {
    Connection *c = s->connection;
    Reply r = reply_to(s);
    Bytes request = {0};
    if (c->autocommit || c->is_in_transaction) return OK;
    put_u16(&request, SQ_BEGIN);
    RC code = ask(&r, &request);
    c->is_in_transaction = code == OK;
    return code;
}

/* ---- a statement ---- */

static RC prepare(Statement *s, const char *sql) {
    Connection *c = s->connection;
    Reply r = reply_to(s);
    Bytes request = {0}, text = {0};
    if (put_converted(&text, c->to_server, sql, strlen(sql))) {
        forget(&text);
        return fail_with(s, -23103, NULL);
    }
    put_u16(&request, SQ_PREPARE);
    put_u16(&request, (uint16_t)s->parameters);
    put_u32(&request, (uint32_t)text.used);
    put_bytes(&request, text.bytes, text.used);
    if (text.used & 1) put_bytes(&request, "", 1);
    put_u16(&request, SQ_DESCRIBE_ALSO);
    put_u16(&request, SQ_COST_ALSO);
    forget(&text);
    RC code = ask(&r, &request);
    if (code != OK || s->is_described) return code;
    refuse(&c->stream, "no description of a statement");
    return lost(c, s);
}

static int put_parameters(Bytes *request, const Statement *s, int first) {
    if (s->parameters == first) return 0;
    put_u16(request, SQ_BIND);
    put_u16(request, (uint16_t)(s->parameters - first));
    for (int i = first; i < s->parameters; i++)
        if (put_parameter(request, s->connection, &s->parameter[i])) return -1;
    return 0;
}

static RC execute(Statement *s, int first) {
    Reply r = reply_to(s);
    Bytes request = {0};
    put_u16(&request, SQ_ID);
    put_u16(&request, s->id);
    if (put_parameters(&request, s, first)) {
        forget(&request);
        return fail_with(s, -23103, NULL);
    }
    put_u16(&request, SQ_EXECUTE);
    RC code = ask(&r, &request);
    s->row_count = (L)r.rows;
    return code;
}

static int is_variable(const Column *c) { return c->code == 13 || c->code == 16 || c->code >= 40; }

/* As what the server is to send columns whose size varies: asked for before the first fetch. */
static void put_result_types(Bytes *request, const Statement *s) {
    put_u16(request, SQ_RESULT_TYPES);
    put_u16(request, 1);
    put_u16(request, s->columns);
    for (int i = 0; i < s->columns; i++) {
        const Column *c = &s->column[i];
        uint16_t code = c->code == 40 ? 43 : c->code == 41 && c->extended_id == 5 ? 45 : c->code;
        put_u16(request, code);
        if (code == 43 || code == 40 || code == 41) put_u32(request, 0); /* two names that are empty */
        if (code == 45) {
            put_char(request, "informix", 8);
            put_char(request, "boolean", 7);
        }
        put_u32(request, c->encoded);
    }
}

static void put_fetch(Bytes *request) {
    put_u16(request, SQ_FETCH);
    put_u32(request, FETCH_BYTES);
    put_u16(request, 0); /* as many rows as fit */
}

static int has_variable_columns(const Statement *s) {
    for (int i = 0; i < s->columns; i++)
        if (is_variable(&s->column[i])) return 1;
    return 0;
}

static int put_open(Bytes *request, Statement *s, int first) {
    char name[32];
    snprintf(name, sizeof name, "_ifxc%013u", s->connection->cursors++);
    put_u16(request, SQ_ID);
    put_u16(request, s->id);
    put_u16(request, SQ_CURSOR_NAME);
    put_char(request, name, strlen(name));
    if (put_parameters(request, s, first)) return -1;
    put_u16(request, SQ_OPEN);
    return 0;
}

/* Lets a cursor go whose rows nobody asks for any more. */
void end_cursor(Statement *s) {
    if (!s->is_open) return;
    s->is_open = 0;
    if (s->connection->stream.fd < 0) return;
    Diagnosis why = s->diagnosis;
    say(s, SQ_CLOSE);
    if (s->connection->stream.fd >= 0) say(s, SQ_RELEASE);
    s->diagnosis = why;
}

/* Takes the next rows of an open cursor in place of those that have been fetched. */
RC next_answer(Statement *s) {
    Reply r = reply_to(s);
    Bytes request = {0};
    s->text.used = s->cells.used = 0;
    s->rows = s->row = s->with_values = 0;
    put_u16(&request, SQ_ID);
    put_u16(&request, s->id);
    if (s->is_first && has_variable_columns(s)) put_result_types(&request, s);
    s->is_first = 0;
    put_fetch(&request);
    RC code = ask(&r, &request);
    if (code == OK) code = fetch_simple_objects(s);
    if (code != OK || !r.tuples || r.is_at_end) end_cursor(s);
    return code;
}

static RC open_only(Statement *s, int first) {
    Reply r = reply_to(s);
    Bytes request = {0};
    if (put_open(&request, s, first)) {
        forget(&request);
        return fail_with(s, -23103, NULL);
    }
    RC code = ask(&r, &request);
    s->is_open = s->is_first = code == OK;
    return code;
}

/* Rows of a fixed size are asked for together with the opening of the cursor. */
static RC open_and_fetch(Statement *s, int first) {
    Reply r = reply_to(s);
    Bytes request = {0};
    RC code = OK;
    if (put_open(&request, s, first)) {
        forget(&request);
        return fail_with(s, -23103, NULL);
    }
    if (has_variable_columns(s)) code = ask(&r, &request);
    for (int is_first = 1; code == OK; is_first = 0) {
        put_u16(&request, SQ_ID);
        put_u16(&request, s->id);
        if (is_first && has_variable_columns(s)) put_result_types(&request, s);
        put_fetch(&request);
        r.tuples = 0;
        code = ask(&r, &request);
        if (code == OK) code = fetch_simple_objects(s);
        if (!r.tuples || r.is_at_end || s->kind == KIND_EXECUTE_FUNCTION) break;
    }
    if (code == OK) code = say(s, SQ_CLOSE);
    return code;
}

/* The value of {? = call f(...)} goes into the first parameter. */
static RC give_value(Statement *s) {
    const Parameter *p = &s->parameter[0];
    const Cell *cell = (const Cell *)s->cells.bytes;
    if (!s->rows || !s->columns) return OK;
    RC code = copy_cell(s, 1, cell, p->c_type, p->value, p->room, p->indicator);
    s->given[0] = 0;
    return code;
}

static RC run_text(Statement *s, const char *sql, int first) {
    int given = s->parameters;
    RC code = begin_if_due(s);
    s->parameters -= first; /* what comes out is no parameter of the server's */
    if (code == OK) code = prepare(s, sql);
    s->parameters = given;
    if (code != OK) return code;
    int has_rows = s->kind == KIND_SELECT || s->kind == KIND_EXECUTE_FUNCTION;
    if (has_rows && s->columns && s->array > 1) {
        code = open_only(s, first);
        if (code == OK) return OK; /* it is released with its last row */
    } else {
        code = has_rows && s->columns ? open_and_fetch(s, first) : execute(s, first);
    }
    if (s->connection->stream.fd < 0) return code;
    Diagnosis why = s->diagnosis;
    RC released = say(s, SQ_RELEASE);
    if (code == OK) return released == OK && first ? give_value(s) : released;
    s->diagnosis = why;
    return code;
}

/* ---- the calls that ODBC writes in braces ---- */

/* {? = call f(...)} and {call f(...)} are written otherwise for a server. */
static RC run_call(Statement *s) {
    const char *at = s->sql + 1 + strspn(s->sql + 1, " ");
    int first = *at == '?';
    if (first) at += strspn(at, "? =");
    size_t length = strcspn(at, "}");
    if (strncasecmp(at, "call ", 5)) return fail(s, "42000", -11060, "This is no call of a routine.");
    char *sql = must_zeroed(length + 32, 1);
    snprintf(sql, length + 32, "execute function %.*s", (int)length - 5, at + 5);
    RC code = run_text(s, sql, first);
    free(sql);
    return code;
}

RC run(Statement *s) {
    Connection *c = s->connection;
    clear(s);
    drop_result(s);
    if (!s->sql) return fail(s, "HY010", -11067, "Function sequence error.");
    if (c->stream.fd < 0) return fail_with(s, -25582, NULL);
    if (c->lo_automatic && is_lo_call(s->sql))
        return fail(s, "HY000", -11060, "ifx_lo functions need SQL_INFX_ATTR_LO_AUTOMATIC off.");
    if (is_lo_call(s->sql)) return run_lo_call(s);
    return *s->sql == '{' ? run_call(s) : run_text(s, s->sql, 0);
}
