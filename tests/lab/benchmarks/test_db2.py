"""Db2's formats: columns, beside a decoder that goes row by row and does the same."""

from __future__ import annotations

import csv
import io
import struct
from collections.abc import Callable
from decimal import Decimal

from db2.log_writer import LogWriter
from db2.logical_log_writer import rdw
from db2.message_writer import Written, by_arrow
from db2.test_logical_log import change, emp
from informix_db2 import (
    Decoder,
    LogicalLogSettings,
    LogSettings,
    QMessageSettings,
    log_records_decoder,
    logical_log_decoder,
    q_messages_decoder,
)
from lab.benchmarks.measuring import Report, one_core, repeated

RECORDS = 20_000
NAMES = [f"c{number}" for number in range(10)]
MESSAGE_TABLE = {
    "TEST.T": ", ".join(f"{name} {'VARCHAR(9)' if n % 2 else 'INT'}" for n, name in enumerate(NAMES))
}
LOG_TABLE = {"4.5": "a INT NOT NULL, b DECIMAL(9,2) NOT NULL, c VARCHAR(9) NOT NULL"}
EMP = {
    "TEST.EMP": "ID INT NOT NULL, NAME VARCHAR(8), PAY DEC(9,2) NOT NULL, D DATE NOT NULL, C CHAR(4)"
}


def _rows(make: Callable[[], Decoder], data: bytes) -> int:
    return sum(len(rows.batch) for rows in make().rows([data], ["file"]))


def test_delimited_messages(report: Report) -> None:
    row = ["text" if number % 2 else 1234567 for number in range(10)]
    record = by_arrow(Written("update", row, row))
    data, fields = record * RECORDS, RECORDS * 32

    def make() -> Decoder:
        return q_messages_decoder(MESSAGE_TABLE, QMessageSettings())

    def row_by_row() -> int:
        made = []
        for line in csv.reader(io.StringIO(data.decode())):
            for first in (12, 22):
                values = line[first : first + 10]
                made.append([int(v) if n % 2 == 0 else v for n, v in enumerate(values)])
        return len(made)

    assert _rows(make, data) == row_by_row() == 2 * RECORDS
    with one_core():
        ours, beside = repeated(lambda: _rows(make, data)), repeated(row_by_row)
    report.add(
        *("db2.q_messages", "32 fields a record, typed", ours.rate(fields).replace("/s", " fields/s")),
        f"csv and int, no header {beside.rate(fields).replace('/s', ' fields/s')}",
    )


def test_log_records(report: Report) -> None:
    log, records = LogWriter(fixed=13), 5 * RECORDS
    user = struct.pack("<i", 7) + bytes.fromhex("010900000d") + struct.pack("<HH", 13, 4) + b"text"
    data = b"".join(
        b"".join(log.row(162, user, rid) for rid in range(9)) + log.commit()
        for _ in range(records // 10)
    )

    def make() -> Decoder:
        return log_records_decoder(LOG_TABLE, LogSettings())

    def row_by_row() -> int:
        at, made = 0, []
        while at < len(data):
            size, kind = struct.unpack_from("<IH", data, at)
            if kind == 0x4E:
                row = data[at + 68 : at + size]
                begin, length = struct.unpack_from("<HH", row, 9)
                packed = row[4:9].hex()
                pay = Decimal(packed[:-1]).scaleb(-2) * (-1 if packed[-1] in "bd" else 1)
                made.append(
                    (struct.unpack_from("<i", row)[0], pay, row[begin : begin + length].decode())
                )
            at += size
        return len(made)

    assert _rows(make, data) == row_by_row() == records // 10 * 9
    with one_core():
        ours, beside = repeated(lambda: _rows(make, data)), repeated(row_by_row)
    report.add(
        *(
            "db2.log_records",
            "9 inserts a transaction, typed",
            ours.rate(records).replace("/s", " records/s"),
        ),
        f"struct, no transactions {beside.rate(records).replace('/s', ' records/s')}",
    )


def test_logical_logs(report: Report) -> None:
    data = rdw(change("I ", emp(42, "Ed"))) * RECORDS

    def make() -> Decoder:
        return logical_log_decoder(EMP, LogicalLogSettings())

    def row_by_row() -> int:
        at, made = 0, []
        while at < len(data):
            (size,) = struct.unpack_from(">H", data, at)
            row, length = data[at + 294 : at + size], data[at + 300]
            packed = row[7 + length : 12 + length].hex()
            pay = Decimal(packed[:-1]).scaleb(-2) * (-1 if packed[-1] in "bd" else 1)
            name, day = (
                row[7 : 7 + length].decode("cp037"),
                row[12 + length : 22 + length].decode("cp037"),
            )
            made.append((struct.unpack_from(">i", row)[0], name, pay, day))
            at += size
        return len(made)

    assert _rows(make, data) == row_by_row() == RECORDS
    with one_core():
        ours, beside = repeated(lambda: _rows(make, data)), repeated(row_by_row)
    report.add(
        *(
            "db2.logical_log",
            "inserts of five columns, typed",
            ours.rate(RECORDS).replace("/s", " records/s"),
        ),
        f"struct, no header {beside.rate(RECORDS).replace('/s', ' records/s')}",
    )
