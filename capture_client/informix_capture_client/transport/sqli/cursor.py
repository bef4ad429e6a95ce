"""Fetch the rows of a prepared statement over SQLI, one response at a time.

Rule: reading to the end closes the cursor; a caller that stops earlier must close it. After a failure
no rows of that response are returned.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TypeVar

from informix_capture_client.errors import InformixCdcError
from informix_capture_client.transport.errors import Door
from informix_capture_client.transport.sqli import requests
from informix_capture_client.transport.sqli.answers import SqliAnswer
from informix_capture_client.transport.sqli.describing import Description, SqliColumn, StatementKind
from informix_capture_client.transport.sqli.requests import BindValue, Request
from informix_capture_client.transport.sqli.tuples import Tuples

T = TypeVar("T")
Ask = Callable[[Request, bool], SqliAnswer]  # and whether rows come in bulk


@dataclass(frozen=True, slots=True)
class Fetching:
    """Settings for fetching rows.

    Attributes:
        room: the maximum bytes of rows in one response.
        in_bulk: whether rows are returned as `SqliAnswer.tuples`.
    """

    room: int = requests.FETCH_BYTES
    in_bulk: bool = False


class SqliCursor:
    """A cursor that opens with its first fetch.

    Args:
        ask: sends a request and returns its response, without an error.
        described: the statement.
        values: of the parameters.
        serial: a number that is unique among the connection's cursors.
        fetching: the settings.
    """

    def __init__(
        self,
        ask: Ask,
        described: Description,
        values: Sequence[BindValue],
        serial: int,
        fetching: Fetching,
    ) -> None:
        self._ask = ask
        self._described = described
        self._opening = requests.open_cursor(described.number, serial, values)
        self._fetching = fetching
        self._is_begun = self._is_over = self._is_open = False

    def fetch(self) -> SqliAnswer | None:
        """Return the next response with rows; None at the end, when the cursor is closed."""
        if self._is_over:
            return None
        is_first, self._is_begun = not self._is_begun, True
        answer = self._begun() if is_first else self._more()
        has_rows = bool(answer.rows or answer.tuples)
        self._is_open = not answer.is_closed
        if not has_rows or answer.is_at_end or (is_first and self._is_all(answer)):
            self.close()
        return answer if has_rows else None

    def close(self) -> None:
        """Close the cursor, if it is open."""
        self._is_over = True
        if self._is_open:
            self._is_open = False
            self._ask(requests.close_cursor(self._described.number), False)

    def _begun(self) -> SqliAnswer:
        how = self._fetching
        fetching = requests.fetch(self._described, how.room)
        if not requests.has_variable_size(self._described.columns):
            return self._ask([*self._opening, *fetching], how.in_bulk)
        self._ask(self._opening, False)
        return self._ask(fetching, how.in_bulk)

    def _more(self) -> SqliAnswer:
        self._is_open = False  # of an answer that fails nothing is known; its statement is released
        how = self._fetching
        return self._ask(requests.fetch_more(self._described, how.room), how.in_bulk)

    def _is_all(self, answer: SqliAnswer) -> bool:
        """Return whether a function returned one row where two fit, at which IBM drivers stop."""
        lengths = [len(row) for row in answer.rows]
        lengths += [length for each in answer.tuples for length in each.lengths.tolist()]
        room = max(self._fetching.room, self._described.row_bytes)
        is_function = self._described.kind == StatementKind.EXECUTE
        return is_function and len(lengths) == 1 and 2 * lengths[0] < room


class TupleCursor:
    """The rows of a query as received bytes, for decoding in bulk.

    Args:
        door: of the connection.
        cursor: opens with the first fetch.
        columns: as described by the server.
        release: frees the statement.
    """

    def __init__(
        self, door: Door, cursor: SqliCursor, columns: Sequence[SqliColumn], release: Callable[[], None]
    ) -> None:
        self.columns = columns
        self._door = door
        self._cursor = cursor
        self._release = release
        self._is_released = False

    def fetch(self) -> list[Tuples]:
        """Return the next rows, in order; empty at the end.

        Raises: as the transport does.
        """
        with self._door:
            answer = self._cursor.fetch()
            return [] if answer is None else answer.tuples

    def fetched(self) -> Generator[Tuples]:
        """Yield all rows, fetching the next response while the caller processes the previous one."""
        return fetched_ahead(self.fetch)

    def close(self) -> None:
        """Close cursor and statement; ignore a connection that breaks meanwhile."""
        if self._is_released or self._door.closed or self._door.is_foreign:
            return
        self._is_released = True
        with suppress(InformixCdcError), self._door:
            try:
                self._cursor.close()
            finally:
                self._release()


def fetched_ahead(fetch: Callable[[], Sequence[T]]) -> Generator[T]:
    """Yield the results of calls until one returns nothing.

    One call runs ahead in a separate thread. A caller that stops early waits for it: then the
    connection is free for the next request.

    Raises: what a call raises, behind all that came before it.
    """
    wanted, answers = SimpleQueue[bool](), SimpleQueue[Sequence[T] | BaseException]()
    # A daemon: a server that does not answer must not keep a process from ending.
    threading.Thread(target=_answer, args=(fetch, wanted, answers), daemon=True).start()
    on_its_way = _ask(wanted)
    try:
        while True:
            answer, on_its_way = answers.get(), False
            if isinstance(answer, BaseException):
                raise answer
            if not answer:
                return
            on_its_way = _ask(wanted)
            yield from answer
    finally:
        if on_its_way:
            answers.get()
        wanted.put(False)


def _ask(wanted: SimpleQueue[bool]) -> bool:
    wanted.put(True)
    return True


def _answer(
    fetch: Callable[[], Sequence[T]],
    wanted: SimpleQueue[bool],
    answers: SimpleQueue[Sequence[T] | BaseException],
) -> None:
    while wanted.get():
        try:
            answers.put(fetch())
        except BaseException as reason:  # noqa: BLE001 - the thread that waits for the answer raises it
            answers.put(reason)
