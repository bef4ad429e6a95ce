"""A transport that answers from a script and writes down what it was asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from informix_capture_client import statements
from informix_capture_client.errors import InformixCdcError
from informix_capture_client.records.records import RecordKind
from informix_capture_client.transport.base import Row

Answer = int | InformixCdcError

RECORD_TYPES: list[Row] = [(str(int(kind)), f"CDC_REC_{kind.name}"[:16]) for kind in RecordKind]
ERROR_CODES: list[Row] = [
    ("-83706", "CDC_E_TABPROPERT", "The table cannot be captured."),
    ("-83710", "CDC_E_TABCAPTURE", "Captured already."),
    ("-83713", "CDC_E_LSN       ", "The log position is not available."),
    ("-83705", "CDC_E_NOTAB", "No such table."),
    ("-83701", "CDC_E_NOCDCDB", "No syscdcv1."),
    ("-83703", "CDC_E_NODB", "No such database."),
    ("-83704", "CDC_E_DBNOTLOGGE", "Not logged."),
    ("-83707", "CDC_E_NOCOL", "No such column."),
    ("-83708", "CDC_E_NOSES", "No such session."),
    ("-83715", "CDC_E_DUPLSESS", "A session is active."),
    ("-83724", "CDC_E_ARG4", "Argument 4 is out of range."),
    ("-83721", "CDC_E_ARG1", "Argument 1 is out of range."),
    ("-83734", "CDC_E_LOCALEMISM", "Locales differ."),
]


def function_in(statement: str) -> str:
    """Return the name of the function that a statement executes."""
    return statement.partition("informix.")[2].partition("(")[0]


@dataclass
class ScriptedTransport:
    """Answers 0 (77 to cdc_opensess) unless `answers` says otherwise."""

    answers: dict[str, Answer] = field(default_factory=dict)
    tables: dict[str, list[Row]] = field(default_factory=dict)
    reads: Sequence[bytes | bytearray | BaseException] = ()
    calls: list[tuple[object, ...]] = field(default_factory=list)
    on_read: Callable[[], None] = lambda: None
    closed: threading.Event = field(default_factory=threading.Event)

    def call(self, statement: str, *arguments: int | str) -> int:
        name = function_in(statement)
        self.calls.append((name, *arguments))
        answer = self.answers.get(name, 77 if name == "cdc_opensess" else 0)
        if isinstance(answer, InformixCdcError):
            raise answer
        return answer

    def rows(self, statement: str, *arguments: int | str) -> list[Row]:
        usual: dict[str, list[Row]] = {
            statements.RECORD_TYPES: RECORD_TYPES,
            statements.ERROR_CODES: ERROR_CODES,
            statements.API_VERSION: [("1", "1")],
            statements.ERROR_TEXT: [(f"text of {arguments[0] if arguments else ''}",)],
        }
        return self.tables.get(statement, usual[statement])

    def lo_read(self, session_id: int, max_bytes: int) -> memoryview:
        self.on_read()
        self.calls.append(("lo_read", session_id, max_bytes))
        number = sum(1 for call in self.calls if call[0] == "lo_read") - 1
        chunk = self.reads[min(number, len(self.reads) - 1)]
        if isinstance(chunk, BaseException):
            raise chunk
        return memoryview(chunk)

    def close(self) -> None:
        self.closed.set()
