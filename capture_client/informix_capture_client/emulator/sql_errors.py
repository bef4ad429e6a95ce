"""Errors that a statement can end with, as the driver shows them: SQLSTATE, native code, text.

Rule: code that refuses a statement raises `SqlError`; only the connection turns it into bytes.
"""

from __future__ import annotations


class SqlError(Exception):
    """A statement or a connection attempt that the server refuses.

    A server sends numbers and `argument`; the text they are part of is the client's.
    """

    def __init__(
        self, sqlstate: str, native: int, message: str, argument: str = "", isam: int = 0
    ) -> None:
        super().__init__(sqlstate, native, message, argument, isam)
        self.sqlstate = sqlstate
        self.native = native
        self.message = message
        self.argument = argument
        self.isam = isam


_ERRORS = {
    -202: ("42000", "An illegal character has been found in the statement."),
    -213: ("HY008", "Statement interrupted by user."),
    -254: ("07001", "Too many or too few host variables given."),
    -349: ("08003", "Database not selected yet."),
    -400: ("24000", "Fetch attempted on unopen cursor."),
    -410: ("HY010", "Prepare statement failed or was not executed."),
    -761: ("08004", "INFORMIXSERVER does not match either DBSERVERNAME or DBSERVERALIASES."),
    -908: ("08001", "Attempt to connect to database server ({0}) failed."),
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

_ISAM_ERRORS = {-206: -111, -329: -111}  # no record found; IBM's JDBC driver shows it as the cause


def sql_error(native: int, *facts: object) -> SqlError:
    """Build the error of a native code, its facts filled into the text."""
    sqlstate, text = _ERRORS[native]
    argument = "" if not facts or facts[0] is None else str(facts[0])
    message = "[Informix emulator]" + text.format(*facts)
    return SqlError(sqlstate, native, message, argument, _ISAM_ERRORS.get(native, 0))
