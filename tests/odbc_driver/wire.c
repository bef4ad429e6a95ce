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

/* ---- requests ---- */

Request request_begin(char kind) {
    Request r = {0};
    request_u32(&r, 0); /* the length, filled in by request_send */
    request_bytes(&r, &kind, 1);
    return r;
}

void request_bytes(Request *r, const void *bytes, size_t count) {
    if (r->used + count > r->room) {
        r->room = (r->used + count) * 2;
        r->bytes = must_resize(r->bytes, r->room);
    }
    if (count) memcpy(r->bytes + r->used, bytes, count);
    r->used += count;
}

void request_u8(Request *r, uint8_t value) { request_bytes(r, &value, sizeof value); }
void request_u32(Request *r, uint32_t value) { request_bytes(r, &value, sizeof value); }

static int send_all(int fd, const char *bytes, size_t count) {
    while (count) {
        ssize_t sent = send(fd, bytes, count, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return -1;
        bytes += sent;
        count -= (size_t)sent;
    }
    return 0;
}

int request_send(Request *r, int fd) {
    uint32_t length = (uint32_t)(r->used - sizeof length);
    memcpy(r->bytes, &length, sizeof length);
    int result = send_all(fd, r->bytes, r->used);
    free(r->bytes);
    *r = (Request){0};
    return result;
}

/* ---- headers ---- */

const char *header_bytes(Header *h, size_t count) {
    if (h->bad || (size_t)(h->end - h->at) < count) {
        h->bad = 1;
        return NULL;
    }
    const char *taken = h->at;
    h->at += count;
    return taken;
}

#define TAKE(type)                                          \
    type value = 0;                                         \
    const char *bytes = header_bytes(h, sizeof value);      \
    if (bytes) memcpy(&value, bytes, sizeof value);         \
    return value;

uint8_t header_u8(Header *h) { TAKE(uint8_t) }
uint16_t header_u16(Header *h) { TAKE(uint16_t) }
uint32_t header_u32(Header *h) { TAKE(uint32_t) }
int64_t header_i64(Header *h) { TAKE(int64_t) }

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

int wire_connect(const char *host, const char *service, int seconds) {
    struct addrinfo hint = {.ai_socktype = SOCK_STREAM}, *found;
    if (getaddrinfo(host, service, &hint, &found)) return -1;
    int fd = -1, one = 1;
    for (struct addrinfo *to = found; to && fd < 0; to = to->ai_next) {
        fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect_within(fd, to, seconds)) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(found);
    if (fd >= 0) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

int wire_receive(int fd, void *target, size_t count) {
    char *at = target;
    while (count) {
        ssize_t got = recv(fd, at, count, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return -1;
        at += got;
        count -= (size_t)got;
    }
    return 0;
}

int wire_skip(int fd, size_t count) {
    char junk[4096];
    while (count) {
        size_t piece = count < sizeof junk ? count : sizeof junk;
        if (wire_receive(fd, junk, piece)) return -1;
        count -= piece;
    }
    return 0;
}

void wire_receive_timeout(int fd, int seconds) {
    struct timeval limit = {.tv_sec = seconds};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}
