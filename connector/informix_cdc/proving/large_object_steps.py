"""The steps of the proof about smart large objects.

Rule: FILETOBLOB makes the object of a public file of the server; its bytes are compared and dropped.
"""

from __future__ import annotations

from informix_capture_client.errors import InformixCdcError
from informix_capture_client.object_readers import (
    GONE,
    READ,
    ByKey,
    Content,
    ObjectReader,
    object_reader,
    read_whole,
    try_open,
)
from informix_capture_client.records import RecordKind
from informix_cdc.proving.outcomes import NotTried, error_text, expect, expect_equal
from informix_cdc.proving.prover import Prover
from informix_cdc.proving.sql_text import ContractTable

FILES = ("/etc/services", "/etc/protocols")
_MOST, _LOCATOR_AT, _LOCATOR_BYTES = 1 << 24, 4 + 4, 72  # behind an INTEGER and the indicator


def require_objects(prover: Prover) -> None:
    """Open an object by the handle of the log and by SELECT, delete its row, and open it again.

    Raises:
        NotTried: the server cannot make one.
        Deviation: see the expectations.
    """
    table, locator = _captured(prover)
    with prover.connection() as transport:
        reader = object_reader(transport)
        found = _content(reader, locator)
        is_whole = found.status == READ and found.size == len(found.data or b"") > 0
        expect(is_whole, "an object that is read whole", f"status {found.status}", 100, 101, 102)
        by_key = ByKey(f"SELECT t.content FROM {table.name} t WHERE t.id = ?", (1,))
        expect(_content(reader, by_key) == found, "the same object by SELECT", "another one", 105)
        opened = try_open(reader, locator, _MOST)
        with prover.writer() as writer:
            writer.run(f"DELETE FROM {table.name}")
        status = read_whole(reader, opened, _MOST, lambda: False).status
        expect_equal("an open object whose row was deleted", READ, status, 104)
        try:
            status = _content(reader, locator).status
        except InformixCdcError as reason:
            status = error_text(reason)
        expect_equal("an object whose row was deleted", GONE, status, 103)


def _captured(prover: Prover) -> tuple[ContractTable, bytes]:
    """Insert an object; return its table, and its locator as the log has it."""
    table = prover.create_table({"id": "integer", "content": "blob"})
    with prover.reading(table) as (reader, writer):
        refusals = []
        for path in FILES:
            try:
                writer.run(f"INSERT INTO {table.name} VALUES (1, FILETOBLOB('{path}', 'server'))")
                break
            except InformixCdcError as reason:
                refusals.append(error_text(reason))
        else:
            raise NotTried(f"the server makes no large object: {', '.join(refusals)}")
        reader.until_ended()
    row = next(each for each in reader.rows if each.kind == RecordKind.INSERT)
    return table, row.payload[_LOCATOR_AT : _LOCATOR_AT + _LOCATOR_BYTES]


def _content(reader: ObjectReader, place: bytes | ByKey) -> Content:
    return read_whole(reader, try_open(reader, place, _MOST), _MOST, lambda: False)
