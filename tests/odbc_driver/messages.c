/* What a server answers: a run of messages, each a code and its fields, up to SQ_EOT. They have no outer
 * length, so a message that is not known, and a field that cannot be, end the connection.
 *
 * The layouts are those that IBM's JDBC driver understands once the bits of `login.c` are agreed on. */
#include "driver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SQ_DESCRIBE = 8, SQ_CLOSE = 10, SQ_EOT = 12, SQ_ERR = 13, SQ_TUPLE = 14, SQ_DONE = 15, SQ_BLOB = 39, SQ_EXIT = 56,
    SQ_COST = 55, SQ_INSERTDONE = 94, SQ_LODATA = 97, SQ_XACTSTAT = 99, SQ_GETROUTINE = 101,
    SQ_FPROUTINE = 103, SQ_PROTOCOLS = 126
};
enum {
    MAX_MESSAGES = 1 << 20, MAX_RESULT = 64 << 20, MAX_COLUMNS = 4096, MAX_NAMES = 1 << 20,
    MAX_ROWS = 1 << 20
};

RC lost(Connection *c, H handle) {
    int is_late = errno == EAGAIN || errno == EWOULDBLOCK;
    char text[256];
    const char *nonsense = c->stream.nonsense;
    if (nonsense) snprintf(text, sizeof text, "[Informix]The server's answer is malformed: %s.", nonsense);
    hang_up(c);
    return nonsense ? fail(handle, "HY000", -408, text)
         : is_late  ? fail(handle, "HYT00", -11094, "Time-out expired.")
                    : fail_with(handle, -25582, NULL);
}

/* ---- SQ_DESCRIBE ---- */

static void take_column(Stream *s, Column *c) {
    c->name_at = take_u32(s);
    take_u32(s); /* its place in the tuple: values are found by what is before them */
    c->code = (uint8_t)take_u16(s);
    c->extended_id = take_u32(s);
    for (int owner_and_name = 0; owner_and_name < 2; owner_and_name++) {
        uint16_t count = take_u16(s);
        take_nothing_of(s, count + (count & 1u));
    }
    take_nothing_of(s, 2 + 2 + 4);
    c->encoded = take_u32(s);
}

static void take_names(Stream *s, Statement *to, uint32_t count) {
    Bytes names = {0};
    take_bytes(s, &names, count);
    take_nothing_of(s, count & 1);
    put_bytes(&names, "", 1);
    for (int i = 0; i < to->columns && is_sound(s); i++) {
        Column *c = &to->column[i];
        if (c->name_at >= names.used) refuse(s, "a column without a name");
        else snprintf(c->name, sizeof c->name, "%s", names.bytes + c->name_at);
        if (!know_type(c)) refuse(s, "a column of an unknown type");
    }
    forget(&names);
}

static void take_describe(Reply *r) {
    Stream *s = &r->connection->stream;
    Statement *to = r->statement;
    if (!to || to->is_described) return refuse(s, "a description of nothing");
    to->is_described = 1;
    to->kind = take_u16(s);
    to->id = take_u16(s);
    take_nothing_of(s, 4 + 2); /* cost, size of a tuple */
    to->columns = take_u16(s);
    uint32_t names = take_u32(s);
    if (to->columns > MAX_COLUMNS || names > MAX_NAMES) {
        to->columns = 0;
        return refuse(s, "a description that is too long");
    }
    to->column = must_zeroed(to->columns, sizeof(Column));
    to->given = must_zeroed(to->columns, sizeof(L));
    for (int i = 0; i < to->columns && is_sound(s); i++) take_column(s, &to->column[i]);
    take_names(s, to, names);
}

/* ---- the others ---- */

static void take_tuple(Reply *r) {
    Stream *s = &r->connection->stream;
    Statement *to = r->statement;
    Bytes tuple = {0};
    take_u16(s);
    uint32_t count = take_u32(s);
    if (!to || !to->columns) return refuse(s, "a row of nothing");
    if (count > MAX_RESULT || to->text.used > MAX_RESULT || to->rows >= MAX_ROWS)
        return refuse(s, "a result without end");
    take_bytes(s, &tuple, count);
    take_nothing_of(s, count & 1);
    if (is_sound(s)) add_row(to, (unsigned char *)tuple.bytes, count, s);
    forget(&tuple);
    r->tuples++;
}

static void take_done(Reply *r) {
    Stream *s = &r->connection->stream;
    take_u16(s);
    r->rows = take_u32(s);
    take_nothing_of(s, 4 + 4); /* rowid, serial */
}

static void take_error(Reply *r) {
    Stream *s = &r->connection->stream;
    int is_first = !r->native && !r->isam;
    I native = (int16_t)take_u16(s), isam = (int16_t)take_u16(s);
    take_u32(s); /* where in the statement */
    if (is_first) {
        r->native = native;
        r->isam = isam;
    }
    Bytes unused = {0}, *argument = is_first ? &r->argument : &unused;
    take_char(s, argument);
    forget(&unused);
    if (is_first && !native && !isam && is_sound(s)) refuse(s, "an error without a number");
}

/* Lets the bytes go straight from the socket into the bound buffer; what does not fit is left out. */
static void take_large_object(Reply *r) {
    Stream *s = &r->connection->stream;
    Parameter *to = r->room;
    take_u16(s);
    uint32_t count = take_u32(s), kept = 0, room;
    if (!to) return refuse(s, "a large object that was not asked for");
    if (count > INT32_MAX) return refuse(s, "a large object of a negative size");
    room = to->room < 0 ? 0 : to->room > INT32_MAX ? INT32_MAX : (uint32_t)to->room;
    if (!count) take_u16(s);
    for (uint32_t left = count; left && is_sound(s);) {
        uint16_t chunk = take_u16(s);
        if (!chunk || chunk > left) return refuse(s, "a piece of a large object that does not fit");
        uint32_t fits = room - kept < chunk ? room - kept : chunk;
        take_into(s, (char *)to->value + kept, fits);
        take_nothing_of(s, chunk - fits + (chunk & 1u));
        kept += fits;
        left -= chunk;
    }
    if (to->indicator) *to->indicator = (L)count;
}

/* A chunk of a TEXT or BYTE. */
static void take_simple_object(Reply *r) {
    Stream *s = &r->connection->stream;
    uint16_t count = take_u16(s);
    if (!r->simple) return refuse(s, "a value that was not asked for");
    if (r->simple->used > MAX_RESULT) return refuse(s, "a value without end");
    take_bytes(s, r->simple, count);
    take_nothing_of(s, count & 1);
}

static void take_features(Reply *r) {
    r->features.used = 0;
    take_char(&r->connection->stream, &r->features);
}

/* The database and the number of a routine, as a call of it names them. */
static void take_routine(Reply *r) {
    Stream *s = &r->connection->stream;
    Bytes database = {0};
    if (!r->routine) return refuse(s, "a routine that was not asked for");
    take_char(s, &database);
    put_char(r->routine, database.bytes, database.used);
    put_u32(r->routine, take_u32(s));
    forget(&database);
}

/* The one value that a routine returns: a number, or an opaque value with its type's owner and name, and a
 * length. */
static void take_returned(Reply *r) {
    enum { SQ_INTEGER = 2, SQ_OPAQUE = 40, MAX_VALUE = 4096 };
    Stream *s = &r->connection->stream;
    if (!r->routine || take_u16(s) != 1) return refuse(s, "values of a routine that nobody called");
    uint16_t type = take_u16(s);
    if (type == SQ_OPAQUE) {
        take_char(s, r->routine);
        take_char(s, r->routine);
    }
    take_nothing_of(s, 2 + 2); /* indicator, precision */
    uint32_t count = 4;
    if (type == SQ_OPAQUE) count = take_u32(s);
    else if (type != SQ_INTEGER) return refuse(s, "a value of a routine of an unknown type");
    if (count > MAX_VALUE) return refuse(s, "a value of a routine that is too long");
    r->routine->used = 0;
    take_bytes(s, r->routine, count);
}

static void take_cost(Reply *r) { take_nothing_of(&r->connection->stream, 4 + 4); }
static void take_transaction_state(Reply *r) { take_nothing_of(&r->connection->stream, 3 * 2); }
static void take_insert_done(Reply *r) { take_nothing_of(&r->connection->stream, 10 + 8); }
static void take_close(Reply *r) { r->is_at_end = 1; }

static const struct { uint16_t code; void (*take)(Reply *); } MESSAGES[] = {
    {SQ_DESCRIBE, take_describe},     {SQ_CLOSE, take_close},   {SQ_ERR, take_error},
    {SQ_TUPLE, take_tuple},           {SQ_DONE, take_done},     {SQ_COST, take_cost},
    {SQ_INSERTDONE, take_insert_done}, {SQ_LODATA, take_large_object},
    {SQ_BLOB, take_simple_object},
    {SQ_GETROUTINE, take_routine},    {SQ_FPROUTINE, take_returned},
    {SQ_XACTSTAT, take_transaction_state}, {SQ_PROTOCOLS, take_features},
};

static void take_message(Reply *r, uint16_t code) {
    for (size_t i = 0; i < sizeof MESSAGES / sizeof *MESSAGES; i++)
        if (MESSAGES[i].code == code) return MESSAGES[i].take(r);
    refuse(&r->connection->stream, "a message of an unknown kind");
}

static void take_all(Reply *r) {
    Stream *s = &r->connection->stream;
    for (int messages = 0; messages < MAX_MESSAGES; messages++) {
        uint16_t code = take_u16(s);
        if (!is_sound(s) || code == SQ_EOT) return;
        take_message(r, code);
    }
    refuse(s, "an answer without end");
}

static RC judge(Reply *r) {
    Bytes argument = {0};
    RC code = OK;
    if (r->native || r->isam) {
        put_converted(&argument, r->connection->to_client, r->argument.bytes, r->argument.used);
        put_bytes(&argument, "", 1);
        code = fail_with_isam(r->handle, r->native, r->isam, argument.bytes);
        forget(&argument);
    } else if (r->statement && r->statement->is_inconvertible) {
        code = fail_with(r->handle, -23103, NULL);
    }
    return code;
}

RC ask(Reply *r, Bytes *request) {
    Connection *c = r->connection;
    if (c->stream.fd < 0) {
        forget(request);
        return fail_with(r->handle, -25582, NULL);
    }
    put_u16(request, SQ_EOT);
    if (!send_bytes(&c->stream, request)) take_all(r);
    RC code = is_sound(&c->stream) ? judge(r) : lost(c, r->handle);
    forget(&r->argument);
    return code;
}
