"""Errors that a statement can end with, as the driver shows them: SQLSTATE, native code, text.

Rule: code that refuses a statement raises `SqlError`; only the connection turns it into bytes.
"""

from __future__ import annotations


class SqlError(Exception):
    """A statement or a connection attempt that the server refuses."""

    def __init__(self, sqlstate: str, native: int, message: str) -> None:
        super().__init__(sqlstate, native, message)
        self.sqlstate = sqlstate
        self.native = native
        self.message = message


_ERRORS = {
    -25596: ("08004", "The server name {0} is not known here."),
    -951: ("28000", "Incorrect password or user {0} is not known on the database server."),
    -956: ("28000", "Client host or user {0} is not trusted by the server."),
    -329: ("3D000", "Database not found or no system permission."),
    -272: ("42000", "No SELECT permission for {0}."),
    -387: ("28000", "No connect permission."),
    -23101: ("IX000", "Unable to load locale categories."),
    -23197: ("IX000", "Database locale information mismatch."),
    -201: ("42000", "A syntax error has occurred."),
    -206: ("42S02", "The specified table ({0}) is not in the database."),
    -217: ("42S22", "Column ({0}) not found in any table in the query."),
    -458: ("IX000", "Long transaction: the logical log is full."),
    -674: ("42000", "Routine ({0}) can not be resolved."),
    -1213: ("22018", "A character to numeric conversion process failed."),
    -12008: ("IX000", "Invalid smart-large-object file descriptor ({0})."),
    -11071: ("HY090", "The buffer for a capture session must hold at least 128 bytes."),
    -11010: ("HY008", "Operation canceled."),
    -11013: ("07006", "Restricted data type attribute violation."),
    -11060: ("08003", "The connection is not open."),
    # the guides print the next three without a sign; a native code of an error is negative
    -1824: ("IX000", "Message cannot be found ({0})."),
    -23109: ("IX000", "Invalid locale specification ({0})."),
    -19816: ("IX000", "Cannot perform this operation on a table defined for replication."),
}


def sql_error(native: int, *facts: object) -> SqlError:
    """Build the error of a native code, its facts filled into the text."""
    sqlstate, text = _ERRORS[native]
    return SqlError(sqlstate, native, "[Informix emulator]" + text.format(*facts))
