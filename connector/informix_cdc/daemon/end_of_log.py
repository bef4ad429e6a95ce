"""Answer readers that ask for the end of the server's log: a run that ends with what is committed now.

Rule: the end is read from the server after the question, by a thread of its own, and the question is
answered once the capture has read that far and all of it is stored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

from informix_capture_client.catalog import LogSpace
from informix_capture_client.positions import page_after
from informix_cdc.capture import CaptureState
from informix_cdc.options import ConnectionOptions
from informix_cdc.server import open_catalog
from informix_checkpoints.readers import ReaderState
from informix_checkpoints.shared_captures import PublishedCapture

_RETRY_SECONDS = 5.0


class _LogEnd(NamedTuple):
    position: int
    space: LogSpace | None


@dataclass(slots=True)
class LogEndQuestions:
    """The questions of readers, of which one is asked at a time, for all that wait.

    Args:
        connection: where to connect.
        state: of the capture.
    """

    connection: ConnectionOptions
    state: CaptureState
    _answered: dict[str, int] = field(default_factory=dict)
    _asked: dict[str, int] = field(default_factory=dict)  # the question that is being answered
    _end: Future[_LogEnd] | None = None
    _number: int = 0  # of the watch for it; 0: the end is not known yet
    _not_before: float = -math.inf
    _thread: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, "informix-cdc end of log")
    )

    def answered(self, published: PublishedCapture | None) -> Mapping[str, int]:
        """Return for each reader the last question that was answered, also by earlier processes."""
        return {**(published.answered if published else {}), **self._answered}

    def step(self, readers: Sequence[ReaderState]) -> None:
        """Ask, or answer, whatever is due."""
        if self._number:
            watch = self.state.end_of_log
            if watch.questions >= self._number and self.state.has_all:
                self._answered.update(self._asked)
                self._number = 0
        elif self._end is not None:
            self._watch_for_end(self._end)
        else:
            self._ask(readers)

    def close(self) -> None:
        """End the thread; a request in flight is not awaited."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _ask(self, readers: Sequence[ReaderState]) -> None:
        open_ = {each.name: each.asked for each in readers}
        self._asked = {n: asked for n, asked in open_.items() if asked > self._answered.get(n, 0)}
        if self._asked and self.state.clock() >= self._not_before:
            self._end = self._thread.submit(self._read_end)

    def _watch_for_end(self, end: Future[_LogEnd]) -> None:
        if not end.done():
            return
        self._end = None
        if end.exception() is not None:  # the capture's own connection reports what is wrong
            self._not_before = self.state.clock() + _RETRY_SECONDS
            return
        self._number = self.state.end_of_log.questions + 1
        self.state.end_of_log.watch_for(*end.result())

    def _read_end(self) -> _LogEnd:
        with open_catalog(self.connection) as catalog:
            return _LogEnd(page_after(catalog.current_position()), catalog.log_space())
