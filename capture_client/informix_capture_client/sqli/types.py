"""Numbers of Informix's types, as columns and parameters state them.

Rule: names of the SQL types, values of syscolumns.coltype; the two above 40 that are only bound have
none there.
"""

from __future__ import annotations

from enum import IntEnum


class SqliType(IntEnum):
    """SQL Reference, "syscolumns"; 43 and 45 as IBM's JDBC driver binds them."""

    CHAR = 0
    SMALLINT = 1
    INTEGER = 2
    FLOAT = 3
    SMALLFLOAT = 4
    DECIMAL = 5
    SERIAL = 6
    DATE = 7
    MONEY = 8
    NULL = 9
    DATETIME = 10
    BYTE = 11
    TEXT = 12
    VARCHAR = 13
    INTERVAL = 14
    NCHAR = 15
    NVARCHAR = 16
    INT8 = 17
    SERIAL8 = 18
    SET = 19
    MULTISET = 20
    LIST = 21
    ROW = 22
    COLLECTION = 23
    OPAQUE_VARIABLE = 40
    OPAQUE_FIXED = 41
    LVARCHAR_BIND = 43
    OPAQUE_BIND = 44
    BOOLEAN_BIND = 45
    BIGINT = 52
    BIGSERIAL = 53
