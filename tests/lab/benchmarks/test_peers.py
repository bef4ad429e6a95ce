"""Decoders of another log, on the same rows: python-mysql-replication and the Java one of Debezium.

Rule: peers are read as their users read them, and none is a dependency of the product or its tests. A
MariaDB server (`binlog_format=ROW`, `binlog_row_metadata=FULL`) holds the same rows, each inserted by a
statement of its own, ten to a transaction. Ours are figures of one side of the wire, and so are theirs:
CPU of the process that decodes, without the server's.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from lab.benchmarks.measuring import Report
from lab.benchmarks.test_many_open import SEGMENT_BYTES, cpu_seconds, encoded_rows
from lab.benchmarks.workload import captured, rows_without_end
from lab.witnesses import jars

URL = os.environ.get("INFORMIX_CDC_BENCH_MARIADB", "")
ROWS = 50_000
TURNS = 3
COLUMNS = (
    "line_num int, written_at bigint, amount decimal(16,2), due date, weight double, is_open boolean,"
    " code char(10), changed datetime(5), label varchar(40), note varchar(100)"
)
JAVA_PASSES = 6

pytestmark = [
    pytest.mark.skipif(
        not URL, reason="INFORMIX_CDC_BENCH_MARIADB=mysql://user:password@host:port names no server"
    ),
    pytest.mark.filterwarnings("ignore:'(db|passwd)' is deprecated:DeprecationWarning"),  # the peer's
]


class Binlog(NamedTuple):
    """Where the rows lie in the server's log."""

    connection: dict[str, Any]
    file: str
    position: int
    path: Path


@pytest.fixture(scope="module")
def binlog() -> Iterator[Binlog]:
    """A log file that begins with the rows of the other benchmarks, and no others."""
    client = pytest.importorskip("pymysql", reason="pip install '.[peers]'")
    where = urlsplit(URL)
    settings = {
        "host": where.hostname,
        "port": where.port or 3306,
        "user": where.username,
        "password": where.password or "",
    }
    connection = client.connect(**settings)
    cursor = connection.cursor()
    cursor.execute("set global binlog_checksum = 'NONE'")  # ours has none to check either
    for statement in ("drop database if exists bench", "create database bench", "flush binary logs"):
        cursor.execute(statement)
    cursor.execute(f"create table bench.rows_ ({COLUMNS})")
    cursor.execute("show master status")
    file, position = cursor.fetchone()[:2]
    for number, row in enumerate(islice(rows_without_end(), ROWS), start=1):
        places = ", ".join(["%s"] * len(row))
        cursor.execute(f"insert into bench.rows_ values ({places})", tuple(row.values()))
        if number % 10 == 0:
            connection.commit()
    connection.commit()
    cursor.execute("flush binary logs")
    cursor.execute("select @@log_bin_basename")
    folder = Path(cursor.fetchone()[0]).parent
    yield Binlog(settings, file, position, folder / file)
    connection.close()


@pytest.fixture(scope="module")
def ours() -> float:
    """Our seconds for the same rows: bytes to Arrow, as many reads joined as a backlog joins."""
    source = captured(ROWS, 10)
    assert source.size_bytes < SEGMENT_BYTES
    return min(cpu_seconds(encoded_rows, source, 24) for _ in range(TURNS))


def test_python_mysql_replication_decodes_the_same_rows(
    report: Report, binlog: Binlog, ours: float
) -> None:
    pytest.importorskip("pymysqlreplication", reason="pip install '.[peers]'")
    theirs = min(seconds_of_python(binlog) for _ in range(2))
    report_peer(report, "python-mysql-replication", theirs, ours)


def seconds_of_python(binlog: Binlog) -> float:
    """Return the CPU seconds that the library takes for the rows, each as a dict of values."""
    from pymysqlreplication import BinLogStreamReader
    from pymysqlreplication.row_event import WriteRowsEvent

    stream = BinLogStreamReader(
        binlog.connection,
        server_id=99,
        log_file=binlog.file,
        log_pos=binlog.position,
        only_events=[WriteRowsEvent],
        resume_stream=True,
    )
    begun, rows = time.thread_time(), 0
    for event in stream:
        rows += len(event.rows)
        if rows == ROWS:
            break
    spent = time.thread_time() - begun
    stream.close()
    assert rows == ROWS
    return spent


def test_a_java_decoder_decodes_the_same_rows(report: Report, binlog: Binlog, ours: float) -> None:
    if not binlog.path.exists():
        pytest.skip(f"the server's {binlog.path} is not on this machine: it was not read in Java")
    try:
        path = jars.classpath("mysql-binlog-connector-java")
    except jars.NotHere as reason:
        pytest.skip(str(reason))
    program = Path(__file__).with_name("BinlogRows.java")
    command = ["java", "-cp", path, str(program), str(binlog.path), str(JAVA_PASSES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    passes = [line.split() for line in done.stdout.splitlines()]
    assert {int(rows) for rows, _, _ in passes} == {ROWS}
    report_peer(
        report, "mysql-binlog-connector-java", min(float(spent) for _, _, spent in passes), ours
    )


def report_peer(report: Report, name: str, theirs: float, ours: float) -> None:
    """Add a line: ours, bytes to Arrow, beside a peer's bytes to values."""
    report.add(
        "beside other logs",
        f"CPU a row: bytes -> Arrow, beside {name} on a MariaDB binlog",
        f"{ours / ROWS * 1e6:.2f} µs",
        f"{theirs / ROWS * 1e6:.2f} µs: {theirs / ours:.1f} x",
    )
