"""The statements of `sql_text.py`, carried out on the emulator, which has no SQL of its own.

Rule: what a SELECT returns is this module's own account of what was inserted, text as it came: it is
never decoded from the log, so it bears witness against the decoder. Other statements are passed on.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal

from harness.servers.sql_text import KEY, identifier
from informix_capture_client.emulator import EmulatedServer, Savepoint, Transaction
from informix_capture_client.transport.base import (
    Argument,
    ConnectionSettings,
    Row,
    Transport,
)

_LITERAL = re.compile(
    r"(?P<null>NULL)|'(?P<quoted>(?:[^']|'')*)'|MDY\((?P<month>\d+), (?P<day>\d+), (?P<year>\d+)\)"
    r"|(?:DATETIME|INTERVAL) \((?P<fields>[^)]*)\) [A-Z0-9() ]+|(?P<number>-?[\d.]+(?:e[+-]?\d+)?)"
)
_ITEM = re.compile(r"""(?:'(?:[^']|'')*'|"(?:[^"]|"")*"|\([^)]*\)|[^,'"()])+""")
_COLUMN = re.compile(r'("(?:[^"]|"")+"|\w+) (.*)')
_TO_PYTHON: dict[str, Callable[[str], object]] = {
    **dict.fromkeys(("smallint", "integer", "serial", "bigint", "bigserial", "int8", "serial8"), int),
    **dict.fromkeys(("float", "smallfloat"), float),
    **dict.fromkeys(("decimal", "money"), Decimal),
    "boolean": lambda text: text == "t",
}

StoredRow = dict[str, str | None]


def text_of(literal: str) -> str | None:
    """Return the value of a literal as Informix prints it.

    >>> text_of("MDY(3, 5, 2024)"), text_of("'O''Hara'")
    ('2024-03-05', "O'Hara")
    """
    found = _LITERAL.fullmatch(literal.strip())
    assert found, f"{literal!r} is no literal that the suite writes"
    if found["null"]:
        return None
    if found["year"]:
        return f"{int(found['year']):04}-{int(found['month']):02}-{int(found['day']):02}"
    if found["quoted"] is not None:
        return found["quoted"].replace("''", "'")
    return found["fields"] if found["fields"] is not None else found["number"]


def _name(text: str) -> str:
    return text[1:-1].replace('""', '"') if text.startswith('"') else text


def _items(text: str) -> list[str]:
    return [item.strip() for item in _ITEM.findall(text)]


@dataclass
class Account:
    """What all connections have stored: for each table its column types, and its rows by key."""

    types: dict[str, dict[str, str]] = field(default_factory=dict)
    rows: dict[str, dict[int, StoredRow]] = field(default_factory=dict)


@dataclass
class _Work:
    """An open transaction, and what undoes it."""

    transaction: Transaction
    undo: list[Callable[[], object]] = field(default_factory=list)
    savepoints: dict[str, tuple[Savepoint, int]] = field(default_factory=dict)

    def undo_down_to(self, length: int) -> None:
        while len(self.undo) > length:
            self.undo.pop()()


class EmulatedSql:
    """A `Transport` to the emulator that also takes the suite's own statements."""

    def __init__(
        self,
        inner: Transport,
        server: EmulatedServer,
        settings: ConnectionSettings,
        account: Account,
    ) -> None:
        self._inner = inner
        self._server = server
        self._database = settings.database
        self._locale = settings.db_locale
        self._account = account
        self._work: _Work | None = None

    def call(self, statement: str, *arguments: Argument) -> int:
        """Execute a function and return the one integer that it answers with."""
        return self._inner.call(statement, *arguments)

    def rows(self, statement: str, *arguments: Argument) -> list[Row]:
        """Run a statement of the suite, or pass it on."""
        for pattern, run in _STATEMENTS:
            if found := pattern.fullmatch(statement):
                return run(self, found) or []
        return self._inner.rows(statement, *arguments)

    def lo_read(self, session_id: int, max_bytes: int) -> memoryview:
        """Return the next bytes of a capture session."""
        return self._inner.lo_read(session_id, max_bytes)

    def close(self) -> None:
        """Release the connection; what is open is rolled back."""
        if self._work is not None:
            self._rollback()
        self._inner.close()

    def _full(self, table: str) -> str:
        return f"{self._database}:{self._server.owner}.{table}"

    def _create_database(self, found: re.Match[str]) -> None:
        locale = self._locale or "en_US.8859-1"  # the default of a real one
        self._server.create_database(found["name"], logged=bool(found["log"]), locale=locale)

    def _create_table(self, found: re.Match[str]) -> None:
        self._server.create_table(self._full(found["table"]), found["columns"])
        pairs = [_COLUMN.fullmatch(item) for item in _items(found["columns"])]
        self._account.types[found["table"]] = {_name(pair[1]): pair[2] for pair in pairs if pair}
        self._account.rows[found["table"]] = {}

    def _add_columns(self, found: re.Match[str]) -> None:
        name, types = found["table"], self._account.types[found["table"]]
        pairs = [_COLUMN.fullmatch(item) for item in _items(found["columns"])]
        types |= {_name(pair[1]): pair[2] for pair in pairs if pair}
        columns = ", ".join(f"{identifier(column)} {kind}" for column, kind in types.items())
        self._server.alter_table(self._full(name), columns, in_place=True)

    def _finish_alter(self, found: re.Match[str]) -> None:
        self._server.finish_alter(self._full(found["table"]))

    def _create_view(self, found: re.Match[str]) -> None:
        self._server.create_table(self._full(found["view"]), "id integer", kind="view")

    def _drop_table(self, found: re.Match[str]) -> None:
        self._server.drop_table(self._full(found["table"]))

    def _begin(self, _found: re.Match[str] | None = None) -> None:
        assert self._work is None
        self._work = _Work(self._server.begin())

    def _commit(self, _found: re.Match[str] | None = None) -> None:
        self._open_work.transaction.commit()
        self._work = None

    def _rollback(self, _found: re.Match[str] | None = None) -> None:
        self._open_work.transaction.rollback()
        self._open_work.undo_down_to(0)
        self._work = None

    @property
    def _open_work(self) -> _Work:
        assert self._work is not None
        return self._work

    def _savepoint(self, found: re.Match[str]) -> None:
        work = self._open_work
        work.savepoints[found["name"]] = work.transaction.savepoint(), len(work.undo)

    def _rollback_to(self, found: re.Match[str]) -> None:
        savepoint, length = self._open_work.savepoints[found["name"]]
        self._open_work.transaction.rollback_to(savepoint)
        self._open_work.undo_down_to(length)

    def _change(self, table: str, key: int, write: Callable[[Transaction], object]) -> None:
        """Write a change; without BEGIN WORK each one is a transaction of its own."""
        rows = self._account.rows[table]
        before = rows.get(key)
        stands_alone = self._work is None
        if stands_alone:
            self._begin()
        write(self._open_work.transaction)
        restore = (lambda: rows.pop(key)) if before is None else (lambda: rows.update({key: before}))
        self._open_work.undo.append(restore)
        if stands_alone:
            self._commit()

    def _insert(self, found: re.Match[str]) -> None:
        table, names = found["table"], map(_name, _items(found["columns"]))
        row = dict(zip(names, map(text_of, _items(found["values"])), strict=True))
        key = int(row[KEY] or 0)
        self._change(table, key, lambda tx: tx.insert(self._full(table), self._python(table, row)))
        types = self._account.types[table]
        self._account.rows[table][key] = {name: row.get(name) for name in types}

    def _update(self, found: re.Match[str]) -> None:
        table, key = found["table"], int(found["key"])
        before = self._account.rows[table][key]
        pairs = [item.split(" = ", 1) for item in _items(found["changes"])]
        after = {**before, **{name: text_of(text) for name, text in pairs}}
        images = self._python(table, before), self._python(table, after)
        self._change(table, key, lambda tx: tx.update(self._full(table), *images))
        self._account.rows[table][key] = after

    def _delete(self, found: re.Match[str]) -> None:
        table, key = found["table"], int(found["key"])
        image = self._python(table, self._account.rows[table][key])
        self._change(table, key, lambda tx: tx.delete(self._full(table), image))
        del self._account.rows[table][key]

    def _truncate(self, found: re.Match[str]) -> None:
        assert self._work is None, "the suite truncates outside of a transaction"
        with self._server.transaction() as transaction:
            transaction.truncate(self._full(found["table"]))
        self._account.rows[found["table"]].clear()

    def _select(self, found: re.Match[str]) -> list[Row]:
        rows = self._account.rows[found["table"]]
        return [tuple(rows[key].values()) for key in sorted(rows)]

    def _grant(self, found: re.Match[str]) -> None:
        if found["table"] == "syscdcsess":
            self._server.session_readers.add(found["user"])
        elif self._database == "syscdcv1" and not found["table"]:
            self._server.cdc_users |= {found["user"]}

    def _checkpoint(self, _found: re.Match[str]) -> None:
        """Do nothing: the emulator's log files are free as soon as they are full."""

    def _switch_log(self, _found: re.Match[str]) -> None:
        self._server.switch_log()

    def _python(self, table: str, row: StoredRow) -> dict[str, object]:
        return {
            name: None if text is None else _to_python(self._account.types[table][name], text)
            for name, text in row.items()
        }


def _to_python(type_text: str, text: str) -> object:
    return _TO_PYTHON.get(re.split(r"[ (]", type_text)[0], str)(text)


_STATEMENTS: list[tuple[re.Pattern[str], Callable[[EmulatedSql, re.Match[str]], list[Row] | None]]] = [
    (re.compile(pattern, re.DOTALL), run)
    for pattern, run in (
        (r"CREATE DATABASE (?P<name>\w+)(?P<log> WITH LOG)?", EmulatedSql._create_database),
        (r"CREATE TABLE (?P<table>\w+) \((?P<columns>.*)\)", EmulatedSql._create_table),
        (r"ALTER TABLE (?P<table>\w+) ADD \((?P<columns>.*)\)", EmulatedSql._add_columns),
        (r"CREATE VIEW (?P<view>\w+) AS SELECT .*", EmulatedSql._create_view),
        (r"DROP TABLE (?P<table>\w+)", EmulatedSql._drop_table),
        (r"GRANT \w+(?: ON (?P<table>\w+))? TO (?P<user>\w+)", EmulatedSql._grant),
        (r"BEGIN WORK", EmulatedSql._begin),
        (r"COMMIT WORK", EmulatedSql._commit),
        (r"ROLLBACK WORK", EmulatedSql._rollback),
        (r"SAVEPOINT (?P<name>\w+)", EmulatedSql._savepoint),
        (r"ROLLBACK WORK TO SAVEPOINT (?P<name>\w+)", EmulatedSql._rollback_to),
        (
            r"INSERT INTO (?P<table>\w+) \((?P<columns>[^)]*)\) VALUES \((?P<values>.*)\)",
            EmulatedSql._insert,
        ),
        (r"UPDATE (?P<table>\w+) SET (?P<changes>.*) WHERE id = (?P<key>\d+)", EmulatedSql._update),
        (r"DELETE FROM (?P<table>\w+) WHERE id = (?P<key>\d+)", EmulatedSql._delete),
        (r"TRUNCATE TABLE (?P<table>\w+)", EmulatedSql._truncate),
        (r"SELECT .* FROM (?P<table>t\d\w*) ORDER BY id", EmulatedSql._select),
        (r"EXECUTE FUNCTION sysadmin:task\('onmode', 'l'\)", EmulatedSql._switch_log),
        (r"EXECUTE FUNCTION sysadmin:task\('checkpoint'\)", EmulatedSql._checkpoint),
        (
            r"EXECUTE FUNCTION sysadmin:task\('table update_ipa', '(?P<table>\w+)', '\w+'\)",
            EmulatedSql._finish_alter,
        ),
    )
]
