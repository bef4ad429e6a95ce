"""The block reader of a connection, by the transport that it is, and how to connect for one.

Rule: one table; a transport that is not in it reads no blocks.
"""

from __future__ import annotations

from dataclasses import replace

from informix_capture_client.choices import DecodeRules
from informix_capture_client.errors import BadOption
from informix_capture_client.row_fetch.base import BlockReader
from informix_capture_client.row_fetch.odbc_blocks import OdbcBlocks
from informix_capture_client.row_fetch.sqli_blocks import SqliBlocks
from informix_capture_client.transport import (
    ConnectionSettings,
    OdbcTransport,
    SqliTransport,
    Transport,
    read_keywords,
)

_FOR_BLOCKS = {"LEAVE_TRAILING_SPACES": "1", "FETCHBUFFERSIZE": "262144"}


def block_reader(transport: Transport, rules: DecodeRules, table: str = "?") -> BlockReader:
    """Return what reads blocks over a connection.

    Args:
        transport: a native connection, or one over ODBC.
        rules: what columns become where there is a choice, the database's code set included.
        table: the table's name, for error texts.

    Raises:
        BadOption: it is neither, or an ODBC driver that talks in another code set.
    """
    if isinstance(transport, SqliTransport):
        return SqliBlocks(transport, rules, table)
    if isinstance(transport, OdbcTransport):
        return OdbcBlocks(transport, rules, table)
    raise BadOption(
        f"{type(transport).__name__} does not read rows in blocks.",
        "Use transport=sqli or transport=odbc.",
    )


def in_database_code_set(settings: ConnectionSettings) -> ConnectionSettings:
    """Return how to connect for blocks: a driver neither converts characters nor cuts blanks.

    Natively it changes nothing. Without a database locale the driver's client locale stands.
    LEAVE_TRAILING_SPACES keeps the blanks at the end of a VARCHAR, which a driver may cut by default,
    and FETCHBUFFERSIZE is what a driver asks a server for at once (HCL's ODBC manual, keywords); a
    keyword of the user's own stands.
    """
    taken = {keyword.name.upper() for keyword in read_keywords(settings.extra)}
    added = [f"{name}={value}" for name, value in _FOR_BLOCKS.items() if name not in taken]
    return replace(
        settings,
        client_locale=settings.db_locale or settings.client_locale,
        extra=";".join([part for part in (settings.extra.strip("; "), *added) if part]),
    )
