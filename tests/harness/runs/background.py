"""Something that goes on while a test does something else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def meanwhile(
    step: Callable[[], object],
    pause_seconds: float = 0.002,
    is_over: threading.Event | None = None,
) -> Iterator[None]:
    """Do something again and again for the length of a block, which ends with its failure.

    Args:
        step: what is done.
        pause_seconds: between two steps.
        is_over: is set when the block ends, for a step that takes long.
    """
    over, failures = is_over or threading.Event(), list[BaseException]()

    def run() -> None:
        try:
            while not over.wait(pause_seconds):
                step()
        except BaseException as reason:  # noqa: BLE001 - raised where the block ends
            failures.append(reason)

    worker = threading.Thread(target=run)
    worker.start()
    try:
        yield
    finally:
        over.set()
        worker.join()
        if failures:
            raise failures[0]
