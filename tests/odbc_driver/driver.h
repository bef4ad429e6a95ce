/* The handles of the test driver, and the ODBC types and constants it uses (no ODBC headers). */
#ifndef DRIVER_H
#define DRIVER_H

#include "wire.h"

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
    TYPE_CHAR = 1, TYPE_LONG = 4, TYPE_SHORT = 5, TYPE_DOUBLE = 8, TYPE_BINARY = -2,
    TYPE_BIGINT = -5, TYPE_TINY = -6, TYPE_BIT = -7, TYPE_WCHAR = -8, TYPE_SSHORT = -15,
    TYPE_SLONG = -16, TYPE_ULONG = -18, TYPE_SBIGINT = -25, TYPE_UBIGINT = -27, TYPE_DEFAULT = 99
};
enum { MAX_PARAMETERS = 64, MAX_RECORDS = 4 };

typedef struct { char state[6]; I native; char text[2048]; } Record;
typedef struct { int count; Record record[MAX_RECORDS]; } Diagnosis;

/* Every handle begins with its diagnosis. */
typedef struct { Diagnosis diagnosis; } Any;
typedef struct {
    Diagnosis diagnosis;
    int fd, login_seconds, receive_seconds;
    I autocommit, lo_automatic;
    char habit[16];           /* HABIT=...: how this connection misbehaves, see habit_of */
    pthread_mutex_t sending;  /* SQLCancel may come from another thread */
} Connection;
typedef struct { S way, c_type; void *value; L room; L *indicator; } Parameter;
typedef struct { char name[129]; S type; uint32_t size; } Column;
typedef struct { int32_t length; const char *text; } Cell;
typedef struct {
    Diagnosis diagnosis;
    Connection *connection;
    char *sql;
    Parameter parameter[MAX_PARAMETERS];
    int parameters;
    char *header;             /* the answer; cells point into it */
    Column *column;
    US columns;
    Cell *cell;
    uint32_t rows, row;       /* `row` counts the fetched ones */
    L row_count;
    L *given;                 /* per column: units that SQLGetData has handed out */
} Statement;

RC fail(H handle, const char *state, I native, const char *text);
void clear(H handle);
const char *connection_value(const char *text, const char *key, char *out, size_t room);
RC run(Statement *s);
RC answer(Connection *c, H handle, Statement *s);
void drop_result(Statement *s);

#endif
