"""The protocol between both ends of the Flight connection: address, certificates, token, ticket.

Rule: values and texts only; `pyarrow.flight` takes 35 ms to load and is imported by client and server.

    ticket := JSON of the fields of a SegmentRange, with the name of a file instead of its path
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from informix_capture_client.errors import AccessRefused
from informix_checkpoints.spool import SegmentRange

TOKEN_HEADER = "authorization"
SERVER_NAME = "informix-cdc"  # in the server's certificate, independent of its address
_SEGMENT_NAME = re.compile(r"[0-9A-Za-z-]+\.arrow")  # no slash and a single dot: stays in the folder


_WHOLE_NUMBERS = (
    "first",
    "end",
    "rows",
    "size_bytes",
    "checksum",
    "copy_bytes",
    "copy_checksum",
)


@dataclass(frozen=True, slots=True)
class Credentials:
    """The certificate of one end, and the one that it trusts: texts in PEM."""

    authority: bytes = field(repr=False)
    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class FlightAddress:
    """The address of a query's Flight server, with the credentials and token for it."""

    host: str
    port: int
    token: str = field(repr=False)
    credentials: Credentials = field(repr=False)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def bearer(token: str) -> bytes:
    """Return the value of the token's header."""
    return f"Bearer {token}".encode()


def ticket_of(wanted: SegmentRange) -> bytes:
    """Return the ticket with which a client requests a range."""
    fields = {name: getattr(wanted, name) for name in wanted.__slots__}
    return json.dumps({**fields, "path": wanted.file}).encode()


def range_of(ticket: bytes, folder: Path) -> SegmentRange:
    """Return the rows that a ticket names, always of a segment in this folder.

    Raises:
        AccessRefused: the ticket is invalid.
    """
    try:
        fields: dict[str, Any] = json.loads(ticket)
        if not _SEGMENT_NAME.fullmatch(fields["path"]):
            raise ValueError
        if any(type(fields[name]) is not int for name in _WHOLE_NUMBERS):
            raise ValueError
        wanted = SegmentRange(**{**fields, "path": str(folder / fields["path"])})
        if not 0 <= wanted.first < wanted.end <= wanted.rows:
            raise ValueError
    except (ValueError, TypeError, KeyError, RecursionError):
        raise no_rows_named() from None
    return wanted


def no_rows_named() -> AccessRefused:
    """Return the error for an invalid ticket; it contains nothing about the driver."""
    return AccessRefused("the request names no rows of a segment.")


def location_of(host: str, port: int) -> str:
    """Return the location of a server as a Flight URI."""
    return f"grpc+tls://[{host}]:{port}" if ":" in host else f"grpc+tls://{host}:{port}"
