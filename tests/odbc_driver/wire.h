/* Sockets, requests and answers as bytes of SQLI (docs/emulator-protocol.md): all integers big-endian. */
#ifndef WIRE_H
#define WIRE_H

#include <stddef.h>
#include <stdint.h>

/* The driver shows its ODBC functions only; in the split build these come from a second library. */
#define PUBLIC __attribute__((visibility("default")))

/* The way to a server, with what has arrived and was not yet taken. Once it has failed, everything
 * that is taken is zero: whoever reads a message asks once, at its end. */
typedef struct {
    int fd;
    int has_failed;           /* the connection broke or timed out: errno says which */
    const char *nonsense;     /* what the server sent that no server sends; NULL: nothing */
    size_t at, end;
    unsigned char arrived[1 << 16];
} Stream;

/* 0, or -1 when nobody answers in so many seconds. */
PUBLIC int wire_connect(Stream *s, const char *host, const char *service, int seconds);
PUBLIC void wire_close(Stream *s);
PUBLIC void wire_receive_timeout(const Stream *s, int seconds);
/* Whether anything arrives, or the other side hangs up, within so many milliseconds. */
PUBLIC int wire_stirs(const Stream *s, int milliseconds);

PUBLIC uint8_t take_u8(Stream *s);
PUBLIC uint16_t take_u16(Stream *s);
PUBLIC uint32_t take_u32(Stream *s);
PUBLIC void take_into(Stream *s, void *target, size_t count);
PUBLIC void take_nothing_of(Stream *s, size_t count);
PUBLIC int is_sound(const Stream *s);
PUBLIC void refuse(Stream *s, const char *nonsense);

/* Bytes that grow: a request under construction, a message that arrives, the text of a result. */
typedef struct { char *bytes; size_t used, room; } Bytes;

PUBLIC void put_bytes(Bytes *b, const void *bytes, size_t count);
PUBLIC void put_u16(Bytes *b, uint16_t value);
PUBLIC void put_u32(Bytes *b, uint32_t value);
PUBLIC void put_u64(Bytes *b, uint64_t value);
/* A length, the bytes, and one zero where the length is odd. */
PUBLIC void put_char(Bytes *b, const char *bytes, size_t count);
/* As in a login: a length that counts the NUL at the end. */
PUBLIC void put_asc(Bytes *b, const char *text);
PUBLIC void forget(Bytes *b);
/* Sends the bytes and forgets them; 0 or -1. */
PUBLIC int send_bytes(Stream *s, Bytes *b);
/* Appends what arrives, and believes in no length before as much has come. */
PUBLIC void take_bytes(Stream *s, Bytes *b, size_t count);
/* Appends a `put_char`, without its padding. */
PUBLIC void take_char(Stream *s, Bytes *b);

/* Bytes being read; `is_bad` is set, and zeros are returned, once they run out. */
typedef struct { const unsigned char *at, *end; int is_bad; } Cursor;

PUBLIC const unsigned char *next_bytes(Cursor *c, size_t count);
PUBLIC uint8_t next_u8(Cursor *c);
PUBLIC uint16_t next_u16(Cursor *c);
PUBLIC uint32_t next_u32(Cursor *c);
PUBLIC uint64_t next_u64(Cursor *c);

/* malloc and realloc that abort: a test has nothing better to do without memory. */
PUBLIC void *must_resize(void *old, size_t bytes);
PUBLIC void *must_zeroed(size_t count, size_t size);

#endif
