/* See wire.h. Nothing that arrives is used before its length has been checked. */
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

void *must_resize(void *old, size_t bytes) {
    void *grown = realloc(old, bytes ? bytes : 1);
    if (!grown) abort();
    return grown;
}

void *must_zeroed(size_t count, size_t size) {
    void *fresh = calloc(count ? count : 1, size);
    if (!fresh) abort();
    return fresh;
}

/* ---- bytes that grow ---- */

static char *room_for(Bytes *b, size_t count) {
    if (b->used + count > b->room) {
        b->room = (b->used + count) * 2;
        b->bytes = must_resize(b->bytes, b->room);
    }
    return b->bytes + b->used;
}

void put_bytes(Bytes *b, const void *bytes, size_t count) {
    if (count) memcpy(room_for(b, count), bytes, count);
    b->used += count;
}

#define PUT(value)                                                                  \
    unsigned char bytes[sizeof value];                                              \
    for (size_t i = 0; i < sizeof value; i++)                                       \
        bytes[i] = (unsigned char)(value >> 8 * (sizeof value - 1 - i));            \
    put_bytes(b, bytes, sizeof value);

void put_u16(Bytes *b, uint16_t value) { PUT(value) }
void put_u32(Bytes *b, uint32_t value) { PUT(value) }
void put_u64(Bytes *b, uint64_t value) { PUT(value) }

void put_char(Bytes *b, const char *bytes, size_t count) {
    put_u16(b, (uint16_t)count);
    put_bytes(b, bytes, count);
    if (count & 1) put_bytes(b, "", 1);
}

void put_asc(Bytes *b, const char *text) {
    size_t count = strlen(text) + 1;
    put_u16(b, (uint16_t)count);
    put_bytes(b, text, count);
}

void forget(Bytes *b) {
    free(b->bytes);
    *b = (Bytes){0};
}

int send_bytes(Stream *s, Bytes *b) {
    size_t sent = 0;
    errno = 0;
    while (sent < b->used && !s->has_failed) {
        ssize_t more = send(s->fd, b->bytes + sent, b->used - sent, MSG_NOSIGNAL);
        if (more < 0 && errno == EINTR) continue;
        if (more <= 0) s->has_failed = 1;
        else sent += (size_t)more;
    }
    forget(b);
    return s->has_failed ? -1 : 0;
}

/* ---- what arrives ---- */

int is_sound(const Stream *s) { return !s->has_failed && !s->nonsense; }

void refuse(Stream *s, const char *nonsense) {
    if (is_sound(s)) s->nonsense = nonsense; /* zeros that never came are no nonsense */
}

static void receive_more(Stream *s) {
    ssize_t got;
    errno = 0;
    do got = recv(s->fd, s->arrived, sizeof s->arrived, 0);
    while (got < 0 && errno == EINTR);
    s->at = 0;
    s->end = got > 0 ? (size_t)got : 0;
    if (got <= 0) s->has_failed = 1;
}

/* Hands out at most `count` bytes that have arrived, at least one; NULL when none ever will. */
static const unsigned char *piece_of(Stream *s, size_t count, size_t *piece) {
    if (is_sound(s) && s->at == s->end) receive_more(s);
    if (!is_sound(s)) return NULL;
    *piece = s->end - s->at < count ? s->end - s->at : count;
    s->at += *piece;
    return s->arrived + s->at - *piece;
}

void take_into(Stream *s, void *target, size_t count) {
    size_t piece;
    for (char *at = target; count; at += piece, count -= piece) {
        const unsigned char *bytes = piece_of(s, count, &piece);
        if (!bytes) {
            memset(at, 0, count);
            return;
        }
        memcpy(at, bytes, piece);
    }
}

void take_nothing_of(Stream *s, size_t count) {
    size_t piece;
    for (; count && piece_of(s, count, &piece); count -= piece) {}
}

void take_bytes(Stream *s, Bytes *b, size_t count) {
    size_t piece;
    for (; count; count -= piece) {
        const unsigned char *bytes = piece_of(s, count, &piece);
        if (!bytes) return;
        put_bytes(b, bytes, piece);
    }
}

uint8_t take_u8(Stream *s) {
    uint8_t byte;
    take_into(s, &byte, 1);
    return byte;
}

uint16_t take_u16(Stream *s) {
    uint16_t high = take_u8(s);
    return (uint16_t)(high << 8 | take_u8(s));
}

uint32_t take_u32(Stream *s) {
    uint32_t high = take_u16(s);
    return high << 16 | take_u16(s);
}

void take_char(Stream *s, Bytes *b) {
    uint16_t count = take_u16(s);
    take_bytes(s, b, count);
    take_nothing_of(s, count & 1);
}

/* ---- bytes at hand ---- */

const unsigned char *next_bytes(Cursor *c, size_t count) {
    if (c->is_bad || (size_t)(c->end - c->at) < count) {
        c->is_bad = 1;
        return NULL;
    }
    c->at += count;
    return c->at - count;
}

static uint64_t next_number(Cursor *c, size_t count) {
    uint64_t value = 0;
    const unsigned char *bytes = next_bytes(c, count);
    for (size_t i = 0; bytes && i < count; i++) value = value << 8 | bytes[i];
    return value;
}

uint8_t next_u8(Cursor *c) { return (uint8_t)next_number(c, 1); }
uint16_t next_u16(Cursor *c) { return (uint16_t)next_number(c, 2); }
uint32_t next_u32(Cursor *c) { return (uint32_t)next_number(c, 4); }
uint64_t next_u64(Cursor *c) { return next_number(c, 8); }

/* ---- sockets ---- */

/* connect() with a limit: a host that drops packets would hold it for minutes. */
static int connect_within(int fd, const struct addrinfo *to, int seconds) {
    int flags = fcntl(fd, F_GETFL), error = 0;
    socklen_t size = sizeof error;
    fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    if (connect(fd, to->ai_addr, to->ai_addrlen) != 0) {
        struct pollfd wait = {.fd = fd, .events = POLLOUT};
        if (errno != EINPROGRESS || poll(&wait, 1, seconds * 1000) != 1) return -1;
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error) return -1;
    }
    fcntl(fd, F_SETFL, flags);
    return 0;
}

int wire_connect(Stream *s, const char *host, const char *service, int seconds) {
    struct addrinfo hint = {.ai_socktype = SOCK_STREAM}, *found;
    int fd = -1, one = 1;
    if (getaddrinfo(host, service, &hint, &found)) return -1;
    for (struct addrinfo *to = found; to && fd < 0; to = to->ai_next) {
        fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect_within(fd, to, seconds)) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(found);
    s->fd = fd;
    s->at = s->end = 0;
    s->has_failed = fd < 0;
    s->nonsense = NULL;
    if (fd >= 0) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd < 0 ? -1 : 0;
}

void wire_close(Stream *s) {
    if (s->fd >= 0) close(s->fd);
    s->fd = -1;
}

void wire_receive_timeout(const Stream *s, int seconds) {
    struct timeval limit = {.tv_sec = seconds};
    setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

int wire_stirs(const Stream *s, int milliseconds) {
    struct pollfd wait = {.fd = s->fd, .events = POLLIN};
    return poll(&wait, 1, milliseconds) == 1;
}
