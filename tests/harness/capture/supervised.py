"""A query of any shape that a supervisor starts again, and copies of its tables from its rows."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.capture.copied_tables import Consumer
from harness.capture.driving import Offset
from harness.runs.background import meanwhile
from harness.runs.patience import wait_until
from harness.servers.in_process import InProcessConnection
from informix_capture_client.errors import InformixCdcError, RestartRequired

Row = dict[str, Any]
_IMAGES = ("before", "after")
_ENVELOPES = {"c": "insert", "d": "delete", "u": "update", "r": "insert", "t": "truncate"}
OF_SHAPES: dict[str, dict[str, str]] = {
    "rows": {"shape": "rows"},
    "rows with events": {"shape": "rows", "tableEvents": "true"},
    "envelope": {"shape": "envelope"},
    "json": {"shape": "json", "tableEvents": "true"},
    "json without events": {"shape": "json"},
}


class Supervised(Consumer):
    """A query that is started again whenever it ends, with the tables that exist then.

    Attributes:
        ends: the errors with which it has ended.
        tables, options: a test may change them.
    """

    def __init__(
        self,
        port: int,
        folder: Path,
        options: dict[str, str],
        tables: tuple[str, ...] = ("informix.lines", "informix.other"),
    ) -> None:
        super().__init__(port, folder, options, dict.fromkeys(tables, ("id",)))
        self.tables, self.commits, self.ends = tables, True, list[InformixCdcError]()

    def stream_options(self) -> dict[str, str]:
        common = {"truncate": "emit", "snapshotChunkRows": "5", "initialSnapshot": "all"}
        return {"table": ",".join(self.tables), **common, **self.options}

    def changes_of(self, rows: list[Row]) -> Iterable[Row]:
        return (_change_of(number, row) for number, row in enumerate(rows))

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run in the background, started again whenever it ends."""
        stop = threading.Event()
        with meanwhile(lambda: self._run_once(stop), is_over=stop):
            yield

    def until_equal(self, writer: InProcessConnection, *tables: str) -> None:
        """Run until nothing is requested and the copies have what the tables have."""

        def is_equal() -> bool:
            copied = {table: self.copies.rows[table] for table in tables}
            return not self.requests.pending() and copied == in_server(writer, *tables)

        with self.running():
            wait_until(is_equal, 60)

    def repeat(self, start: Offset, end: Offset) -> None:
        """Deliver a batch as Spark does that was planned before the process died."""
        with self.reader() as made:
            self.offset = start
            self.take(made, end)

    def _run_once(self, stop: threading.Event) -> None:
        try:
            with self.reader() as made:
                while not stop.is_set():
                    self.step(made)
        except RestartRequired as reason:
            self.ends.append(reason)
            stop.wait(0.2)
        except InformixCdcError as reason:  # between DROP and CREATE there is no table to start with
            if "does not exist" not in str(reason):
                raise
            self.ends.append(reason)
            stop.wait(0.2)


def _change_of(number: int, row: Row) -> Row:
    """Return a row of any shape as one of shape=json, which copies apply."""
    if "op" in row:
        table, kind = f"informix.{row['source']['table']}", _ENVELOPES[row["op"]]
        images = {name: row[name] and row[name].get(_plain(table), row[name]) for name in _IMAGES}
    elif "after" in row:
        return row
    else:
        table, kind = row["_table"].partition(":")[2], row["_change_type"]
        values = {name: value for name, value in row.items() if not name.startswith("_")}
        image = row.get(_plain(table), values)
        is_before = kind in ("delete", "update_preimage")
        images = {"before": image if is_before else None, "after": None if is_before else image}
    texts = {name: json.dumps(image, default=str) if image else None for name, image in images.items()}
    return {
        "_commit_version": 0,
        "_change_ordinal": number,
        "_table": f":{table}",
        "_change_type": kind,
        **texts,
    }


def _plain(table: str) -> str:
    return table.rpartition(".")[2]


def in_server(writer: InProcessConnection, *tables: str) -> dict[str, dict[Any, Row]]:
    """Return the rows of tables by their key id, with the types of the stream."""
    found: dict[str, dict[Any, Row]] = {}
    for table in tables:
        columns = writer.rows(
            "SELECT colname FROM syscolumns c, systables t WHERE c.tabid = t.tabid AND"
            f" t.tabname = '{_plain(table)}' ORDER BY colno"
        )
        names = [str(name).strip() for (name,) in columns]
        rows = [dict(zip(names, row, strict=True)) for row in writer.rows(f"SELECT * FROM {table}")]
        found[table] = {(int(str(row["id"])),): {k: _typed(v) for k, v in row.items()} for row in rows}
    return found


def _typed(value: object) -> object:
    text = str(value)
    return int(text) if text.lstrip("-").isdigit() else value
