/* The way in: the login packet and its answer, the protocols that both speak, the open database.
 *
 * The login packet and SQ_INFO are those of IBM's JDBC driver. A redirect is followed, at most so often. */
#include "driver.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { LOGIN_REQUEST = 1, LOGIN_ACCEPTED = 2, LOGIN_REFUSED = 3, LOGIN_REDIRECTED = 13 };
enum { LOGIN_HEAD = 6, SQ_EXIT = 56, MAX_HOPS = 3, GOODBYE_MILLISECONDS = 2000 };

/* What this driver implements of the protocols' bits, which are those of JDBC 4.50 but for bit 44 (PAM) and
 * 59. Bit 62 makes lengths of 32 bits, and without it nothing is understood here. A server answers with its
 * own bits; those that were not offered are not in force. */
static const char OFFER[] = "\xff\xfc\x7f\xfc\x3c\x84\xaa\x87";
enum { OFFERED = sizeof OFFER - 1, LONG_LENGTHS_BYTE = 7, LONG_LENGTHS = 0x02 };

typedef struct { char host[256], service[64], server[129], user[129], password[256]; } Place;

static void put_fixed(Bytes *b, const char *text, size_t count) {
    char field[16] = {0};
    snprintf(field, sizeof field, "%s", text);
    put_bytes(b, field, count);
}

/* Nothing is said of a user that the server is to know by itself. */
static void put_name(Bytes *b, const char *name) {
    if (*name) put_asc(b, name);
    else put_u16(b, 0);
}

static void put_environment(Bytes *b, const char *text) {
    static const char *const KEYS[] = {"CLIENT_LOCALE", "DB_LOCALE", "DELIMIDENT"};
    char value[128];
    Bytes pairs = {0};
    uint16_t count = 2;
    put_asc(&pairs, "DBPATH");
    put_asc(&pairs, ".");
    put_asc(&pairs, "IFX_UPDDESC");
    put_asc(&pairs, "1");
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        if (!*connection_value(text, KEYS[i], value, sizeof value)) continue;
        put_asc(&pairs, KEYS[i]);
        put_asc(&pairs, value);
        count++;
    }
    put_u16(b, 106);
    put_u16(b, count);
    put_bytes(b, pairs.bytes, pairs.used);
    forget(&pairs);
}

static void put_client(Bytes *b) {
    char host[128] = "", folder[256] = "/";
    gethostname(host, sizeof host - 1);
    if (!getcwd(folder, sizeof folder)) strcpy(folder, "/");
    put_u16(b, 107);
    put_u32(b, 0);
    put_u32(b, (uint32_t)getpid());
    put_u32(b, 0);
    put_asc(b, host);
    put_u16(b, 0); /* no terminal */
    put_asc(b, folder);
    put_u16(b, 116);
    put_u16(b, 4 + 4 + 2 + sizeof "odbc");
    put_u32(b, 0);
    put_u32(b, 0);
    put_asc(b, "odbc");
}

static void put_login(Bytes *b, const Place *to, const char *text) {
    put_u16(b, 100);
    put_u16(b, 101);
    put_u32(b, 61);
    put_asc(b, "IEEEM");
    put_u16(b, 108);
    put_fixed(b, "sqlexec", 12);
    put_asc(b, "9.280");
    put_asc(b, "RDS#R000000");
    put_asc(b, "sqli");
    put_u32(b, 0x13c);
    put_u32(b, 0);
    put_u32(b, 0);
    put_u16(b, 1);
    put_name(b, to->user);
    put_name(b, to->password);
    put_fixed(b, "ol", 8);
    put_u32(b, 61);
    put_fixed(b, "tlitcp", 8);
    put_u32(b, 1);
    put_u16(b, 104);
    put_u16(b, 11);
    put_u32(b, 3);
    put_asc(b, to->server);
    for (int i = 0; i < 5; i++) put_u16(b, 0); /* no database yet */
    put_environment(b, text);
    put_client(b);
    put_u16(b, 127);
}

static int send_login(Stream *s, const Place *to, const char *text) {
    Bytes body = {0}, packet = {0};
    put_login(&body, to, text);
    put_u16(&packet, (uint16_t)(body.used + LOGIN_HEAD));
    put_u16(&packet, LOGIN_REQUEST << 8 | 60);
    put_u16(&packet, 0);
    put_bytes(&packet, body.bytes, body.used);
    forget(&body);
    return send_bytes(s, &packet);
}

/* ---- the answer ---- */

typedef struct { int kind; char version[64], address[256]; I service_error, system_error; } Welcome;

static void next_asc(Cursor *c, char *out, size_t room) {
    uint16_t count = next_u16(c);
    const unsigned char *bytes = next_bytes(c, count);
    snprintf(out, room, "%.*s", bytes ? count : 0, bytes ? (const char *)bytes : "");
}

static void read_welcome(Welcome *w, Cursor *c) {
    char unused[64];
    next_bytes(c, 2 + 2 + 4);
    next_asc(c, unused, sizeof unused);
    next_bytes(c, 2 + 12);
    next_asc(c, w->version, sizeof w->version);
    next_asc(c, unused, sizeof unused); /* its serial number */
    next_asc(c, unused, sizeof unused); /* its name */
    next_bytes(c, 3 * 4 + 3 * 2 + 8 + 4 + 8 + 4);
    uint16_t part = next_u16(c);
    next_u16(c);
    if (part == 103) {
        next_asc(c, w->address, sizeof w->address);
    } else {
        next_u32(c);
        w->service_error = (int16_t)next_u16(c);
        w->system_error = (int16_t)next_u16(c);
        c->is_bad |= part != 102; /* what comes after the warnings is skipped: a server may add parts */
    }
}

static void take_welcome(Stream *s, Welcome *w) {
    Bytes body = {0};
    uint16_t count = take_u16(s);
    w->kind = take_u16(s) >> 8;
    take_u16(s);
    if (is_sound(s) && count < LOGIN_HEAD) refuse(s, "an answer to the login that is too short");
    if (is_sound(s)) take_bytes(s, &body, (size_t)(count - LOGIN_HEAD));
    Cursor c = {.at = (unsigned char *)body.bytes, .end = (unsigned char *)body.bytes + body.used};
    if (is_sound(s)) read_welcome(w, &c);
    if (is_sound(s) && c.is_bad) refuse(s, "an answer to the login that is none");
    forget(&body);
}

/* server=host|port */
static RC follow(Connection *c, Place *to, const char *address) {
    const char *host = strchr(address, '='), *port = strchr(address, '|');
    if (!host || !port || port < host) {
        refuse(&c->stream, "a redirect to nowhere");
        return lost(c, c);
    }
    snprintf(to->server, sizeof to->server, "%.*s", (int)(host - address), address);
    snprintf(to->host, sizeof to->host, "%.*s", (int)(port - host - 1), host + 1);
    snprintf(to->service, sizeof to->service, "%s", port + 1);
    return OK;
}

static RC knock(Connection *c, const Place *to, const char *text, Welcome *w) {
    hang_up(c);
    if (wire_connect(&c->stream, to->host, to->service, c->login_seconds)) return fail_with(c, -908, NULL);
    wire_receive_timeout(&c->stream, c->login_seconds);
    *w = (Welcome){0};
    if (send_login(&c->stream, to, text)) return lost(c, c);
    take_welcome(&c->stream, w);
    if (!is_sound(&c->stream)) return lost(c, c);
    return OK;
}

static RC enter(Connection *c, Place *to, const char *text) {
    Welcome w;
    for (int hops = 0; hops <= MAX_HOPS; hops++) {
        RC code = knock(c, to, text, &w);
        if (code == OK && w.kind == LOGIN_REDIRECTED) code = follow(c, to, w.address);
        else if (code == OK && w.kind == LOGIN_REFUSED)
            return fail_with_isam(c, w.service_error, w.system_error, *to->user ? to->user : "");
        else if (code == OK && w.kind == LOGIN_ACCEPTED) {
            snprintf(c->server_version, sizeof c->server_version, "%s", w.version);
            return OK;
        }
        if (code != OK) return code;
        if (w.kind != LOGIN_REDIRECTED) refuse(&c->stream, "an answer to the login of an unknown kind");
        if (!is_sound(&c->stream)) return lost(c, c);
    }
    refuse(&c->stream, "one redirect too many");
    return lost(c, c);
}

/* ---- after the login ---- */

static RC agree(Connection *c) {
    Reply r = {.connection = c, .handle = c};
    Bytes request = {0};
    put_u16(&request, 126);
    put_char(&request, OFFER, OFFERED);
    RC code = ask(&r, &request);
    const unsigned char *theirs = (unsigned char *)r.features.bytes;
    if (code == OK && (r.features.used <= LONG_LENGTHS_BYTE || !(theirs[LONG_LENGTHS_BYTE] & LONG_LENGTHS)))
        refuse(&c->stream, "protocols without 32-bit lengths");
    forget(&r.features);
    return code == OK && !is_sound(&c->stream) ? lost(c, c) : code;
}

static RC tell_environment(Connection *c) {
    Reply r = {.connection = c, .handle = c};
    Bytes request = {0};
    put_u16(&request, 81);
    put_u16(&request, 6);
    put_u16(&request, 38);
    put_u16(&request, 12);
    put_u16(&request, 4);
    put_char(&request, "DBTEMP", 6);
    put_char(&request, "/tmp", 4);
    put_char(&request, "SUBQCACHESZ", 11);
    put_char(&request, "10", 2);
    put_u32(&request, 0);
    return ask(&r, &request);
}

static RC open_database(Connection *c, const char *text) {
    Reply r = {.connection = c, .handle = c};
    Bytes request = {0};
    char database[129];
    if (!*connection_value(text, "DATABASE", database, sizeof database)) return OK;
    put_u16(&request, 36);
    put_char(&request, database, strlen(database));
    put_u16(&request, 0); /* not for us alone */
    return ask(&r, &request);
}

RC log_in(Connection *c, const char *text) {
    Place to;
    char protocol[16];
    connection_value(text, "HOST", to.host, sizeof to.host);
    connection_value(text, "SERVICE", to.service, sizeof to.service);
    connection_value(text, "SERVER", to.server, sizeof to.server);
    connection_value(text, "UID", to.user, sizeof to.user);
    connection_value(text, "PWD", to.password, sizeof to.password);
    connection_value(text, "PROTOCOL", protocol, sizeof protocol);
    if (!*to.server) return fail(c, "HY000", -11060, "General error.");
    if (*protocol && strcasecmp(protocol, "onsoctcp"))
        return fail(c, "HY000", -11060, "The test driver speaks protocol onsoctcp only, and no TLS.");
    RC code = open_code_sets(c, text);
    if (code == OK) code = enter(c, &to, text);
    if (code == OK) code = agree(c);
    if (code == OK) code = tell_environment(c);
    if (code == OK) code = open_database(c, text);
    if (code == OK) wire_receive_timeout(&c->stream, c->receive_seconds);
    else hang_up(c);
    return code;
}

/* The server frees a capture session before it answers this. */
void log_out(Connection *c) {
    Bytes request = {0};
    if (c->stream.fd < 0) return;
    put_u16(&request, SQ_EXIT);
    if (!send_bytes(&c->stream, &request)) wire_stirs(&c->stream, GOODBYE_MILLISECONDS);
    hang_up(c);
}
