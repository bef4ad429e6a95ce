"""A request: a series of messages, each a code and its fields, that SQ_EOT ends.

A table has one parser for each code. An unknown code ends the connection, because the start of the next
message cannot be known. Nothing runs before the request is complete.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from .binds import BoundValue, read_binds, read_result_types
from .dialect import MessageLayout
from .reading import Malformed, RequestReader, Take

_MAX_MESSAGES = 100_000


class Code(IntEnum):
    """The messages that a client sends, and what answers are made of."""

    PADDING = 0
    COMMAND = 1
    PREPARE = 2
    CURSOR_NAME = 3
    STATEMENT = 4
    BIND = 5
    OPEN = 6
    EXECUTE = 7
    DESCRIBE = 8
    FETCH = 9
    CLOSE = 10
    RELEASE = 11
    END_OF_TURN = 12
    ERROR = 13
    TUPLE = 14
    DONE = 15
    COMMIT = 19
    ROLLBACK = 20
    WANT_DESCRIPTION = 22
    SCROLL_FETCH = 23
    SCROLL = 24
    TUPLE_NUMBER = 25
    DATABASES = 26
    BEGIN = 35
    OPEN_DATABASE = 36
    CLOSE_DATABASE = 37
    FETCH_OBJECT = 38
    SIMPLE_OBJECT = 39
    BIND_OBJECTS = 41
    HOLD = 43
    WANT_DONE = 49
    VERSION = 53
    COST = 55
    EXIT = 56
    PING = 84
    INSERT_DONE = 94
    SMART_BLOB = 97
    TRANSACTION = 99
    RESULT_TYPES = 100
    FIND_ROUTINE = 101
    CALL_ROUTINE = 102
    ROUTINE_RESULT = 103
    AUTOFREE = 108
    INFO = 81
    DESCRIBE_INPUT = 124
    INPUT_DESCRIPTION = 125
    PROTOCOLS = 126
    PAM_ACCEPTED = 127
    PAM = 128
    PAM_CHALLENGE = 129
    PAM_RESPONSE = 130
    GENERATED_KEYS = 134
    SAVEPOINT = 137
    RELEASE_SAVEPOINT = 138
    ROLLBACK_TO = 139


@dataclass(frozen=True, slots=True)
class ClientMessage:
    """One message; which of its fields it has, and what the numbers are, its parser says."""

    code: Code
    text: bytes = b""
    numbers: tuple[int, ...] = ()
    binds: tuple[BoundValue, ...] = ()
    objects: tuple[bytes, ...] = ()


Parse = Callable[[Code, RequestReader, MessageLayout], ClientMessage]


def read_request(take: Take, dialect: MessageLayout) -> list[ClientMessage]:
    """Read messages up to the end of the client's turn, or to its farewell.

    Raises:
        Malformed: a message is not known, or its lengths cannot be.
        EOFError: the client has gone.
    """
    reader, messages = RequestReader(take), list[ClientMessage]()
    while True:
        message = _message(reader, dialect)
        if message.code == Code.END_OF_TURN:
            return messages
        messages.append(message)
        if message.code == Code.EXIT:
            return messages
        if len(messages) > _MAX_MESSAGES:
            raise Malformed(f"a request of more than {_MAX_MESSAGES} messages")


def _message(reader: RequestReader, dialect: MessageLayout) -> ClientMessage:
    number = reader.u16("code")
    parse = _PARSERS.get(number)
    if parse is None:
        raise Malformed(f"message {number} is not known; up to it: {reader.seen.hex()}")
    return parse(Code(number), reader, dialect)


def _plain(code: Code, _reader: RequestReader, _dialect: MessageLayout) -> ClientMessage:
    return ClientMessage(code)


def _char(code: Code, reader: RequestReader, _dialect: MessageLayout) -> ClientMessage:
    return ClientMessage(code, reader.char("text"))


def _number(code: Code, reader: RequestReader, _dialect: MessageLayout) -> ClientMessage:
    return ClientMessage(code, numbers=(reader.u16("number"),))


def _char_and_number(code: Code, reader: RequestReader, _dialect: MessageLayout) -> ClientMessage:
    text = reader.char("name")
    return ClientMessage(code, text, (reader.u16("flag"),))


def _sql(code: Code, reader: RequestReader, dialect: MessageLayout) -> ClientMessage:
    """The number: how many parameters the client counted."""
    count = reader.u16("number of parameters")
    size = reader.u32("length of SQL") if dialect.is_wide else reader.u16("length of SQL")
    return ClientMessage(code, reader.padded(size, "SQL"), (count,))


def _binds(code: Code, reader: RequestReader, dialect: MessageLayout) -> ClientMessage:
    return ClientMessage(code, binds=read_binds(reader, dialect.object_bytes))


def _objects(code: Code, reader: RequestReader, _dialect: MessageLayout) -> ClientMessage:
    """The values of TEXT and BYTE that a bind has left out, each in chunks, the last of them empty."""
    count = reader.u16("number of objects")
    return ClientMessage(code, objects=tuple(_object(reader) for _ in range(count)))


def _object(reader: RequestReader) -> bytes:
    chunks: list[bytes] = []
    while not chunks or chunks[-1]:
        if reader.u16("chunk of an object") != Code.SIMPLE_OBJECT:
            raise Malformed("the value of a TEXT or BYTE is not in chunks")
        chunks.append(reader.char("chunk"))
    return b"".join(chunks)


def _result_types(code: Code, reader: RequestReader, _dialect: MessageLayout) -> ClientMessage:
    read_result_types(reader)
    return ClientMessage(code)


def _fetch(code: Code, reader: RequestReader, dialect: MessageLayout) -> ClientMessage:
    """The numbers: bytes of the client's buffer, rows it wants at most, 0 for as many as fit."""
    size = reader.u32("buffer size") if dialect.is_wide else reader.u16("buffer size")
    return ClientMessage(code, numbers=(size, reader.u16("rows")))


def _scroll_fetch(code: Code, reader: RequestReader, dialect: MessageLayout) -> ClientMessage:
    """The numbers: how (1 next, 4 last, 6 absolute), the row, bytes of the buffer."""
    how, row = reader.u16("kind of move"), reader.i32("row")
    size = reader.u32("buffer size") if dialect.is_wide else reader.u16("buffer size")
    return ClientMessage(code, numbers=(how, row, size))


def _info(code: Code, reader: RequestReader, _dialect: MessageLayout) -> ClientMessage:
    """The environment of a session; none of it changes what this server answers."""
    kind, size = reader.u16("kind of information"), reader.u16("length of information")
    if kind != _ENVIRONMENT:
        reader.octets(size, "information")
        return ClientMessage(code, numbers=(kind,))
    reader.octets(4, "longest name and value")
    while reader.char("name"):
        reader.char("value")
    reader.u16("end of the environment")
    return ClientMessage(code, numbers=(kind,))


_ENVIRONMENT = 6


def _smart_blob(code: Code, reader: RequestReader, _dialect: MessageLayout) -> ClientMessage:
    """The numbers: what (0 read, 1 read at an offset), descriptor, bytes wanted, of a chunk, offset."""
    what, descriptor = reader.u16("kind of access"), reader.u16("descriptor")
    wanted, chunk = reader.u32("bytes wanted"), reader.u16("chunk")
    offset: tuple[int, ...] = ()
    if what == _READ_AT:
        sign, low, high = reader.i16("sign"), reader.u32("offset"), reader.u32("offset")
        if reader.u16("whence") or sign < 0:
            raise Malformed("an offset that does not count from an object's beginning")
        offset = (high << 32 | low,)
    elif what != _READ:
        raise Malformed(f"a smart large object is not accessed by {what}")
    return ClientMessage(code, numbers=(what, descriptor, wanted, chunk, *offset))


def _fetch_object(code: Code, reader: RequestReader, dialect: MessageLayout) -> ClientMessage:
    return ClientMessage(code, reader.octets(dialect.object_bytes, "descriptor"))


def _padding(code: Code, reader: RequestReader, _dialect: MessageLayout) -> ClientMessage:
    """What gbase8sdb 1.1.1 sends behind a descriptor, which has 64 bytes to it."""
    reader.octets(6, "padding")
    return ClientMessage(code)


def _find_routine(code: Code, reader: RequestReader, _dialect: MessageLayout) -> ClientMessage:
    """The fast path: a routine's signature; the number: how many parameters are described (none)."""
    reader.octets(1, "kind of routine")
    signature = reader.padded(reader.u32("length of signature"), "signature")
    return ClientMessage(code, signature, (reader.u16("parameters"),))


def _call_routine(code: Code, reader: RequestReader, _dialect: MessageLayout) -> ClientMessage:
    """The numbers: the routine's, and how many values are bound behind it."""
    database, number = reader.char("database"), reader.u32("number of the routine")
    count = reader.u16("number of values")
    reader.u16("parameters")
    return ClientMessage(code, database, (number, count))


def _generated_keys(code: Code, reader: RequestReader, _dialect: MessageLayout) -> ClientMessage:
    """IBM's JDBC driver asks for the keys that an INSERT generates: all, by number or by name.

    How they would come is not known.
    """
    which = reader.u16("which keys")
    if which in (_KEYS_BY_NUMBER, _KEYS_BY_NAME):
        for _ in range(reader.u16("number of keys")):
            if which == _KEYS_BY_NUMBER:
                reader.u16("key")
            else:
                reader.char("key")
    return ClientMessage(code, numbers=(which,))


_READ, _READ_AT = 0, 1
_KEYS_BY_NUMBER, _KEYS_BY_NAME = 2, 3

_PARSERS: dict[int, Parse] = {
    Code.COMMAND: _sql,
    Code.PREPARE: _sql,
    Code.CURSOR_NAME: _char,
    Code.STATEMENT: _number,
    Code.BIND: _binds,
    Code.BIND_OBJECTS: _objects,
    Code.OPEN: _plain,
    Code.EXECUTE: _plain,
    Code.FETCH: _fetch,
    Code.CLOSE: _plain,
    Code.RELEASE: _plain,
    Code.END_OF_TURN: _plain,
    Code.COMMIT: _plain,
    Code.ROLLBACK: _number,
    Code.WANT_DESCRIPTION: _plain,
    Code.SCROLL_FETCH: _scroll_fetch,
    Code.SCROLL: _plain,
    Code.DATABASES: _plain,
    Code.BEGIN: _plain,
    Code.OPEN_DATABASE: _char_and_number,
    Code.CLOSE_DATABASE: _plain,
    Code.FETCH_OBJECT: _fetch_object,
    Code.PADDING: _padding,
    Code.HOLD: _plain,
    Code.WANT_DONE: _plain,
    Code.VERSION: _plain,
    Code.EXIT: _plain,
    Code.PING: _plain,
    Code.SMART_BLOB: _smart_blob,
    Code.RESULT_TYPES: _result_types,
    Code.FIND_ROUTINE: _find_routine,
    Code.CALL_ROUTINE: _call_routine,
    Code.AUTOFREE: _plain,
    Code.INFO: _info,
    Code.DESCRIBE_INPUT: _plain,
    Code.PROTOCOLS: _char,
    Code.PAM: _plain,
    Code.PAM_RESPONSE: _char,
    Code.GENERATED_KEYS: _generated_keys,
    Code.SAVEPOINT: _char_and_number,
    Code.RELEASE_SAVEPOINT: _char,
    Code.ROLLBACK_TO: _char,
}
