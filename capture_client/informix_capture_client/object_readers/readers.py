"""What reads large objects over a connection, by the transport that it is.

Rule: one table; a transport that is not in it reads none.
"""

from __future__ import annotations

from informix_capture_client.errors import BadOption
from informix_capture_client.object_readers.base import ObjectReader
from informix_capture_client.object_readers.odbc_objects import OdbcObjects
from informix_capture_client.object_readers.sqli_objects import SqliObjects
from informix_capture_client.transport import OdbcTransport, SqliTransport, Transport


def object_reader(transport: Transport) -> ObjectReader:
    """Return what reads objects over a connection.

    Raises:
        BadOption: it is neither a native one nor one over ODBC.
    """
    if isinstance(transport, SqliTransport):
        return SqliObjects(transport)
    if isinstance(transport, OdbcTransport):
        return OdbcObjects(transport)
    raise BadOption(
        f"{type(transport).__name__} does not read large objects.",
        "Use transport=sqli or transport=odbc, or set lobs=handle to record a stream.",
    )
