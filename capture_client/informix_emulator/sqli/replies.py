"""The messages of an answer, as bytes.

Each function writes one message; the conversation decides which messages an answer has.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ..answers import Prepared, ResultColumn, StatementOutcome
from ..column_types.encoding import EmulatedType
from ..large_objects.simple_objects import SimpleObjects
from ..sql_errors import SqlError
from .dialect import MessageLayout
from .requests import Code
from .tuples import encode_rows, place_bytes

_U16 = struct.Struct(">H")
_NOT_NULL = 0x100
_OPAQUE_NAMES = {1: b"lvarchar", 5: b"boolean", 10: b"blob", 11: b"clob"}  # by extended id
_OPAQUE = range(40, 46)
_OWNER = b"informix"
_MAX_CHUNK_BYTES = 0xFFFF
_CHUNK_BYTES = 32_000  # of a TEXT or BYTE: our choice
_ERROR_TEXT_BYTES = 2000

END_OF_TURN = _U16.pack(Code.END_OF_TURN)
FAREWELL = _U16.pack(Code.EXIT)
PAM_ACCEPTED = _U16.pack(Code.PAM_ACCEPTED)
COST = struct.pack(">HII", Code.COST, 1, 1)


def char(data: bytes) -> bytes:
    """Write a text whose length has 2 bytes, in an even number of places."""
    return _U16.pack(len(data)) + data + b"\0" * (len(data) & 1)


def done(dialect: MessageLayout, outcome: StatementOutcome) -> bytes:
    """SQ_DONE: what a statement did."""
    form = ">HHQQI" if dialect.has_wide_rows else ">HHIII"
    counts = outcome.row_count, outcome.rowid, outcome.serial & 0xFFFFFFFF
    return struct.pack(form, Code.DONE, outcome.warnings, *counts)


def insert_done(dialect: MessageLayout, outcome: StatementOutcome) -> bytes:
    """SQ_INSERTDONE: what columns of SERIAL8 and, where both sides have it, BIGSERIAL were given."""
    serial8 = struct.pack(">hQ", int(outcome.serial8 != 0), _low_first(outcome.serial8))
    bigserial = struct.pack(">q", outcome.bigserial) if dialect.has_bigint else b""
    return _U16.pack(Code.INSERT_DONE) + serial8 + bigserial


def _low_first(number: int) -> int:
    """Return a number whose lower half comes first, as INT8 has it."""
    return (number & 0xFFFFFFFF) << 32 | number >> 32


def failure(dialect: MessageLayout, error: SqlError, codec: str) -> bytes:
    """SQ_ERR: numbers, and what is to be filled into the client's own text; never a sentence."""
    form = ">HhhI" if dialect.is_wide else ">HhhH"
    argument = error.argument.encode(codec, "replace")[:_ERROR_TEXT_BYTES]
    return struct.pack(form, Code.ERROR, _i16(error.native), _i16(error.isam), 0) + char(argument)


def _i16(number: int) -> int:
    """Return a number as 2 bytes hold it; the capture functions' codes are results, not errors."""
    return struct.unpack(">h", struct.pack(">i", number)[2:])[0]  # type: ignore[no-any-return]


def description(dialect: MessageLayout, statement_id: int, prepared: Prepared, codec: str) -> bytes:
    """SQ_DESCRIBE: the statement's kind and number, and the columns of what it answers with."""
    names, columns, place = b"", list[bytes](), 0
    for column in prepared.columns:
        columns.append(_column(dialect, column, len(names), place))
        names += column.name.encode(codec, "replace") + b"\0"
        place += place_bytes(column, dialect.object_bytes)
    parts = [
        struct.pack(">HHHI", Code.DESCRIBE, prepared.kind, statement_id, 0),
        struct.pack(">I" if dialect.has_wide_tuples else ">H", _cut(place, dialect.has_wide_tuples)),
        _U16.pack(len(columns)),
        struct.pack(">I" if dialect.is_wide else ">H", len(names)),
        *columns,
        names + b"\0" * (len(names) & 1),
    ]
    return b"".join(parts)


def _cut(size: int, is_wide: bool) -> int:
    return size if is_wide else min(size, 0xFFFF)


def _column(dialect: MessageLayout, column: ResultColumn, name_place: int, place: int) -> bytes:
    head = struct.pack(">II" if dialect.is_wide else ">HI", name_place, place)
    return head + _field(column.type, column.not_null)


def _field(kind: EmulatedType, not_null: bool = False) -> bytes:
    """Type, extended id, owner and name of an opaque type, and the true length of a fixed one."""
    name = _OPAQUE_NAMES.get(kind.extended_id, b"") if kind.coltype & 0xFF in (40, 41) else b""
    number = kind.coltype & 0xFF | (_NOT_NULL if not_null else 0)
    extended_id = kind.extended_id if name else 0
    names = char(_OWNER if name else b"") + char(name)
    return (
        struct.pack(">HI", number, extended_id) + names + struct.pack(">HHII", 0, 0, 0, kind.collength)
    )


def input_description(parameters: Sequence[EmulatedType]) -> bytes:
    """The types of a statement's parameters; IBM's driver 15 wants one for each question mark."""
    fields = b"".join(_field(parameter) for parameter in parameters)
    flag = _U16.pack(0) if parameters else b""
    return struct.pack(">HH", Code.INPUT_DESCRIPTION, len(parameters)) + flag + fields


def tuple_of(data: bytes) -> bytes:
    """SQ_TUPLE: a row."""
    return tuples_of([data])[0]


@dataclass(frozen=True, slots=True)
class TupleForm:
    """Rows as messages; `answers.RowForm`."""

    has_long_varchars: bool = False
    objects: SimpleObjects | None = None

    def __call__(
        self, kinds: Sequence[EmulatedType], columns: Sequence[Sequence[bytes | None]]
    ) -> list[bytes]:
        """Return SQ_TUPLE of each row, given the columns as their types encode them."""
        return tuples_of(encode_rows(kinds, self.has_long_varchars, columns, self.objects))


def tuples_of(rows: Iterable[bytes]) -> list[bytes]:
    """SQ_TUPLE of each of some rows."""
    return [_tuple_head(len(data)) + data + (b"\0" if len(data) & 1 else b"") for data in rows]


@lru_cache(maxsize=1024)
def _tuple_head(size: int) -> bytes:
    return struct.pack(">HHI", Code.TUPLE, 0, size)


def tuple_number(number: int) -> bytes:
    """The number of the row that a scroll fetch has come to."""
    return struct.pack(">HI", Code.TUPLE_NUMBER, number)


def transaction(event: int) -> bytes:
    """SQ_XACTSTAT: 1 begin, 2 commit, 3 rollback; then whether there is and was a transaction."""
    is_open = int(event == 1)
    return struct.pack(">HHHH", Code.TRANSACTION, event, is_open, 1 - is_open)


def protocols(bits: bytes) -> bytes:
    """Answer the offer of feature bits."""
    return _U16.pack(Code.PROTOCOLS) + char(bits)


def challenge(style: int, text: str) -> bytes:
    """One message of a PAM conversation."""
    return struct.pack(">HH", Code.PAM_CHALLENGE, style) + char(text.encode())


def database_list(names: Sequence[str], codec: str) -> bytes:
    """The names of databases."""
    listed = b"".join(char(name.encode(codec, "replace")) for name in names)
    return _U16.pack(Code.DATABASES) + listed + _U16.pack(0)


def version(text: str) -> bytes:
    """The server's version, which IBM's driver asks for to see whether the connection lives."""
    return _U16.pack(Code.VERSION) + char(text.encode())


def ping() -> bytes:
    """Answer gbase8sdb's ping: a state of 0."""
    return struct.pack(">HH", Code.PING, 0)


def smart_blob(what: int, data: bytes, chunk_bytes: int) -> bytes:
    """SQ_LODATA: bytes in chunks of the size that the client asked for."""
    head = struct.pack(">HHI", Code.SMART_BLOB, what, len(data))
    if not data:
        return head + _U16.pack(0)
    size, view = chunk_bytes or _MAX_CHUNK_BYTES, memoryview(data)
    parts: list[bytes | memoryview] = [head]
    for place in range(0, len(data), size):
        piece = view[place : place + size]
        parts += (_U16.pack(len(piece)), piece, b"\0" * (len(piece) & 1))
    return b"".join(parts)


def simple_object(value: bytes) -> bytes:
    """The value of a TEXT or BYTE in chunks, behind them an empty one, as clients send one too."""
    chunks = [value[at : at + _CHUNK_BYTES] for at in range(0, len(value), _CHUNK_BYTES)]
    return b"".join(_U16.pack(Code.SIMPLE_OBJECT) + char(chunk) for chunk in (*chunks, b""))


def routine(database: str, number: int) -> bytes:
    """Tell the number of a routine for the fast path."""
    return _U16.pack(Code.FIND_ROUTINE) + char(database.encode()) + struct.pack(">I", number)


def routine_result(values: Sequence[tuple[int, bytes]]) -> bytes:
    """What a routine returned: of each value its type, that it is not NULL, a precision of none.

    An opaque one names the type's owner and the type first, both left empty, and has a length.
    """
    parts = [_returned(kind, data) for kind, data in values]
    return struct.pack(">HH", Code.ROUTINE_RESULT, len(values)) + b"".join(parts)


def _returned(kind: int, data: bytes) -> bytes:
    if kind in _OPAQUE:
        return struct.pack(">HHHHHI", kind, 0, 0, 0, 0, len(data)) + data + b"\0" * (len(data) & 1)
    return struct.pack(">HHH", kind, 0, 0) + data
