/* The emulator's socket protocol (docs/emulator-protocol.md), as the test driver needs it. */
#ifndef WIRE_H
#define WIRE_H

#include <stddef.h>
#include <stdint.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the wire is little-endian, and so must this machine be"
#endif

/* The driver shows its ODBC functions only; in the split build these come from a second library. */
#define PUBLIC __attribute__((visibility("default")))

/* A request under construction. */
typedef struct { char *bytes; size_t used, room; } Request;

PUBLIC Request request_begin(char kind);
PUBLIC void request_bytes(Request *r, const void *bytes, size_t count);
PUBLIC void request_u8(Request *r, uint8_t value);
PUBLIC void request_u32(Request *r, uint32_t value);
/* Sends the request and frees it; 0 or -1. */
PUBLIC int request_send(Request *r, int fd);

/* An answer's header being read; `bad` is set, and zeros are returned, once it runs out. */
typedef struct { const char *at, *end; int bad; } Header;

PUBLIC const char *header_bytes(Header *h, size_t count);
PUBLIC uint8_t header_u8(Header *h);
PUBLIC uint16_t header_u16(Header *h);
PUBLIC uint32_t header_u32(Header *h);
PUBLIC int64_t header_i64(Header *h);

/* All of these return 0, or -1 when the connection broke or timed out. */
PUBLIC int wire_connect(const char *host, const char *service, int seconds);
PUBLIC int wire_receive(int fd, void *target, size_t count);
PUBLIC int wire_skip(int fd, size_t count);
PUBLIC void wire_receive_timeout(int fd, int seconds);

/* malloc and realloc that abort: a test has nothing better to do without memory. */
PUBLIC void *must_resize(void *old, size_t bytes);
PUBLIC void *must_zeroed(size_t count, size_t size);

#endif
