/* The calls on smart large objects: {call ifx_lo_read(?, ?)} and the others of the ODBC Driver Programmer's
 * Manual, "Working with smart large objects". A read is SQ_LODATA, also of a capture session; the others go
 * by the fast path: a routine is asked for by its signature, then called (gbase8sdb 1.1.1). */
#include "driver.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { SQ_BIND = 5, SQ_LODATA = 97, SQ_GETROUTINE = 101, SQ_EXFPROUTINE = 102 };
enum { SQ_INTEGER = 2, SQ_OPAQUE_BIND = 44, OF_INTEGER = 0x0a00 };
enum { CHUNK_BYTES = 32000, LAST_DESCRIPTOR = UINT16_MAX, LOCATOR_BYTES = 72, STAT_BYTES = 644, SIZE_AT = 4 };

/* Behind "{call " or "{? = call ". */
static const char *name_of_call(const char *sql) {
    const char *at = sql + strspn(sql, "{ ?=");
    return strncasecmp(at, "call", 4) ? "" : at + 4 + strspn(at + 4, " ");
}

int is_lo_call(const char *sql) {
    return *sql == '{' && strncasecmp(name_of_call(sql), "ifx_lo_", 7) == 0;
}

static RC misused(Statement *s) {
    return fail(s, "07006", -11013, "Restricted data type attribute violation.");
}

static int comes_out(const Parameter *p) { return p->way != PARAM_INPUT && p->room >= 0; }

static RC read_large_object(Statement *s) {
    Reply r = {.connection = s->connection, .handle = s, .statement = s};
    Bytes request = {0};
    char number[32];
    if (s->parameters != 2 || !comes_out(&s->parameter[1])) return misused(s);
    long descriptor = integer_of(&s->parameter[0]);
    snprintf(number, sizeof number, "%ld", descriptor);
    if (descriptor < 0 || descriptor > LAST_DESCRIPTOR) return fail_with(s, -12008, number);
    r.room = &s->parameter[1];
    put_u16(&request, SQ_LODATA);
    put_u16(&request, 0); /* read on */
    put_u16(&request, (uint16_t)descriptor);
    put_u32(&request, (uint32_t)s->parameter[1].room);
    put_u16(&request, CHUNK_BYTES);
    return ask(&r, &request);
}

/* ---- the fast path ---- */

static void put_integer(Bytes *to, long value) {
    put_u16(to, SQ_INTEGER);
    put_u16(to, 0);
    put_u16(to, OF_INTEGER);
    put_u32(to, (uint32_t)value);
}

static void put_opaque(Bytes *to, const char *type, const void *value, uint32_t count) {
    put_u16(to, SQ_OPAQUE_BIND);
    put_u16(to, 0); /* the owner of the type */
    put_char(to, type, strlen(type));
    put_u16(to, 0);
    put_u16(to, 0);
    put_u32(to, count);
    put_bytes(to, value, count);
    if (count & 1) put_bytes(to, "", 1);
}

/* Calls a routine; `found` is its value as bytes. */
static RC call_routine(Statement *s, const char *signature, int count, Bytes *values, Bytes *found) {
    Reply r = {.connection = s->connection, .handle = s, .routine = found};
    Bytes request = {0};
    put_u16(&request, SQ_GETROUTINE);
    put_bytes(&request, "", 1);
    put_u32(&request, (uint32_t)strlen(signature));
    put_bytes(&request, signature, strlen(signature));
    if (strlen(signature) & 1) put_bytes(&request, "", 1);
    put_u16(&request, 0);
    RC code = ask(&r, &request);
    if (code == OK) {
        put_u16(&request, SQ_EXFPROUTINE);
        put_bytes(&request, found->bytes, found->used); /* the database, the routine's number */
        put_u16(&request, (uint16_t)count);
        put_u16(&request, 0);
        put_u16(&request, SQ_BIND);
        put_u16(&request, (uint16_t)count);
        put_bytes(&request, values->bytes, values->used);
        code = ask(&r, &request);
    }
    forget(values);
    return code;
}

static long integer_in(const Bytes *found) {
    const unsigned char *at = (const unsigned char *)found->bytes;
    return found->used < 4 ? -1 : (int32_t)((uint32_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3]);
}

/* {call ifx_lo_open(?, ?, ?)}: descriptor out, locator in, flags in. */
static RC open_large_object(Statement *s) {
    Bytes values = {0}, found = {0};
    const Parameter *out = &s->parameter[0], *locator = &s->parameter[1];
    if (s->parameters != 3 || !comes_out(out) || locator->way != PARAM_INPUT) return misused(s);
    if (!locator->indicator || *locator->indicator != LOCATOR_BYTES) return misused(s);
    put_opaque(&values, "blob", locator->value, LOCATOR_BYTES);
    put_integer(&values, integer_of(&s->parameter[2]));
    RC code = call_routine(s, "function informix.ifx_lo_open(blob, integer)", 2, &values, &found);
    if (code == OK) {
        *(int32_t *)out->value = (int32_t)integer_in(&found);
        if (out->indicator) *out->indicator = sizeof(int32_t);
    }
    forget(&found);
    return code;
}

static RC close_large_object(Statement *s) {
    Bytes values = {0}, found = {0};
    if (s->parameters != 1) return misused(s);
    put_integer(&values, integer_of(&s->parameter[0]));
    RC code = call_routine(s, "function informix.ifx_lo_close(integer)", 1, &values, &found);
    forget(&found);
    return code;
}

/* {call ifx_lo_stat(?, ?)}: descriptor in, a structure in and out whose size SQLGetInfo tells. */
static RC stat_large_object(Statement *s) {
    Bytes values = {0}, found = {0};
    const Parameter *out = &s->parameter[1];
    if (s->parameters != 2 || !comes_out(out) || out->room < STAT_BYTES) return misused(s);
    put_integer(&values, integer_of(&s->parameter[0]));
    static const char NOTHING[STAT_BYTES];
    put_opaque(&values, "ifx_lo_stat", NOTHING, STAT_BYTES);
    RC code = call_routine(s, "function informix.ifx_lo_stat(integer, ifx_lo_stat)", 2, &values, &found);
    if (code == OK) {
        memset(out->value, 0, STAT_BYTES);
        if (found.used) memcpy(out->value, found.bytes, found.used < STAT_BYTES ? found.used : STAT_BYTES);
        if (out->indicator) *out->indicator = STAT_BYTES;
    }
    forget(&found);
    return code;
}

/* {call ifx_lo_stat_size(?, ?)}: such a structure in, a BIGINT out; the server is not asked. */
static RC size_of_large_object(Statement *s) {
    const Parameter *in = &s->parameter[0], *out = &s->parameter[1];
    if (s->parameters != 2 || !comes_out(out) || in->way != PARAM_INPUT) return misused(s);
    uint64_t size = 0;
    static const int PLACES[] = {4, 5, 6, 7, 0, 1, 2, 3}; /* two words of big-endian bytes, the lower first */
    for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++)
        size = size << 8 | ((unsigned char *)in->value)[SIZE_AT + PLACES[i]];
    *(int64_t *)out->value = (int64_t)size;
    if (out->indicator) *out->indicator = sizeof(int64_t);
    return OK;
}

static const struct { const char *name; RC (*run)(Statement *); } CALLS[] = {
    {"ifx_lo_read(", read_large_object},      {"ifx_lo_open(", open_large_object},
    {"ifx_lo_close(", close_large_object},    {"ifx_lo_stat(", stat_large_object},
    {"ifx_lo_stat_size(", size_of_large_object},
};

RC run_lo_call(Statement *s) {
    const char *name = name_of_call(s->sql);
    for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++)
        if (strncasecmp(name, CALLS[i].name, strlen(CALLS[i].name)) == 0) return CALLS[i].run(s);
    return fail(s, "42000", -11060, "There is no such function on smart large objects.");
}
