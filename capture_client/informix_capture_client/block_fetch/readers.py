"""The block reader of a connection: by the transport that it is.

Rule: one table; a transport that is not in it reads no blocks.
"""

from __future__ import annotations

from informix_capture_client.block_fetch.base import BlockReader
from informix_capture_client.block_fetch.odbc_blocks import OdbcBlocks
from informix_capture_client.block_fetch.sqli_blocks import SqliBlocks
from informix_capture_client.choices import DecodeRules
from informix_capture_client.errors import BadOption
from informix_capture_client.transport import OdbcTransport, SqliTransport, Transport


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
