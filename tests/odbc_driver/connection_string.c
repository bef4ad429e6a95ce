/* A connection string, KEY=value;KEY=value: of a key that comes twice the first counts, and a value
 * that holds a semicolon stands in braces, where }} is a brace (ODBC, SQLDriverConnect). */
#include "driver.h"

#include <string.h>
#include <strings.h>

static const char *after(const char *at, const char *signs) { return at + strspn(at, signs); }

/* Copies a value in braces; returns the place behind it. */
static const char *braced(const char *at, char *out, size_t room) {
    size_t used = 0;
    for (at++; *at; at++) {
        if (*at == '}' && *++at != '}') break;
        if (used + 1 < room) out[used++] = *at;
    }
    if (room) out[used] = 0;
    return at;
}

static const char *bare(const char *at, char *out, size_t room) {
    size_t length = strcspn(at, ";"), kept = length;
    while (kept && strchr(" \t", at[kept - 1])) kept--;
    if (kept + 1 > room) kept = room ? room - 1 : 0;
    if (room) {
        memcpy(out, at, kept);
        out[kept] = 0;
    }
    return at + length;
}

const char *connection_value(const char *text, const char *key, char *out, size_t room) {
    size_t length = strlen(key);
    out[0] = 0;
    for (const char *at = after(text, "; \t"); *at; at = after(at, "; \t")) {
        int is_it = !strncasecmp(at, key, length) && *after(at + length, " \t") == '=';
        at += strcspn(at, "=;");
        if (*at != '=') continue;
        at = after(at + 1, " \t");
        at = (*at == '{' ? braced : bare)(at, out, is_it ? room : 0);
        if (is_it) return out;
        at += strcspn(at, ";");
    }
    return out;
}
