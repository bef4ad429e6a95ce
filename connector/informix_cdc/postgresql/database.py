"""A PostgreSQL database and schema: a connection that comes back, and errors that quote no row.

Rule: statements are run one at a time, whichever thread asks. A transaction that fails is undone as a
whole. Texts of the server may quote values: only conditions and names are shown.

Sources: PostgreSQL 17, "Appendix A. Error Codes", "Connection Strings"; psycopg 3, "Exceptions".
"""

from __future__ import annotations

import contextlib
import re
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random_exponential

from informix_capture_client.errors import BadOption, TargetUnavailable
from informix_cdc.postgresql.column_types import quoted

if TYPE_CHECKING:
    import psycopg

_CONNECT_SECONDS = 10
_MOST_PREPARED = 5000  # statements: two for each table
PATIENT_SECONDS, BRIEF_SECONDS = 120.0, 5.0  # a server that restarts is waited for, by its writer
# How values are written and read as text, and the name that pg_stat_activity shows.
_SESSION = {
    "application_name": "informix-cdc",
    "client_encoding": "UTF8",
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "standard_conforming_strings": "on",
}
_REFUSED = re.compile("22...|23...|42...|44...|54...|0A...|2B...|P0...|55006|428C9")
_OF_TABLES = re.compile(r"(for|of) (table|relation|sequence) ")  # in texts about missing rights


class Refused(Exception):
    """The server refuses a statement for good; `reason` quotes no value."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Place:
    """A schema of a database, as in `postgresql://user@host:port/database/schema`.

    Attributes:
        connection: parameters of libpq.
        schema: name of the schema.
    """

    connection: Mapping[str, str] = field(repr=False)
    schema: str

    @classmethod
    def of(cls, into: str, parameters: Mapping[str, str] | None = None) -> Place:
        """Return the place that a text names.

        Args:
            into: the text.
            parameters: further parameters of libpq, such as sslmode, passfile or service.

        Raises:
            BadOption: the text names no database and schema, or has a password.
        """
        try:
            url = urlsplit(into)
            port = url.port
        except ValueError:
            raise BadOption(f"into is {_without_user(into)!r}, which is not a URL.", _WANTED) from None
        parts = [unquote(each) for each in url.path.split("/") if each]
        if url.scheme not in ("postgresql", "postgres") or len(parts) != 2 or url.query or url.fragment:
            raise BadOption(f"into is {_without_user(into)!r}.", _WANTED)
        if url.password is not None:
            raise BadOption(
                "into contains a password.",
                "Put it into ~/.pgpass, or set passfile in storage_options; into may have the user.",
            )
        named = {"host": url.hostname, "port": port, "user": url.username, "dbname": parts[0]}
        found = {name: unquote(str(value)) for name, value in named.items() if value}
        return cls({**found, **(parameters or {})}, parts[1])

    def __str__(self) -> str:
        """Return it without user and parameters."""
        known = self.connection
        host = f"{known.get('host', '')}{':' if 'port' in known else ''}{known.get('port', '')}"
        return f"postgresql://{host}/{known.get('dbname', '')}/{self.schema}"


_WANTED = "Use postgresql://user@host:port/database/schema, without a password."


def _without_user(into: str) -> str:
    return re.sub(r"//[^/]*@", "//", into)


class PostgresDatabase:
    """A connection to a schema; it connects when it is used, and again when the connection was lost.

    Args:
        place: of the schema.
        settings: of the session, besides those that determine how values are written.
        patient_seconds: for how long a server that does not answer is tried again.

    Raises:
        TargetUnavailable: by every method: the server cannot be reached, or has ended the connection.
        Refused: by every method: the server refuses the statement for good.
    """

    def __init__(
        self,
        place: Place,
        settings: Mapping[str, str] | None = None,
        patient_seconds: float = PATIENT_SECONDS,
    ) -> None:
        self.place = place
        self._settings, self._patient_seconds = settings or {}, patient_seconds
        self._open: list[psycopg.Connection[tuple[Any, ...]]] = []  # one, or none
        self._lock = threading.RLock()
        weakref.finalize(self, _close, self._open)  # psycopg warns of connections that are left open
        self.connections = 0  # that were made: what a session knows is gone with it

    def name(self, table: str) -> str:
        """Return the name of a table of the schema, quoted."""
        return f"{quoted(self.place.schema)}.{quoted(table)}"

    def connect(self) -> None:
        """Connect, unless there is a connection that works; patient with a server that restarts."""
        import psycopg

        def is_away(error: BaseException) -> bool:
            return isinstance(error, psycopg.OperationalError) and not _is_wrong(error)

        with self._lock, self._coded():
            for attempt in Retrying(
                retry=retry_if_exception(is_away),
                stop=stop_after_delay(self._patient_seconds),
                wait=wait_random_exponential(0.1, 5),
                reraise=True,
            ):
                with attempt:
                    self._works()

    def _works(self) -> None:
        """Ask the server something; leave no connection if it does not answer."""
        try:
            self._opened().execute("SELECT 1")
        except Exception:
            self.close()
            raise

    def _opened(self) -> psycopg.Connection[tuple[Any, ...]]:
        import psycopg

        if self._open and not self._open[0].closed:
            return self._open[0]
        parameters = {"connect_timeout": str(_CONNECT_SECONDS), **self.place.connection}
        made = psycopg.connect(**parameters, autocommit=True)  # type: ignore[arg-type]
        made.prepared_max = _MOST_PREPARED
        self._open[:] = [made]
        self.connections += 1
        wanted = {**_SESSION, **self._settings}
        set_all = ", ".join("set_config(%s, %s, false)" for _ in wanted)
        made.execute(f"SELECT {set_all}", [text for pair in wanted.items() for text in pair])
        made.execute(
            "SELECT set_config('synchronous_commit', 'on', false)"
            " WHERE current_setting('synchronous_commit') = 'off'"
        )
        return made

    def rows(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Run a statement, and return its rows; none for a statement without rows."""
        with self._lock, self._coded():
            found = self._opened().execute(statement, values or None)
            return found.fetchall() if found.description else []

    def run(self, statement: str, values: Sequence[object] = ()) -> int:
        """Run a statement, or several without values; return the number of rows of the last one."""
        with self._lock, self._coded():
            return self._opened().execute(statement, values or None).rowcount

    def run_each(self, statements: Iterable[tuple[str, Sequence[Sequence[object]]]]) -> None:
        """Run statements, each for several rows of values, without waiting for one before the next.

        Raises:
            Refused: one of them; which one is not known.
        """
        with self._lock, self._coded(), self._opened().pipeline() as pipeline:
            cursor = self._opened().cursor()
            for statement, rows in statements:
                cursor.executemany(statement, rows)
            pipeline.sync()

    def copy_in(self, target: str, columns: Iterable[str], pieces: Iterable[bytes]) -> None:
        """Append rows, given as CSV, to a table in SQL syntax."""
        listed = ", ".join(map(quoted, columns))
        statement = f"COPY {target} ({listed}) FROM STDIN (FORMAT csv)"
        with self._lock, self._coded(), self._opened().cursor().copy(statement) as copy:
            for piece in pieces:
                copy.write(piece)

    def copy_out(self, query: str, values: Sequence[object] = ()) -> bytes:
        """Return the rows of a query as CSV."""
        statement = f"COPY ({query}) TO STDOUT (FORMAT csv)"
        with self._lock, self._coded(), self._opened().cursor().copy(statement, values or None) as copy:
            return b"".join(copy)

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Let no other thread run statements for the length of a block."""
        with self._lock:
            yield

    def is_in_transaction(self) -> bool:
        """Return whether a transaction has begun, and has not ended."""
        import psycopg

        idle = psycopg.pq.TransactionStatus.IDLE
        return any(not each.closed and each.info.transaction_status != idle for each in self._open)

    def roll_back(self) -> None:
        """Undo the transaction, if there is one; without a connection, the server has done it."""
        import psycopg

        with self._lock:
            if self.is_in_transaction():
                try:
                    self._opened().execute("ROLLBACK")
                except psycopg.Error:
                    self.close()

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            _close(self._open)

    @contextlib.contextmanager
    def _coded(self) -> Iterator[None]:
        """Turn errors of the server into those of this class."""
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            if _is_refusal(error):
                raise Refused(_shown_of(error)) from None
            raise TargetUnavailable(
                f"the tables in {self.place} cannot be read or written: {_shown_of(error)}.",
                "Check the server, the credentials and the network. Nothing is lost: the next start"
                " repeats the batch.",
            ) from None


def _close(connections: list[psycopg.Connection[tuple[Any, ...]]]) -> None:
    while connections:
        connections.pop().close()


def _is_refusal(error: psycopg.Error) -> bool:
    """Return whether an error concerns one table, and lasts until somebody changes it."""
    state = error.sqlstate or ""
    if state == "42501":
        return bool(_OF_TABLES.search(error.diag.message_primary or ""))
    return bool(_REFUSED.fullmatch(state))


def _is_wrong(error: psycopg.Error) -> bool:
    """Return whether a connection will not succeed later: the login is wrong, or the database."""
    state, text = error.sqlstate or "", str(error)
    return state[:2] in ("28", "3D") or "authentication failed" in text or "does not exist" in text


def _shown_of(error: psycopg.Error) -> str:
    """Return an error in words that quote no value of a row."""
    diag = error.diag
    if error.sqlstate is None:  # of the connection, which has no rows
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return lines[0].rstrip(".")
    named = [
        f"{what} {name}"
        for what, name in (
            ("constraint", diag.constraint_name),
            ("column", diag.column_name),
            ("table", diag.table_name),
        )
        if name
    ]
    words = re.sub(r"(?<!^)(?=[A-Z])", " ", type(error).__name__).lower()
    if _TEXT_IS_SAFE.match(error.sqlstate) and diag.message_primary:
        words = diag.message_primary
    return f"{words} (SQLSTATE {error.sqlstate}{''.join(f', {each}' for each in named)})"


# Conditions whose texts name objects and limits, and never quote a row: access, resources, shutdown.
_TEXT_IS_SAFE = re.compile("08|28|3D|3F|42(?!601)|0A|2B|53|55|57|25006|22001|40")
