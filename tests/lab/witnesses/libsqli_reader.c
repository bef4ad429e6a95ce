/* Runs statements through libsqli and prints what comes back, a JSON object a line.
 *
 * Rule: a line of standard input is a statement; transactions are begun and ended by SQL too, as libsqli's
 * own tool does. Every value is printed as libsqli's own text for its type.
 *
 *     libsqli_reader HOST PORT SERVER DATABASE USER PASSWORD
 */
#include <libsqli/sqli.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LINE_BYTES = 65536, TEXT_BYTES = 40000 };

static void quote(const char *text)
{
    putchar('"');
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            printf("\\%c", *text);
        else if ((unsigned char)*text < ' ')
            printf("\\u%04x", *text);
        else
            putchar(*text);
    }
    putchar('"');
}

static const char *text_of(sqli_result_t *row, int column)
{
    static char text[TEXT_BYTES];
    size_t length = sizeof text;

    switch (sqli_result_column_type(row, column) & 0xff) {
    case SQLI_TYPE_SMALLINT:
    case SQLI_TYPE_INT:
    case SQLI_TYPE_SERIAL:
    case SQLI_TYPE_INT8:
    case SQLI_TYPE_SERIAL8:
    case SQLI_TYPE_BIGINT:
    case SQLI_TYPE_BIGSERIAL:
        snprintf(text, sizeof text, "%" PRId64, sqli_result_get_int64(row, column));
        return text;
    case SQLI_TYPE_FLOAT:
    case SQLI_TYPE_SMFLOAT:
        snprintf(text, sizeof text, "%.17g", sqli_result_get_double(row, column));
        return text;
    case SQLI_TYPE_DECIMAL:
    case SQLI_TYPE_MONEY:
        return sqli_result_get_decimal_string(row, column);
    case SQLI_TYPE_DATE:
        return sqli_result_get_date_string(row, column);
    case SQLI_TYPE_DATETIME:
        return sqli_result_get_datetime_string(row, column);
    case SQLI_TYPE_INTERVAL:
        return sqli_result_get_interval_string(row, column);
    case SQLI_TYPE_BOOL:
    case SQLI_TYPE_DBOOLEAN:
        return sqli_result_get_bool(row, column) ? "true" : "false";
    default:
        return sqli_result_get_string_len(row, column, text, &length) == SQLI_OK ? text : NULL;
    }
}

static void print_row(sqli_result_t *row)
{
    putchar('[');
    for (int column = 0; column < sqli_result_columns(row); column++) {
        const char *text = sqli_result_is_null(row, column) ? NULL : text_of(row, column);
        if (column > 0)
            putchar(',');
        if (text == NULL)
            fputs("null", stdout);
        else
            quote(text);
    }
    putchar(']');
}

static void print_error(sqli_conn_t *connection)
{
    sqli_error_info facts;

    memset(&facts, 0, sizeof facts);
    sqli_error_get_info(connection, &facts);
    printf("{\"error\":{\"class\":\"libsqli\",\"code\":%d,\"isam\":%d,\"message\":", facts.sqlcode, facts.isamcode);
    quote(facts.message);
    puts("}}");
}

static void run(sqli_conn_t *connection, const char *sql)
{
    sqli_result_t *result = NULL;

    if (sqli_query(connection, sql, &result) != SQLI_OK) {
        print_error(connection);
        return;
    }
    fputs("{\"answer\":{\"rows\":[", stdout);
    if (result != NULL && sqli_result_columns(result) > 0)
        for (int rows = 0; sqli_result_next(result); rows++) {
            if (rows > 0)
                putchar(',');
            print_row(result);
        }
    printf("],\"count\":%" PRId64 "}}\n", result != NULL ? sqli_result_rows_affected(result) : 0);
    if (result != NULL)
        sqli_result_destroy(result);
}

int main(int count, char **arguments)
{
    static char line[LINE_BYTES];
    sqli_conn_t *connection = NULL;

    if (count != 7 || sqli_create(&connection) != SQLI_OK)
        return 2;
    sqli_connect_params where = {
        .hostname = arguments[1], .service = arguments[2], .server = arguments[3], .database = arguments[4],
        .username = arguments[5], .password = arguments[6],
        .client_locale = "en_US.utf8", .db_locale = "en_US.utf8",
    };
    if (sqli_connect(connection, &where) == SQLI_OK)
        puts("{\"answer\":null}");
    else
        print_error(connection);
    for (;;) {
        fflush(stdout);
        if (fgets(line, sizeof line, stdin) == NULL)
            break;
        line[strcspn(line, "\n")] = '\0';
        run(connection, line);
    }
    sqli_close(connection);
    sqli_destroy(connection);
    return 0;
}
