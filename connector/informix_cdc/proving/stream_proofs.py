"""Proofs about whole streams: restarts, and snapshots while others write.

Rule: see `outcomes.py`. The stream is that of a query: same capture, spool, offsets and rows.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress

from informix_capture_client.errors import InformixCdcError
from informix_capture_client.shapes import ChangeRow
from informix_cdc.options import SnapshotOptions
from informix_cdc.proving import sql_text
from informix_cdc.proving.outcomes import Deviation, expect, expect_equal, needed
from informix_cdc.proving.proofs import proof
from informix_cdc.proving.prover import Prover
from informix_cdc.proving.sql_text import ContractTable
from informix_cdc.proving.type_proofs import WideTable, wide_tables

_KEYS_BEFORE, _KEYS_BESIDE = 300, 60
_BATCHES = 4


@proof(3, 7, does="stops a stream between transactions and inside one, and starts it from its offset")
def restarts(prover: Prover) -> None:
    """No row is missing or delivered twice."""
    table = prover.plain_table()
    with prover.spool() as folder, prover.writer() as writer, prover.writer() as long:
        with prover.stream([table], folder) as stream:
            stream.begin()
            long.begin()
            long.insert(table, id="1000")
            for number in range(3):
                writer.insert(table, id=str(number))
            rows = stream.until(lambda rows: len(rows) >= 3)
        for number in range(3, 6):
            writer.insert(table, id=str(number))  # while no stream runs
        long.insert(table, id="1001")
        long.commit()
        with prover.stream([table], folder, offset=stream.offset) as again:
            rows = rows + again.until(lambda rows: len(rows) >= 5)
            writer.insert(table, id="6")
            last = again.until(lambda rows: len(rows) >= 6)[5:]
    found = [change.row["id"] for change in [*rows[:8], *last]]
    expect_equal("keys", [0, 1, 2, 3, 4, 5, 1000, 1001, 6], found)


@proof(
    85,
    86,
    does="reads tables with a column of every type by a snapshot, and compares with SELECT",
    needs=(61,),
)
def a_snapshot_of_every_type(prover: Prover) -> None:
    """A SELECT in blocks has the values of a capture."""
    made = wide_tables(prover)
    with prover.writer() as writer:
        for wide in made:
            writer.run(f"CREATE UNIQUE INDEX i_{wide.table.name} ON {wide.table.name} (id)")
            with needed("INSERT of literals is refused"):
                writer.insert_all(wide.table, [*wide.rows()])
    count = sum(len([*wide.rows()]) for wide in made)
    tables = [wide.table for wide in made]
    settings = _snapshot_of(tables, "id")
    with prover.spool() as folder, prover.stream(tables, folder, settings) as stream:
        rows = stream.until(lambda rows: len(_existing(rows)) >= count)
    differing = [text for wide in made for text in _differing(prover, wide, _existing(rows))]
    if differing:
        raise Deviation("the values of SELECT", "; ".join(differing))


_FUNCTIONS = ("user", "today", "current", "sitename", "dbservername", "current_user")


@proof(
    111,
    does="reads a table whose key columns are named user, today, current and so on by a snapshot",
    needs=(61,),
)
def columns_named_like_functions(prover: Prover) -> None:
    """Each row has the values that were written, and each chunk begins behind the last.

    Row n differs from row n + 1 in key column n only, so that each column must be compared as a column.
    """
    columns = dict.fromkeys(_FUNCTIONS, "varchar(20,0) not null")
    table = prover.create_table({"id": "integer", **columns}, "LOCK MODE ROW")
    written = [
        {"id": str(row), **{name: "a" if place < row else "b" for place, name in enumerate(_FUNCTIONS)}}
        for row in range(len(_FUNCTIONS) + 1)
    ]
    key = ", ".join(sql_text.identifier(name) for name in _FUNCTIONS)
    with prover.writer() as writer:
        writer.run(f"CREATE UNIQUE INDEX i_{table.name} ON {table.name} ({key})")
        writer.insert_all(table, written)
    snapshot = _snapshot_of([table], *_FUNCTIONS, chunk_rows=1)
    with prover.spool() as folder, prover.stream([table], folder, snapshot) as stream:
        stream.begin()
        stream.until(lambda _: stream.snapshots_are_done)
        rows = _existing(stream.rows)
    found = sorted(({**row.row, "id": str(row.row["id"])} for row in rows), key=lambda row: row["id"])
    expect_equal("rows", len(written), len(found))
    pairs = [*zip(written, found, strict=True)]
    names = [name for name in _FUNCTIONS if any(row[name] != read[name] for row, read in pairs)]
    expect(not names, "the values of the columns", f"other values of {', '.join(names)}")


@proof(
    114,
    does="compares texts that end with blanks in a snapshot over ODBC with what was written",
    transport="odbc",
    needs=(61,),
)
def blanks_at_the_end_over_odbc(prover: Prover) -> None:
    """The driver must not cut them."""
    kinds = ("varchar(20,0)", "nvarchar(20,0)", "lvarchar(200)", "lvarchar(4000)")
    columns = {f"c{place}": kind for place, kind in enumerate(kinds)}
    table = prover.create_table({"id": "integer not null", **columns}, "LOCK MODE ROW")
    with prover.writer() as writer:
        writer.run(f"CREATE UNIQUE INDEX i_{table.name} ON {table.name} (id)")
        writer.insert(table, id="1", **dict.fromkeys(columns, "x  "))
    with (
        prover.spool() as folder,
        prover.stream([table], folder, _snapshot_of([table], "id")) as stream,
    ):
        rows = stream.until(lambda rows: bool(_existing(rows)))
    (row,) = _existing(rows)
    cut = [kind for name, kind in columns.items() if row.row[name] != "x  "]
    expect(not cut, "all blanks", f"cut: {', '.join(cut)}")


def _snapshot_of(
    tables: Iterable[ContractTable], *key: str, chunk_rows: int = 50_000
) -> SnapshotOptions:
    """Return the options of a stream that begins with the existing rows, read by a key."""
    names = [f"{table.owner}.{table.name}" for table in tables]
    keys = tuple((name, key) for name in names)
    return SnapshotOptions(tables=tuple(names), keys=keys, chunk_rows=chunk_rows)


def _existing(rows: Iterable[ChangeRow]) -> list[ChangeRow]:
    """Return the rows of snapshots, without the truncate that begins one."""
    return [row for row in rows if row.metadata["_snapshot"] and row.change_type != "truncate"]


def _differing(prover: Prover, wide: WideTable, rows: Iterable[ChangeRow]) -> list[str]:
    ours = [row for row in rows if row.table == wide.table.full_name]
    ours.sort(key=lambda row: int(row.row["id"]))
    printed = prover.printed(wide.table)
    expect(len(ours) == len(printed), f"{len(printed)} rows", f"{len(ours)} rows")
    return [
        f"{case.type_text} ({count} of {len(printed)} values)"
        for place, (name, case) in enumerate(wide.columns(), 1)
        if (
            count := sum(
                _comparable(case.type_text, row.row[name]) != values[place]
                for row, values in zip(ours, printed, strict=True)
            )
        )
    ]


def _comparable(type_text: str, value: object) -> object:
    return sql_text.comparable(type_text, sql_text.rendered(type_text, value))


@proof(
    82,
    87,
    96,
    does="reads a table with a key of a DATE and a text by a snapshot, while others write it",
    needs=(61,),
)
def a_snapshot_beside_writers(prover: Prover) -> None:
    """What the stream has delivered at the end equals the table."""
    table = prover.create_table(
        {"id": "integer", "d": "date not null", "c": "varchar(20,0) not null", "v": "integer"},
        "LOCK MODE ROW",
    )
    with prover.writer() as writer:
        writer.run(f"CREATE UNIQUE INDEX i_{table.name} ON {table.name} (d, c)")
        writer.insert_all(table, [_keyed(number) for number in range(_KEYS_BEFORE)])
    snapshot = _snapshot_of([table], "d", "c", chunk_rows=50)
    with prover.spool() as folder, prover.stream([table], folder, snapshot) as stream:
        stream.begin()
        worker = threading.Thread(target=_write_beside, args=(prover, table), daemon=True)
        worker.start()
        last = _KEYS_BEFORE + _BATCHES
        rows = stream.until(
            lambda rows: stream.snapshots_are_done and any(row.row.get("id") == last for row in rows)
        )
        worker.join()
    expected = {row[0]: row[3] for row in prover.printed(table)}
    found = _applied(rows)
    expect(set(found) == set(expected), f"{len(expected)} keys", f"{len(found)} keys, or others")
    count = sum(found[key] != expected[key] for key in expected)
    expect_equal("rows that differ", 0, count)


def _keyed(number: int) -> dict[str, str | None]:
    return {"id": str(number), "d": f"2024-01-{number % 28 + 1:02}", "c": f"k{number}", "v": "0"}


def _write_beside(prover: Prover, table: ContractTable) -> None:
    """Update, delete and insert, and commit a last row that says that all has been written."""
    with suppress(InformixCdcError), prover.writer() as writer:
        writer.run("SET LOCK MODE TO WAIT 5")
        for number in range(0, _KEYS_BESIDE, 2):
            writer.update(table, number, v="1")
            writer.delete(table, number + 1)
        for number in range(_KEYS_BEFORE, _KEYS_BEFORE + _BATCHES):
            writer.insert(table, **_keyed(number))
        writer.insert(table, **_keyed(_KEYS_BEFORE + _BATCHES))


def _applied(rows: Iterable[ChangeRow]) -> dict[object, object]:
    """Return the value by key after all changes, as text that compares."""
    table: dict[object, object] = {}
    for row in rows:
        if row.change_type == "truncate" or row.change_type == "update_preimage":
            continue
        key = sql_text.comparable("integer", str(row.row["id"]))
        if row.change_type == "delete":
            table.pop(key, None)
        else:
            table[key] = sql_text.comparable("integer", str(row.row["v"]))
    return table
