"""How log records lie in files and messages."""

from __future__ import annotations

import struct

import pytest

from db2.log_writer import DELETE, LogWriter
from db2.test_log_records import MARKS, decoder, rows_of
from informix_capture_client.errors import (
    ProtocolViolation,
)

PREFIXES = {"records": b"", "lri8": bytes(8), "lri24": bytes(24), "lri48": bytes(48)}


@pytest.mark.parametrize("container", [*PREFIXES, "filter"])
@pytest.mark.parametrize("mark", MARKS)
def test_records_are_found_in_every_container(container: str, mark: str) -> None:
    log = LogWriter(mark)
    records = [log.row(162, b"one"), log.commit()]
    filtered = [bytes(48) + struct.pack(mark + "Ii", len(record), 0) for record in records]
    heads = filtered if container == "filter" else [PREFIXES[container]] * 2
    data = b"".join(head + record for head, record in zip(heads, records, strict=True))
    (row,) = rows_of(decoder(container=container), data)
    assert row["after"] == b"one"


def test_a_row_that_the_server_could_not_decompress_is_refused_with_its_sqlcode() -> None:
    log = LogWriter()
    record = log.row(162, b"one")
    data = bytes(48) + struct.pack("<Ii", len(record), -2044) + record
    with pytest.raises(ProtocolViolation, match="SQLCODE -2044"):
        rows_of(decoder(container="filter"), data)


def test_a_record_a_message_makes_one_log_of_all_messages() -> None:
    log = LogWriter()
    messages = [log.row(162, b"one"), log.commit(), log.row(162, b"two")]
    rows = rows_of(decoder(container="message"), *messages)
    assert [(row["_change_type"], row["after"]) for row in rows] == [
        ("insert", b"one"),
        ("incomplete", b"two"),
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_files_that_follow_on_each_other_are_one_log_where_they_are_cut(size: int) -> None:
    log = LogWriter()
    records = [log.out_of_row(), log.lob(64, 0, b"x"), log.row(162, b"one"), log.update(b"one", b"two")]
    records += [log.commit(), log.row(161, b"two"), log.lob(66, 65535, b"y", DELETE), log.commit()]
    whole = rows_of(decoder(), b"".join(records))
    files = [b"".join(records[at : at + size]) for at in range(0, len(records), size)]
    assert rows_of(decoder(across_values=True), *files) == whole


def test_a_byte_order_that_is_named_is_kept() -> None:
    log = LogWriter("<")
    with pytest.raises(ProtocolViolation, match="not a log record"):
        rows_of(decoder(byte_order="big"), log.commit())


def test_two_records_in_one_message_are_refused() -> None:
    log = LogWriter()
    two = log.row(162, b"one") + log.commit()
    with pytest.raises(ProtocolViolation, match="more bytes than the one record"):
        rows_of(decoder(container="message", byte_order="little"), two)


def test_each_file_may_be_in_its_own_byte_order() -> None:
    """A record that is read by itself, here one of a large object, is read in it too."""
    files = []
    for mark in ("<", ">", "<"):
        log = LogWriter(mark)
        files.append(log.row(162, b"one") + log.lob(64, 1, b"piece") + log.commit(1_700_000_000))
    one, *others = (rows_of(decoder(), each) for each in files)
    assert others == [one, one]
    assert rows_of(decoder(), *files) == one * 3


def test_a_file_that_begins_with_a_record_of_type_0_has_no_byte_order() -> None:
    record = bytearray(LogWriter("<").row(162, b"one"))
    record[4:6] = b"\0\0"
    with pytest.raises(ProtocolViolation, match="the byte order"):
        rows_of(decoder(), bytes(record))
