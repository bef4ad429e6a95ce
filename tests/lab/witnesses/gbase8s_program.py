"""GBASE's own Python driver, told what to do by lines of JSON: runs in an environment of its own.

Rule: no import of ours. A line is [verb, argument ...]; each is answered by one object. A value comes
back as [name of its Python type, its text], None as null.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import gbase8sdb  # type: ignore[import-not-found]


class Conversation:
    """One connection, one cursor."""

    def __init__(self) -> None:
        self.connection: Any = None

    def connect(self, dsn: str, user: str, password: str) -> str:
        self.connection = gbase8sdb.connect(dsn, user, password)
        return str(gbase8sdb.__version__)

    def execute(self, sql: str, *values: object) -> Any:
        cursor = self.connection.cursor()
        cursor.execute(sql, values or None)
        described = cursor.description
        rows = cursor.fetchall() if described else []
        answer = {
            "columns": [str(column[0]) for column in described or ()],
            "rows": [[_shown(value) for value in row] for row in rows],
            "count": cursor.rowcount,
        }
        cursor.close()
        return answer

    def commit(self) -> None:
        self.connection.commit()

    def rollback(self) -> None:
        self.connection.rollback()

    def close(self) -> None:
        self.connection.close()


def _shown(value: object) -> list[str] | None:
    return None if value is None else [type(value).__name__, str(value)]


def main() -> None:
    """Answer every line of standard input."""
    conversation = Conversation()
    for line in sys.stdin:
        verb, *arguments = json.loads(line)
        try:
            said = {"answer": getattr(conversation, verb)(*arguments)}
        except Exception as error:  # noqa: BLE001 - whatever the driver throws is what is asked for
            said = {"error": {"class": type(error).__name__, "message": str(error), "code": None}}
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
