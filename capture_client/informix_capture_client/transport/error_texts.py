"""Texts and SQLSTATEs of the server's error numbers.

Rule: the server sends a number and at most one word (SQ_ERR), never a text. A number that is not listed
here is printed without a text; look it up with finderr.

Sources: numbers and meanings, HCL Informix "Error messages" (finderr); SQLSTATE, the GLS and SQL
syntax guides on GET DIAGNOSTICS, and what an ODBC driver is documented to map.
"""

from __future__ import annotations

_UNKNOWN_STATE = "IX000"

# number: SQLSTATE, text; {} is the word that the server sent with the number, if any
_ERRORS: dict[int, tuple[str, str]] = {
    -25596: ("08004", "The server is not named {}"),
    -25582: ("08S01", "Network connection is broken"),
    -25580: ("08S01", "A network function failed on the server"),
    -25571: ("08004", "The server cannot start a thread for the connection"),
    -27001: ("08S01", "A read failed during the connection attempt"),
    -23197: ("IX000", "Database locale information mismatch"),
    -23101: ("IX000", "Unable to load locale categories"),
    -19816: ("IX000", "Not possible on a table that is replicated or captured ({})"),
    -12210: ("IX000", "The connection has no free descriptors for smart large objects"),
    -12097: ("IX000", "No smart large object exists at this address; it may have been deleted"),
    -12086: ("IX000", "A smart large object was opened with incompatible flags"),
    -12048: (
        "IX000",
        "The address refers to another smart large object; the original was probably deleted",
    ),
    -12015: ("IX000", "A smart large object has no header"),
    -12014: ("IX000", "No open smart large object has this descriptor"),
    -12008: ("IX000", "Invalid smart-large-object file descriptor ({})"),
    -1824: ("IX000", "Message number {} does not exist"),
    -1262: ("22018", "A string is not a valid DATETIME or INTERVAL ({})"),
    -1226: ("22003", "A number is out of range for DECIMAL or MONEY"),
    -1213: ("22018", "A string is not a valid number"),
    -1205: ("22008", "Invalid month in a date"),
    -1204: ("22008", "Invalid year in a date"),
    -956: ("28000", "The server does not trust this host or user ({})"),
    -952: ("28000", "Incorrect password for user ({})"),
    -951: ("28000", "Incorrect password, or the user is not known on the server ({})"),
    -931: ("08001", "The service does not exist ({})"),
    -930: ("08001", "The server cannot be reached ({})"),
    -908: ("08001", "Attempt to connect to the server failed ({})"),
    -761: ("08004", "The server's name differs from the requested name {}"),
    -746: ("IX001", "A stored procedure raised an error: {}"),
    -710: ("IX000", "The table was altered or dropped since the statement was prepared ({})"),
    -703: ("23000", "A primary key cannot be NULL ({})"),
    -696: ("IX000", "A variable has no value ({})"),
    -692: ("23000", "A row is referenced by constraint {}"),
    -691: ("23000", "The row that constraint {} refers to is missing"),
    -690: ("IX000", "Rows of a referencing table cannot be read ({})"),
    -684: ("IX000", "A function returned a different number of values than expected ({})"),
    -674: ("42000", "Routine ({}) can not be resolved"),
    -668: ("IX000", "A system command in a procedure failed ({})"),
    -535: ("25000", "A transaction is already in progress"),
    -530: ("23000", "A check constraint is violated: {}"),
    -458: ("IX000", "Long transaction: the logical log is full"),
    -410: ("IX000", "The prepared statement failed, or it does not exist"),
    -408: ("IX000", "The server received a message of an unknown type"),
    -407: ("IX000", "The server reported error number 0"),
    -400: ("24000", "The cursor is not open"),
    -391: ("23000", "Column {} does not accept NULL"),
    -387: ("28000", "No permission to connect ({})"),
    -371: ("23000", "Duplicate values prevent a unique index ({})"),
    -368: ("08S01", "The server does not support this client's protocol"),
    -367: ("IX000", "Sums and averages of character columns are not possible"),
    -354: ("42000", "Invalid name of a database or cursor ({})"),
    -349: ("3D000", "No database is open"),
    -346: ("IX000", "A row cannot be updated ({})"),
    -329: ("3D000", "Database not found, or no permission to open it ({})"),
    -319: ("42S12", "The index does not exist ({})"),
    -310: ("42S01", "Table {} already exists"),
    -302: ("42000", "No permission to grant this privilege ({})"),
    -293: ("42000", "IS NULL requires a column"),
    -292: ("23000", "Column {} does not accept NULL and was not given a value"),
    -291: ("23000", "The lock mode of the table cannot be changed"),
    -284: ("21000", "A subquery did not return exactly one row"),
    -282: ("42000", "A quotation mark is not closed"),
    -274: ("42000", "No DELETE permission for {}"),
    -273: ("42000", "No UPDATE permission for {}"),
    -272: ("42000", "No SELECT permission for {}"),
    -271: ("IX000", "Could not insert a row ({})"),
    -268: ("23000", "A unique constraint is violated: {}"),
    -263: ("40001", "A row cannot be locked"),
    -255: ("25000", "No transaction is in progress"),
    -254: ("07001", "Too many or too few parameters"),
    -245: ("40001", "A row cannot be read through an index"),
    -244: ("40001", "The next row cannot be read by its address"),
    -243: ("40001", "A row of {} cannot be read"),
    -242: ("40001", "Table {} cannot be opened"),
    -239: ("23000", "A unique column already contains this value ({})"),
    -236: ("21S01", "The number of values differs from the number of columns"),
    -217: ("42S22", "Column {} is not in any table of the statement"),
    -214: ("IX000", "A file of the table cannot be removed ({})"),
    -213: ("HY008", "The statement was interrupted"),
    -211: ("IX000", "The system catalog cannot be read ({})"),
    -208: ("IX000", "The server has no memory for the statement"),
    -206: ("42S02", "Table {} is not in the database"),
    -202: ("42000", "The statement contains an illegal character"),
    -201: ("42000", "A syntax error has occurred ({})"),
}

_ISAM: dict[int, str] = {
    -100: "a record with this key already exists",
    -101: "the file is not open",
    -104: "too many files are open",
    -106: "the cursor is not exclusive",
    -107: "the record is locked",
    -111: "no record was found",
    -113: "the file is locked",
    -131: "no space is left on the disk",
    -143: "a deadlock was found",
    -144: "a key is locked",
    -154: "the wait for a lock timed out",
    -172: "the connection to another server broke",
}


def state_of(code: int) -> str:
    """Return the SQLSTATE of an error."""
    return _ERRORS.get(code, (_UNKNOWN_STATE, ""))[0]


def text_of(code: int, argument: str = "") -> str:
    """Return the text of an error number.

    >>> text_of(-206, "customer"), text_of(-387, "stores")
    ('Table customer is not in the database', 'No permission to connect (stores)')
    """
    if code not in _ERRORS:
        return f"The server reports error {code}" + (f" ({argument})" if argument else "")
    text = _ERRORS[code][1]
    if argument:
        return text.format(argument)
    return text.format("").replace(" ()", "").replace("  ", " ").strip(" :")


def isam_text_of(code: int) -> str:
    """Return the text of an ISAM error number."""
    return f"ISAM error: {_ISAM.get(code) or text_of(code)}"
