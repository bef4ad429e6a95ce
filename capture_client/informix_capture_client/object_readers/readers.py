"""Select the large-object reader for a transport.

Rule: one table; other transports cannot read large objects.
"""

from __future__ import annotations

from informix_capture_client.errors import BadOption
from informix_capture_client.object_readers.base import ObjectReader
from informix_capture_client.object_readers.odbc_objects import OdbcObjects
from informix_capture_client.object_readers.sqli_objects import SqliObjects
from informix_capture_client.transport import OdbcTransport, SqliTransport, Transport


def object_reader(transport: Transport) -> ObjectReader:
    """Return the object reader for a connection.

    Raises:
        BadOption: the transport is neither SQLI nor ODBC.
    """
    if isinstance(transport, SqliTransport):
        return SqliObjects(transport)
    if isinstance(transport, OdbcTransport):
        return OdbcObjects(transport)
    raise BadOption(
        f"{type(transport).__name__} does not read large objects.",
        "Use transport=sqli or transport=odbc, or set lobs=handle to record a stream.",
    )
