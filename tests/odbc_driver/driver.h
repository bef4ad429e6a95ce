/* The handles of the test driver, and the ODBC types and constants it uses (no ODBC headers). */
#ifndef DRIVER_H
#define DRIVER_H

#include "wire.h"

#include <iconv.h>
#include <pthread.h>

typedef short RC;             /* SQLRETURN */
typedef void *H;              /* SQLHANDLE, SQLPOINTER */
typedef short S;              /* SQLSMALLINT */
typedef unsigned short US;    /* SQLUSMALLINT */
typedef int I;                /* SQLINTEGER */
typedef long L;               /* SQLLEN */
typedef unsigned long UL;     /* SQLULEN */
typedef unsigned char CH;     /* SQLCHAR */

enum { OK = 0, INFO = 1, NODATA = 100, ERR = -1, INVALID = -2, NTS = -3 };
enum { HANDLE_ENV = 1, HANDLE_DBC = 2, HANDLE_STMT = 3 };
enum { NULL_DATA = -1, PARAM_INPUT = 1, PARAM_INPUT_OUTPUT = 2, PARAM_OUTPUT = 4 };
enum {
    TYPE_CHAR = 1, TYPE_LONG = 4, TYPE_SHORT = 5, TYPE_DOUBLE = 8, TYPE_VARCHAR = 12,
    TYPE_BINARY = -2, TYPE_LONGVARCHAR = -1, TYPE_LONGVARBINARY = -4, TYPE_BIGINT = -5, TYPE_TINY = -6, TYPE_BIT = -7, TYPE_WCHAR = -8,
    TYPE_SSHORT = -15, TYPE_SLONG = -16, TYPE_ULONG = -18, TYPE_SBIGINT = -25, TYPE_UBIGINT = -27,
    TYPE_DATE = 91, TYPE_TIMESTAMP = 93, TYPE_DEFAULT = 99
};
enum { MAX_PARAMETERS = 256, MAX_RECORDS = 4 };

typedef struct { char state[6]; I native; char text[2048]; } Record;
typedef struct { int count; Record record[MAX_RECORDS]; } Diagnosis;

/* Every handle begins with its diagnosis. */
typedef struct { Diagnosis diagnosis; } Any;
typedef struct {
    Diagnosis diagnosis;
    Stream stream;
    int login_seconds, receive_seconds;
    I autocommit, lo_automatic;
    int is_in_transaction;
    uint32_t cursors;         /* how many were opened: each has a name of its own */
    char server_version[64];
    char habit[16];           /* HABIT=...: how this connection misbehaves, see has_habit */
    iconv_t to_client, to_server; /* NULL where both are the same code set */
    pthread_mutex_t closing;  /* SQLCancel may come from another thread */
} Connection;
typedef struct { S way, c_type; void *value; L room; L *indicator; } Parameter;
typedef struct {
    char name[129];
    S type;                   /* as SQLDescribeColW shows it: how pyodbc is to fetch it */
    S sql_type;               /* as SQLDescribeCol shows it: by HCL's ODBC manual, ids_odbc_083 and 086 */
    uint32_t size;
    uint8_t code;             /* as the server describes it: type, encoded length, extended type */
    uint32_t encoded, extended_id, name_at;
} Column;
typedef struct { S year; US month, day, hour, minute, second; uint32_t nanosecond; } Timestamp;
typedef struct { S c_type; void *value; L room; L *indicator; } Bound; /* value NULL: not bound */
typedef struct { int32_t length; size_t at; } Cell; /* `at` in the statement's text */
typedef struct {
    Diagnosis diagnosis;
    Connection *connection;
    char *sql;
    Parameter parameter[MAX_PARAMETERS];
    int parameters;
    uint16_t kind, id;        /* what the server calls the statement that runs */
    int is_described, is_inconvertible;
    Bytes text;               /* of all cells */
    Bytes cells;              /* of Cell, row by row */
    Column *column;
    US columns;
    uint32_t rows, row;       /* `row` counts the fetched ones */
    uint32_t with_values;     /* rows whose TEXT and BYTE have been asked for */
    L row_count;
    L *given;                 /* per column: units that SQLGetData has handed out */
    UL array;                 /* rows of a fetch; above 1 answers are taken as rows are asked for */
    UL *fetched;
    US *status;
    Bound bound[MAX_PARAMETERS];
    int is_open, is_first;    /* a cursor whose rows have not all been asked for */
} Statement;

/* driver.c */
RC fail(H handle, const char *state, I native, const char *text);
void clear(H handle);
void drop_result(Statement *s);
void hang_up(Connection *c);
int has_habit(S kind, H h, const char *habit);
void set_length(S *target, size_t length);
void set_text(void *target, S room, const char *text);
const Record *record_of(H h, S number);
const char *info_text(const Connection *c, US what);
/* connection_string.c */
const char *connection_value(const char *text, const char *key, char *out, size_t room);
/* code_sets.c */
RC open_code_sets(Connection *c, const char *text);
void close_code_sets(Connection *c);
/* Appends a text in the other code set; -1 where it has no such character. */
int put_converted(Bytes *to, iconv_t way, const char *bytes, size_t count);
/* error_texts.c */
RC fail_with(H handle, I native, const char *argument);
RC fail_with_isam(H handle, I native, I isam, const char *argument);
/* login.c: everything up to an open database */
RC log_in(Connection *c, const char *text);
void log_out(Connection *c);
/* messages.c */
typedef struct {
    Connection *connection;
    H handle;                 /* who is told of errors */
    Statement *statement;     /* who takes columns and rows; NULL: nobody */
    Bytes *routine;           /* what the fast path answers with; NULL: nowhere */
    Bytes *simple;            /* what takes the value of a TEXT or BYTE; NULL: nothing */
    Parameter *room;          /* what a read of a large object goes into; NULL: nowhere */
    I native, isam;           /* of an error */
    Bytes argument;
    uint32_t tuples, rows;    /* rows that came, and what SQ_DONE counts */
    Bytes features;           /* SQ_PROTOCOLS */
    int is_at_end;            /* the cursor was closed with its last row */
} Reply;
/* Sends the request, closed by SQ_EOT, and receives what it is answered with. */
RC ask(Reply *r, Bytes *request);
RC lost(Connection *c, H handle);
/* values.c */
int know_type(Column *c); /* 0: no value of this type can be read */
void add_row(Statement *s, const unsigned char *tuple, size_t size, Stream *stream);
const char *cell_text(const Statement *s, const Cell *c);
/* packed.c: the text of packed decimals; 0 or -1 where there is no such value */
int print_decimal(Bytes *to, const unsigned char *packed, size_t size, unsigned scale);
int print_fields(Bytes *to, const unsigned char *packed, size_t size, uint32_t qualifier, int pads);
/* parameters.c */
int put_parameter(Bytes *to, const Connection *c, const Parameter *p);
long integer_of(const Parameter *p);
/* exchange.c */
RC run(Statement *s);
RC end_transaction(Connection *c, int is_commit);
RC next_answer(Statement *s);
void end_cursor(Statement *s);
/* large_objects.c */
int is_lo_call(const char *sql);
RC run_lo_call(Statement *s);
/* simple_objects.c: TEXT and BYTE, whose values are asked for while the cursor stands on their rows */
enum { CODE_BYTE = 11, CODE_TEXT = 12, DESCRIPTOR_BYTES = 56 };
RC fetch_simple_objects(Statement *s);
/* blocks.c */
RC fetch_block(Statement *s);
int is_bound(const Statement *s);
/* results.c */
RC copy_cell(Statement *s, US number, const Cell *c, S c_type, H buffer, L room, L *indicator);

/* the functions of ODBC that others of the driver call */
PUBLIC RC SQLDriverConnect(H h, H window, CH *in, S in_length, CH *out, S room, S *length, US way);
PUBLIC RC SQLPrepare(H h, CH *sql, I length);
PUBLIC RC SQLGetInfo(H h, US what, H value, S room, S *length);
PUBLIC RC SQLSetConnectAttr(H h, I attribute, H v, I n);
PUBLIC RC SQLGetDiagField(S kind, H h, S number, S field, H value, S room, S *length);
PUBLIC RC SQLDescribeCol(H h, US number, CH *name, S room, S *length, S *type, UL *size, S *digits,
                         S *nullable);

#endif
