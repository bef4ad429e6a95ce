"""What a capture session needs from a connection, and nothing more.

Rule: whoever implements this translates its driver's errors into ours, so that nothing above ever
sees an SQLSTATE it has to interpret.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from informix_capture_client.dialects import INFORMIX, Dialect

# how a connection is kept from being read on its way, and how the server knows the user
NO_ENCRYPTION, TLS = "none", "tls"
PASSWORD, TRUSTED = "password", "trusted"

Argument = int | str
Row = tuple[str | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """Where to connect and as whom.

    `server` is the server's name (DBSERVERNAME), not a host. `extra` is passed on to the driver's
    connection string untouched. `db_locale` may be empty: then the driver's default applies,
    which live servers refuse for most databases. With `authentication` "trusted" neither user nor
    password is sent: the server takes the user that the operating system names, if it trusts this
    host; `user` is for messages then.
    Statements are handed to a transport in Informix's words; it sends them in its dialect's.
    """

    host: str
    port: int
    server: str
    database: str
    user: str
    password: str = field(repr=False)
    driver: str = ""
    db_locale: str = ""
    client_locale: str = "en_us.utf8"
    extra: str = ""
    dialect: Dialect = INFORMIX
    encryption: str = NO_ENCRYPTION
    authentication: str = PASSWORD
    connect_timeout_seconds: float = 8.0


class Transport(Protocol):
    """A connection that can run statements and read a capture session.

    Every method raises `ConnectionLost` when the connection breaks, `AccessRefused` when a right is
    missing and `ServerRefused` for any other error the server reports.
    """

    def call(self, statement: str, *arguments: Argument) -> int:
        """Execute a function and return the one integer that it answers with."""

    def rows(self, statement: str, *arguments: Argument) -> list[Row]:
        """Run a query and return all its rows; every value as text, NULL as None."""

    def lo_read(self, session_id: int, max_bytes: int) -> memoryview:
        """Return the next bytes of a capture session, at most `max_bytes`.

        The view stays valid until the call after the next one: two buffers are used in turn.
        """

    def close(self) -> None:
        """Release the connection. Calling it twice is harmless."""
