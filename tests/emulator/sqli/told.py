"""A server that knows a few statements by heart, for tests of the wire alone."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from informix_emulator.answers import (
    CheckStatement,
    Prepared,
    ResultColumn,
    SqlSession,
    SqlValue,
    StatementOutcome,
    StatementType,
)
from informix_emulator.column_types.column_list import parse_column_list
from informix_emulator.column_types.encoding import EmulatedType, column_type
from informix_emulator.sql_errors import SqlError, sql_error

EVERY_TYPE = (
    "i integer, vc varchar(40), c char(10), d decimal(12,2), dt date, ts datetime year to fraction(5),"
    " b bigint, s smallint, i8 int8, f float, sf smallfloat, lv lvarchar(200), bo boolean,"
    " nv nvarchar(30), m money(16,2), iv interval day to second, ym datetime year to month,"
    " dd decimal(16), se serial not null"
)
ROWS: list[tuple[SqlValue, ...]] = [
    (
        *(1, "hello", "abc", Decimal("12345.67"), datetime.date(2024, 2, 29)),
        *(datetime.datetime(2024, 2, 29, 13, 4, 5, 123450), 2**40, -7, -(2**33 + 5), 1.5, 2.25),
        *("long text", True, "nv", Decimal("99.10"), "2 03:04:05", "2024-02", Decimal("3.14159"), 7),
    ),
    (
        *(2, "", "", Decimal("-0.01"), datetime.date(1899, 12, 31)),
        *(datetime.datetime(1, 1, 1), -1, 7, 5, -1.5, 0.0, "", False, "", Decimal(-1)),
        *("0 00:00:00", "0001-01", Decimal("-12.5"), 8),
    ),
    (*(None for _ in range(18)), 9),
]
TYPED = (
    "a integer, b lvarchar(100), c decimal(12,2), d date, e datetime year to fraction(5), f bigint,"
    " g float, h int8, i boolean, j smallint, k smallfloat, l integer, m interval day to second,"
    " n char(10), o money(16,2)"
)


def types(columns: str, codec: str = "iso8859-1") -> list[EmulatedType]:
    """Return the types of a column list."""
    return [column_type(column.type, codec) for column in parse_column_list(columns)]


def columns(text: str, codec: str = "iso8859-1") -> list[ResultColumn]:
    """Return a column list as columns of an answer."""
    return [
        ResultColumn(column.name, column_type(column.type, codec), column.not_null)
        for column in parse_column_list(text)
    ]


def query(
    answered: str,
    rows: Sequence[Sequence[SqlValue]],
    parameters: str = "",
    kind: StatementType = StatementType.SELECT,
) -> Prepared:
    """Return a statement that always answers with the same rows."""
    taken = types(parameters) if parameters else []
    return Prepared(kind, taken, columns(answered), lambda _values, _check: StatementOutcome(rows))


class Told:
    """A client of that server; `done` keeps the calls of the wire, `bound` the values it gave."""

    codec = "iso8859-1"

    def __init__(self, attributes: Mapping[str, str] | None = None) -> None:
        self.attributes = dict(attributes or {})
        if self.attributes.get("PWD") == "wrong":
            raise sql_error(-951, self.attributes.get("UID"))
        if self.attributes.get("SERVER") == "other":
            raise sql_error(-761)
        self.done: list[str] = []
        self.bound: list[Sequence[SqlValue]] = []
        self.interrupted = 0
        self.is_open = False
        self.statements: dict[str, Callable[[], Prepared]] = {
            "select * from every_type": lambda: query(EVERY_TYPE, ROWS),
            "select n from numbers": lambda: query("n integer", [(n,) for n in range(1, 101)]),
            "select flags from versions": lambda: query("flags smallint", [(907,)]),
            "select dbinfo": lambda: query("v varchar(128)", [("Informix emulator Version 15.0",)]),
            "select site": lambda: query("site varchar(128)", [("en_US.819",)]),
            "execute function f(?)": lambda: query(
                "x integer", [(42,)], "p integer", StatementType.EXECUTE
            ),
            "insert into typed": self._insert,
            "select slow": self._slow,
            "commit work": lambda: Prepared(
                StatementType.OTHER,
                [],
                [],
                lambda _values, _check: StatementOutcome(),
                ends_transaction=True,
            ),
            "set isolation": lambda: Prepared(
                StatementType.OTHER, [], [], lambda _values, _check: StatementOutcome()
            ),
        }

    def open_database(self, name: str) -> int:
        if name.startswith("nodb"):
            raise sql_error(-329, name)
        if name.startswith("wronglocale"):
            raise sql_error(-23197)
        self.is_open = True
        self.done.append(f"open {name}")
        return 0x15

    def close_database(self) -> None:
        self.is_open = False

    def session(self) -> SqlSession:
        if not self.is_open:
            raise sql_error(-349)
        return self

    def database_names(self) -> Sequence[str]:
        return ["stores", "sysmaster"]

    def lo_read(self, descriptor: int, max_bytes: int, check: CheckStatement) -> bytes:
        if descriptor == 99:
            raise sql_error(-12008, descriptor)
        check()
        return bytes(range(256)) * 2 if max_bytes >= 1000 else b""

    def prepare(self, text: str) -> Prepared:
        known = text.lower()
        if "gl_collate" in known:
            known = "select site"
        elif "' version'" in known:
            known = "select flags from versions"
        for begin, prepared in self.statements.items():
            if known.startswith(begin):
                return prepared()
        raise SqlError("42S02", -206, "not found", "nosuch", -111)

    def begin(self) -> None:
        self.done.append("begin")

    def commit(self) -> None:
        self.done.append("commit")

    def rollback(self) -> None:
        self.done.append("rollback")

    def savepoint(self, name: str, *, is_unique: bool = False) -> None:
        self.done.append(f"savepoint {name}{' unique' if is_unique else ''}")

    def rollback_to(self, name: str) -> None:
        self.done.append(f"rollback to {name}")

    def release(self, name: str) -> None:
        self.done.append(f"release {name}")

    def close(self) -> None:
        self.done.append("close")

    def _insert(self) -> Prepared:
        def run(values: Sequence[SqlValue], _check: CheckStatement) -> StatementOutcome:
            self.bound.append(values)
            return StatementOutcome(row_count=1, serial=7, rowid=0x101)

        return Prepared(StatementType.INSERT, types(TYPED), [], run)

    def _slow(self) -> Prepared:
        def run(_values: Sequence[SqlValue], check: CheckStatement) -> StatementOutcome:
            ends = time.monotonic() + 20
            while time.monotonic() < ends:
                check()
                time.sleep(0.01)
            return StatementOutcome([(1,)])

        return Prepared(StatementType.SELECT, [], columns("x integer"), run)
