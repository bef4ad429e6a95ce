"""Let several connections do their shares at once, and give up one that does not answer.

Rule: each share has a thread of its own that holds up no end of a process: through a driver manager a
call has no time limit, and may never return.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from typing import TypeVar

_LOOK_SECONDS = 1.0

T = TypeVar("T")


def side_by_side(tasks: Sequence[Callable[[], T]], look: Callable[[], None]) -> list[T]:
    """Return what tasks return, in their order, once all have ended.

    Args:
        tasks: each has a thread.
        look: called every second; what it raises gives up tasks that have not ended.

    Raises:
        BaseException: what the first of them has failed with, or what `look` has.
    """
    started = [_begun(task) for task in tasks]
    while wait(started, _LOOK_SECONDS).not_done:
        look()
    return [each.result() for each in started]


def _begun(task: Callable[[], T]) -> Future[T]:
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(task())
        except BaseException as reason:  # noqa: BLE001 - whoever asks for the result raises it
            future.set_exception(reason)

    threading.Thread(target=run, name="informix-cdc large objects", daemon=True).start()
    return future
