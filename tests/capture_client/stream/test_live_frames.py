"""Whole records of a live server, header and row: tests/golden/live_frames.json names their source.

The second is a row of another table under the capture's label, whose sizes fit by construction.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness import GOLDEN
from harness.capture.streams import begin, blocks, commit
from informix_capture_client import decode_payloads
from informix_capture_client.choices import DecodeRules
from informix_capture_client.errors import ProtocolViolation
from informix_capture_client.positions import Position
from informix_capture_client.records import RecordBlock, RecordKind
from informix_capture_client.stream import Creation, PreviousTables
from informix_capture_client.transactions import (
    CommittedTransactions,
    PositionPassed,
    StreamCounters,
    TransactionAssembler,
)

RECORDED = json.loads((GOLDEN / "live_frames.json").read_text())
OURS, FOREIGN = RECORDED["frames"]
CREATED = 1_763_606_228  # later than the foreign table's rows


def block_of(frame: dict[str, Any]) -> RecordBlock:
    (block,) = blocks([bytes.fromhex(frame["hex"])])
    return block


def decoded(block: RecordBlock, charset: str = "utf-8") -> list[dict[str, Any]]:
    """Decode a record by the sizes that its header counts."""
    raw = block.raw
    header, size = int(raw.header_sizes[0]), int(raw.payload_sizes[0])
    sizes = [int.from_bytes(raw.data[header - 4 : header])]  # of the one variable column
    row = (sizes, raw.data[header : header + size])
    return decode_payloads(RECORDED["columns"], [row], DecodeRules(codec=charset)).to_pylist()


def transactions_with(frame: dict[str, Any], begun: int) -> list[Any]:
    """The events of a transaction of one record, behind a table that was created at CREATED."""
    number, transaction = frame["sequence_number"], frame["transaction_id"]
    stream = [
        begin(number - 40, transaction, begun, 0),
        bytes.fromhex(frame["hex"]),
        commit(number + 200, transaction, begun + 1),
    ]
    assembler = TransactionAssembler(Position(0, 0))
    former = PreviousTables([Creation("other", 0), Creation("stores:informix.ours", CREATED)])
    (block,) = blocks([b"".join(stream)])
    return [
        kept
        for event in assembler.feed(block)
        for kept in former.without_their_rows(event, StreamCounters())  # type: ignore[arg-type]
    ]


@pytest.mark.parametrize("frame", [OURS, FOREIGN], ids=["ours", "foreign"])
def test_a_live_header_says_what_its_server_meant(frame: dict[str, Any]) -> None:
    block = block_of(frame)
    assert block.raw.kinds.tolist() == [RecordKind.INSERT]
    assert block.sequence_numbers.tolist() == [frame["sequence_number"]]
    assert block.transaction_ids.tolist() == [frame["transaction_id"]]
    assert block.table_ids.tolist() == [frame["user_data"]]


def test_a_live_record_is_decoded_to_the_row_that_was_written() -> None:
    assert decoded(block_of(OURS)) == [OURS["row"]]


def test_a_row_of_another_table_that_fits_the_columns_is_refused_by_its_text() -> None:
    """In a database in Latin-1 nothing would refuse it: hence the rule of former tables."""
    with pytest.raises(ProtocolViolation):
        decoded(block_of(FOREIGN))
    (row,) = decoded(block_of(FOREIGN), "iso8859-1")
    assert row["payload"] is not None


@pytest.mark.parametrize("frame", [OURS, FOREIGN], ids=["ours", "foreign"])
def test_a_record_from_before_its_table_was_created_is_left_out(frame: dict[str, Any]) -> None:
    assert [type(event) for event in transactions_with(frame, begun=CREATED)] == [PositionPassed]
    assert [type(event) for event in transactions_with(frame, begun=CREATED + 1)] == [
        CommittedTransactions
    ]
