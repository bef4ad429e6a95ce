"""The cost of a capture, from committed transactions to stored changes, and of each shape on read."""

from __future__ import annotations

from harness.capture.shaped import delivery_of
from informix_capture_client.choices import DecodeRules, RowForm
from informix_capture_client.incremental_snapshot import SnapshotKey, TouchedKeys, TouchedTables
from informix_capture_client.records.framing import RecordCutter
from informix_capture_client.records.records import TableSchema, parse_block
from informix_capture_client.session.read_ahead import JOINED_BYTES
from informix_capture_client.shapes import ChangeEncoder
from informix_capture_client.transactions.assembler import TransactionAssembler
from informix_capture_client.transactions.events import CommittedTransactions
from lab.benchmarks.measuring import Report, one_core, repeated
from lab.benchmarks.pipeline import START
from lab.benchmarks.workload import captured, catalog_table, joined

ROWS = 200_000
SHAPES = (RowForm(), RowForm(shape="json"), RowForm(shape="arrow"), RowForm(shape="envelope"))


def test_changes_are_stored_once_and_each_shape_is_made_on_read(report: Report) -> None:
    source = captured(ROWS, 10)
    encoder, transactions = committed(joined(source.reads, JOINED_BYTES))
    deliveries = [delivery_of([catalog_table()], form) for form in SHAPES]
    with one_core():
        encoding = repeated(lambda: list(encoder.encode(transactions)))
        stored = list(encoder.encode(transactions))
        timings = [
            repeated(lambda delivery=delivery: list(delivery.rows(stored)))  # type: ignore[misc]
            for delivery in deliveries
        ]
    report.add("encoding", "transactions -> stored changes", encoding.rate(ROWS))
    for form, timing in zip(SHAPES, timings, strict=True):
        beside = f"rows: {timing.times_faster_than(timings[0])}"
        report.add("rows on read", f"shape={form.shape}", timing.rate(ROWS), beside)


def test_keys_are_collected_beside(report: Report) -> None:
    """What a snapshot costs the change stream: its key, and one of two columns, of every image."""
    source = captured(ROWS, 10)
    table = catalog_table()
    columns = {column.name: column for column in table.columns}
    keys = [None, ("line_num",), ("code", "line_num")]
    with one_core():
        timings = []
        for names in keys:
            observer = TouchedTables()
            encoder, transactions = committed(joined(source.reads, JOINED_BYTES), observer)

            def encode() -> None:
                if names is not None:  # noqa: B023
                    key = SnapshotKey(table.name, tuple(columns[name] for name in names))  # noqa: B023
                    observer.watch(0, TouchedKeys(key, 0))  # noqa: B023
                list(encoder.encode(transactions))  # noqa: B023

            timings.append(repeated(encode))
    for names, timing in zip(keys, timings, strict=True):
        beside = f"none: {timing.times_faster_than(timings[0])}"
        report.add(
            "encoding", f"keys collected: {', '.join(names or ['none'])}", timing.rate(ROWS), beside
        )


def committed(
    reads: list[bytes], observer: TouchedTables | None = None
) -> tuple[ChangeEncoder, list[CommittedTransactions]]:
    """Return an encoder that knows the table, and what it is to encode."""
    encoder = ChangeEncoder([catalog_table()], DecodeRules(), observer=observer)
    cutter, assembler = RecordCutter(), TransactionAssembler(START)
    found: list[CommittedTransactions] = []
    for read in reads:
        if (raw := cutter.feed(read)) is None:
            continue
        for event in assembler.feed(parse_block(raw)):
            if isinstance(event, TableSchema):
                encoder.announce(event)
            elif isinstance(event, CommittedTransactions):
                found.append(event)
    return encoder, found
