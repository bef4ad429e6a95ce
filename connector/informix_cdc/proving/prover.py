"""What a proof works with: a scratch database, SQL connections, capture sessions and streams.

Rule: connections, sessions and streams are closed when their block ends, and each table is recorded so
that it can be dropped.
"""

from __future__ import annotations

import contextlib
import datetime
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from informix_capture_client.records import ServerError, TableSchema
from informix_capture_client.session import CapturedTable, CaptureSession
from informix_capture_client.sql_names import TableName
from informix_capture_client.transport import Transport
from informix_capture_client.transport.sqli import WireTrace
from informix_cdc.options import SnapshotOptions, SourceOptions
from informix_cdc.proving.awaited_stream import AwaitedStream
from informix_cdc.proving.outcomes import Deviation, NotTried, expect, needed
from informix_cdc.proving.reading import PATIENCE_TIMEOUTS, IsEnough, Item, Reader
from informix_cdc.proving.scratch_database import ScratchDatabase, Writer
from informix_cdc.proving.sql_text import ContractTable
from informix_cdc.server import trace_wire
from informix_checkpoints.offsets import NOT_STARTED, StreamOffset

MOST_SECONDS = 180.0  # longer than the TIMEOUT records of a session that is silent
_COLUMNS = {"id": "integer", "b": "varchar(20,0)"}
_NO_SNAPSHOT = SnapshotOptions()


class GuidedReader(Reader):
    """A reader that also requires what the CDC guide says of every session."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._announced: dict[int, str] = {}

    def until(self, is_enough: IsEnough, timeouts: int = 0) -> list[Item]:
        """Read until enough has arrived, as every reader, but not for ever.

        Raises:
            NotTried: other transactions keep coming, so that there is no TIMEOUT record to wait for.
        """
        deadline = time.monotonic() + MOST_SECONDS

        def is_enough_in_time(items: Sequence[Item]) -> bool:
            if is_enough(items):
                return True
            if time.monotonic() > deadline:
                raise NotTried("the server is busy: other transactions kept coming")
            return False

        return super().until(is_enough_in_time, timeouts)

    def receive(self) -> bytes:
        """Return the bytes of one read.

        Raises:
            Deviation: there are none; a session without changes returns a TIMEOUT record.
        """
        received = super().receive()
        expect(bool(received), "each read returns a record", "a read returned no bytes")
        return received

    def read(self) -> list[Item]:
        """Read once.

        Raises:
            Deviation: the server reports an error, or announces other columns of a table.
        """
        new = super().read()
        for item in new:
            if isinstance(item, ServerError):
                name = self.session.codes.name(item.error_code)
                raise Deviation("no ERROR record", f"an ERROR record with {name}")
            if isinstance(item, TableSchema):
                known = self._announced.setdefault(item.table_id, item.columns)
                expect(
                    known == item.columns,
                    "one TABSCHEMA record for each table",
                    "a second TABSCHEMA record with other columns",
                )
        return new


@dataclass(frozen=True, slots=True)
class Pace:
    """How long a run waits.

    Attributes:
        timeouts: TIMEOUT records in a row after which a reader stops waiting.
        seconds: how long a stream is awaited.
    """

    timeouts: int = PATIENCE_TIMEOUTS
    seconds: float = 90.0


@dataclass
class Prover(ScratchDatabase):
    """A scratch database with the options that name its server.

    Attributes:
        options: of the connection; `table` is not used.
        locale: of the database, as connections spell it.
        version: of the server, as it prints it.
        pace: how long it waits.
        observed: what the running proof has noted.
    """

    options: SourceOptions = field(kw_only=True)
    locale: str = ""
    version: str = ""
    pace: Pace = Pace()
    observed: list[str] = field(default_factory=list)

    def note(self, what: str) -> None:
        """Record how the server does something that the assumptions leave open."""
        self.observed.append(what)

    def create_table(self, columns: Mapping[str, str], fragments: str = "") -> ContractTable:
        """Make a table.

        Raises:
            NotTried: the server refuses it.
        """
        with needed("CREATE TABLE is refused"):
            return super().create_table(columns, fragments)

    def plain_table(self) -> ContractTable:
        """Make a table with an INTEGER key and a VARCHAR."""
        return self.create_table(_COLUMNS)

    def reader(self, session: CaptureSession) -> Reader:
        """Return a reader of a session."""
        return GuidedReader(session, self.codec, self.pace.timeouts)

    def start(self, session: CaptureSession, table: ContractTable, *columns: str) -> None:
        """Capture a table, or some of its columns, in an open session, from now on."""
        session.log_full_rows(table.full_name)
        session.start_capture(CapturedTable(table.full_name, columns or table.column_names, 0))
        session.activate(0)

    @contextlib.contextmanager
    def reading(self, *tables: ContractTable, position: int = 0) -> Iterator[tuple[Reader, Writer]]:
        """Capture tables from a position, 0 for now, with a connection that changes them."""
        with self.session(*tables, position=position) as session, self.writer() as writer:
            yield self.reader(session), writer

    @contextlib.contextmanager
    def connection(self, *statements: str) -> Iterator[Transport]:
        """Connect to the database and run some statements first."""
        with contextlib.closing(self.connect(self.database)) as transport:
            for statement in statements:
                transport.rows(statement)
            yield transport

    @contextlib.contextmanager
    def spool(self) -> Iterator[Path]:
        """Yield a private folder for a stream."""
        with TemporaryDirectory(prefix="informix-cdc-prove-") as folder:
            yield Path(folder)

    @contextlib.contextmanager
    def stream(
        self,
        tables: Sequence[ContractTable],
        spool: Path,
        snapshots: SnapshotOptions = _NO_SNAPSHOT,
        offset: StreamOffset = NOT_STARTED,
    ) -> Iterator[AwaitedStream]:
        """Follow tables as a query does, from an offset, with the product's own stream."""
        names = [TableName(each.database, each.owner, each.name) for each in tables]
        options = self.options.of_tables(names)
        values = replace(options.columns, lobs="omit", intervals="string", trailing_blanks="keep")
        options = replace(
            options,
            spool=replace(options.spool, path=str(spool)),
            rows=replace(options.rows, truncate="emit"),
            columns=values,
            snapshots=snapshots,
        )
        with contextlib.closing(AwaitedStream(options, offset, self.pace.seconds)) as followed:
            yield followed

    @contextlib.contextmanager
    def traced(self) -> Iterator[list[str]]:
        """Collect the messages of connections that are opened in the block, over transport=sqli."""
        lines: list[str] = []
        with trace_wire(WireTrace(lines.append, lambda: datetime.datetime.now(datetime.UTC))):
            yield lines
