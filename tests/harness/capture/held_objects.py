"""Hold a capture back where it would begin to read large objects."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

from harness.runs.patience import patiently
from informix_cdc.object_contents.pool import ContentPool

T = TypeVar("T")


@contextmanager
def objects_are_held() -> Iterator[Callable[[Callable[[], T]], T]]:
    """Let no capture open an object before something has been done, by what this yields.

    What a row's object is then is not a matter of who is faster.
    """
    is_done, begin = threading.Event(), ContentPool.begin

    def held(pool: ContentPool, *committed: frozenset[int]) -> None:
        is_done.wait(patiently(60))
        begin(pool, *committed)

    def first(do: Callable[[], T]) -> T:
        try:
            return do()
        finally:
            is_done.set()

    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(ContentPool, "begin", held)
        try:
            yield first
        finally:
            is_done.set()
