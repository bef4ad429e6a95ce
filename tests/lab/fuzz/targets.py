"""What noise is fed to: each takes bytes and may raise nothing but our own errors.

Rule: a target is one door through which bytes or text come in from outside: the server's stream, a
checkpoint, files that a crash may have torn, a user's options. Each has sound inputs to start from.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from harness.capture.shaped import Shaped
from harness.capture.streams import (
    begin,
    commit,
    discard,
    error,
    rollback,
    row,
    table_schema,
    timeout,
    truncate,
)
from harness.capture.tables import make_table
from harness.servers.catalog_questions import QUESTIONS, ask, sound_answers
from informix_capture_client.choices import DecodeRules, RowForm
from informix_capture_client.errors import BadOption, InformixCdcError
from informix_capture_client.masks import parse_masks
from informix_capture_client.positions import Position, parse
from informix_capture_client.records.records import RecordKind, TableSchema
from informix_capture_client.session.error_codes import ErrorCodes
from informix_capture_client.sql_names import TableName
from informix_capture_client.stream import Read
from informix_capture_client.stream.event_stream import Begun, ChangeStream
from informix_capture_client.transactions.assembler import TransactionAssembler
from informix_capture_client.transactions.events import CommittedTransactions
from informix_capture_client.values.column_list import parse_columns
from informix_capture_client.values.table_decoder import TableDecoder, decode_payloads
from informix_cdc.options.declaring import snapshot_keys
from informix_cdc.options.source import SourceOptions
from informix_checkpoints.offsets import StreamOffset
from informix_emulator import BadRecording, read_recording
from lab.fuzz import capture_targets as captures
from lab.fuzz import db2_targets as db2
from lab.fuzz import sqli_targets as sqli
from lab.fuzz.server_wire import SOUND_CONVERSATIONS, converse_with_noise

COLUMNS = "id integer, day date, price decimal(10,2), at datetime year to fraction(5), note varchar(9)"
_PAYLOAD = bytes(4 + 4 + 6 + 11) + b"\x05hello"
_SIZES = (6,)


@dataclass(frozen=True)
class Target:
    """A door, sound things that come in through it, and how long its inputs may grow."""

    take: Callable[[bytes], object]
    seeds: tuple[bytes, ...]
    most_bytes: int = 4_096
    documented: tuple[type[Exception], ...] = ()  # errors that its callers expect too

    def run(self, data: bytes) -> None:
        """Feed it; anything but our own errors comes out."""
        with contextlib.suppress(InformixCdcError, *self.documented):
            self.take(data)


# the server's stream


class _InLine:
    """Hands over chunks, then says that there are none."""

    began_at = 0.0

    def __init__(self, chunks: Iterator[bytes], open_session: Callable[[], object]) -> None:
        open_session()
        self._chunks = chunks

    def read(self, _timeout_seconds: float) -> list[bytes] | None:
        chunk = next(self._chunks, None)
        return None if chunk is None else [chunk]

    def stop(self, _timeout_seconds: float) -> bool:
        return True


class _Session:
    """Stands in for a session whose numbers are the usual ones."""

    record_kinds = {int(kind): kind for kind in RecordKind}  # noqa: RUF012 - never changed
    codes = ErrorCodes({}, {})


def _chunks(data: bytes) -> Iterator[bytes]:
    """Cut a stream into reads as its own first byte says."""
    size = 1 + (data[0] if data else 0)
    return (data[at : at + size] for at in range(1, len(data), size))


def _stream(shape: str) -> Callable[[bytes], None]:
    def take(data: bytes) -> None:
        row_form = RowForm(shape=cast("Any", shape), truncate="emit")
        begun = Begun(cast("Any", _Session()), TransactionAssembler(Position(0, 0)))
        stream = ChangeStream(
            lambda: begun, lambda: None, lambda opened, _: _InLine(_chunks(data), opened)
        )
        encoder = Shaped([make_table("orders", COLUMNS)], DecodeRules(), row_form)
        while isinstance(answer := stream.next(0), Read):
            for event in answer.events:
                if isinstance(event, TableSchema):
                    encoder.announce(event)
                elif isinstance(event, CommittedTransactions):
                    for batch in encoder.delivered(encoder.encode([event])):
                        batch.validate(full=True)

    return take


def _sound_streams() -> tuple[bytes, ...]:
    schema = table_schema(0, (25, 4, 1), COLUMNS.encode() + b"\0")
    inserted = row(20, 1, _PAYLOAD, RecordKind.INSERT, sizes=_SIZES)
    updated = row(21, 1, _PAYLOAD, RecordKind.UPDBEF, sizes=_SIZES) + row(
        22, 1, _PAYLOAD, RecordKind.UPDAFT, sizes=_SIZES
    )
    whole = begin(10, 1, 100, 7) + inserted + updated + commit(30, 1, 101)
    undone = begin(40, 2, 100, 7) + row(41, 2, _PAYLOAD, sizes=_SIZES) + discard(41, 2)
    return (
        b"\xff" + schema + whole + timeout(31),
        b"\x10" + schema + undone + whole + commit(50, 2, 102),
        b"\x80" + schema + begin(60, 3, 1, 1) + truncate(61, 3, 0) + commit(62, 3, 2),
        b"\x40" + schema + begin(70, 4, 1, 1) + rollback(71, 4) + error(1, -83713),
    )


# the server's answers to questions about itself


def _catalog(data: bytes) -> None:
    given = captures.json_of(data)
    if isinstance(given, list) and given and given[0] in list(QUESTIONS):
        rows = [[tuple(map(_cell, row)) for row in answer] for answer in map(_list, given[1:])]
        ask(given[0], rows)


def _list(given: Any) -> list[list[Any]]:
    return [row for row in given if isinstance(row, list)] if isinstance(given, list) else []


def _cell(given: Any) -> str | None:
    return None if given is None else str(given)


def _large_streams() -> tuple[bytes, ...]:
    schema = table_schema(0, (25, 4, 1), COLUMNS.encode() + b"\0")
    rows = b"".join(row(at, 1, _PAYLOAD, RecordKind.INSERT, sizes=_SIZES) for at in range(20, 2_020))
    return (b"\xff" + schema + begin(10, 1, 100, 7) + rows + commit(3_000, 1, 101) + timeout(3_001),)


# values


def _decode(data: bytes) -> None:
    text, _, payload = data.partition(b"\0")
    decoder = TableDecoder(text.decode("latin-1"), "t", DecodeRules())
    left, others = max(len(payload) - decoder.fixed_bytes, 0), max(decoder.variable_count - 1, 0)
    sizes = [left, *[0] * others][: decoder.variable_count]
    decode_payloads(text.decode("latin-1"), [(sizes, payload)]).validate(full=True)


# what a crash or a hand may have torn


def _offset(data: bytes) -> None:
    given = captures.json_of(data)
    if isinstance(given, dict):
        offset = StreamOffset.from_json(given)
        assert StreamOffset.from_json(offset.to_json()) == offset


# what a user writes


def _options(data: bytes) -> None:
    given = captures.json_of(data)
    if isinstance(given, dict):
        options = SourceOptions.parse({str(k): str(v) for k, v in given.items()}, {})
        options.batch_limits(), options.columns.choice(), options.row_form(), options.table_names()
        assert "hunter2" not in repr(options)


_GIVEN = {
    "host": "h",
    "server": "s",
    "database": "d",
    "table": 'informix.orders,"o w"."t,1"',
    "password": "hunter2",
    "columns": 'orders.id,"t,1"."a b"',
    "mask": 'orders.id=null,"t,1"."a b"=last4',
    "snapshotKey": 'informix.orders(id,"a b")',
    "startingPosition": "47:0x5e018",
    "maxBytesPerTrigger": "64m",
    "connectionString": "OPTOFC=1;PROTOCOL=sesoctcp",
    "floatingDecimal": "decimal(38,4)",
    "segmentCopies": "s3://bucket/path",
}


def _recording(data: bytes) -> None:
    """Read a recording whose digest is right, whatever its lines are."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    digest = hashlib.sha256(b"".join(lines)).hexdigest()
    end = {"what": "end", "events": len(lines) - 1, "sha256": digest}
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"".join(lines) + json.dumps(end).encode())
        file.flush()
        try:
            read_recording(Path(file.name))
        except BadRecording as bad:
            raise BadOption(str(bad)) from None


_RECORDED = (
    {"format": "informix-cdc recording", "version": 1, "server": {"name": "ol"}, "options": {}},
    {"connection": 1, "what": "open", "database": "stores"},
    {"connection": 1, "what": "statement", "text": "SELECT x", "arguments": ["1"], "rows": [["a"]]},
    {"connection": 1, "what": "read", "session": 3, "room": 128, "bytes": "AP8="},
    {"connection": 1, "what": "read", "session": 3, "room": 128,
     "error": {"sqlstate": "IX000", "native": -1, "message": "no"}},
)  # fmt: skip


def _text(read: Callable[[str], object]) -> Callable[[bytes], object]:
    return lambda data: read(data.decode("utf-8", "replace"))


TARGETS = {
    "stream-rows": Target(_stream("rows"), _sound_streams()),
    "stream-envelope": Target(_stream("envelope"), _sound_streams()),
    "stream-json": Target(_stream("json"), _sound_streams()),
    "stream-arrow": Target(_stream("arrow"), _sound_streams()),
    "catalog": Target(
        _catalog,
        tuple(json.dumps([name, *sound_answers(name)]).encode() for name in QUESTIONS),
    ),
    "values": Target(
        _decode, (COLUMNS.encode() + b"\0" + _PAYLOAD, b"a int8, b char(3)\0" + bytes(10) + b"xyz")
    ),
    "column-list": Target(_text(parse_columns), (COLUMNS.encode(), b'"a ""b" char(3), c serial8')),
    "manifest": Target(captures.take_manifest, captures.MANIFESTS),
    "journal": Target(captures.take_journal, captures.JOURNALS),
    "segment": Target(captures.take_segment, captures.SEGMENTS),
    "stored-form": Target(captures.take_form, captures.FORMS),
    "ticket": Target(captures.take_ticket, captures.TICKETS),
    "call": Target(captures.take_call, captures.CALLS),
    "error-of-a-call": Target(captures.take_error, captures.ERRORS),
    "published-capture": Target(captures.take_published, captures.PUBLISHED),
    "reader": Target(captures.take_reader, captures.READERS, documented=(ValueError,)),
    "request": Target(captures.take_request, captures.REQUESTS),
    "reader-file": Target(captures.take_access, captures.ACCESS, documented=(ValueError,)),
    "definition": Target(
        captures.take_definition, captures.DEFINITIONS, documented=(ValueError, TypeError, KeyError)
    ),
    "capture-file": Target(captures.take_capture_file, captures.CAPTURE_FILES),
    "mirror-file": Target(captures.take_mirror_file, captures.MIRROR_FILES),
    "script": Target(captures.take_script, captures.SCRIPTS),
    "masks": Target(
        _text(parse_masks),
        (b'customers.ssn=hash, "Odd, ""Table".phone=last4',),
        documented=(ValueError,),
    ),
    "snapshot-keys": Target(
        _text(snapshot_keys), (b'informix.items(id, "Line ""No"), t(a)',), documented=(ValueError,)
    ),
    "offset": Target(_offset, (json.dumps(captures.OFFSET.to_json()).encode(),)),
    "options": Target(_options, (json.dumps(_GIVEN).encode(),)),
    "recording": Target(_recording, (b"\n".join(json.dumps(e).encode() for e in _RECORDED),)),
    "sqli-of-the-server": Target(converse_with_noise, SOUND_CONVERSATIONS),
    "position": Target(_text(parse), (b"47:0x5e018", b"201863847960")),
    "sqli-answers": Target(sqli.take_answers, sqli.ANSWERS),
    # a length or a number that is believed shows only where much can follow it
    "sqli-large": Target(sqli.take_answers, sqli.LARGE, 1 << 21),
    "stream-large": Target(_stream("rows"), _large_streams(), 1 << 20),
    "sqli-endless": Target(sqli.take_endless, sqli.ENDLESS),
    "sqli-login": Target(sqli.take_login, sqli.LOGINS),
    "sqli-pam": Target(sqli.take_conversation, sqli.CONVERSATIONS),
    "sqli-features": Target(sqli.take_agreement, sqli.AGREEMENTS),
    "db2-messages": Target(db2.take_messages, db2.MESSAGES),
    "db2-log-records": Target(db2.take_logs, db2.LOGS),
    "db2-logical-log": Target(db2.take_logical_logs, db2.LOGICAL),
    "db2-control-file": Target(db2.take_control, db2.CONTROL),
    "db2-declaration": Target(db2.take_declaration, db2.DECLARATIONS),
    "db2-any": Target(db2.take_any, (*db2.MESSAGES, *db2.LOGS, *db2.LOGICAL)),
    "table-name": Target(
        _text(lambda text: TableName.parse(text, "stores")), (b"stores:informix.orders", b'"o"."t t"')
    ),
}
