"""What the numbers of server errors mean, in our own words, with the SQLSTATE of each.

Rule: the wire carries a number and at most one word (SQ_ERR), never a text. A number that is not here
is shown as it is: finderr knows it.

Sources: numbers and meanings, HCL Informix "Error messages" (finderr); SQLSTATE, the GLS and SQL
syntax guides on GET DIAGNOSTICS, and what an ODBC driver is documented to map.
"""

from __future__ import annotations

_UNKNOWN_STATE = "IX000"

# number: SQLSTATE, text; {} is the word that the server sent with it, if it did
_ERRORS: dict[int, tuple[str, str]] = {
    -25596: ("08004", "The server has no name {}"),
    -25582: ("08S01", "Network connection is broken"),
    -25580: ("08S01", "A network function failed on the server's side"),
    -25571: ("08004", "The server cannot start a thread for the connection"),
    -27001: ("08S01", "Reading failed while the connection was made"),
    -23197: ("IX000", "Database locale information mismatch"),
    -23101: ("IX000", "Unable to load locale categories"),
    -19816: ("IX000", "Not possible on a table that is replicated or captured ({})"),
    -12210: ("IX000", "A connection has no descriptors of smart large objects left"),
    -12097: ("IX000", "There is no smart large object at an address; it may have been deleted"),
    -12086: ("IX000", "A smart large object was opened with flags that do not go together"),
    -12048: ("IX000", "Another smart large object is where one was, which has probably been deleted"),
    -12015: ("IX000", "A smart large object has no header"),
    -12014: ("IX000", "No smart large object is open under this descriptor"),
    -12008: ("IX000", "Invalid smart-large-object file descriptor ({})"),
    -1824: ("IX000", "There is no message of number {}"),
    -1262: ("22018", "A text is not a DATETIME or INTERVAL ({})"),
    -1226: ("22003", "A number is beyond the range of DECIMAL or MONEY"),
    -1213: ("22018", "A text is not a number"),
    -1205: ("22008", "There is no such month in a date"),
    -1204: ("22008", "There is no such year in a date"),
    -956: ("28000", "The server does not trust this host or user ({})"),
    -952: ("28000", "Incorrect password of the user ({})"),
    -951: ("28000", "Incorrect password, or the user is not known on the server ({})"),
    -931: ("08001", "There is no such service ({})"),
    -930: ("08001", "The server cannot be reached ({})"),
    -908: ("08001", "Attempt to connect to the server failed ({})"),
    -761: ("08004", "The server's name is not the one that was asked for {}"),
    -746: ("IX001", "A stored procedure says: {}"),
    -710: ("IX000", "The table was altered or dropped since the statement was prepared ({})"),
    -703: ("23000", "A primary key cannot hold NULL ({})"),
    -696: ("IX000", "A variable has no value ({})"),
    -692: ("23000", "A row is referenced by constraint {}"),
    -691: ("23000", "A referenced row is missing for {}"),
    -690: ("IX000", "Rows of a referencing table cannot be read ({})"),
    -684: ("IX000", "A function returned another number of values than expected ({})"),
    -674: ("42000", "Routine ({}) can not be resolved"),
    -668: ("IX000", "A system command in a procedure failed ({})"),
    -535: ("25000", "A transaction is already under way"),
    -530: ("23000", "A check constraint is violated: {}"),
    -458: ("IX000", "Long transaction: the logical log is full"),
    -410: ("IX000", "The prepared statement failed, or it does not exist"),
    -408: ("IX000", "The server was sent a message of no known kind"),
    -407: ("IX000", "A statement was answered with an error of number 0"),
    -400: ("24000", "The cursor is not open"),
    -391: ("23000", "Column {} takes no NULL"),
    -387: ("28000", "No permission to connect ({})"),
    -371: ("23000", "Duplicates stand against a unique index ({})"),
    -368: ("08S01", "The server does not speak this client's protocol"),
    -367: ("IX000", "There are no sums and averages of texts"),
    -354: ("42000", "No form of the name of a database or cursor ({})"),
    -349: ("3D000", "No database is open"),
    -346: ("IX000", "A row cannot be updated ({})"),
    -329: ("3D000", "Database not found, or no permission to open it ({})"),
    -319: ("42S12", "The index does not exist ({})"),
    -310: ("42S01", "There is a table of this name already: {}"),
    -302: ("42000", "No right to grant this ({})"),
    -293: ("42000", "IS NULL takes a column"),
    -292: ("23000", "Column {} takes no NULL, and was given none"),
    -291: ("23000", "Lock mode of the table cannot be changed"),
    -284: ("21000", "A subquery has not one row"),
    -282: ("42000", "A quotation mark has no other half"),
    -274: ("42000", "No DELETE permission for {}"),
    -273: ("42000", "No UPDATE permission for {}"),
    -272: ("42000", "No SELECT permission for {}"),
    -271: ("IX000", "Could not insert a row ({})"),
    -268: ("23000", "A unique constraint is violated: {}"),
    -263: ("40001", "A row cannot be locked"),
    -255: ("25000", "No transaction is under way"),
    -254: ("07001", "There are too many or too few parameters"),
    -245: ("40001", "A row behind an index cannot be read"),
    -244: ("40001", "A row cannot be read on by its address"),
    -243: ("40001", "A row of {} cannot be read"),
    -242: ("40001", "Table {} cannot be opened"),
    -239: ("23000", "A value stands in a unique column already ({})"),
    -236: ("21S01", "There are not as many values as columns"),
    -217: ("42S22", "Column {} is in no table of the statement"),
    -214: ("IX000", "A file of the table cannot be removed ({})"),
    -213: ("HY008", "The statement was interrupted"),
    -211: ("IX000", "The system catalog cannot be read ({})"),
    -208: ("IX000", "The server has no memory for the statement"),
    -206: ("42S02", "Table {} is not in the database"),
    -202: ("42000", "An illegal character stands in the statement"),
    -201: ("42000", "A syntax error has occurred ({})"),
}

_ISAM: dict[int, str] = {
    -100: "a record of this key is there already",
    -101: "the file is not open",
    -104: "too many files are open",
    -106: "the cursor is not exclusive",
    -107: "the record is locked",
    -111: "no record was found",
    -113: "the file is locked",
    -131: "no space is left on the disk",
    -143: "a deadlock was found",
    -144: "a key is locked",
    -154: "a lock was waited for too long",
    -172: "the connection to another server broke",
}


def state_of(code: int) -> str:
    """Return the SQLSTATE of an error."""
    return _ERRORS.get(code, (_UNKNOWN_STATE, ""))[0]


def text_of(code: int, argument: str = "") -> str:
    """Return what an error means.

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
    """Return what an error of the storage means."""
    return f"ISAM error: {_ISAM.get(code) or text_of(code)}"
