"""LeoneGarage's Informix bridge, told what to do by lines of JSON: runs in a process of its own.

Rule: no import of ours. A line is [verb, argument ...]; each is answered by one object. A value comes
back as its text, NULL as null.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from databricks.labs.community_connector.sources.informix import (  # type: ignore[import-not-found]
    informix,
)


class Conversation:
    """One bridge, and the tables that it has found."""

    def __init__(self) -> None:
        self.bridge: Any = None
        self.tables: dict[str, Any] = {}

    def connect(self, options: dict[str, str]) -> None:
        self.bridge = informix.PurePythonInformixBridge(options)

    def list_tables(self, database: str) -> Any:
        found = [informix.Table.parse(raw, database) for raw in self.bridge.list_tables()]
        self.tables = {table.exposed_name: table for table in found}
        return {
            name: [[column.name for column in table.columns], list(table.primary_keys)]
            for name, table in self.tables.items()
        }

    def prepare(self, names: list[str]) -> int:
        position: int = self.bridge.prepare_initial_capture(
            [self.tables[name].native_identity for name in names]
        )
        return position

    def snapshot(self, name: str, after: list[Any] | None, limit: int) -> Any:
        table = self.tables[name]
        columns = [column.name for column in table.columns]
        page = self.bridge.snapshot_page(
            table.identity, columns, list(table.primary_keys), after, limit
        )
        return [_texts(row) for row in page]

    def changes(self, names: list[str], position: int, seconds: int, most_records: int) -> Any:
        captures = [informix._capture_descriptor(self.tables[name]) for name in names]
        records = self.bridge.read_changes(captures, position, seconds, most_records)
        return [_shown(record) for record in records]


def _shown(record: dict[str, Any]) -> dict[str, Any]:
    shown = {"type": record["op"], "sequence": record.get("lsn"), "transaction": record.get("tx_id")}
    if "row" in record:
        shown |= {"label": str(record["label"]), "data": _texts(record["row"])}
    return shown


def _texts(row: dict[str, Any]) -> dict[str, str | None]:
    return {name: None if value is None else _text(value) for name, value in row.items()}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def main() -> None:
    """Answer every line of standard input."""
    conversation = Conversation()
    for line in sys.stdin:
        verb, *arguments = json.loads(line)
        try:
            said = {"answer": getattr(conversation, verb)(*arguments)}
        except Exception as error:  # noqa: BLE001 - whatever it throws is what is asked for
            said = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
