/* From the database's code set to the client's and back, as a client library does it: the server
 * sends a database's bytes as they are (IBM's JDBC driver decodes by DB_LOCALE alone). */
#include "driver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A locale names its code set by name or by IBM's number (GLS guide). */
static const struct { const char *name, *of_iconv; } CODE_SETS[] = {
    {"utf8", "UTF-8"},           {"57372", "UTF-8"},       {"utf-8", "UTF-8"},
    {"8859-1", "ISO-8859-1"},    {"819", "ISO-8859-1"},    {"8859-2", "ISO-8859-2"},
    {"912", "ISO-8859-2"},       {"8859-5", "ISO-8859-5"}, {"915", "ISO-8859-5"},
    {"8859-7", "ISO-8859-7"},    {"813", "ISO-8859-7"},    {"8859-9", "ISO-8859-9"},
    {"920", "ISO-8859-9"},       {"8859-15", "ISO-8859-15"}, {"923", "ISO-8859-15"},
    {"57390", "GB18030"},        {"5488", "GB18030"},      {"gb18030-2000", "GB18030"},
    {"cp1250", "CP1250"},        {"1250", "CP1250"},       {"cp1251", "CP1251"},
    {"1251", "CP1251"},          {"cp1252", "CP1252"},     {"1252", "CP1252"},
    {"33", "ASCII"},
};

static const char *code_set_of(const char *locale) {
    char name[64];
    const char *dot = strchr(locale, '.');
    snprintf(name, sizeof name, "%s", dot ? dot + 1 : "");
    name[strcspn(name, "@")] = 0;
    for (size_t i = 0; i < sizeof CODE_SETS / sizeof *CODE_SETS; i++)
        if (!strcasecmp(name, CODE_SETS[i].name)) return CODE_SETS[i].of_iconv;
    return NULL;
}

static int is_open(iconv_t way) { return way && way != (iconv_t)-1; }

void close_code_sets(Connection *c) {
    if (is_open(c->to_client)) iconv_close(c->to_client);
    if (is_open(c->to_server)) iconv_close(c->to_server);
    c->to_client = c->to_server = NULL;
}

RC open_code_sets(Connection *c, const char *text) {
    char client[64], database[64];
    close_code_sets(c);
    connection_value(text, "CLIENT_LOCALE", client, sizeof client);
    connection_value(text, "DB_LOCALE", database, sizeof database);
    if (!*client || !*database) return OK; /* then nothing is known that could be converted */
    const char *here = code_set_of(client), *there = code_set_of(database);
    if (!here || !there) return fail_with(c, -23101, NULL);
    if (!strcmp(here, there)) return OK;
    c->to_client = iconv_open(here, there);
    c->to_server = iconv_open(there, here);
    return is_open(c->to_client) && is_open(c->to_server) ? OK : fail_with(c, -23101, NULL);
}

int put_converted(Bytes *to, iconv_t way, const char *bytes, size_t count) {
    char piece[4096], *in = (char *)bytes;
    if (!is_open(way)) {
        put_bytes(to, bytes, count);
        return 0;
    }
    iconv(way, NULL, NULL, NULL, NULL);
    while (count) {
        char *out = piece;
        size_t room = sizeof piece;
        size_t done = iconv(way, &in, &count, &out, &room);
        put_bytes(to, piece, sizeof piece - room);
        if (done == (size_t)-1 && errno != E2BIG) return -1; /* no such character over there */
    }
    return 0;
}
