"""The interface that a capture session needs from a connection.

Rule: implementations translate their driver's errors into this project's, so that callers never have to
interpret an SQLSTATE.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, field
from typing import Protocol

from informix_capture_client.dialects import INFORMIX, Dialect
from informix_capture_client.errors import BadOption, ServerRefused

# encryption of a connection, and how the server authenticates the user
NO_ENCRYPTION, TLS = "none", "tls"
PASSWORD, TRUSTED = "password", "trusted"

Argument = int | str | datetime.date
Row = tuple[str | None, ...]


MOST_RESULT_BYTES = 1 << 28  # of all rows that `Transport.rows` returns for one query
VALUE_BYTES = 64  # about the cost of such a value in addition to its text
SLOWEST_BYTES_PER_SECOND = 65_536  # of a line that is slow and lives (decision 0051)

_PLACE = re.compile(r"(?P<host>[^:\[\]\s]+|\[[0-9A-Fa-f:.%\w]+\])(?::(?P<port>\d{1,5}))?")


def addresses(host: str, port: int) -> list[tuple[str, int]]:
    """Parse a host, or a list of hosts with or without ports, in the order to try them.

    >>> addresses("a,b:9089,[::1]:9090", 9088)
    [('a', 9088), ('b', 9089), ('::1', 9090)]
    """
    if "," not in host and host.count(":") > 1 and "[" not in host:
        return [(host, port)]  # an IPv6 address by itself
    found: list[tuple[str, int]] = []
    for place in host.split(","):
        match = _PLACE.fullmatch(place.strip())
        number = int(match["port"] or port) if match else 0
        if match is None or not 0 < number < 1 << 16:
            raise BadOption(
                "option 'host' is not a host or a list of hosts.",
                "Write host, or host:port,host:port, with IPv6 addresses of a list in brackets.",
                option="host",
            )
        found.append((match["host"].strip("[]"), number))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """The address, database, user and connection options.

    `host` may be a list, `a:9088,b`, of which `port` is the default, where a transport tries several.
    `server` is the server's name (DBSERVERNAME), not a host. `extra` is appended to the driver's
    connection string unchanged. `db_locale` may be empty: then the driver's default applies, which live
    servers reject for most databases. With `authentication` "trusted" no password is sent: the server
    accepts the operating-system user, if it trusts this host; `user` is then that user's name, which a
    driver determines by itself. Statements are passed to a transport in Informix's dialect; it
    translates them to its own. `connect_timeout_seconds` limits each response until the database is
    open, and `login_timeout_seconds` all of them together, from the first packet to one host of the
    list.
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
    tls_ca_file: str = ""
    tls_certificate_file: str = ""
    connect_timeout_seconds: float = 8.0
    login_timeout_seconds: float = 30.0

    @property
    def address(self) -> str:
        """The address, for messages."""
        return ",".join(f"{host}:{port}" for host, port in addresses(self.host, self.port))


def check_integer(value: int, bits: int = 64) -> int:
    """Return the value if it fits; ctypes would truncate it silently."""
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise BadOption(f"The number {value} does not fit into {bits} bits.")
    return int(value)  # a bool becomes 0 or 1


class Transport(Protocol):
    """A connection that can run statements and read a capture session.

    Every method raises `ConnectionLost` if the connection breaks, `AccessRefused` if a privilege is
    missing and `ServerRefused` for any other error the server reports.
    """

    def call(self, statement: str, *arguments: Argument) -> int:
        """Execute a function and return its single integer result."""
        ...

    def rows(self, statement: str, *arguments: Argument) -> list[Row]:
        """Run a query and return all its rows, with every value as text and NULL as None.

        Raises:
            ProtocolViolation: they take more memory than `MOST_RESULT_BYTES`.
        """
        ...

    def lo_read(self, session_id: int, max_bytes: int) -> memoryview:
        """Return the next bytes of a capture session, at most `max_bytes`.

        The view stays valid until the call after the next one: two buffers are used in turn.
        """
        ...

    def close(self) -> None:
        """Release the connection. Calling it twice is harmless."""


def single_integer(rows: list[Row]) -> int:
    """Return the single integer of a function's result."""
    text = rows[0][0] if rows and rows[0] else None
    try:
        return int(text or "")
    except ValueError:
        raise ServerRefused(
            f"A function returned {text!r} instead of an integer.",
            "Check that the statement calls a function that returns an integer.",
        ) from None


def check_read(session_id: int, max_bytes: int) -> None:
    """Check the limits of ifx_lo_read: a 32-bit session id, and at most 2 GB."""
    check_integer(session_id, bits=32)
    if not 1 <= max_bytes < 1 << 31:
        raise BadOption(f"A read of {max_bytes} bytes is not possible.", "Use 1 byte to 2 GB.")
