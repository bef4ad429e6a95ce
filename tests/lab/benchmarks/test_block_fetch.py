"""Rows of a SELECT in blocks beside the same SELECT row by row, over both transports, in one run.

The server is the emulator in another process, and most of the time is its own: so the client's side is
measured alone as well, against answers that were kept. Ways take turns.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import closing

from informix_capture_client.choices import DecodeRules
from informix_capture_client.row_fetch import block_reader
from informix_capture_client.row_fetch.declared import require_declared
from informix_capture_client.row_fetch.readers import ROOM_BYTES, _in_blocks
from informix_capture_client.row_fetch.tuple_columns import TupleDecoder
from informix_capture_client.transport.base import Transport
from informix_capture_client.transport.sqli import (
    AnswerReader,
    Features,
    SqliColumn,
    SqliRowReader,
    Tuples,
)
from informix_capture_client.transport.sqli.incoming import Incoming
from informix_capture_client.transport.sqli.transport import SqliTransport
from lab.benchmarks.emulated_source import Plan
from lab.benchmarks.measuring import Report, Timing, timed
from lab.benchmarks.processes import emulated_source
from lab.benchmarks.sessions import connect
from lab.benchmarks.workload import catalog_table
from odbc_driver.build import build_drivers

ROWS = 60_000
ROWS_A_BLOCK = 8_192
REPEATS = 3
COLUMNS = catalog_table().columns
SELECT = f"SELECT {', '.join(column.name for column in COLUMNS)} FROM informix.lines"
AGREED = Features(has_challenge=False, has_bigint=True)
END = b"\0\x0c"
TUPLE = b"\0\x0e\0\0"  # of a row, with its warnings


def in_blocks(transport: Transport) -> int:
    reader = block_reader(transport, DecodeRules(), "lines")
    return sum(batch.num_rows for batch in reader.blocks(SELECT, (), COLUMNS, ROWS_A_BLOCK))


def row_by_row(transport: Transport) -> int:
    return len(transport.rows(SELECT))


WAYS: dict[str, Callable[[Transport], int]] = {"blocks": in_blocks, "row by row": row_by_row}


def kept_answers(transport: SqliTransport) -> tuple[tuple[SqliColumn, ...], list[bytes]]:
    """Return the columns and the answers of the SELECT as bytes."""
    with closing(transport.open_tuples(SELECT, (), ROOM_BYTES)) as cursor:
        answers: list[bytes] = []
        while runs := cursor.fetch():
            answers.append(b"".join(map(_messages, runs)) + END)
        return tuple(cursor.columns), answers


def _messages(run: Tuples) -> bytes:
    """Return a run as it came: one that is a row whose bytes came in two parts has lost its head."""
    if run.starts[0]:
        return run.data
    size = len(run.data)
    return TUPLE + size.to_bytes(4, "big") + run.data + b"\0" * (size & 1)


def decoded_in_blocks(columns: tuple[SqliColumn, ...], answers: list[bytes]) -> int:
    require_declared(columns, COLUMNS, "lines")
    decoder = TupleDecoder(COLUMNS, "lines", DecodeRules())
    readers = (AnswerReader(Incoming(io.BytesIO(answer).readinto), AGREED) for answer in answers)
    runs = (run for reader in readers for run in reader.read(in_bulk=True).tuples)
    return sum(decoder.decode(block).num_rows for block in _in_blocks(runs, ROWS_A_BLOCK))


def decoded_row_by_row(columns: tuple[SqliColumn, ...], answers: list[bytes]) -> int:
    reader = SqliRowReader(columns, "utf-8")
    readers = (AnswerReader(Incoming(io.BytesIO(answer).readinto), AGREED) for answer in answers)
    return sum(1 for each in readers for row in each.read().rows if reader.row(row))


def test_rows_of_a_select_in_blocks_and_row_by_row(report: Report) -> None:
    drivers = {"sqli": "", "odbc": str(build_drivers().narrow)}
    with emulated_source(Plan(backlog_rows=ROWS, keeps_rows=True)) as source:
        source.start_writing()
        source.wait_until_written()
        for name, driver in drivers.items():
            seconds: dict[str, list[float]] = {way: [] for way in WAYS}
            with closing(connect(source, driver)) as transport:
                for _ in range(REPEATS):
                    for way, fetch in WAYS.items():
                        seconds[way].append(timed(lambda fetch=fetch: _whole(fetch(transport))))  # type: ignore[misc]
            _add(report, f"SELECT over {name}", seconds)
        with closing(connect(source)) as transport:
            assert isinstance(transport, SqliTransport)
            columns, answers = kept_answers(transport)
    alone: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(REPEATS):
        alone["blocks"].append(timed(lambda: _whole(decoded_in_blocks(columns, answers))))
        alone["row by row"].append(timed(lambda: _whole(decoded_row_by_row(columns, answers))))
    _add(report, "SELECT over sqli, the client's side alone", alone)


def _whole(rows: int) -> None:
    assert rows == ROWS


def _add(report: Report, what: str, seconds: dict[str, list[float]]) -> None:
    blocks, rows = Timing(tuple(seconds["blocks"])), Timing(tuple(seconds["row by row"]))
    report.add("snapshot", f"{what}, in blocks", blocks.rate(ROWS), blocks.times_faster_than(rows))
    report.add("snapshot", f"{what}, row by row", rows.rate(ROWS))
