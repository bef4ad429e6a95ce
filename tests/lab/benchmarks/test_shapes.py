"""What the other shapes cost beside the default one, from committed transactions to Arrow batches."""

from __future__ import annotations

from informix_capture_client.choices import DecodeRules, RowForm
from informix_capture_client.incremental_snapshot import SnapshotKey, TouchedKeys, TouchedTables
from informix_capture_client.records.framing import RecordCutter
from informix_capture_client.records.records import TableSchema, parse_block
from informix_capture_client.session.read_ahead import JOINED_BYTES
from informix_capture_client.shapes.encoder import ChangeEncoder
from informix_capture_client.shapes.row_forms import make_encoder
from informix_capture_client.transactions.assembler import TransactionAssembler
from informix_capture_client.transactions.events import CommittedTransactions
from lab.benchmarks.measuring import Report, one_core, repeated
from lab.benchmarks.pipeline import START
from lab.benchmarks.workload import captured, catalog_table, joined

ROWS = 200_000
SHAPES = (RowForm(), RowForm(shape="envelope"), RowForm(shape="raw"))


def test_shapes_are_encoded(report: Report) -> None:
    source = captured(ROWS, 10)
    with one_core():
        timings = []
        for row_form in SHAPES:
            encoder, transactions = committed(joined(source.reads, JOINED_BYTES), row_form)
            timings.append(repeated(lambda: list(encoder.encode(transactions))))  # noqa: B023
    for row_form, timing in zip(SHAPES, timings, strict=True):
        beside = f"rows: {timing.times_faster_than(timings[0])}"
        report.add("encoding", f"shape={row_form.shape}", timing.rate(ROWS), beside)


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
            encoder, transactions = committed(joined(source.reads, JOINED_BYTES), RowForm(), observer)

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
    reads: list[bytes], row_form: RowForm, observer: TouchedTables | None = None
) -> tuple[ChangeEncoder, list[CommittedTransactions]]:
    """Return an encoder that knows the table, and what it is to encode."""
    encoder = make_encoder([catalog_table()], DecodeRules(), row_form, observer=observer)
    cutter, assembler = RecordCutter(), TransactionAssembler(START)
    assembler.with_bounds = row_form.shape == "raw"
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
