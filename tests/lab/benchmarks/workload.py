"""The rows that every benchmark measures with, and the bytes a capture session returns for them.

The emulator encodes them in this process, through no socket, before any clock starts.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache

from informix_capture_client.catalog.tables import Table
from informix_capture_client.sql_names import TableName
from informix_capture_client.values.column_list import parse_columns
from informix_emulator import EmulatedServer
from informix_emulator.tables.tables import Capture

PASSWORD = "benchmark"
TABLE = "bench:informix.lines"
COLUMNS = (
    "line_num integer, written_at bigint, amount decimal(16,2), due date, weight float,"
    " is_open boolean, code char(10), changed datetime year to fraction(5),"
    " label varchar(40,0), note lvarchar(100)"
)
RECORDS_PER_READ = 256
BYTES_PER_READ = 256 * 1024
TIMEOUT_RECORD_BYTES = 24

Row = dict[str, object]


def bench_server(
    columns: str = COLUMNS, tables: Sequence[str] = (TABLE,), **arguments: object
) -> EmulatedServer:
    """Return a server with tables, one by default, full row logging on."""
    server = EmulatedServer(name="informix", users={"informix": PASSWORD}, **arguments)  # type: ignore[arg-type]
    server.create_database("bench", logged=True, locale="en_US.utf8")
    for name in tables:
        server.create_table(name, columns, full_row_logging=True)
    return server


def catalog_table(columns: str = COLUMNS) -> Table:
    """Return the table as the client's catalog would describe it."""
    return Table(TableName("bench", "informix", "lines"), 100, 0, "", parse_columns(columns))


def rows_without_end(seed: int = 1) -> Iterator[Row]:
    """Yield rows of mixed widths, one value in twenty NULL."""
    draw = random.Random(seed)
    number = 0
    while True:
        number += 1
        row: Row = {
            "line_num": number,
            "written_at": draw.getrandbits(62),
            "amount": Decimal(draw.randint(-(10**12), 10**12)).scaleb(-2),
            "due": date(2000, 1, 1) + timedelta(days=draw.randrange(20_000)),
            "weight": draw.random() * 1000,
            "is_open": draw.random() < 0.5,
            "code": f"C{draw.randrange(10**6)}",
            "changed": datetime(2024, 1, 1) + timedelta(microseconds=10 * draw.randrange(10**12)),
            "label": "label " * draw.randrange(7),
            "note": "a note of some length " * draw.randrange(5),
        }
        if draw.random() < 0.5:
            row[draw.choice([name for name in row if name != "line_num"])] = None
        yield row


def write(
    server: EmulatedServer,
    rows: int,
    rows_per_transaction: int,
    at_once: int = 1,
    tables: Sequence[str] = (TABLE,),
) -> None:
    """Insert rows in transactions of a size, so many of them side by side, into tables in turn."""
    source = rows_without_end()
    for first in range(0, rows, rows_per_transaction * at_once):
        left = min(rows_per_transaction * at_once, rows - first)
        transactions = [server.begin(user_id=1000) for _ in range(-(-left // rows_per_transaction))]
        for number in range(left):
            table = tables[(first + number) % len(tables)]
            transactions[number % len(transactions)].insert(table, next(source))
        for transaction in transactions:
            transaction.commit()


@dataclass(frozen=True)
class CapturedBytes:
    """What the reads of one session returned, in order, and what is in them."""

    reads: tuple[bytes, ...]
    rows: int
    transactions: int

    @property
    def size_bytes(self) -> int:
        """How many bytes the server sent."""
        return sum(map(len, self.reads))

    @property
    def records(self) -> int:
        """Rows, and the begin and end of each transaction."""
        return self.rows + 2 * self.transactions


def joined(reads: Sequence[bytes], size_bytes: int) -> list[bytes]:
    """Join reads up to a size, as the reader hands them on while they follow each other quickly."""
    blocks: list[list[bytes]] = [[]]
    for read in reads:
        if sum(map(len, blocks[-1])) + len(read) > size_bytes:
            blocks.append([])
        blocks[-1].append(read)
    return [b"".join(block) for block in blocks if block]


@cache
def captured(rows: int, rows_per_transaction: int, at_once: int = 1) -> CapturedBytes:
    """Write rows into a log and return what a session of that log reads, 256 records at a time."""
    server = bench_server()
    start = server.position()
    write(server, rows, rows_per_transaction, at_once)
    return CapturedBytes(_reads(server, start), rows, -(-rows // rows_per_transaction))


def _reads(server: EmulatedServer, start: int, tables: Sequence[str] = (TABLE,)) -> tuple[bytes, ...]:
    session = server.open_session(timeout=0, max_recs=RECORDS_PER_READ)
    for number, name in enumerate(tables):
        table = server.table(name)
        session.capture(Capture(table, [column.name for column in table.columns], number))
    session.activate(start)
    reads = []
    while len(read := session.read(BYTES_PER_READ, lambda: None)) != TIMEOUT_RECORD_BYTES:
        reads.append(read)
    return tuple(reads)


@cache
def captured_of_tables(tables: int, rows: int, rows_per_transaction: int = 10) -> CapturedBytes:
    """Write rows into several tables in turn and return what a session of that log reads."""
    names = [str(table.name) for table in catalog_tables(tables)]
    server = bench_server(tables=names)
    start = server.position()
    write(server, rows, rows_per_transaction, tables=names)
    return CapturedBytes(_reads(server, start, names), rows, -(-rows // rows_per_transaction))


def catalog_tables(count: int) -> list[Table]:
    """Return tables as the client's catalog would describe them."""
    columns = parse_columns(COLUMNS)
    return [
        Table(TableName("bench", "informix", f"t{number}"), 100 + number, 0, "", columns)
        for number in range(count)
    ]
