"""What the two ends of the Flight connection agree on: address, certificates, token, ticket.

Rule: values and texts only; `pyarrow.flight` takes 35 ms to load and stays with who calls and serves.

    ticket := JSON of the fields of a SegmentRange, but the name of a file in place of its path
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
SERVER_NAME = "informix-cdc"  # in the server's certificate, whatever its address is
_SEGMENT_NAME = re.compile(r"[0-9A-Za-z-]+\.arrow")  # no slash, no dot but one: never another folder


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
    """What one end shows, and whom it trusts: texts in PEM."""

    authority: bytes = field(repr=False)
    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class FlightAddress:
    """Where a query's Flight server listens, and what it wants to see and hear."""

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
    """Return what a client sends to ask for a range."""
    fields = {name: getattr(wanted, name) for name in wanted.__slots__}
    return json.dumps({**fields, "path": wanted.file}).encode()


def range_of(ticket: bytes, folder: Path) -> SegmentRange:
    """Return the rows that a ticket names, of a segment in one folder and no other.

    Raises:
        AccessRefused: it names none.
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
    """Return what to answer to a ticket that makes no sense; it says nothing of the driver."""
    return AccessRefused("the request names no rows of a segment.")


def location_of(host: str, port: int) -> str:
    """Return the location of a server in Flight's form."""
    return f"grpc+tls://[{host}]:{port}" if ":" in host else f"grpc+tls://{host}:{port}"
