"""The guide's sample session, reproduced by the emulator and read back through our own session.

CDC guide, chapter 7, sample output: session 39, table `col1 serial, col2 char(1), col3 int8`,
BEGINTX 47:0x5e018, INSERT 47:0x5e04c of (1, 'a', 1000), COMMTX 47:0x5e09c, transaction 24.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime

import pytest

from harness.servers.stores import PASSWORD, SHORT_SECOND
from informix_capture_client import decode_payloads
from informix_capture_client.errors import BadOption
from informix_capture_client.positions import Position, parse, show
from informix_capture_client.records.framing import RecordCutter
from informix_capture_client.records.records import (
    RecordBlock,
    TableSchema,
    Timeout,
    parse_block,
)
from informix_capture_client.session.session import CapturedTable, CaptureSession, SessionSettings
from informix_capture_client.transactions.assembler import TransactionAssembler
from informix_capture_client.transactions.events import CommittedTransactions
from informix_capture_client.transport.base import ConnectionSettings, Transport
from informix_capture_client.transport.odbc.transport import OdbcTransport
from informix_capture_client.transport.sqli.transport import SqliTransport
from informix_emulator import EmulatedServer, ListeningServer
from odbc_driver.build import Drivers

BEGIN, INSERT, COMMIT = "47:0x5e018", "47:0x5e04c", "47:0x5e09c"
COLUMNS = "col1 serial, col2 char(1), col3 int8"
TABLE = "test:informix.t1"
TIME = datetime(2008, 10, 23, 19, 1, 51, tzinfo=UTC).timestamp()


@pytest.fixture
def sample() -> Iterator[tuple[EmulatedServer, ListeningServer]]:
    server = EmulatedServer(
        name="new1",
        users={"informix": PASSWORD},
        clock=lambda: TIME,
        first_log=47,
        next_session_id=39,
        timeout_seconds=SHORT_SECOND,
    )
    server.create_database("test", logged=True, locale="en_US.utf8")
    server.create_table(TABLE, COLUMNS)
    with ListeningServer(server) as listening:
        yield server, listening


@contextmanager
def session(port: int, driver: str, buffer_bytes: int = 65536) -> Iterator[CaptureSession]:
    settings = ConnectionSettings(
        host="127.0.0.1",
        port=port,
        server="new1",
        database="test",
        db_locale="en_US.utf8",
        user="informix",
        password=PASSWORD,
        driver=driver,
    )
    transport: Transport = OdbcTransport(settings) if driver else SqliTransport(settings)
    with closing(transport):
        options = SessionSettings(server="new1", max_records=1, buffer_bytes=buffer_bytes)
        with closing(CaptureSession(transport, options)) as opened:
            yield opened


def blocks_until_timeout(opened: CaptureSession) -> list[RecordBlock]:
    """Read records one by one until the server has nothing more."""
    cutter = RecordCutter()
    blocks: list[RecordBlock] = []
    while True:
        if (raw := cutter.feed(opened.read())) is None:
            continue
        block = parse_block(raw)
        if not block.is_row[0] and isinstance(block.control(0), Timeout):
            return blocks
        blocks.append(block)


@pytest.mark.slow
@pytest.mark.parametrize("buffer_bytes", [128, 129, 4096, 1 << 20])
@pytest.mark.parametrize("transport", ["sqli", "narrow", "wide"])
def test_the_sample_of_the_guide_is_read_back_with_its_positions(
    transport: str,
    buffer_bytes: int,
    sample: tuple[EmulatedServer, ListeningServer],
    drivers: Drivers,
) -> None:
    server, listening = sample
    driver = "" if transport == "sqli" else str(getattr(drivers, transport))
    with session(listening.port, driver, buffer_bytes) as opened:
        assert opened.session_id == 39
        opened.log_full_rows(TABLE)
        opened.start_capture(CapturedTable(TABLE, ("col1", "col2", "col3"), 0))
        opened.activate(0)
        server.move_to(parse(BEGIN))
        with server.transaction(transaction_id=24) as one:
            one.insert(TABLE, {"col1": 1, "col2": "a", "col3": 1000})
        blocks = blocks_until_timeout(opened)

    schema = blocks[0].control(0)
    assert schema == TableSchema(0, 15, 3, 0, COLUMNS)
    assert int(blocks[0].raw.payload_sizes[0]) == 37  # the trailing NUL is counted, as in the guide
    assert show(int(blocks[2].sequence_numbers[0])) == INSERT
    assembler = TransactionAssembler(Position(0, 0))
    (transaction,) = [
        e for b in blocks for e in assembler.feed(b) if isinstance(e, CommittedTransactions)
    ]
    assert list(map(show, transaction.begin_sequence_numbers.tolist())) == [BEGIN]
    assert list(map(show, transaction.commit_sequence_numbers.tolist())) == [COMMIT]
    assert transaction.transaction_ids.tolist() == [24]
    assert transaction.commit_times.tolist() == [TIME]
    (rows,) = transaction.rows
    raw, (place,) = rows.block.raw, rows.places
    start = int(raw.starts[place] + raw.header_sizes[place])
    payload = raw.data[start : start + int(raw.payload_sizes[place])]
    assert len(payload) == 15
    assert decode_payloads(COLUMNS, [([], payload)]).to_pylist() == [
        {"col1": 1, "col2": "a", "col3": 1000}
    ]


@pytest.mark.parametrize("transport", ["sqli", "narrow"])
def test_a_wrong_column_is_refused_with_the_servers_own_words(
    transport: str, sample: tuple[EmulatedServer, ListeningServer], drivers: Drivers
) -> None:
    driver = "" if transport == "sqli" else str(getattr(drivers, transport))
    with session(sample[1].port, driver) as opened:
        opened.log_full_rows(TABLE)
        with pytest.raises(BadOption, match=r"cdc_startcapture of test:informix\.t1 .*CDC_E_NOCOL"):
            opened.start_capture(CapturedTable(TABLE, ("col1", "col9"), 0))


def test_a_session_is_deactivated_and_skips_to_a_record_boundary(
    sample: tuple[EmulatedServer, ListeningServer],
) -> None:
    server, listening = sample
    with session(listening.port, "", 128) as opened:
        opened.log_full_rows(TABLE)
        opened.start_capture(CapturedTable(TABLE, ("col1", "col2", "col3"), 0))
        opened.activate(0)
        with server.transaction() as one:
            one.insert(TABLE, {"col1": 1, "col2": "a", "col3": 1000})
        assert len(opened.read()) == 73  # the whole TABSCHEMA record: 36 header and 37 payload bytes
        assert opened.skip_to_record_boundary() >= 0
        opened.deactivate()
