"""Errors of statements, as a driver shows them: SQLSTATE, native code, text.

Code that refuses a statement raises `SqlError`; only the connection turns it into bytes.
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
    -951: ("28000", "Incorrect password or user {0} is not known on the database server."),
    -956: ("28000", "Client host or user {0} is not trusted by the server."),
    -329: ("3D000", "Database not found or no system permission."),
    -272: ("42000", "No SELECT permission for {0}."),
    -387: ("28000", "No connect permission."),
    -23101: ("IX000", "Unable to load locale categories."),
    -23197: ("IX000", "Database locale information mismatch."),
    -201: ("42000", "A syntax error has occurred."),
    -208: ("IX000", "Memory allocation failed during query processing."),
    -206: ("42S02", "The specified table ({0}) is not in the database."),
    -217: ("42S22", "Column ({0}) not found in any table in the query."),
    -425: ("IX000", "The database is open in another session."),
    -458: ("IX000", "Long transaction: the logical log is full."),
    -674: ("42000", "Routine ({0}) can not be resolved."),
    -1213: ("22018", "A character to numeric conversion process failed."),
    -12008: ("IX000", "Invalid smart-large-object file descriptor ({0})."),
    # what a server says to a statement before it has let a client in is not known: our choice
    -1809: ("08004", "Server rejected the connection."),
    # for a buffer with ISAM -102, an illegal argument; the guide has the bound, the error is our choice
    -9810: ("IX000", "Smart-large-object error; a capture session's buffer has at least 128 bytes."),
    # SQL on tables: numbers and meaning by finderr, SQLSTATE by GET DIAGNOSTICS (Guide to SQL: Syntax)
    -232: ("42000", "A SERIAL column ({0}) may not be updated."),
    -371: ("23000", "Cannot create a unique index on a column with duplicate data."),
    -728: ("42000", "Unknown option for DBINFO."),
    -236: ("21S01", "The number of columns does not match the number of values."),
    -239: ("23000", "A new row has a value that a unique index holds already: column ({0})."),
    -242: ("IX000", "Could not open the table ({0})."),
    -243: ("IX000", "Could not position within the table ({0})."),
    -244: ("IX000", "Could not read the next row of the table."),
    -255: ("25000", "Not in a transaction."),
    -256: ("IX000", "The database has no log: there are no transactions."),
    -263: ("IX000", "Could not lock the row for an update."),
    -268: ("23000", "Unique constraint ({0}) is violated."),
    -271: ("IX000", "Could not insert the new row into the table."),
    -273: ("42000", "No UPDATE permission for {0}."),
    -274: ("42000", "No DELETE permission for {0}."),
    -275: ("42000", "No INSERT permission for {0}."),
    -284: ("21000", "A subquery has returned more than one row."),
    -289: ("IX000", "Cannot lock the table ({0}) in the mode that was asked for."),
    -297: ("42000", "The table ({0}) has no unique constraint or primary key of these columns."),
    -294: ("42000", "Column ({0}) must be in the GROUP BY list."),
    -309: ("42000", "Column ({0}) of ORDER BY must be in the select list of DISTINCT."),
    -310: ("42S01", "There is a table ({0}) in the database already."),
    -316: ("42S11", "There is an index ({0}) already."),
    -324: ("42000", "The column ({0}) may be of more than one table."),
    -328: ("42S21", "There is a column ({0}) in the table already."),
    -330: ("IX000", "Cannot create or rename the database."),
    -391: ("23000", "Cannot put a NULL into the column ({0})."),
    -522: ("42000", "The table ({0}) is not selected in the query."),
    -526: ("IX000", "Rows of a scroll cursor cannot be updated."),
    -535: ("25000", "Already in a transaction."),
    -615: ("IX000", "Simple and smart large objects cannot be compared."),
    -617: ("IX000", "A large object must be given by its own type."),
    -691: ("23000", "The key that referential constraint ({0}) needs is missing in the other table."),
    -692: ("23000", "The key of referential constraint ({0}) is still referred to."),
    -710: ("IX000", "The table ({0}) has been dropped, altered or renamed."),
    -880: ("3B002", "There is a unique savepoint ({0}) already."),  # the number is our choice
    -881: ("3B001", "The savepoint ({0}) is not there."),  # the number is our choice
    -1202: ("22012", "A division by zero was tried."),
    -1204: ("22007", "The year of a date is not valid."),
    -1205: ("22007", "The month of a date is not valid."),
    -1206: ("22007", "The day of a date is not valid."),
    -1210: ("22008", "The date is out of the range of dates."),
    -1214: ("22003", "The value does not fit in a SMALLINT."),
    -1215: ("22003", "The value does not fit in an INTEGER."),
    -1218: ("22007", "The text is no date."),
    -1226: ("22003", "The value has more digits than a DECIMAL or MONEY of this precision holds."),
    -1260: ("22005", "The types cannot be converted to one another."),
    -1261: ("22007", "The first field of a datetime or interval has too many digits."),
    -1262: ("22007", "There is a sign that is no digit in a datetime or interval."),
    -1263: ("22007", "A field of a datetime or interval is out of range."),
    -1264: ("22007", "There is more than a datetime or interval in the text."),
    -1265: ("22015", "A datetime or interval operation overflowed."),
    -1266: ("IX000", "These intervals or datetimes do not go together."),
    -1277: ("22007", "The format of a datetime or interval is not known."),
    -1279: ("22001", "The value is longer than a text can be."),
    -1284: ("22003", "The value does not fit in a BIGINT or INT8."),
    -23103: ("22021", "A character is not in the code set of the database."),
    # the guides print the next three without a sign; a native code of an error is negative
    -1824: ("IX000", "Message cannot be found ({0})."),
    -23109: ("IX000", "Invalid locale specification ({0})."),
    -19816: ("IX000", "Cannot perform this operation on a table defined for replication."),
}


# the ISAM code that comes with an error where nothing else is said (finderr); IBM's JDBC driver shows
# it as the cause
_ISAM = {
    -206: -111,
    -329: -111,
    -239: -100,
    -371: -100,
    -268: -100,
    -242: -106,
    -243: -107,
    -244: -107,
    -271: -107,
    -289: -113,
    -9810: -102,
}


def sql_error(native: int, *facts: object, isam: int | None = None) -> SqlError:
    """Build the error of a native code, its facts filled into the text."""
    sqlstate, text = _ERRORS[native]
    argument = "" if not facts or facts[0] is None else str(facts[0])
    message = "[Informix emulator]" + text.format(*facts)
    below = _ISAM.get(native, 0) if isam is None else isam
    return SqlError(sqlstate, native, message, argument, below)
