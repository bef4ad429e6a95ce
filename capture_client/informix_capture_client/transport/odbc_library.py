"""Which driver it is: found and loaded before there is a connection, asked for its version with one.

Rule: for whoever only looks, as the doctor does; a transport opens its own.
"""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass

from informix_capture_client.transport import odbc_api as odbc
from informix_capture_client.transport.base import ConnectionSettings

_MAX_INFO_BYTES = 512


@dataclass(frozen=True, slots=True)
class DriverInfo:
    """What SQLGetInfo names: the driver's file and version, and the server's version."""

    name: str
    version: str
    server_version: str


def load_driver(settings: ConnectionSettings) -> tuple[str, ctypes.CDLL]:
    """Find and load the driver's library; return the path it was loaded by, and the library.

    Raises:
        AccessRefused, BadOption: there is none, or the system's loader refuses it.
    """
    driver = odbc.find_driver(settings.driver, os.environ, settings.dialect)
    return driver, odbc.load_library(driver, dialect=settings.dialect)


def read_driver_info(connection: odbc.Handle, codec: str) -> DriverInfo:
    """Ask the driver over a connection of it; SQLGetInfo's texts are in the connection's code set."""
    kinds = (odbc.DRIVER_NAME, odbc.DRIVER_VERSION, odbc.DBMS_VERSION)
    return DriverInfo(*(_info(connection, kind).decode(codec, "replace").strip() for kind in kinds))


def _info(connection: odbc.Handle, kind: int) -> bytes:
    text, length = ctypes.create_string_buffer(_MAX_INFO_BYTES), ctypes.c_short()
    connection.call("SQLGetInfo", kind, text, _MAX_INFO_BYTES, ctypes.byref(length))
    return text.value
